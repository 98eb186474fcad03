"""Aggregates of two columns: the value of the row with the greatest of another column, `corr`, `covar_pop`.

Both columns are one struct, which is null where the row does not count.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from caesura.expr import Expr, as_column, when
from caesura.expr.nodes import apply
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.accumulators.by import BagBy, LeadingBy
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    Reading,
    State,
    define,
    either,
    made,
)


def max_by(
    value: str | Expr, by: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The value of the row with the greatest `by`: of several, of the one that began first, then the least.

    Rows whose `by` is null do not count. Several columns are taken as ``cz.functions.struct("a", "b")``.
    """
    return _by("max_by", value, by, either(where, filter))


def min_by(
    value: str | Expr, by: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The value of the row with the least `by`; otherwise as `max_by`."""
    return _by("min_by", value, by, either(where, filter))


def _by(kind: str, value: str | Expr, by: str | Expr, where: Condition) -> Aggregate:
    picked, key = as_column(value), as_column(by)
    pair = when(key.is_not_null(), apply("struct", picked, key, options=("value", "by")))
    return _shown(made(kind, pair, where), (picked, key), where)


def _shown(aggregate: Aggregate, columns: tuple[Expr, Expr], where: Condition) -> Aggregate:
    texts = [*map(str, columns), *([] if where is None else [f"where {where}"])]
    return replace(aggregate, shown=f"{aggregate.kind}({', '.join(texts)})")


def _of_value(_: Aggregate, t: pa.DataType) -> pa.DataType:
    return t.field(0).type


def _leader(_: Aggregate, reading: Reading) -> pa.Array:
    if isinstance(reading, InSlots) and isinstance(reading.part, BagBy):
        return pc.struct_field(picks.first(reading.part.leading(reading.at), len(reading.at)), [0])
    return pc.struct_field(reading.values(), [1, 0])


def _define_by(name: str, kind: str) -> None:
    comes = State(name, lambda field, t: LeadingBy(field, kind, t), timed=True)
    goes = State(name, lambda field, t: BagBy(field, kind, t), timed=True)
    define(AggregateKind(name, _of_value, _leader, lambda t, insert_only: comes if insert_only else goes))


_define_by("max_by", "max")
_define_by("min_by", "min")
