"""Exact sums of products of doubles, of any size, and what is computed of them with whole numbers.

A product is mostly two doubles whose sum it is exactly. One that is too large or too small for that is
added bit by bit to a full accumulator, which spans every product of two doubles there is. Sums that doubles
cannot tell apart well enough are read as whole numbers, and what is made of those is rounded once.

>>> variance, _ = covariance_exactly(2, 3 << 1074, 3 << 1074, 5 << PRODUCT_UNIT, 1)
>>> variance
0.5
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from caesura.errors import StreamError
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.ops.aggregate.accumulators.exact import F64, FRACTION, FULL, LOW32
from caesura.ops.aggregate.accumulators.float_sums import FloatSum, LimbSums

BELOW = 34
"""Limbs below the least double: products go as deep."""
PRODUCTS = FULL + 2 * BELOW
UNIT, PRODUCT_UNIT = 1074, 1074 + 32 * BELOW
"""Sums of doubles are whole numbers of 2 ** -UNIT, sums of products of 2 ** -PRODUCT_UNIT."""
SPLIT = 134217729.0
LEAST, GREATEST, SPLITS = 2.0**-960, 2.0**1020, 2.0**990
ExactSums = Callable[[I64], list[tuple[int, ...]]]
"""The sums of some results as whole numbers."""


def products(x: F64, y: F64) -> tuple[F64, F64, Mask]:
    """x * y as two doubles (Dekker), and where that is not exact: there both are 0."""
    with np.errstate(all="ignore"):
        high = x * y
        big, tall = SPLIT * x, SPLIT * y
        a, c = big - (big - x), tall - (tall - y)
        b, d = x - a, y - c
        low = ((a * c - high) + a * d + b * c) + b * d
        size = np.abs(high)
        exact: Mask = (size >= LEAST) & (size <= GREATEST) & (np.abs(x) < SPLITS) & (np.abs(y) < SPLITS)
    far: Mask = np.zeros(len(exact), np.bool_)
    if not exact.all():
        far = ~exact & np.isfinite(x) & np.isfinite(y) & (x != 0.0) & (y != 0.0)
        high = np.where(far, 0.0, high)
        low = np.where(exact, low, 0.0)
    return high, low, far


@kernel
def add_products(at: I64, x: F64, y: F64, weights: I64, limbs: I64) -> None:
    """Adds products of finite doubles to sums in all limbs, bit by bit."""
    left = x.view(np.int64)
    right = y.view(np.int64)
    pieces = np.zeros(3, np.int64)
    for i in range(len(at)):
        p = (left[i] >> 52) & 2047
        q = (right[i] >> 52) & 2047
        a = (left[i] & FRACTION) | (np.int64(p > 0) << 52)
        b = (right[i] & FRACTION) | (np.int64(q > 0) << 52)
        p -= np.int64(p > 0)
        q -= np.int64(q > 0)
        sign = weights[i] * (1 | (left[i] >> 63)) * (1 | (right[i] >> 63))
        low = np.int64((1 << 27) - 1)
        pieces[0] = (a & low) * (b & low)
        pieces[1] = (a & low) * (b >> 27) + (a >> 27) * (b & low)
        pieces[2] = (a >> 27) * (b >> 27)
        for k in range(3):
            place = p + q + 32 * BELOW - 1074 + 27 * k
            first = place >> 5
            shift = place & 31
            under = (pieces[k] & LOW32) << shift
            over = (under >> 32) + ((pieces[k] >> 32) << shift)
            limbs[at[i], first] += sign * (under & LOW32)
            limbs[at[i], first + 1] += sign * (over & LOW32)
            limbs[at[i], first + 2] += sign * (over >> 32)


def check_products(slots: RowState, product: FloatSum, *factors: FloatSum) -> None:
    """Refuses sums for which a product of finite doubles once counted as infinite: its value is lost."""
    count, known = (sum(slots.get(f"{one.name}_odd") for one in some) for some in ((product,), factors))
    live = slots.alive
    if (count.sum(axis=1)[live] > known.sum(axis=1)[live]).any():  # type: ignore[union-attr]
        raise StreamError(
            "the saved state has sums of products that no double holds, as of values beyond 1e154; a version "
            "up to 0.2 saved them as infinite, and what they were is not known.",
            remedy="Start anew: with a new checkpoint, from the sources.",
        )


class ProductSum(FloatSum):
    """The exact sum of products of doubles."""

    below, width = BELOW, PRODUCTS

    def add_far(self, slots: RowState, at: I64, weights: I64, x: F64, y: F64) -> None:
        """Adds products that are not two doubles."""
        if len(at) == 0:
            return
        self._settle(slots, 3 * len(at))
        where = self._opened(slots, at)
        add_products(where, frozen(x), frozen(y), weights, self.full.get("limbs"))

    def _add_full_sums(self, slots: RowState, at: I64, weights: I64, sums: LimbSums) -> None:
        where = self._opened(slots, at)
        np.add.at(self.full.get("limbs"), where, sums.limbs * weights[:, None])

    def beyond(self, slots: RowState, at: I64) -> Mask:
        """Which sums have bits that a sum of doubles has no place for."""
        found: Mask = np.zeros(len(at), np.bool_)
        full = slots.get(f"{self.name}_full")[at]
        there = np.flatnonzero(full >= 0)
        limbs = self.full.get("limbs")[full[there]]
        found[there] = limbs[:, :BELOW].any(axis=1) | limbs[:, BELOW + FULL :].any(axis=1)
        return found

    def as_terms(self, slots: RowState, at: I64, count: int) -> F64:
        terms = super().as_terms(slots, at, count)
        if self.full.live:
            terms[self.beyond(slots, at), count - 1] = np.inf  # that says that there is more
        return terms


def whole_units(values: F64) -> list[int]:
    """Finite doubles as whole numbers of 2 ** -UNIT; 0 for others."""
    pairs = (v.as_integer_ratio() if math.isfinite(v) else (0, 1) for v in values.tolist())
    return [above << (UNIT + 1 - below.bit_length()) for above, below in pairs]


def covariance_exactly(n: int, x: int, y: int, xy: int, ddof: int) -> tuple[float, int]:
    """The covariance from exact sums, rounded once; and n * n times that of a population, as it is."""
    top = n * xy - ((x * y) << (PRODUCT_UNIT - 2 * UNIT))
    return divided(top, (n * (n - ddof)) << PRODUCT_UNIT), top


def divided(above: int, below: int) -> float:
    """The double nearest to a quotient; infinity where there is none."""
    try:
        return above / below
    except OverflowError:
        return math.inf if above > 0 else -math.inf


def root(above: int, below: int) -> float:
    """The double nearest to the square root of a quotient that is not negative."""
    shift = max(0, 130 - above.bit_length() + below.bit_length())
    shift += shift & 1
    number, rest = divmod(above << shift, below)
    found = math.isqrt(number)
    if rest or found * found != number:  # more bits than a double has follow: the last one stands for them
        found = 2 * found + 1
        shift += 2
    return divided(found, 1 << (shift // 2))


def stddev_exactly(n: int, x: int, xx: int, ddof: int) -> float:
    """The standard deviation from exact sums, rounded once."""
    _, top = covariance_exactly(n, x, x, xx, ddof)
    return root(top, (n * (n - ddof)) << PRODUCT_UNIT)


def correlation_exactly(n: int, x: int, y: int, xy: int, xx: int, yy: int) -> float:
    """The correlation from exact sums, rounded once; NaN where a column does not vary."""
    over, across, down = (covariance_exactly(n, *sums, 0)[1] for sums in ((x, y, xy), (x, x, xx), (y, y, yy)))
    if across == 0 or down == 0:
        return math.nan
    found = root(over * over, across * down)
    return -found if over < 0 else found
