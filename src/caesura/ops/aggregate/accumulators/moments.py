"""Variance and standard deviation from exact sums of values and of their squares.

A square is added as two doubles whose sum it is exactly, so that order, paging and retractions never
show. The last step works on pairs of doubles (about 106 bits); where those cannot tell how it is rounded,
exact sums are read in more doubles, or as whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.ops.aggregate.accumulators.covariance import (
    GREATEST,
    HIGHEST,
    LEAST,
    LOWEST,
    MOST,
    TERMS,
    Sums,
    covariance_of,
    quotient,
    two_product,
)
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.float_sums import FloatSum
from caesura.ops.aggregate.accumulators.products import ProductSum, check_products, products
from caesura.ops.aggregate.accumulators.sums import Fields, present

LOST = 2.0**-96
"""The most that is lost of sums read as two doubles each, and of their products, for its size."""


@kernel
def spread(n: I64, s1: F64, e1: F64, s2: F64, e2: F64, ddof: int, out: F64, sure: Mask) -> None:
    """(n * S2 - S1 * S1) / (n * (n - ddof)), where S1 = s1 + e1 and S2 = s2 + e2.

    Sure is what comes out alike with the most that is lost on the way added and taken away.
    """
    for i in range(len(n)):
        m = float(n[i])
        if n[i] <= ddof:
            out[i] = 0.0
            continue
        ordinary = n[i] < MOST and abs(s1[i]) < GREATEST and s2[i] < GREATEST * GREATEST
        if not ordinary or 0.0 < abs(s1[i]) < LEAST or 0.0 < s2[i] < LEAST * LEAST:
            continue
        p, q = two_product(m, s2[i])
        q += m * e2[i]
        r, t = two_product(s1[i], s1[i])
        t += 2.0 * s1[i] * e1[i]
        top = p - r
        kept = top - p
        rest = ((p - (top - kept)) - (r + kept)) + (q - t)
        by = m * float(n[i] - ddof)
        if e1[i] == 0.0 and e2[i] == 0.0 and p == r and q == t:
            sure[i] = True
            continue
        lost = LOST * (p + r)
        out[i] = quotient(top, rest - lost, 0.0, by)
        sure[i] = LOWEST < out[i] < HIGHEST and out[i] == quotient(top, rest + lost, 0.0, by)


@dataclass(frozen=True)
class Spread:
    """What a variance is made of: the number of values, and how their sums are read for some results."""

    n: I64
    first: tuple[F64, F64]
    """The sums of values, two doubles each, of which the second is NaN where a value is not finite."""
    second: tuple[F64, F64]
    terms: Callable[[I64], tuple[F64, F64]]
    exact: Callable[[I64], Sums]

    def variance(self, ddof: int, *, rooted: bool) -> F64:
        """The variance, or its square root; NaN where a value is not finite."""
        n = self.n
        out, sure = np.zeros(len(n)), np.zeros(len(n), np.bool_)
        with np.errstate(all="ignore"):
            spread(n, *self.first, *self.second, ddof, out, sure)
            odd = np.isnan(self.first[1]) | np.isnan(self.second[1])
            out[odd] = np.nan
            out = np.sqrt(out) if rooted else out
        rest = np.flatnonzero(~sure & ~odd & (n > ddof))
        if len(rest):
            x, xx = self.terms(rest)
            exact = lambda some: self.exact(rest[some])  # noqa: E731
            out[rest] = covariance_of(n[rest], x, x, xx, ddof=ddof, exact=exact, rooted=rooted)
        return out


def squares_of(x: list[int], xx: list[int]) -> Sums:
    """Exact sums of values and of their squares, as a covariance of values with themselves has them."""
    return [(one, one, two) for one, two in zip(x, xx, strict=True)]


class Moments:
    """The exact sums of values and of squares per slot."""

    def __init__(self, name: str) -> None:
        self.first, self.second = FloatSum(f"{name}_x"), ProductSum(f"{name}_xx")

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
        x = plain.to_numpy()
        high, low, far = products(x, x)
        self.second.add(slots, at, weights, pa.array(high))
        self.second.add(slots, at, weights, pa.array(low))
        if far.any():
            self.second.add_far(slots, at[far], weights[far], x[far], x[far])

    def spread(self, slots: RowState, at: I64, n: I64) -> Spread:
        """What the variance of each slot is made of."""
        with np.errstate(invalid="ignore"):
            first, second = (part.as_pair(slots, at) for part in (self.first, self.second))
        return Spread(
            n,
            first,
            second,
            lambda some: (
                self.first.as_terms(slots, at[some], TERMS),
                self.second.as_terms(slots, at[some], TERMS),
            ),
            lambda some: squares_of(
                self.first.as_numbers(slots, at[some]), self.second.as_numbers(slots, at[some])
            ),
        )

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
        check_products(slots, self.second, self.first)
        self.first.rebuild(slots)
        self.second.rebuild(slots)
