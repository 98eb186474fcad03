"""Conditions on single values instead of columns: an expression as a function of what it reads.

A part of them is known, that which conditions of row patterns are made of: comparisons, AND, OR and NOT, sums
and products, coalesce and IS NULL over numbers, texts and dates. Numbers stay exact; a result that its type
does not hold, and a NaN, are not for us (`BeyondScalarsError`): columns have all rules.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
>>> reads = {"a": lambda row: row[0], "b": lambda row: row[1]}
>>> test = scalar(col("a") > col("b") + 1, schema, pa.int64(), reads)
>>> test((5, 2)), test((3, 2)), test((None, 2))
(True, False, None)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Context
from typing import Any

import pyarrow as pa

from caesura.expr import Expr, type_of
from caesura.expr.nodes import Apply, Column, Constant
from caesura.expr.types import kind

ScalarRead = Callable[[Any], Any]
"""From what is known to a value; None for null."""
_EXACT = Context(prec=100)
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
}
_DECIMAL_SUMS = {"add": _EXACT.add, "subtract": _EXACT.subtract, "multiply": _EXACT.multiply}
EXACT_KINDS = ("integer", "decimal")
COMPARED_KINDS = ("string", "date")


class BeyondScalarsError(Exception):
    """An expression, or a value, that columns have a rule for and single values have not."""


def scalar(expr: Expr, schema: pa.Schema, time: pa.DataType, reads: Mapping[str, ScalarRead]) -> ScalarRead:
    """An expression as a function; refuses what is not known here."""

    def made(part: Expr) -> ScalarRead:
        return scalar(part, schema, time, reads)

    match expr:
        case Column(name=name) if name in reads:
            return reads[name]
        case Constant(value=value):
            return lambda _: value
        case Apply(name="is_null", args=(arg,)):
            inner = made(arg)
            return lambda row: inner(row) is None
        case Apply(name="is_not_null", args=(arg,)):
            inner = made(arg)
            return lambda row: inner(row) is not None
        case Apply(name="not", args=(arg,)):
            inner = made(arg)
            return lambda row: None if (held := inner(row)) is None else not held
        case Apply(name="and" | "or" as name, args=(left, right)):
            return _joined(made(left), made(right), decisive=name == "or")
        case Apply(name="coalesce", args=args):
            types = {type_of(arg, schema, time=time) for arg in args}
            if len({kind(t) for t in types}) == 1:
                return _first([made(arg) for arg in args])
        case Apply(name=name, args=(left, right)) if name in _COMPARED or name in _SUMS:
            types_of = [type_of(arg, schema, time=time) for arg in (left, right)]
            sides = _alike([made(left), made(right)], types_of)
            if name in _COMPARED:
                return _both(sides, _COMPARED[name])
            return _both(sides, _summed(name, type_of(expr, schema, time=time)))
    raise BeyondScalarsError(str(expr))


def _alike(sides: list[ScalarRead], types: list[pa.DataType]) -> list[ScalarRead]:
    """Both sides as values that Python compares as the types are compared."""
    kinds = [kind(t) for t in types]
    if "null" not in kinds and all(one in EXACT_KINDS for one in kinds):
        return sides
    if len(set(kinds)) == 1 and kinds[0] in COMPARED_KINDS:
        return sides
    if "float" in kinds and all(one in (*EXACT_KINDS, "float") for one in kinds):
        return [_floating(side) for side in sides]
    raise BeyondScalarsError(str(types))


def _floating(side: ScalarRead) -> ScalarRead:
    return lambda row: None if (value := side(row)) is None else float(value)


def _both(sides: list[ScalarRead], apply: Callable[[Any, Any], Any]) -> ScalarRead:
    left, right = sides

    def value(row: Any) -> Any:
        a = left(row)
        if a is None:
            return None
        b = right(row)
        return None if b is None else apply(a, b)

    return value


def _summed(name: str, type: pa.DataType) -> Callable[[Any, Any], Any]:
    if pa.types.is_float64(type):
        return _SUMS[name]
    if kind(type) == "decimal" and type.precision < 38:
        return lambda a, b: _DECIMAL_SUMS[name](a, b)
    if kind(type) != "integer":
        raise BeyondScalarsError(str(type))
    limit, apply = 1 << (type.bit_width - 1), _SUMS[name]

    def whole(a: int, b: int) -> int:
        found = apply(a, b)
        if not -limit <= found < limit:
            raise BeyondScalarsError(str(found))
        return found  # type: ignore[no-any-return]

    return whole


def _joined(left: ScalarRead, right: ScalarRead, *, decisive: bool) -> ScalarRead:
    """AND and OR of three truths: one value decides, whatever the other is."""

    def value(row: Any) -> Any:
        a = left(row)
        if a is decisive:
            return decisive
        b = right(row)
        if b is decisive:
            return decisive
        return None if a is None or b is None else not decisive

    return value


def _first(sides: list[ScalarRead]) -> ScalarRead:
    def value(row: Any) -> Any:
        for side in sides:
            found = side(row)
            if found is not None:
                return found
        return None

    return value
