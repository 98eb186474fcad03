"""Variance and standard deviation from exact sums of values and of their squares.

A square is added as two doubles whose sum it is exactly, so that order, paging and retractions never
show; the last step works on pairs of doubles (about 106 bits).

>>> hi, lo = square(np.array([0.1])); bool(lo[0] != 0.0)
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.sums import Fields, FloatSum, present

SPLIT = 134217729.0


def square(x: F64) -> tuple[F64, F64]:
    """x * x as a double and the rounding error that it makes."""
    return product(x, x)


def product(x: F64, y: F64) -> tuple[F64, F64]:
    """x * y as a double and the rounding error that it makes (Dekker)."""
    with np.errstate(all="ignore"):
        high = x * y
        big, tall = SPLIT * x, SPLIT * y
        a, c = big - (big - x), tall - (tall - y)
        b, d = x - a, y - c
        low = ((a * c - high) + a * d + b * c) + b * d
    return high, np.where(np.isfinite(low), low, 0.0)


@kernel
def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as a double and its rounding error."""
    p = a * b
    x = SPLIT * a
    a1 = x - (x - a)
    a2 = a - a1
    y = SPLIT * b
    b1 = y - (y - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@kernel
def quotient(high: float, low: float, least: float, by: float) -> float:
    """(high + low + least) / by, rounded once: the remainder of the division is divided too.

    Where that leaves the result half way between two doubles, what remains then says to which side it goes.
    """
    first = (high + low) / by
    back, error = two_product(first, by)
    near = (high - back) - error
    rest = near + low
    kept = rest - near
    lost = (near - (rest - kept)) + (low - kept)
    more = rest / by
    if not np.isfinite(more):
        return first
    total = first + more
    over = more - (total - first)
    half_way = over != 0.0 and (total + 2.0 * over) - total == 2.0 * over
    if half_way:
        back, error = two_product(more, by)
        last = (((rest - back) - error) + lost) + least
        if (last > 0.0 and over > 0.0) or (last < 0.0 and over < 0.0):
            return total + 2.0 * over
    return total


@kernel
def spread(n: I64, s1: F64, e1: F64, s2: F64, e2: F64, ddof: int, out: F64) -> None:
    """(n * S2 - S1 * S1) / (n * (n - ddof)), where S1 = s1 + e1 and S2 = s2 + e2."""
    for i in range(len(n)):
        m = float(n[i])
        if n[i] <= ddof:
            out[i] = 0.0
            continue
        p, q = two_product(m, s2[i])
        q += m * e2[i]
        r, t = two_product(s1[i], s1[i])
        t += 2.0 * s1[i] * e1[i]
        top = p - r
        kept = top - p
        rest = ((p - (top - kept)) - (r + kept)) + (q - t)
        out[i] = max(0.0, quotient(top, rest, 0.0, m * float(n[i] - ddof)))


def spread_of(n: I64, first: tuple[F64, F64], second: tuple[F64, F64], ddof: int) -> F64:
    """The variance from sums of values and of squares, two doubles each; NaN where one is not finite."""
    out = np.zeros(len(n))
    with np.errstate(invalid="ignore"):
        spread(n, *first, *second, ddof, out)
    out[~np.isfinite(first[0]) | ~np.isfinite(second[0])] = np.nan
    return out


class Moments:
    """The exact sums of values and of squares per slot."""

    def __init__(self, name: str) -> None:
        self.first, self.second = FloatSum(f"{name}_x"), FloatSum(f"{name}_xx")

    @property
    def float_sums(self) -> tuple[FloatSum, ...]:
        return self.first, self.second

    def fields(self) -> Fields:
        return {**self.first.fields(), **self.second.fields()}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {**self.first.zeros(count), **self.second.zeros(count)}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        plain = pc.cast(values, pa.float64(), safe=False)
        self.first.add(slots, at, weights, plain)
        high, low = square(plain.to_numpy())
        self.second.add(slots, at, weights, pa.array(high))
        self.second.add(slots, at, weights, pa.array(low))

    def variance(self, slots: RowState, at: I64, n: I64, ddof: int) -> F64:
        """The variance of each slot; NaN where a value is not finite."""
        with np.errstate(invalid="ignore"):
            first, second = (part.as_pair(slots, at) for part in (self.first, self.second))
        return spread_of(n, first, second, ddof)

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return self.first.value(slots, at)

    def free(self, slots: RowState, at: I64) -> None:
        self.first.free(slots, at)
        self.second.free(slots, at)

    def compact(self, keep: I64) -> None:
        return None

    def states(self) -> dict[str, RowState]:
        return {"x_full": self.first.full, "xx_full": self.second.full}

    def rebuild(self, slots: RowState) -> None:
        self.first.rebuild(slots)
        self.second.rebuild(slots)
