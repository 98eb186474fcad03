"""How far each lane of a source has come, and what all of them together promise.

A lane's bound at a row is the running maximum of the rows before it, minus the lag, or what the lane
itself has said if that is more. The stream's bound is the least over the lanes that are live. Both
follow from the rows alone: how they are cut into batches never shows.

>>> lanes = Lanes(count=2, lag=5)
>>> lanes.bounds(lanes[0], np.array([10, 30, 20, 26])).tolist()[1:]
[5, 25, 25]
>>> lanes.advance(lanes[0], 30); lanes.least == MIN_TIME
True
>>> lanes.advance(lanes[1], 12); lanes.least
7
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from caesura.events import Page
from caesura.io.ingress.row_kernels import count_late, lane_bounds
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.punctuation import INFINITY, MIN_TIME, Alignment, Pattern, Promises
from caesura.punctuation.writers import WriterPromises

NOTHING = np.zeros(0, np.int64)


@dataclass
class Lane:
    """One lane: the latest time in it, what it has promised, and when rows last came."""

    number: int
    top: int = MIN_TIME
    promised: int = MIN_TIME
    seen: int = MIN_TIME
    next: int = 0
    idle: bool = False
    recent_times: list[int] = field(default_factory=list)
    """The times of its last rows, where a bound on the future is held against them."""


class Lanes:
    """All lanes of a source."""

    def __init__(self, count: int = 0, lag: int | None = None) -> None:
        self.lag = lag
        self.lanes = {n: Lane(n) for n in range(count)}
        self.aligned: Alignment | None = None
        """Promises on more than time; none is kept until the first is given."""
        self.writers = WriterPromises()
        """What each of several writers of a lane has promised."""

    def __getitem__(self, number: int) -> Lane:
        """A lane, which appears when it is first named."""
        lane = self.lanes.get(number)
        if lane is None:
            lane = self.lanes[number] = Lane(number)
            if self.aligned is not None:
                self.aligned.join(number)
        return lane

    def bound(self, lane: Lane) -> int:
        """What a lane promises after its rows so far."""
        return max(lane.promised, behind(lane.top, self.lag))

    def others(self, lane: Lane) -> int:
        """The least bound of the other live lanes."""
        rest = [self.bound(o) for o in self.lanes.values() if o is not lane and not o.idle]
        return min(rest, default=INFINITY)

    @property
    def least(self) -> int:
        """The least bound of the live lanes; of lanes that are all idle the greatest.

        Whichever of those tired first no longer held the others back: that two are found idle by one reading
        of the clock must not be worse.
        """
        live = [self.bound(lane) for lane in self.lanes.values() if not lane.idle]
        if live:
            return min(live)
        return max(map(self.bound, self.lanes.values()), default=MIN_TIME)

    def bounds(self, lane: Lane, times: I64, low: int = MIN_TIME, high: int = INFINITY) -> I64:
        """The lag's bound at each row, from the rows before it, but at least ``low`` and at most ``high``."""
        out = np.empty(len(times), np.int64)
        lane_bounds(frozen(times), lane.top, -1 if self.lag is None else self.lag, low, high, out)
        return out

    def late(
        self,
        lane: Lane,
        page: Page,
        times: I64,
        floor: int,
        span: tuple[int, int] | None = None,
        *,
        within: int | None = None,
    ) -> int:
        """How many rows of a page are below the floor or the lag's bound.

        ``span`` is a time that no sync time is before, and the latest of ``times``, where they are known;
        ``within`` is how far at most a row is behind another in front of it.
        """
        near = within is not None and (self.lag is None or within <= self.lag)
        if span is not None and near and span[0] >= max(floor, behind(lane.top, self.lag)):
            return 0
        if span is not None and span[0] >= max(floor, behind(max(lane.top, span[1]), self.lag)):
            return 0
        ends = frozen(NOTHING if page.re_new is None else page.re_new)
        lag = -1 if self.lag is None else self.lag
        return count_late(frozen(page.le), frozen(page.re), ends, frozen(times), lane.top, lag, floor)

    def advance(self, lane: Lane, top: int) -> None:
        """Takes the latest time among new rows."""
        lane.top = max(lane.top, top)

    def promise(self, lane: Lane, pattern: Pattern) -> tuple[Pattern, ...] | None:
        """Takes a promise found in a lane; gives what holds for all lanes now, None if nothing is new."""
        if set(pattern.attributes) <= {"time"} and pattern.time_bound is not None:
            if pattern.time_bound <= self.bound(lane):
                return None
            lane.promised = pattern.time_bound
            return self.align(lane)
        if self.aligned is None:
            self.aligned = Alignment(self.lanes)
            for other in self.lanes.values():
                self.align(other)
        if self.aligned.held.covers(pattern) or self.aligned.given(lane.number).covers(pattern):
            return None
        return self.aligned.add(lane.number, pattern)

    def align(self, lane: Lane) -> tuple[Pattern, ...]:
        """Lets a lane's bound count where promises on more than time wait for it."""
        if self.aligned is None or self.bound(lane) == MIN_TIME:
            return ()
        return self.aligned.add(lane.number, Pattern.before(self.bound(lane)))

    def promises(self, lane: Lane) -> list[Promises]:
        """What rows of a lane must obey besides time alone."""
        if self.aligned is None:
            return []
        some = (self.aligned.given(lane.number), self.aligned.held)
        return [promises for promises in some if promises.size]

    def tire(self, clock: int, idle: int) -> None:
        """Lets go of the lanes that were silent for the idle time."""
        for lane in self.lanes.values():
            if lane.seen == MIN_TIME:
                lane.seen = clock
            lane.idle = clock - lane.seen >= idle

    def to_json(self) -> dict[str, Any]:
        return {
            "lanes": [asdict(lane) for lane in self.lanes.values()],
            "aligned": None if self.aligned is None else self.aligned.to_json(),
            "writers": self.writers.to_json(),
        }

    def remember(self, data: dict[str, Any]) -> None:
        """Takes back what `to_json` gave."""
        self.lanes = {lane["number"]: Lane(**lane) for lane in data["lanes"]}
        self.aligned = None if data["aligned"] is None else Alignment.from_json(data["aligned"])
        self.writers = WriterPromises.from_json(data.get("writers", []))


def behind(top: int, lag: int | None) -> int:
    """A running maximum minus the lag, never below all time."""
    return MIN_TIME if lag is None or top <= MIN_TIME + lag else top - lag


def forbidden_by(promises: list[Promises], payload: Any, times: I64) -> Mask | None:
    """Which rows contradict one of these promises; None when none can."""
    mask: Mask | None = None
    for some in promises:
        found = some.forbids(payload, times)
        mask = found if mask is None else mask | found
    return mask if mask is not None and mask.any() else None
