"""Covariance and correlation from exact sums of two columns, of their products and squares.

Sums are read in so many doubles that their products cancel as the numbers do: what does not vary has a
covariance of 0, not of what rounding left.

>>> terms = np.array([[0.3, 0.0]]), np.array([[3.0, 0.0]]), np.array([[0.3, 0.0]])
>>> float(covariance_of(np.array([3]), *terms, ddof=0)[0])
0.0
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.accumulators.exact import F64, FULL, I32, add_floats, round_digits
from caesura.ops.aggregate.accumulators.moments import product, quotient, two_product
from caesura.ops.aggregate.accumulators.sums import Fields, FloatSum, present

TERMS = 5
"""In how many doubles a sum is read."""


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


def covariance_of(n: I64, x: F64, y: F64, xy: F64, *, ddof: int) -> F64:
    """The covariance from sums, in doubles along the second axis; NaN where one is not finite."""
    out = np.zeros(len(n))
    with np.errstate(all="ignore"):
        covariances(n, x, y, xy, ddof, out)
        finite = np.isfinite(x[:, 0]) & np.isfinite(y[:, 0]) & np.isfinite(xy[:, 0])
    out[~finite & (n > ddof)] = np.nan
    return out


class Comoments:
    """The exact sums of two columns and of their products per slot, and of their squares where wanted."""

    def __init__(self, name: str, *, squares: bool) -> None:
        names = ("x", "y", "xy", "xx", "yy") if squares else ("x", "y", "xy")
        self.sums = {each: FloatSum(f"{name}_{each}") for each in names}

    @property
    def float_sums(self) -> tuple[FloatSum, ...]:
        return tuple(self.sums.values())

    def fields(self) -> Fields:
        return {name: t for one in self.sums.values() for name, t in one.fields().items()}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {name: zero for one in self.sums.values() for name, zero in one.zeros(count).items()}

    def parts(self, values: pa.Array) -> dict[str, tuple[F64, ...]]:
        """What is added to each sum: the doubles that it is of each pair, 0 where there is none."""
        x, y = (
            pc.cast(part, pa.float64(), safe=False).fill_null(0.0).to_numpy() for part in values.flatten()
        )
        columns = {"x": x, "y": y}
        return {
            name: (columns[name],) if len(name) == 1 else product(columns[name[0]], columns[name[1]])
            for name in self.sums
        }

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        for name, parts in self.parts(values).items():
            for part in parts:
                self.sums[name].add(slots, at, weights, pa.array(part))

    def terms(self, slots: RowState, at: I64) -> dict[str, F64]:
        """Each sum in doubles, greatest first, along the second axis."""
        return {name: one.as_terms(slots, at, TERMS) for name, one in self.sums.items()}

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return self.sums["xy"].value(slots, at)

    def free(self, slots: RowState, at: I64) -> None:
        for one in self.sums.values():
            one.free(slots, at)

    def compact(self, keep: I64) -> None:
        return None

    def states(self) -> dict[str, RowState]:
        return {f"{name}_full": one.full for name, one in self.sums.items()}

    def rebuild(self, slots: RowState) -> None:
        for one in self.sums.values():
            one.rebuild(slots)
