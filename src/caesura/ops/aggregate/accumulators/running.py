"""Running values over the panes of each group: counts, exact sums, extremes.

Each follows a plan of `slide`, and gives one value per window. What runs is derived from the panes, so
it is not saved: after a restore the panes that had entered enter again.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from caesura.events.columns import from_words
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, frozen
from caesura.ops.aggregate.accumulators.exact import F64, FULL
from caesura.ops.aggregate.accumulators.extremes import Grows, unranked
from caesura.ops.aggregate.accumulators.float_sums import FloatSum
from caesura.ops.aggregate.accumulators.slide import (
    RUNNING,
    renumbered,
    resized,
    slide_counts,
    slide_extremes,
    slide_floats,
    slide_odd,
    slide_wide,
)
from caesura.ops.aggregate.accumulators.sums import Wide, WideSum, wide_as_float, wide_values, wide_zeros
from caesura.punctuation import MIN_TIME

WORDS = np.iinfo(np.int64)


class SlidePlan(NamedTuple):
    """The steps of a slide, and how many windows they give."""

    kind: I64
    who: I64
    row: I64
    given: int


class RunningValue(Protocol):
    """A value per group that follows plans."""

    def run(self, plan: SlidePlan, panes: RowState, behind: I64, groups: int) -> None:
        """Makes the steps, and remembers what the windows were given."""

    def regroup(self, keep: I64) -> None:
        """Follows a compaction of the groups."""

    def repane(self, keep: I64, new: I64) -> None:
        """Follows a compaction of the panes."""

    def values(self, n: I64) -> pa.Array:
        """One value per window given, of which ``n`` says whether it has any."""


class Counts:
    """How many rows, or how many values that are not null."""

    def __init__(self, field: str) -> None:
        self.field, self.out = field, np.zeros(0, np.int64)
        self._now = np.zeros(0, np.int64)

    def run(self, plan: SlidePlan, panes: RowState, behind: I64, groups: int) -> None:
        self._now = resized(self._now, groups, 0)
        self.out = np.empty(plan.given, np.int64)
        slide_counts(*plan[:3], panes.get(self.field), self._now, self.out)

    def values(self, n: I64) -> pa.Array:
        return pa.array(self.out)

    def regroup(self, keep: I64) -> None:
        self._now = self._now[keep]

    def repane(self, keep: I64, new: I64) -> None:
        return None


class Wides:
    """Integer and decimal sums."""

    def __init__(self, part: WideSum) -> None:
        self.part = part
        self.out, self._now = wide_zeros(0, part.result), wide_zeros(0, part.result)

    def run(self, plan: SlidePlan, panes: RowState, behind: I64, groups: int) -> None:
        low, high, wraps = self._now
        wraps = resized(wraps, groups, 0) if pa.types.is_decimal(self.part.result) else wraps
        self._now = Wide(resized(low, groups, 0), resized(high, groups, 0), wraps)
        self.out = wide_zeros(plan.given, self.part.result)
        low, high, wraps = self.part.halves(panes)
        slide_wide(*plan[:3], frozen(low), high, wraps, *self._now, *self.out)

    def values(self, n: I64) -> pa.Array:
        return wide_values(self.out, self.part.result)

    def floats(self) -> F64:
        return wide_as_float(self.out, self.part.result)

    def regroup(self, keep: I64) -> None:
        low, high, wraps = self._now
        self._now = Wide(low[keep], high[keep], wraps[keep] if len(wraps) else wraps)

    def repane(self, keep: I64, new: I64) -> None:
        return None


class Floats:
    """Exact float sums, in few limbs until a value asks for all."""

    def __init__(self, part: FloatSum) -> None:
        self.part, self.out = part, np.zeros(0)
        self._limbs = np.zeros((0, RUNNING), np.int64)
        self._base = np.zeros(0, np.int32)
        self._odd = np.zeros((0, 3), np.int64)

    def run(self, plan: SlidePlan, panes: RowState, behind: I64, groups: int) -> None:
        self._limbs, self._base = resized(self._limbs, groups, 0), resized(self._base, groups, -1)
        self.out = np.empty(plan.given)
        limbs, base, full = (panes.get(f"{self.part.name}_{f}") for f in ("limbs", "base", "full"))
        wide = self.part.full.get("limbs")
        at = np.zeros(2, np.int64)
        while not slide_floats(*plan[:3], at, limbs, base, full, wide, self._limbs, self._base, self.out):
            self._widen()
        if self.part.has_odd:
            self._odd = resized(self._odd, groups, 0)
            slide_odd(*plan[:3], panes.get(f"{self.part.name}_odd"), self._odd, self.out)

    def values(self, n: I64) -> pa.Array:
        return from_words(self.out, n > 0, pa.float64())

    def floats(self) -> F64:
        return self.out

    def _widen(self) -> None:
        """Room for every double there is."""
        wide = np.zeros((len(self._limbs), FULL), np.int64)
        some = np.flatnonzero(self._base >= 0)
        for limb in range(RUNNING):
            wide[some, self._base[some] + limb] = self._limbs[some, limb]
        self._limbs = wide
        self._base = np.zeros(len(wide), np.int32)

    def regroup(self, keep: I64) -> None:
        self._limbs, self._base = self._limbs[keep], self._base[keep]
        self._odd = resized(self._odd, int(keep.max(initial=-1)) + 1, 0)[keep]

    def repane(self, keep: I64, new: I64) -> None:
        return None


class Extremes:
    """Least or greatest values, by two stacks."""

    def __init__(self, part: Grows) -> None:
        self.part, self.out = part, np.zeros(0, np.int64)
        self._none = int(WORDS.max if part.sign > 0 else WORDS.min)
        self._front, self._back = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._last, self._flip = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def run(self, plan: SlidePlan, panes: RowState, behind: I64, groups: int) -> None:
        self._front = resized(self._front, panes.size, 0)
        self._back = resized(self._back, groups, self._none)
        self._last, self._flip = resized(self._last, groups, -1), resized(self._flip, groups, MIN_TIME)
        self.out = np.empty(plan.given, np.int64)
        best, seen = (panes.get(f"{self.part.name}_{f}") for f in ("best", "seen"))
        slide_extremes(
            *plan[:3], best, seen, panes.get("w"), behind, self.part.sign > 0, self._none,
            self._front, self._back, self._last, self._flip, self.out,
        )  # fmt: skip

    def values(self, n: I64) -> pa.Array:
        return unranked(self.out, n > 0, self.part.type)

    def regroup(self, keep: I64) -> None:
        self._back, self._last, self._flip = self._back[keep], self._last[keep], self._flip[keep]

    def repane(self, keep: I64, new: I64) -> None:
        self._front = resized(self._front, len(new), 0)[keep]
        self._last = renumbered(self._last, new)
