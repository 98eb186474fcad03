"""A source's bound on the future at work: rows too far ahead go to the late table and move no lane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caesura.events import Page
from caesura.io.ingress.future_bound import FutureBound, FutureCheck, followed
from caesura.io.ingress.lanes import Lane, Lanes
from caesura.io.ingress.late import LateTable
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.shape import Shaped
from caesura.kernels.hashing import I64
from caesura.punctuation import MIN_TIME


class FutureGate:
    """Rows are held against the clock where the policy reads one, and else against their lane."""

    def __init__(self, policy: Policy, time: pa.DataType, lanes: Lanes, table: LateTable) -> None:
        self.bound: FutureBound | None = policy.ahead(time)
        """How far ahead a row may be; None for any."""
        self.clock = MIN_TIME
        """What the clock reads that rows are held against; the beginning of time where none is read."""
        self._clocked = policy.clocked(time)
        self._time, self._lanes, self._table = time, lanes, table

    def on_clock(self, clock: int) -> None:
        """Takes a reading of the clock."""
        if self._clocked:
            self.clock = clock

    def advance(self, lane: Lane, top: int) -> None:
        """Lets a lane come to a time that is said of it, unless that is too far ahead."""
        if self.bound is None or self.bound.passes(top, top, lane.recent_times, self.clock):
            self._lanes.advance(lane, top)

    def confirm(self, lane: Lane, times: I64) -> None:
        """Lets the first row of a lane move its bound, if those behind it bear it out."""
        first = lane.recent_times[0] if len(lane.recent_times) == 1 and self.clock == MIN_TIME else None
        if self.bound is not None and first is not None and self.bound.confirms(first, times):
            self._lanes.advance(lane, first)

    def judge(self, lane: Lane, times: I64, after: Sequence[int] = ()) -> FutureCheck:
        """What becomes of the next rows of a lane, of which ``after`` are the recent times then, if known."""
        assert self.bound is not None
        self.confirm(lane, times)
        recent, lane.recent_times = lane.recent_times, list(after) or followed(lane.recent_times, times)
        return self.bound.judge(times, recent, self.clock)

    def admit(self, lane: Lane, shaped: Shaped, offsets: I64) -> tuple[Shaped, I64]:
        """The rows that are not too far ahead; the others are noted."""
        if self.bound is None or len(shaped.le) == 0:
            return shaped, offsets
        times, recent = shaped.advance, lane.recent_times
        span = shaped.span or (int(times.min()), int(times.max()))
        self.confirm(lane, times)
        lane.recent_times = followed(recent, times)
        if self.bound.passes(*span, recent, self.clock) or self._begins_calmly(span, recent, times):
            return shaped, offsets
        judged = self.bound.judge(times, recent, self.clock)
        if not judged.ahead.any():
            return shaped._replace(advance=judged.advance, span=None), offsets
        page = shaped.page
        self.note(lane, page, times, judged, offsets)
        rows = np.flatnonzero(~judged.ahead)
        good = page.take(rows)
        admitted = Shaped(good.le, good.re, good.re_new, good.payload, None, judged.advance[rows])
        return admitted, offsets[rows]

    def _begins_calmly(self, span: tuple[int, int], recent: Sequence[int], times: I64) -> bool:
        """Whether the first rows of a lane bear each other out, and none is ahead of another."""
        if self.bound is None or recent or self.clock > MIN_TIME:
            return False
        return self.bound.calm(*span) and self.bound.confirms(int(times[0]), times[1:2])

    def note(self, lane: Lane, page: Page, times: I64, judged: FutureCheck, offsets: I64) -> None:
        """Puts the rows that are too far ahead into the late table."""
        assert self.bound is not None
        rows = np.flatnonzero(judged.ahead)
        shown = (times[rows], judged.references[rows], self._time)
        reasons = self.bound.reasons(*shown, clock=self.clock > MIN_TIME)
        self._table.add(page.take(rows), reasons, lane=lane.number, offsets=offsets[rows])
