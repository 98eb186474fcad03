"""What a consumer types, as feedback patterns over a stream: patterns, or predicates of its columns.

>>> from caesura.expr import col, start
>>> schema = pa.schema([("seg", pa.int64())])
>>> [str(p) for p in patterns_of((col("seg") == 3) | (start() < 20), schema, pa.int64())]
['seg = 3', 'LE < 20']
>>> [str(p) for p in patterns_of("seg IN (3, 7)", schema, pa.int64())]
['seg in {3, 7}']
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from caesura.errors import PatternError, closest
from caesura.expr import Expr, as_predicate, attributes, pattern_of
from caesura.expr.nodes import Apply, Boundary, Column
from caesura.expr.rewrite import children, with_children
from caesura.plan.feedback import LE, RE, check_feedback
from caesura.punctuation import Pattern, Values

ENDS = {"start": LE, "end": RE}
Meant = Pattern | Expr | bool | str
"""How a consumer says which rows are meant; a text is SQL, as in ``where``."""


def patterns_of(what: Meant, schema: pa.Schema, time: pa.DataType) -> list[Pattern]:
    """The patterns that together match exactly the rows meant."""
    if isinstance(what, Pattern):
        return [check_feedback(what, schema)]
    if isinstance(what, bool):
        return [Pattern()] if what else []
    if isinstance(what, str):
        what = as_predicate(what)
    if not isinstance(what, Expr):
        raise PatternError(
            f"feedback is a pattern, a predicate or its text; got {type(what).__name__}.",
            remedy="Write for example query.assume(col('segment') == 3).",
        )
    strange = sorted(attributes(what) - set(schema.names))
    if strange:
        raise PatternError(f"there is no column '{strange[0]}'.", remedy=closest(strange[0], schema.names))
    timed = pa.schema([*schema, pa.field(LE, time), pa.field(RE, time)])
    plain = _as_columns(what)
    return [_pattern(part, timed) for part in _alternatives(plain)]


def _as_columns(expr: Expr) -> Expr:
    """The predicate with the ends of lifetimes as columns."""
    if isinstance(expr, Boundary):
        return Column(ENDS[expr.side])
    parts = children(expr)
    return with_children(expr, [_as_columns(part) for part in parts]) if parts else expr


def _alternatives(expr: Expr) -> list[Expr]:
    """The parts of an `or`, unless it speaks of one column only, which a pattern can."""
    if isinstance(expr, Apply) and expr.name == "or" and len(attributes(expr)) > 1:
        return [part for side in children(expr) for part in _alternatives(side)]
    return [expr]


def _pattern(expr: Expr, schema: pa.Schema) -> Pattern:
    found = pattern_of(expr, schema)
    if found is None:
        raise PatternError(
            f"'{expr}' cannot be feedback, which compares single columns with constants.",
            remedy="Compare columns with constants, joined by & and |; or filter with where() in the query.",
        )
    return Pattern(**{name: _ticks(v) if name in (LE, RE) else v for name, v in found.items()})


def _ticks(values: Values) -> Values:
    """A set of times as a set of int64 ticks."""
    if values.kind in ("", "int"):
        return Values(values.low, values.cuts, False, values.kind)
    cuts = tuple((_tick(at) + side, 0) for at, side in values.cuts)
    return Values(values.low, cuts, False, "int")


def _tick(at: Any) -> int:
    epoch = datetime(1970, 1, 1, tzinfo=UTC if at.tzinfo is not None else None)
    return int((at - epoch) // timedelta(microseconds=1))
