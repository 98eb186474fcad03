"""Whole numbers inside a pattern: sums are exact, and what does not fit into 64 bits is known.

A number is held as a word and the count of 2**64 that go with it, the count 0 as long as it fits. Sums
and differences are exact in that form, so it does not matter in which order values come. Whatever else is
made of a number that does not fit has no value: its count is VOID, and stays so. Kernels hold the two
words; the twin holds a Python number, or `Void`.

>>> import numpy as np
>>> most, one = np.int64(2**63 - 1), np.int64(1)
>>> int(carried(most, one)), int(borrowed(-most, np.int64(2))), int(too_large(most, np.int64(2)))
(1, -1, 1)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.expr.faults import RowError, shown
from caesura.kernels import kernel

BITS = 64
MAX_TURNS = 1 << 60
"""The most 2**64 that a sum may hold."""
VOID = 1 << 62
"""The count of what has no value; adding and taking away a few does not lead back."""
HALF = 1 << 31
MIN_INT64 = -(1 << 63)
TURN = float(1 << 64)
Whole = Any
"""A whole number of the machine, or one of Python."""
STAMP = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
"""Names these functions as they are: kernels that were compiled with others are not used again."""


@kernel
def added(a: Whole, b: Whole) -> Whole:
    """The low word of a sum; by unsigned words, since compilers take it that signed ones never wrap."""
    return np.int64(np.uint64(np.int64(a)) + np.uint64(np.int64(b)))


@kernel
def taken(a: Whole, b: Whole) -> Whole:
    """The low word of a difference."""
    return np.int64(np.uint64(np.int64(a)) - np.uint64(np.int64(b)))


@kernel
def multiplied(a: Whole, b: Whole) -> Whole:
    """The low word of a product."""
    return np.int64(np.uint64(np.int64(a)) * np.uint64(np.int64(b)))


@kernel
def size_of(a: Whole) -> Whole:
    """The low word of an absolute value."""
    return np.int64(a) if a >= 0 else np.int64(np.uint64(0) - np.uint64(np.int64(a)))


@kernel
def carried(a: Whole, b: Whole) -> Whole:
    """How many 2**64 go with the low word of a sum: 1, 0 or -1."""
    x = np.int64(a)
    y = np.int64(b)
    total = np.int64(np.uint64(x) + np.uint64(y))
    return (np.int64(1) | (x >> 63)) if ((x ^ total) & (y ^ total)) < 0 else np.int64(0)


@kernel
def borrowed(a: Whole, b: Whole) -> Whole:
    """How many 2**64 go with the low word of a difference."""
    x = np.int64(a)
    y = np.int64(b)
    rest = np.int64(np.uint64(x) - np.uint64(y))
    return (np.int64(1) | (x >> 63)) if ((x ^ y) & (x ^ rest)) < 0 else np.int64(0)


@kernel
def too_large(a: Whole, b: Whole) -> Whole:
    """Whether a product does not fit."""
    x = np.int64(a)
    y = np.int64(b)
    if -HALF <= x < HALF and -HALF <= y < HALF:
        return np.int64(0)
    if y == -1 or y == 0:
        return np.int64(1) if y == -1 and x == MIN_INT64 else np.int64(0)
    product = np.int64(np.uint64(x) * np.uint64(y))
    return np.int64(1) if product // y != x else np.int64(0)


@kernel
def both(a: Whole, b: Whole, more: Whole) -> Whole:
    """The count of a sum, from the counts of its parts and what is carried."""
    if a > MAX_TURNS or b > MAX_TURNS:
        return np.int64(VOID)
    total = np.int64(a) + np.int64(b) + np.int64(more)
    return total if -MAX_TURNS <= total <= MAX_TURNS else np.int64(VOID)


@kernel
def less(a: Whole, b: Whole, more: Whole) -> Whole:
    """The count of a difference."""
    if a > MAX_TURNS or b > MAX_TURNS:
        return np.int64(VOID)
    rest = np.int64(a) - np.int64(b) + np.int64(more)
    return rest if -MAX_TURNS <= rest <= MAX_TURNS else np.int64(VOID)


@kernel
def spoilt(a: Whole, b: Whole, c: Whole) -> Whole:
    """VOID if any of some counts is not 0."""
    return np.int64(VOID) if a != 0 or b != 0 or c != 0 else np.int64(0)


@kernel
def rest_of(a: Whole, b: Whole) -> Whole:
    """The remainder, with the sign of the dividend; 0 for the divisor 0."""
    x = np.int64(a)
    y = np.int64(b)
    if -1 <= y <= 1:
        return np.int64(0)
    rest = x % y
    return rest - y if rest != 0 and (rest < 0) != (x < 0) else rest


@dataclass(eq=False, repr=False)
class Void:
    """In the place of a value that there is not; with the reason, where one is known."""

    reason: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Void)

    def __hash__(self) -> int:
        return hash(Void)

    def __repr__(self) -> str:
        return "no value"


NO_VALUE = Void()


def fits(value: Any) -> bool:
    """Whether a value is no number beyond 64 bits, and has none inside."""
    if isinstance(value, dict):
        return all(fits(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(fits(v) for v in value)
    if isinstance(value, int):
        return MIN_INT64 <= value < -MIN_INT64
    return not isinstance(value, Void)


def whole(value: Any) -> Any:
    """The value itself, if it fits, else none."""
    return value if fits(value) else _reason(value)


def exact(value: int) -> Any:
    """A sum, unless it is beyond what kernels hold."""
    return value if -MAX_TURNS <= (value - MIN_INT64) >> BITS <= MAX_TURNS else NO_VALUE


def real(value: Any) -> Any:
    """A number as a double, rounded as kernels round."""
    if isinstance(value, int) and not fits(value):
        count = (value - MIN_INT64) >> BITS
        return float(value - (count << BITS)) + float(count) * TURN
    return float(value)


def of_words(word: int, count: int) -> Any:
    """The Python form of what kernels hold."""
    return word + (count << BITS) if -MAX_TURNS <= count <= MAX_TURNS else NO_VALUE


def _reason(value: Any) -> Void:
    if isinstance(value, Void):
        return value
    some = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((_reason(v) for v in some if not fits(v)), NO_VALUE)


def refuse_void(values: Iterable[Any], batch: pa.RecordBatch) -> None:
    """Stops at the first answer that has no value, or does not fit; there is one answer per item."""
    for row, value in enumerate(values):
        if not fits(value):
            raise no_value(f"the item ({shown(batch, row)})", whole(value))


def no_value(where: str, found: Void = NO_VALUE, seen: RowError | None = None) -> StreamError:
    """What to say of an answer that has no value; what was ``seen`` on items may be the reason."""
    more = "" if seen is None else f"; among the items just read, {seen.reasons[0]}"
    problem = f"the pattern computes a value beyond what its type can hold (a bigint: 64 bits{more})"
    if found.reason:
        problem = found.reason
    return StreamError(f"{problem}; the answer at {where} is made of it.", remedy=REMEDY)


REMEDY = (
    "Cast to double first, or write try_add, try_subtract, try_multiply, try_cast for a null there; "
    "the predicate, or where(...) before the pattern, keeps such items out."
)
