"""Whole numbers added, subtracted and multiplied in one pass that notes whether a result left 64 bits.

Arrow's checked arithmetic looks at each result by itself, which no processor does to many at once. Here the
sign bits that tell a wrap are gathered, and looked at once; only where one is set Arrow is asked to be exact.

>>> out = np.empty(2, np.int64)
>>> bool(add_all.twin(np.array([1, 2**63 - 1]), np.array([1, 1]), out) < 0)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.kernels import compiling, kernel
from caesura.kernels.hashing import I64

Datum = Any
HALF = 2**31
"""Two numbers below this have a product that 64 bits hold."""


@kernel
def add_all(a: I64, b: I64, out: I64) -> int:
    """Sums; below zero if one of them has wrapped."""
    wrapped = 0
    for i in range(len(out)):
        total = a[i] + b[i]
        wrapped |= (a[i] ^ total) & (b[i] ^ total)
        out[i] = total
    return wrapped


@kernel
def add_constant(a: I64, b: int, out: I64) -> int:
    """Sums with a constant; below zero if one of them has wrapped."""
    wrapped = 0
    for i in range(len(out)):
        total = a[i] + b
        wrapped |= (a[i] ^ total) & (b ^ total)
        out[i] = total
    return wrapped


@kernel
def subtract_all(a: I64, b: I64, out: I64) -> int:
    """Differences; below zero if one of them has wrapped."""
    wrapped = 0
    for i in range(len(out)):
        rest = a[i] - b[i]
        wrapped |= (a[i] ^ b[i]) & (a[i] ^ rest)
        out[i] = rest
    return wrapped


@kernel
def multiply_all(a: I64, b: I64, out: I64) -> int:
    """Products; below zero if a factor is so large that one of them may have wrapped."""
    large = 0
    for i in range(len(out)):
        out[i] = a[i] * b[i]
        large |= (a[i] ^ (a[i] >> 63)) | (b[i] ^ (b[i] >> 63))
    return -1 if large >= HALF else 0


@kernel
def multiply_constant(a: I64, b: int, out: I64) -> int:
    """Products with a constant; below zero if a factor is so large that one of them may have wrapped."""
    large = b ^ (b >> 63)
    for i in range(len(out)):
        out[i] = a[i] * b
        large |= a[i] ^ (a[i] >> 63)
    return -1 if large >= HALF else 0


ALL = {"add": add_all, "subtract": subtract_all, "multiply": multiply_all}
WITH_CONSTANT = {"add": add_constant, "subtract": add_constant, "multiply": multiply_constant}


def swift(name: str, checked: Callable[..., Datum]) -> Callable[[Datum, Datum], Datum]:
    """The operation, in one pass where its operands are plain and the compiler is there; else as checked."""

    def operate(a: Datum, b: Datum) -> Datum:
        made = attempted(name, a, b) if compiling() else None
        return checked(a, b) if made is None else made

    return operate


def attempted(name: str, a: Datum, b: Datum) -> pa.Array | None:
    """The column, or None where a result may have left 64 bits, or operands are of another kind."""
    if isinstance(a, pa.Scalar):
        if name == "subtract" or isinstance(b, pa.Scalar):
            return None
        a, b = b, a
    known = [d for d in (a, b) if isinstance(d, pa.Array) and d.null_count]
    if a.type != pa.int64() or b.type != pa.int64() or len(known) > 1 or any(d.offset for d in known):
        return None
    out = np.empty(len(a), np.int64)
    if isinstance(b, pa.Scalar):
        constant = b.as_py()
        if constant is None or constant == -(2**63):
            return None
        wrapped = WITH_CONSTANT[name](words(a), -constant if name == "subtract" else constant, out)
    else:
        wrapped = ALL[name](words(a), words(b), out)
    if wrapped < 0:
        return None
    nulls = known[0].buffers()[0] if known else None
    return pa.Array.from_buffers(pa.int64(), len(out), [nulls, pa.py_buffer(out)])
