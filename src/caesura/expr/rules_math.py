"""Arithmetic, as Spark SQL has it: / is never integer; a value that its type cannot hold is refused.

The forms that begin with try_ answer null instead. Dividing by zero is null, in Spark's words try_divide.

>>> from caesura.expr.nodes import col
>>> plan = RULES["remainder"](col("a") % 3, [pa.int64(), pa.int32()])
>>> plan.type, plan.kernel(pa.array([7, -7, None]), pa.scalar(3, pa.int64())).to_pylist()
(DataType(int64), [1, -1, None])
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.expr.arrays import column, keep_where, numbers, repeat, zero
from caesura.expr.casts import cast_kernel, rescale
from caesura.expr.decimals import DECIMALS, SwiftDecimals
from caesura.expr.faults import Attempt, arrow_checked
from caesura.expr.nodes import Apply, Constant
from caesura.expr.overflow import swift
from caesura.expr.rules import Datum, Kernel, Rule, TypedNode, Types, checking, wrong
from caesura.expr.types import MAX_DIGITS, as_decimal, common_type, decimal_of, is_numeric, kind, plain
from caesura.expr.whole import CHECKED

_DOUBLE = pa.float64()
_WIDEST = 76
_HALVES = {"round": "half_towards_infinity", "bround": "half_to_even"}
"""Where a value goes that lies in the middle."""


def _want_numbers(node: Apply, types: Types) -> None:
    if all(is_numeric(t) for t in types):
        return
    remedy = "Cast the other side, as in .cast('double')."
    if any(kind(t) in ("timestamp", "date") for t in types):
        remedy = "Move a time with .plus_time('30s') or .minus_time('30s'); subtract times as .unix_micros()."
    elif any(kind(t) == "string" for t in types):
        remedy = "Join texts with .concat(...); read a number from text with .cast('double')."
    raise wrong(node, "numbers", types, remedy=remedy)


def _arithmetic(node: Apply, types: Types) -> TypedNode:
    _want_numbers(node, types)
    kinds = {kind(t) for t in types}
    if "decimal" in kinds and "float" not in kinds:
        return _decimal_plan(node, types)
    shared = common_type(*types)
    shared = _DOUBLE if node.name == "divide" or kind(shared) == "null" else plain(shared)
    if node.name in CHECKED and kind(shared) == "integer":
        attempt = Attempt(CHECKED[node.name])
        return TypedNode(shared, (shared, shared), arrow_checked(_FAST[node.name]), attempt)
    return TypedNode(shared, (shared, shared), _ARITHMETIC[node.name])


def _divide(a: Datum, b: Datum) -> Datum:
    return pc.divide(a, _nonzero(b))


def _quotient(node: Apply, types: Types) -> TypedNode:
    """As Flink SQL divides: whole numbers to a whole number, towards zero; others as everywhere."""
    shared = common_type(*types)
    if shared is None or kind(shared) != "integer":
        return _arithmetic(Apply("divide", node.args), types)
    least = -(2 ** (shared.bit_width - 1))

    def towards_zero(a: Datum, b: Datum) -> Datum:
        beyond = pc.and_(pc.equal(a, pa.scalar(least, shared)), pc.equal(b, pa.scalar(-1, shared)))
        return keep_where(pc.invert(beyond), pc.divide(a, keep_where(pc.invert(beyond), _nonzero(b))))

    return checking(shared, (shared, shared), Attempt(towards_zero, divides=True))


def _nonzero(divisor: Datum) -> Datum:
    if isinstance(divisor, pa.Scalar):
        return pa.scalar(None, divisor.type) if divisor.as_py() == 0 else divisor
    return keep_where(pc.not_equal(divisor, zero(divisor.type)), divisor)


def _fits(divisor: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a divisor and its opposite are whole numbers of a type."""
    return bool(divisor) and dtype.kind in "iu" and abs(divisor) <= np.iinfo(dtype).max


def _rest(values: np.ndarray[Any, Any], divisor: int) -> np.ndarray[Any, Any]:
    """What dividing by one number leaves, with the sign of the values; NumPy divides by one much faster."""
    rest: np.ndarray[Any, Any] = np.floor_divide(values, values.dtype.type(divisor))
    rest *= values.dtype.type(divisor)
    np.subtract(values, rest, out=rest)
    if values.dtype.kind == "i":
        below = np.flatnonzero(values < 0)
        below = below[rest[below] > 0]
        rest[below] -= values.dtype.type(divisor)
    return rest


def _remainder(a: Datum, b: Datum) -> Datum:
    values, nulls = numbers(a)
    if isinstance(b, pa.Scalar) and values.ndim and _fits(b.as_py(), values.dtype):
        return column(_rest(values, abs(b.as_py())), nulls, a.type)
    divisors, missing = numbers(b)
    empty = divisors == 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.fmod(values, np.where(empty, 1, divisors).astype(divisors.dtype))
    return column(rest, empty | nulls | missing, a.type)


_FAST: dict[str, Kernel] = {
    "add": swift("add", pc.add_checked),
    "subtract": swift("subtract", pc.subtract_checked),
    "multiply": swift("multiply", pc.multiply_checked),
    "negate": pc.negate_checked,
    "abs": pc.abs_checked,
}
_ARITHMETIC: dict[str, Kernel] = {
    "add": pc.add,
    "subtract": pc.subtract,
    "multiply": pc.multiply,
    "divide": _divide,
    "remainder": _remainder,
}


def _decimal_operand(node: Apply, index: int, type: pa.DataType) -> pa.DataType:
    arg = node.args[index]
    if kind(type) == "null":
        return pa.decimal128(1, 0)
    if isinstance(arg, Constant) and kind(type) == "integer":
        return (
            pa.decimal128(max(1, len(str(abs(arg.value)))), 0) if arg.value is not None else as_decimal(type)
        )
    return as_decimal(type)


def _decimal_plan(node: Apply, types: Types) -> TypedNode:
    a, b = (_decimal_operand(node, i, t) for i, t in enumerate(types))
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    match node.name:
        case "add" | "subtract":
            out = decimal_of(whole + scale + 1, scale)
            return checking(out, (a, b), Attempt(_wide(_ARITHMETIC[node.name], DECIMALS[node.name], out)))
        case "multiply" if a.precision + b.precision < _WIDEST:
            out = decimal_of(a.precision + b.precision + 1, a.scale + b.scale)
            return checking(out, (a, b), Attempt(_wide(pc.multiply, DECIMALS["multiply"], out)))
        case "divide":
            scale = max(6, a.scale + b.precision + 1)
            out = decimal_of(a.precision - a.scale + b.scale + scale, scale)
            # Arrow truncates to the digits in parentheses; one more than Spark's is there to round with.
            extra = max(0, out.scale + 1 - (a.scale + b.precision - b.scale + 1))
            if a.precision + extra + b.precision < _WIDEST:
                return checking(out, (a, b), Attempt(_decimal_divide(a, b, extra, out), divides=True))
            return checking(out, (a, b), Attempt(_wide_divide(out), divides=True))
        case "remainder" if whole + scale < _WIDEST // 2:
            out = decimal_of(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
            return checking(out, (a, b), Attempt(_decimal_remainder(whole, scale, out), divides=True))
    remedy = "Cast one side to a narrower decimal, or to double."
    raise wrong(node, "decimals of fewer digits", types, remedy=remedy)


def _array(datum: Datum, rows: int) -> pa.Array:
    return repeat(datum, rows) if isinstance(datum, pa.Scalar) else datum


def _both(a: Datum, b: Datum) -> tuple[pa.Array, pa.Array]:
    rows = len(b) if isinstance(a, pa.Scalar) else len(a)
    return _array(a, rows), _array(b, rows)


def _widened(array: pa.Array, digits: int, scale: int) -> pa.Array:
    return array.cast(pa.decimal256(digits, scale))


def _wide(operation: Kernel, swift: SwiftDecimals, out: pa.DataType) -> Kernel:
    """An exact decimal operation; what is too wide for 64 bits, on 76 digits, rounded to Spark's type."""

    def kernel(a: Datum, b: Datum) -> Datum:
        made = swift(a, b, out)
        if made is not None:
            return made
        left, right = (_widened(x, x.type.precision, x.type.scale) for x in _both(a, b))
        return rescale(operation(left, right), out)

    return kernel


def _decimal_divide(a: pa.DataType, b: pa.DataType, extra: int, out: pa.DataType) -> Kernel:
    def kernel(x: Datum, y: Datum) -> Datum:
        left, right = _both(x, y)
        dividend = _widened(left, a.precision + extra, a.scale + extra)
        return rescale(pc.divide(dividend, _nonzero(_widened(right, b.precision, b.scale))), out)

    return kernel


def _wide_divide(out: pa.DataType) -> Kernel:
    """Division whose digits no type of Arrow's holds: one by one, in Python's numbers."""
    context = Context(prec=_WIDEST + MAX_DIGITS, rounding=ROUND_HALF_UP)
    unit = Decimal(1).scaleb(-out.scale)

    def quotient(x: Decimal | None, y: Decimal | None) -> Decimal | None:
        if x is None or y is None or y == 0:
            return None
        found = context.divide(x, y).quantize(unit, context=context)
        return found if len(found.as_tuple().digits) <= out.precision else None

    def kernel(x: Datum, y: Datum) -> Datum:
        left, right = _both(x, y)
        rows = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([quotient(*row) for row in rows], out)

    return kernel


def _decimal_remainder(whole: int, scale: int, out: pa.DataType) -> Kernel:
    digits = whole + scale

    def kernel(x: Datum, y: Datum) -> Datum:
        left, right = (_widened(v, digits, scale) for v in _both(x, y))
        divisor = _nonzero(right)
        quotient = pc.trunc(pc.divide(left, divisor))
        whole_times = pc.multiply(rescale(quotient, pa.decimal256(digits, 0)), divisor)
        return rescale(pc.subtract(left, rescale(whole_times, left.type)), out)

    return kernel


def _same_type(node: Apply, types: Types) -> TypedNode:
    _want_numbers(node, types)
    type = _DOUBLE if kind(types[0]) == "null" else plain(types[0])
    if kind(type) == "integer":
        return TypedNode(type, (type,), arrow_checked(_FAST[node.name]), Attempt(CHECKED[node.name]))
    return TypedNode(type, (type,), {"negate": pc.negate, "abs": pc.abs}[node.name])


def _round(node: Apply, types: Types) -> TypedNode:
    _want_numbers(node, types)
    digits, halves = node.options[0], _HALVES[node.name]
    type = _DOUBLE if kind(types[0]) == "null" else plain(types[0])
    match kind(type):
        case "integer":
            if digits >= 0:
                return TypedNode(type, (type,), lambda a: a)
            return checking(type, (type,), Attempt(lambda a: _round_integers(a, 10**-digits, halves)))
        case "decimal":
            scale = max(0, min(digits, type.scale))
            out = decimal_of(max(type.precision - type.scale, -digits) + 1 + scale, scale)
            return checking(out, (type,), Attempt(lambda a: _round_decimals(a, digits, out, halves)))
    return TypedNode(type, (type,), lambda a: _round_floats(a, digits, halves))


def _round_floats(array: pa.Array, digits: int, halves: str) -> pa.Array:
    """Floats too large to have such digits stay as they are; Arrow would fail to multiply some of them."""
    if digits <= 0:
        return pc.round(array, digits, round_mode=halves)
    known = np.finfo(array.type.to_pandas_dtype())
    if digits > math.log10(float(known.max)):
        return array
    most = pa.scalar(math.ldexp(10.0**-digits, known.nmant + 1), array.type)
    small = pc.less(pc.abs(array), most)
    some = pc.if_else(small, array, pa.scalar(0.0, array.type))
    return pc.if_else(small, pc.round(some, digits, round_mode=halves), array)


def _round_integers(array: pa.Array, step: int, halves: str) -> pa.Array:
    values, nulls = numbers(array)
    if step > np.iinfo(values.dtype).max:
        return column(np.zeros_like(values), nulls, array.type)
    rest = np.fmod(values, values.dtype.type(step))
    up = np.abs(rest) >= step - np.abs(rest)
    if halves == "half_to_even":
        up &= (np.abs(rest) > step - np.abs(rest)) | ((values - rest) // step % 2 != 0)
    rounded = pa.array(np.where(up, np.sign(rest) * step, 0).astype(values.dtype))
    return CHECKED["add"](column(values - rest, nulls, array.type), rounded)


def _round_decimals(array: pa.Array, digits: int, out: pa.DataType, halves: str) -> pa.Array:
    wide = array.cast(pa.decimal256(_WIDEST, array.type.scale))
    return rescale(pc.round(wide, digits, round_mode=halves), out)


def _to_whole(node: Apply, types: Types) -> TypedNode:
    _want_numbers(node, types)
    operation = {"floor": pc.floor, "ceil": pc.ceil}[node.name]
    type = plain(types[0])
    match kind(type):
        case "integer":
            return TypedNode(pa.int64(), (pa.int64(),), lambda a: a)
        case "decimal":
            out = decimal_of(type.precision - type.scale + 1, 0)
            return checking(
                out, (type,), Attempt(lambda a: rescale(operation(_widened(a, _WIDEST, type.scale)), out))
            )
    to_integer = cast_kernel(_DOUBLE, pa.int64())
    assert to_integer is not None
    return checking(pa.int64(), (_DOUBLE,), Attempt(lambda a: to_integer(operation(a))))


def _try(node: Apply, types: Types) -> TypedNode:
    """The form of an operation that answers null where the other refuses."""
    plan = RULES[node.name.removeprefix("try_")](replace(node, name=node.name.removeprefix("try_")), types)
    return plan if plan.attempt is None else TypedNode(plan.type, plan.operands, plan.attempt)


def _log(take: Kernel) -> Kernel:
    return lambda a: take(keep_where(pc.invert(pc.less_equal(a, 0.0)), a))


def _is_nan(node: Apply, types: Types) -> TypedNode:
    _want_numbers(node, types)
    return TypedNode(pa.bool_(), (_DOUBLE,), lambda a: pc.fill_null(pc.is_nan(a), False))


def _sign(array: Any) -> Any:
    return pc.sign(array).cast(_DOUBLE)


_DOUBLES: dict[str, Kernel] = {
    "sqrt": lambda a: pc.sqrt(a),
    "exp": lambda a: pc.exp(a),
    "ln": _log(pc.ln),
    "log10": _log(pc.log10),
    "log2": _log(pc.log2),
    "power": lambda a, b: pc.power(a, b),
    "sign": _sign,
}


def _double(node: Apply, types: Types) -> TypedNode:
    _want_numbers(node, types)
    return TypedNode(_DOUBLE, (_DOUBLE,) * len(types), _DOUBLES[node.name])


TRY = ("try_add", "try_subtract", "try_multiply", "try_divide", "try_remainder", "try_negate", "try_abs")
RULES: dict[str, Rule] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **dict.fromkeys(TRY, _try),
    "quotient": _quotient,
    "negate": _same_type,
    "abs": _same_type,
    "round": _round,
    "bround": _round,
    "isnan": _is_nan,
    "floor": _to_whole,
    "ceil": _to_whole,
    **dict.fromkeys(_DOUBLES, _double),
}
