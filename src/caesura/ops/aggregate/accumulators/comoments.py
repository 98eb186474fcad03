"""Exact sums of two columns and of their products, for covariance and correlation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.ops.aggregate.accumulators.covariance import GREATEST, LEAST, TERMS, Sums, covariance_of
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.float_sums import FloatSum
from caesura.ops.aggregate.accumulators.products import (
    ProductSum,
    check_products,
    correlation_exactly,
    products,
)
from caesura.ops.aggregate.accumulators.sums import Fields, present


@dataclass(frozen=True)
class PairSums:
    """The sums of pairs: how many there are, and what is read of each sum."""

    n: I64
    terms: dict[str, F64]
    """In doubles, greatest first, along the second axis; all but the first NaN where one is not finite."""
    exact: Callable[[str, I64], list[int]]
    """A sum of some results, as whole numbers."""

    def covariance(self, a: str, b: str, ddof: int) -> F64:
        """The covariance of two of the columns."""

        def exact(some: I64) -> Sums:
            return list(zip(*(self.exact(name, some) for name in (a, b, a + b)), strict=True))

        terms = (self.terms[name] for name in (a, b, a + b))
        return covariance_of(self.n, *terms, ddof=ddof, exact=exact)

    def correlation(self) -> tuple[F64, Mask]:
        """The correlation, and where there is one: where both columns vary, or are not finite."""
        across, down = (self.covariance(name, name, 0) for name in "xy")
        over = self.covariance("x", "y", 0)
        odd = np.isnan(across) | np.isnan(down)
        with np.errstate(all="ignore"):
            found = np.clip(over / (np.sqrt(across) * np.sqrt(down)), -1.0, 1.0)
        read = (("xx", across), ("yy", down), ("xy", over))
        varies: Mask = ((across != 0.0) & (down != 0.0)) | odd
        rest = np.flatnonzero(~odd & (self.n > 1) & ~np.all([self._plain(*each) for each in read], axis=0))
        names = ("x", "y", "xy", "xx", "yy")
        numbers = zip(*(self.exact(name, rest) for name in names), strict=True) if len(rest) else ()
        for place, sums in zip(rest.tolist(), numbers, strict=True):
            found[place] = correlation_exactly(int(self.n[place]), *sums)
            varies[place] = not np.isnan(found[place])
        return found, varies

    def _plain(self, name: str, found: F64) -> Mask:
        """Where a covariance has all bits of a double, or is 0 although its sum would show."""
        size, shows = np.abs(found), np.abs(self.terms[name][:, 0]) > LEAST
        plain: Mask = ((size > LEAST) & (size < GREATEST)) | ((found == 0.0) & shows)
        return plain


class Comoments:
    """The exact sums of two columns and of their products per slot, and of their squares where wanted."""

    def __init__(self, name: str, *, squares: bool) -> None:
        names = ("x", "y", "xy", "xx", "yy") if squares else ("x", "y", "xy")
        self.sums = {
            each: FloatSum(f"{name}_{each}") if len(each) == 1 else ProductSum(f"{name}_{each}")
            for each in names
        }

    @property
    def float_sums(self) -> tuple[FloatSum, ...]:
        return tuple(self.sums.values())

    def fields(self) -> Fields:
        return {name: t for one in self.sums.values() for name, t in one.fields().items()}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {name: zero for one in self.sums.values() for name, zero in one.zeros(count).items()}

    @staticmethod
    def columns(values: pa.Array) -> dict[str, F64]:
        """Both columns of pairs, 0 where there is none."""
        x, y = (
            pc.cast(part, pa.float64(), safe=False).fill_null(0.0).to_numpy() for part in values.flatten()
        )
        return {"x": x, "y": y}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        columns = self.columns(values)
        for name, one in self.sums.items():
            if not isinstance(one, ProductSum):
                one.add(slots, at, weights, pa.array(columns[name]))
                continue
            x, y = columns[name[0]], columns[name[1]]
            high, low, far = products(x, y)
            one.add(slots, at, weights, pa.array(high))
            one.add(slots, at, weights, pa.array(low))
            if far.any():
                one.add_far(slots, at[far], weights[far], x[far], y[far])

    def pair_sums(self, slots: RowState, at: I64, n: I64) -> PairSums:
        """What is read of the sums of these slots."""
        terms = {name: one.as_terms(slots, at, TERMS) for name, one in self.sums.items()}
        return PairSums(n, terms, lambda name, some: self.sums[name].as_numbers(slots, at[some]))

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
        for name, one in self.sums.items():
            if len(name) == 2:
                check_products(slots, one, *(self.sums[each] for each in sorted(set(name))))
        for one in self.sums.values():
            one.rebuild(slots)
