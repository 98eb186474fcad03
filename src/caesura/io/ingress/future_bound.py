"""A bound on the future: rows whose times are far ahead of where their lane is do not enter.

One row of the year 9999 would move its lane's bound there and make every row behind it late. A row is held
against the clock where one is read, and else against the recent times of its lane: the lower quartile of
the few rows before it. That follows from the rows of the lane alone, however they are cut. The first row of
a lane has nothing to be held against; it enters, and moves the bound once the second bears it out.

>>> recent = [10, 11, 12]
>>> FutureBound(5, "5").judge(np.array([13, 9999, 14]), recent, MIN_TIME).ahead.tolist()
[False, True, False]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.io.ingress.clock import as_text
from caesura.io.ingress.row_kernels import find_references
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.punctuation import INFINITY, MIN_TIME

ROWS = 16
"""How many rows make the recent times of a lane."""


class FutureCheck(NamedTuple):
    """Which rows are too far ahead, how far each says that time has come, and what each was held against."""

    ahead: Mask
    advance: I64
    references: I64


@dataclass(frozen=True)
class FutureBound:
    """How far ahead a row may be, in ticks and as the user wrote it."""

    ticks: int
    written: str

    def calm(self, low: int, high: int) -> bool:
        """Whether no row from ``low`` to ``high`` can be ahead of another."""
        return high - self.ticks <= low

    def passes(self, low: int, high: int, recent: Sequence[int], clock: int) -> bool:
        """Whether all rows from ``low`` to ``high`` may enter behind these."""
        if clock > MIN_TIME:
            return high - self.ticks <= clock
        return bool(recent) and self.calm(min(low, *recent), high)

    def judge(self, times: I64, recent: Sequence[int], clock: int) -> FutureCheck:
        """What becomes of rows that lie behind each other; there is one."""
        references = np.full(len(times), clock, np.int64)
        advance = times.copy()
        if clock == MIN_TIME:
            self._refer(times, np.array(recent, np.int64), references)
            if not recent and not self.confirms(times[0], times[1:2]):
                advance[0] = MIN_TIME
        ahead: Mask = times > np.minimum(references, INFINITY - self.ticks) + self.ticks
        advance[ahead] = MIN_TIME
        return FutureCheck(ahead, advance, references)

    def confirms(self, first: int, second: I64) -> bool:
        """Whether a lane's second row bears out the time of its first."""
        return len(second) > 0 and first - self.ticks <= second[0]

    def _refer(self, times: I64, recent: I64, references: I64) -> None:
        """What each row is held against, where it may matter."""
        low = min(times.min(initial=INFINITY), recent.min(initial=INFINITY))
        if self.calm(int(low), int(times.max(initial=MIN_TIME))):
            references[:] = INFINITY
            return
        ring, ordered = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
        find_references(frozen(times), frozen(recent), ring, ordered, references)

    def reasons(self, times: I64, references: I64, time: pa.DataType, *, clock: bool) -> pa.Array:
        """Why rows are too far ahead, in words."""
        where = "the clock, which reads " if clock else "its lane, which is at "
        words = (f" is more than {self.written} ahead of {where}", as_text(references, time), "")
        return pc.binary_join_element_wise("time ", as_text(times, time), *words)


def followed(recent: Sequence[int], times: I64) -> list[int]:
    """The recent times of a lane behind these rows."""
    if len(times) >= ROWS:
        return list(times[-ROWS:].tolist())
    return [*recent, *times.tolist()][-ROWS:]
