"""The covariance from exact sums, rounded once.

Sums are read in so many doubles that their products cancel as the numbers do: what does not vary has a
covariance of 0, not of what rounding left. Where sums are too large or too small for that, or need more
doubles, they are read as whole numbers.

>>> terms = np.array([[0.3, 0.0]]), np.array([[3.0, 0.0]]), np.array([[0.3, 0.0]])
>>> float(covariance_of(np.array([3]), *terms, ddof=0, exact=lambda some: [])[0])
0.0
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.ops.aggregate.accumulators.exact import F64, FULL, I32, add_floats, round_digits
from caesura.ops.aggregate.accumulators.products import SPLIT, covariance_exactly, stddev_exactly

TERMS = 5
"""In how many doubles a sum is read."""
MOST, LEAST, GREATEST = 1 << 26, 2.0**-480, 2.0**480
"""Numbers of values below which, and sizes of sums between which, all products are two doubles exactly."""
LOWEST, HIGHEST = 2.0**-900, 2.0**950
"""Between these a result has all bits of a double, and its square root is taken of it as it is rounded."""
Sums = list[tuple[int, int, int]]
"""Exact sums of two columns and of their products, as whole numbers."""


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
def put_product(a: float, b: float, limbs: I64, base: I32) -> None:
    """Adds a * b to a sum in limbs, exactly where neither is near the end of the range of doubles."""
    zero, one, unfit = np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64)
    part = np.zeros(1, np.float64)
    high, low = two_product(a, b)
    part[0] = high
    add_floats(zero, part, one, limbs, base, unfit)
    part[0] = low
    add_floats(zero, part, one, limbs, base, unfit)


@kernel
def rounded(limbs: I64, digits: I64) -> float:
    """The double nearest to a sum in limbs."""
    for k in range(FULL):
        digits[k] = limbs[0, k]
    return round_digits(digits, 0)


@kernel
def covariances(n: I64, x: F64, y: F64, xy: F64, ddof: int, out: F64) -> None:
    """(n * XY - X * Y) / (n * (n - ddof)), where each sum is given in doubles, greatest first."""
    limbs = np.zeros((1, FULL), np.int64)
    base = np.zeros(1, np.int32)
    digits = np.zeros(FULL + 1, np.int64)
    for i in range(len(n)):
        if n[i] <= ddof:
            continue
        limbs[:] = 0
        m = float(n[i])
        for k in range(xy.shape[1]):
            if xy[i, k] != 0.0:
                put_product(m, xy[i, k], limbs, base)
        for j in range(x.shape[1]):
            for k in range(y.shape[1]):
                if x[i, j] != 0.0 and y[i, k] != 0.0:
                    put_product(-x[i, j], y[i, k], limbs, base)
        high = rounded(limbs, digits)
        put_product(-1.0, high, limbs, base)
        low = rounded(limbs, digits)
        put_product(-1.0, low, limbs, base)
        out[i] = quotient(high, low, rounded(limbs, digits), m * float(n[i] - ddof))


def in_range(n: I64, x: F64, y: F64, xy: F64) -> Mask:
    """Where doubles hold sums whole, and are neither too large nor too small for exact products."""
    fits: Mask = n < MOST
    with np.errstate(invalid="ignore"):
        for terms, room in ((x, 1), (y, 1), (xy, 2)):
            size = np.abs(terms)
            fits &= (size[:, 0] < GREATEST**room) & (terms[:, -1] == 0.0)
            fits &= np.where(size == 0.0, 1.0, size).min(axis=1) >= (LEAST if room == 1 else 0.0)
    return fits


def covariance_of(
    n: I64, x: F64, y: F64, xy: F64, *, ddof: int, exact: Callable[[I64], Sums], rooted: bool = False
) -> F64:
    """The covariance, or its square root, from sums in doubles along the second axis.

    It is NaN where a value was not finite. ``exact`` gives the sums of some results as whole numbers.
    """
    out, sure = np.zeros(len(n)), in_range(n, x, y, xy)
    some = np.flatnonzero(sure)
    found = np.zeros(len(some))
    with np.errstate(all="ignore"):
        covariances(n[some], x[some], y[some], xy[some], ddof, found)
    out[some] = np.sqrt(found) if rooted else found
    size = np.abs(found)
    sure[some] = (found == 0.0) | ((size > LOWEST) & (size < HIGHEST))
    odd = np.isnan(x[:, 1]) | np.isnan(y[:, 1]) | np.isnan(xy[:, 1])
    rest = np.flatnonzero(~sure & ~odd & (n > ddof))
    for place, sums in zip(rest.tolist(), exact(rest) if len(rest) else (), strict=True):
        number = int(n[place])
        out[place], _ = covariance_exactly(number, *sums, ddof)
        if rooted:
            plain = LOWEST < out[place] < HIGHEST
            out[place] = sqrt(out[place]) if plain else stddev_exactly(number, sums[0], sums[2], ddof)
    out[odd & (n > ddof)] = np.nan
    return out
