"""Predicates straight to a row mask, with the common comparisons done on NumPy views of the columns.

>>> from caesura.expr.nodes import col
>>> batch = pa.record_batch({"a": pa.array([1, 5, 9])})
>>> compile_predicate((col("a") > 2) & (col("a") < 9), batch.schema)(batch)
array([False,  True, False])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caesura.expr.evaluation import Ticks, compile_expr, predicate_mask
from caesura.expr.faults import RowError
from caesura.expr.nodes import Apply, Boundary, Column, Constant, Expr
from caesura.expr.planning import type_of
from caesura.expr.rewrite import conjuncts, strip
from caesura.expr.rules import wrong
from caesura.expr.types import TICKS, kind
from caesura.plain_arrays import plain_numbers

Mask = npt.NDArray[np.bool_]
Masker = Callable[..., Mask]
_MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    # NaN is above every number, and NumPy says it is not below: the negations answer true for it.
    "greater": lambda a, b: ~(a <= b),
    "greater_equal": lambda a, b: ~(a < b),
}


def compile_predicate(expr: Expr, schema: pa.Schema, *, time: pa.DataType = TICKS) -> Masker:
    """A function (batch, le=None, re=None) -> mask of the rows for which the condition is true."""
    expr = strip(expr)
    type = type_of(expr, schema, time=time)
    if kind(type) not in ("boolean", "null"):
        raise wrong(
            Apply("where", (expr,)), "a condition", [type], remedy="Write a comparison, as in col('a') > 0."
        )
    parts = [_masker(part, schema, time) for part in conjuncts(expr)]
    if len(parts) == 1:
        return parts[0]
    whole = _general(expr, schema, time)

    def every(batch: pa.RecordBatch, le: Ticks | None = None, re: Ticks | None = None) -> Mask:
        try:
            mask = parts[0](batch, le, re)
            for part in parts[1:]:
                mask = mask & part(batch, le, re)
        except RowError:  # perhaps of a row that another part leaves out
            return whole(batch, le, re)
        return mask

    return every


def _masker(expr: Expr, schema: pa.Schema, time: pa.DataType) -> Masker:
    general = _general(expr, schema, time)
    match expr:
        case Apply(name=name, args=(Column() as left, Constant() as right)) if name in _TESTS:
            return _direct(name, left.name, right, schema, general)
        case Apply(name=name, args=(Constant() as left, Column() as right)) if name in _TESTS:
            return _direct(_MIRRORED[name], right.name, left, schema, general)
        case Apply(name=name, args=(Boundary() as left, Constant() as right)) if name in _TESTS:
            return _on_ticks(name, left, right, time, general)
    return general


def _general(expr: Expr, schema: pa.Schema, time: pa.DataType) -> Masker:
    compiled = cache(lambda: compile_expr(expr, schema, time=time))  # most pages go by a shorter way

    def general(batch: pa.RecordBatch, le: Ticks | None = None, re: Ticks | None = None) -> Mask:
        return predicate_mask(compiled()(batch, le, re))

    return general


def _direct(name: str, column: str, constant: Constant, schema: pa.Schema, general: Masker) -> Masker:
    type = schema.field(column).type
    bound = _bound(constant, type)
    if bound is None:
        return general
    test, stamped = _TESTS[name], kind(type) == "timestamp"

    def fast(batch: pa.RecordBatch, le: Ticks | None = None, re: Ticks | None = None) -> Mask:
        array = batch.column(column)
        if array.null_count or array.type != type:
            return general(batch, le, re)
        values = plain_numbers(array)
        return test(values.view(np.int64) if stamped else values, bound)  # type: ignore[no-any-return]

    return fast


def _on_ticks(name: str, side: Boundary, constant: Constant, time: pa.DataType, general: Masker) -> Masker:
    bound = _bound(constant, time)
    if bound is None or time.bit_width != 64:
        return general
    test, first = _TESTS[name], side.side == "start"

    def fast(batch: pa.RecordBatch, le: Ticks | None = None, re: Ticks | None = None) -> Mask:
        ticks = le if first else re
        return general(batch, le, re) if ticks is None else test(ticks, bound)

    return fast


def _bound(constant: Constant, type: pa.DataType) -> Any:
    """The constant as NumPy compares it exactly with the column's own values; None where it cannot."""
    if constant.value is None:
        return None
    match kind(type), kind(constant.type):
        case "integer", "integer" if pa.types.is_integer(type):
            return int(constant.value)
        case "float", ("integer" | "float"):
            value = float(constant.value)
            return None if math.isnan(value) else np.float64(value)
        case "timestamp", "timestamp" if (type.unit, type.tz) == (constant.type.unit, constant.type.tz):
            return constant.scalar.value
    return None
