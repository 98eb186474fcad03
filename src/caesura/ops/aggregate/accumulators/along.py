"""What aggregates give along points in time at which rows come and go, beginning with what slots hold.

Counts, sums and means run along; the least and the greatest do where rows only come. An aggregate that does
not run is read from slots instead, one point of every group after the other.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.events.nested import validity
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.ops.aggregate.accumulators.exact import F64, FULL, add_floats, round_digits
from caesura.ops.aggregate.accumulators.extremes import Grows, ranked, unranked
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE, slide_counts, slide_wide
from caesura.ops.aggregate.accumulators.sums import (
    NONE,
    FloatSum,
    Wide,
    WideSum,
    wide_as_float,
    wide_values,
    wide_words,
    wide_zeros,
)


class PointSteps(NamedTuple):
    """Rows that come and go, group by group in order of time, and where values are given."""

    kind: I64
    who: I64
    """The group, counted from 0."""
    row: I64
    """Which of the values."""
    given: int


@kernel
def run_extremes(
    kind: I64, who: I64, row: I64, word: I64, valid: Mask, sign: int, best: I64, seen: I64, out: I64
) -> None:
    """The least (sign 1) or greatest (sign -1) word so far, of rows that only come."""
    given = 0
    for i in range(len(kind)):
        g = who[i]
        if kind[i] == GIVE:
            out[given] = best[g]
            given += 1
        elif len(valid) == 0 or valid[row[i]]:
            w = word[row[i]]
            if seen[g] == 0 or (sign > 0 and w < best[g]) or (sign < 0 and w > best[g]):
                best[g] = w
            seen[g] += 1


@kernel
def run_floats(
    kind: I64, who: I64, row: I64, values: F64, valid: Mask, limbs: I64, odd: I64, out: F64
) -> None:
    """Exact float sums from what groups begin with, each rounded once; NaN and infinities count apart."""
    digits = np.zeros(FULL + 1, np.int64)
    base = np.zeros(len(limbs), np.int32)
    slot = np.zeros(1, np.int64)
    weight = np.zeros(1, np.int64)
    unfit = np.zeros(1, np.int64)
    given = 0
    for i in range(len(kind)):
        g = who[i]
        if kind[i] == GIVE:
            for k in range(FULL):
                digits[k] = limbs[g, k]
            out[given] = round_digits(digits, 0)
            if odd[g, 0] > 0 or (odd[g, 1] > 0 and odd[g, 2] > 0):
                out[given] = np.nan
            elif odd[g, 1] > 0:
                out[given] = np.inf
            elif odd[g, 2] > 0:
                out[given] = -np.inf
            given += 1
            continue
        m = row[i]
        if len(valid) > 0 and not valid[m]:
            continue
        weight[0] = 1 if kind[i] == ENTER else -1
        x = values[m]
        if np.isnan(x):
            odd[g, 0] += weight[0]
        elif np.isinf(x):
            odd[g, 1 if x > 0 else 2] += weight[0]
        else:
            slot[0] = g
            add_floats(slot, values[m : m + 1], weight, limbs, base, unfit)


def runs(part: Any) -> bool:
    """Whether what an accumulator keeps can run along."""
    return isinstance(part, FloatSum | WideSum | Grows)


class AlongPoints:
    """One aggregate along some steps; a `Reading`."""

    def __init__(
        self, steps: PointSteps, slots: RowState, at: I64, parts: tuple[Any, ...], values: pa.Array | None
    ) -> None:
        self._steps, self._slots, self._at, self._values = steps, slots, at, values
        self._count = parts[0] if parts else None
        self._part = parts[-1] if parts else None
        self._valid = validity(values) if values is not None else np.zeros(0, np.bool_)

    @cached_property
    def n(self) -> I64:
        out = np.empty(self._steps.given, np.int64)
        if self._count is None:
            running = self._slots.get("rows")[self._at]
        else:
            running = self._count.value(self._slots, self._at).to_numpy().copy()
        number = np.ones(int(self._steps.row.max(initial=-1)) + 1, np.int64)
        if len(self._valid):
            number = self._valid.astype(np.int64)
        slide_counts(*self._steps[:3], number, running, out)
        return out

    def values(self) -> pa.Array:
        if isinstance(self._part, FloatSum):
            return pa.array(self.floats())
        if isinstance(self._part, WideSum):
            return wide_values(self._wide, self._part.result)
        return self._extreme(self._part)

    def floats(self) -> F64:
        assert self._values is not None
        if isinstance(self._part, WideSum):
            return wide_as_float(self._wide, self._part.result)
        assert isinstance(self._part, FloatSum)
        limbs, odd = self._part.in_full(self._slots, self._at)
        out = np.empty(self._steps.given)
        plain = words(self._values).astype(np.float64)
        run_floats(*self._steps[:3], plain, self._valid, limbs, odd, out)
        return out

    @cached_property
    def _wide(self) -> Wide:
        assert isinstance(self._part, WideSum) and self._values is not None
        low, high = wide_words(self._values)
        if len(self._valid):
            low, high = np.where(self._valid, low, 0).astype(np.uint64), np.where(self._valid, high, 0)
        held = self._part.halves(self._slots)
        wraps = held.wraps[self._at] if len(held.wraps) else held.wraps
        running = Wide(held.low[self._at], held.high[self._at], wraps)
        out = wide_zeros(self._steps.given, self._part.result)
        slide_wide(*self._steps[:3], low, high, NONE, *running, *out)
        return out

    def _extreme(self, part: Any) -> pa.Array:
        assert isinstance(part, Grows) and self._values is not None
        best = self._slots.get(f"{part.name}_best")[self._at]
        seen = self._slots.get(f"{part.name}_seen")[self._at]
        out = np.empty(self._steps.given, np.int64)
        run_extremes(*self._steps[:3], ranked(self._values), self._valid, part.sign, best, seen, out)
        return unranked(out, self.n > 0, part.type)
