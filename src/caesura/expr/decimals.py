"""Decimals in whole numbers: what 64 bits hold is multiplied and added in 128, and no sum leaves those.

Arrow computes with decimals digit by digit in 256 bits, at some five million values a second. Almost all
money fits 64 bits without its point; a column that has a value which does not is left to Arrow.

>>> out = np.zeros(2, np.uint64)
>>> bool(products.twin(np.array([150, 0]), 1, np.array([-2, -1]), 1, out, 2)), out.view(np.int64).tolist()
(True, [-300, -1])
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caesura.kernels import interpreted, kernel
from caesura.kernels.hashing import I64

Datum = Any
U64 = npt.NDArray[np.uint64]
POWERS = 19
"""So many powers of ten 64 bits hold."""
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def low_half(x: int, y: int) -> Any:
    """The low 64 bits of the product of two numbers without sign."""
    a, b = np.uint64(x), np.uint64(y)
    first = (a & _LOW) * (b & _LOW)
    middle = (first >> _HALF) + ((a & _LOW) * (b >> _HALF) & _LOW) + ((a >> _HALF) * (b & _LOW) & _LOW)
    return (first & _LOW) | ((middle & _LOW) << _HALF)


@kernel
def high_half(x: int, y: int) -> Any:
    """The high 64 bits of the product of two numbers without sign."""
    a, b = np.uint64(x), np.uint64(y)
    first = (a & _LOW) * (b & _LOW)
    one, other = (a & _LOW) * (b >> _HALF), (a >> _HALF) * (b & _LOW)
    middle = (first >> _HALF) + (one & _LOW) + (other & _LOW)
    return (a >> _HALF) * (b >> _HALF) + (one >> _HALF) + (other >> _HALF) + (middle >> _HALF)


@kernel
def products(a: I64, a_step: int, b: I64, b_step: int, out: U64, width: int) -> bool:
    """Adds products to 128-bit numbers, ``width`` words apart; false if a factor needs more than 64 bits."""
    wide = 0
    for i in range(len(out) // width):
        x, y = a[2 * i * a_step], b[2 * i * b_step]
        wide |= (a[2 * i * a_step + 1] ^ (x >> 63)) | (b[2 * i * b_step + 1] ^ (y >> 63))
        p, q = abs(x), abs(y)
        low, high = np.uint64(low_half(p, q)), np.uint64(high_half(p, q))
        if (x < 0) != (y < 0):
            low = ~low + np.uint64(1)
            high = ~high
            if low == np.uint64(0):
                high += np.uint64(1)
        at = i * width
        total = out[at] + low
        carry = np.uint64(1) if total < low else np.uint64(0)
        out[at] = total
        out[at + 1] += high + carry
    return wide == 0


@kernel
def extend_signs(out: I64) -> None:
    """Numbers of 128 bits that lie 256 apart, as numbers of 256."""
    for i in range(len(out) // 4):
        sign = out[4 * i + 1] >> 63
        out[4 * i + 2] = sign
        out[4 * i + 3] = sign


def multiplied(a: Datum, b: Datum, out: pa.DataType) -> pa.Array | None:
    """Exact products; None where the type asks for rounding, or a value needs more than 64 bits."""
    if a.type.scale + b.type.scale != out.scale:
        return None
    return _sum_of([(a, b)], out)


def added(a: Datum, b: Datum, out: pa.DataType, sign: int = 1) -> pa.Array | None:
    """Exact sums, or differences for the sign -1; None where it is not for 64 bits."""
    steps = [out.scale - x.type.scale for x in (a, b)]
    if not all(0 <= step < POWERS for step in steps):
        return None
    return _sum_of([(a, _power(steps[0], 1)), (b, _power(steps[1], sign))], out)


def subtracted(a: Datum, b: Datum, out: pa.DataType) -> pa.Array | None:
    """Exact differences; None where it is not for 64 bits."""
    return added(a, b, out, -1)


def scaled(a: pa.Array, out: pa.DataType) -> pa.Array | None:
    """The same values with more digits; None where some may not fit, or need more than 64 bits."""
    step = out.scale - a.type.scale
    if not 0 <= step < POWERS or out.precision - out.scale < a.type.precision - a.type.scale:
        return None
    return _sum_of([(a, _power(step, 1))], out)


def whole(a: pa.Array, out: pa.DataType) -> pa.Array:
    """Whole numbers as decimals without a fraction that hold every value of their type."""
    if pa.types.is_unsigned_integer(a.type) or not len(a):
        return a.cast(out)
    values = np.frombuffer(a.buffers()[1], a.type.to_pandas_dtype(), len(a), a.offset * a.type.bit_width // 8)
    made = np.empty((len(a), 2), np.int64)
    made[:, 0] = values
    made[:, 1] = made[:, 0] >> 63
    return pa.Array.from_buffers(out, len(a), [_valid([a]), pa.py_buffer(made)])


def _power(step: int, sign: int) -> pa.Scalar:
    return pa.scalar(Decimal(sign * 10**step), pa.decimal128(POWERS, 0))


def _sum_of(pairs: list[tuple[Datum, Datum]], out: pa.DataType) -> pa.Array | None:
    """The sum of products, by one pass for each."""
    given = [x for pair in pairs for x in pair]
    columns = [x for x in given if not _single(x)]
    known = all(pa.types.is_decimal128(x.type) for x in given) and all(
        x.is_valid for x in given if _single(x)
    )
    if not known or not columns or not len(columns[0]) or not _compiles():
        return None
    rows, width = len(columns[0]), out.bit_width // 64
    made = np.zeros(rows * width, np.uint64)
    for a, b in pairs:
        if not products(_words(a), not _single(a), _words(b), not _single(b), made, width):
            return None
    if width == 4:
        extend_signs(made.view(np.int64))
    return pa.Array.from_buffers(out, rows, [_valid(columns), pa.py_buffer(made)])


def _single(x: Datum) -> bool:
    return isinstance(x, pa.Scalar)


def _compiles() -> bool:
    """Whether the kernels run as machine code: their twins are slower than Arrow."""
    return "numba" in sys.modules and not interpreted()


def _words(x: Datum) -> I64:
    """Low and high halves, one behind the other."""
    if isinstance(x, pa.Scalar):
        x = pa.array([x.as_py()], x.type)
    return np.frombuffer(x.buffers()[1], np.int64, 2 * len(x), 16 * x.offset)


def _valid(columns: list[pa.Array]) -> pa.Buffer | None:
    """The bits of rows in which no column is null."""
    some = [pc.is_valid(x) for x in columns if x.null_count]
    if not some:
        return None
    both = some[0] if len(some) == 1 else pc.and_(*some)
    return both.buffers()[1]


SwiftDecimals = Callable[[Datum, Datum, pa.DataType], pa.Array | None]
DECIMALS: dict[str, SwiftDecimals] = {"add": added, "subtract": subtracted, "multiply": multiplied}
