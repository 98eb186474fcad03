"""What makes a legal stream of raw rows: lateness, matching of retracts, and the source's punctuation.

A row is late if its sync time is below the bound of its lane, computed from the rows before it, or if
definite punctuation before it forbids it. Late and malformed rows go to the late table. How rows are cut
into batches shows neither there nor in the history.

>>> from caesura.io import delay, from_rows
>>> source = from_rows([{"t": 1}, {"t": 9}, {"t": 2}], time="t", punctuate=delay(5))
>>> ingress = source.operator()
>>> [str(i) for raw in source.read({}) for i in ingress.raw(raw) if not isinstance(i, Page)]
['definite: time < 4']
>>> ingress.drain_late().column("reason").to_pylist()
['time 2 came after its lane had passed 4']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.events import Item, Page
from caesura.events.identity import Secret
from caesura.events.rows import RowState
from caesura.io.ingress.arrival import stamped
from caesura.io.ingress.future_gate import FutureGate
from caesura.io.ingress.in_data import InDataPunctuation, find_marks
from caesura.io.ingress.lanes import NOTHING, Lane, Lanes
from caesura.io.ingress.late import LateTable
from caesura.io.ingress.matching import Matcher, Origin
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.refusals import Lateness, Refusals
from caesura.io.ingress.shape import Shape, Shaped
from caesura.kernels.hashing import I64
from caesura.plan import Counters, Ingress, Raw
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Promises, Punctuation, cti
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.writers import GivenPromise, WriterPromise

UNMATCHED = "retract matches no event"
Limits = Callable[[I64 | None], I64]


@dataclass(frozen=True)
class Rules:
    """What an ingress must know of its source."""

    schema: pa.Schema
    time: pa.DataType
    shape: Shape
    policy: Policy
    late: Lateness = "reject"
    lanes: int = 1
    limit: int | None = None
    punctuates: bool = False
    """Whether promises on more than time may be found in the input."""
    scheme: Scheme | None = None
    """The forms of punctuation that the source declares; None where it does not say."""


class SourceIngress(Ingress):
    """An ingress at work: lanes, the promises made, and for retracts the versions they may name."""

    def __init__(self, rules: Rules, secret: Secret | None = None) -> None:
        super().__init__(ports=2)
        self.secret = secret or self.secret
        self.rules = rules
        lag, self.clock_lag, self.idle = rules.policy.lags(rules.time)
        self.moved = rules.policy.stride(rules.time)
        self.lanes = Lanes(rules.lanes, lag)
        self.bound = MIN_TIME
        """How far the stream has come; a CTI announces it."""
        self.clock = MIN_TIME
        self.since = 0
        self.entered: I64 = NOTHING
        """The offsets of the rows of the page that entered last, where none is ever retracted."""
        self.table = LateTable(rules.schema, rules.time, limit=rules.limit)
        self.future = FutureGate(rules.policy, rules.time, self.lanes, self.table)
        self.refusals = Refusals(self.lanes, self.table, rules.time, rules.late)
        self.matcher: Matcher | None = None
        if not rules.shape.insert_only:
            self.matcher = Matcher(
                rules.schema, self.secret, with_payload=rules.punctuates, adjusts=rules.late == "adjust"
            )

    @property
    def given(self) -> Promises:
        """What was announced."""
        return self.promises[-1]

    @property
    def top(self) -> int:
        return max((lane.top for lane in self.lanes.lanes.values()), default=MIN_TIME)

    # -- what comes in ------------------------------------------------------------------------------

    def raw(self, raw: Raw) -> list[Item]:
        lane = self.lanes[raw.lane]
        lane.seen, lane.idle = self.clock, False
        in_line = lane.next in (0, raw.offset)  # rows that were wanted first tell nothing of the course
        lane.next = raw.end
        if raw.top is not None:
            self.future.advance(lane, raw.top)
            self.since += raw.skipped
        marks = find_marks(raw, self.rules.policy.column, self.rules.schema, self.rules.scheme)
        for reason, position in marks.unreadable:
            self._note(reason, lane, raw.offset_of(position))
        for at, reason in raw.refused:
            self.table.note(reason, lane=lane.number, offset=at, kind="unread")
        shaped = self.rules.shape.cut(marks.batch, self.rules.schema)
        if self.rules.shape.stamped:
            shaped = stamped(shaped, self.stamp)
        return self._finished(self._segments(lane, shaped, marks, in_line))

    def _segments(
        self, lane: Lane, shaped: Shaped, marks: InDataPunctuation, in_line: bool
    ) -> Iterator[Item]:
        begin = 0
        for position, pattern in marks.patterns:
            some = marks.offsets[begin:position]
            yield from self._events(lane, shaped.part(begin, position), some, in_line=in_line)
            begin = position
            at = int(marks.offsets[position]) if position < len(marks.offsets) else lane.next
            yield from self._say(lane, pattern, at)
        rest = shaped.part(begin, len(shaped.le))
        yield from self._events(lane, rest, marks.offsets[begin:], in_line=in_line)
        yield from self._advance()

    def on_clock(self, clock: int) -> list[Item]:
        self.clock = max(self.clock, clock)
        self.future.on_clock(self.clock)
        if self.idle is not None:
            self.lanes.tire(self.clock, self.idle)
        if self.clock_lag is not None:
            self.bound = max(self.bound, self.clock - self.clock_lag)
        return self._finished(self._advance(now=True))

    @property
    def stamp(self) -> int:
        """The time of rows that have none: what the clock reads, or as far behind it as is promised."""
        return self.clock - (self.clock_lag or 0)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        """The events of a step whose CTIs are imported do not matter."""
        return ()

    def signal(self, port: int, punctuation: Punctuation) -> Iterable[Item]:
        return ()

    def definite(self, port: int, pattern: Pattern) -> list[Item]:
        if not set(pattern.attributes) <= {"time"}:
            return []
        if not pattern.attributes and self.rules.policy.closes is not False:
            return []  # the other's end of input is not ours
        if pattern.time_bound is not None:
            self.bound = max(self.bound, pattern.time_bound)
        return self._finished(self._promise(pattern), self._advance(now=True))

    def close(self, *, ends: bool = True) -> list[Item]:
        """The last time that the rows give, however they were cut, then everything, where nothing follows."""
        for lane in self.lanes.lanes.values():
            self.future.confirm(lane, np.array([INFINITY]))
        items = list(self._advance(now=True))
        closes = self.rules.policy.closes
        if ends if closes is None else closes:
            self.bound = INFINITY
        return [*items, *self._finished(self._advance(now=True))]

    def drain_late(self) -> pa.Table | None:
        return self.table.drain()

    # -- events ---------------------------------------------------------------------------------------

    def _events(self, lane: Lane, shaped: Shaped, offsets: I64, *, in_line: bool = True) -> Iterator[Item]:
        """The page that may enter, if there is one."""
        if shaped.flaw is not None:
            shaped, offsets = self.refusals.flawed(lane, shaped, offsets)
        if in_line:
            shaped, offsets = self.future.admit(lane, shaped, offsets)
        if len(shaped.le) == 0:
            return
        page = shaped.page
        floor = max(lane.promised, self.bound)
        late = self.lanes.late(lane, page, shaped.advance, floor, shaped.span, within=shaped.behind)
        bounds = self.lanes.bounds(lane, shaped.advance) if late else NOTHING
        limits = None if self.matcher is None else self._limits(lane, shaped.advance)
        self.lanes.advance(lane, int(shaped.advance.max()) if shaped.span is None else shaped.span[1])
        starts, rows = None, None
        if late or self.lanes.promises(lane):
            admitted = self.refusals.on_time(lane, page, bounds, max(lane.promised, self.bound), offsets)
            if admitted is None:
                return
            page, starts, rows = admitted
        self.since += len(page)
        self.entered = offsets if rows is None else offsets[rows]
        entered: Page | None = _moved(page, starts)
        if self.matcher is not None and limits is not None:
            origin = Origin(lane.number, self.entered)
            given = page.le if starts is None else starts
            opened = shaped.opened if rows is None else None
            entered = self.matcher.match(page, given, partial(limits, rows), origin, opened)
        if entered is not None:
            yield entered

    def _limits(self, lane: Lane, times: I64) -> Limits:
        """How far the stream has come before each row, or some rows, for who asks."""
        others = self.lanes.others(lane)
        low, high = max(self.bound, min(lane.promised, others)), max(self.bound, others)
        now = replace(lane)

        def limits(rows: I64 | None) -> I64:
            bounds = self.lanes.bounds(now, times, low, high)
            return bounds if rows is None else bounds[rows]

        return limits

    # -- punctuation ----------------------------------------------------------------------------------

    def _say(self, lane: Lane, promise: GivenPromise, at: int) -> Iterator[Item]:
        """Takes punctuation found in a lane, for the whole lane or for one of its writers."""
        if isinstance(promise, WriterPromise):
            for number in range(promise.lanes):
                _ = self.lanes[number]  # a lane that nobody has read from yet holds it back
        for pattern in self.lanes.writers.held(lane.number, promise):
            yield from self._lane_promise(lane, pattern, at)

    def _lane_promise(self, lane: Lane, pattern: Pattern, at: int) -> Iterator[Item]:
        """Takes what a lane promises; what goes backwards is told and ignored."""
        try:
            pattern = pattern.check(self.rules.schema)
        except CaesuraError as error:
            self._note(f"punctuation '{pattern}': {error.problem}", lane, at)
            return
        before = lane.promised
        held = self.lanes.promise(lane, pattern)
        if held is None:
            self._count("covered")
            if (
                pattern.attributes == ("time",)
                and pattern.time_bound is not None
                and pattern.time_bound < before
            ):
                self._note(f"punctuation '{pattern}' goes back behind '{Pattern.before(before)}'", lane, at)
            return
        for some in held:
            yield from self._promise(some)
        yield from self._advance(now=True)
        self._give_up()

    def _note(self, reason: str, lane: Lane, at: int) -> None:
        """Tells of a punctuation that does not count."""
        self.table.note(reason, lane=lane.number, offset=at)

    def _promise(self, pattern: Pattern) -> Iterator[Item]:
        """Announces a pattern on more than the past."""
        if pattern.time_bound is not None and set(pattern.attributes) <= {"time"}:
            return
        if self.given.add(pattern):
            self.bound = max(self.bound, self.given.cti)
            yield Punctuation(pattern, Intent.DEFINITE)

    def _advance(self, *, now: bool = False) -> Iterator[Item]:
        """Announces how far the stream has come, if that is news and it is time to."""
        self.bound = max(self.bound, self.lanes.least)
        if self.lanes.aligned is not None:
            for lane in list(self.lanes.lanes.values()):
                for pattern in self.lanes.align(lane):
                    yield from self._promise(pattern)
        if not now and (self.since < self.rules.policy.every or self.bound < self._next):
            return
        self.since = 0
        if self.given.advance(self.bound):
            yield cti(self.bound)

    @property
    def _next(self) -> int:
        """The bound from which on it is announced, where time must have moved before that."""
        last = self.given.cti
        return MIN_TIME if last == MIN_TIME else min(last, INFINITY - self.moved) + self.moved

    def _finished(self, *parts: Iterator[Item]) -> list[Item]:
        """The items, once what can never match is given up and what can never be named is forgotten."""
        items = list(chain(*parts))
        self._give_up()
        if self.rules.late == "error":
            self.table.refuse()
        if self.matcher is not None:
            self.matcher.purge(self.bound, self.given)
        self.counters.extra["late"] = self.table.count
        self.counters.extra["late_dropped"] = self.table.dropped
        return items

    def _give_up(self) -> None:
        over = None if self.matcher is None else self.matcher.give_up(self.bound, self.given)
        if over is not None:
            self.table.add(over.page, UNMATCHED, lane=over.lanes, offsets=over.offsets)

    def _count(self, name: str) -> None:
        self.counters.extra[name] = self.counters.extra.get(name, 0) + 1

    # -- memory ---------------------------------------------------------------------------------------

    @property
    def offsets(self) -> dict[int, int]:
        """The next offset of each lane: where to read on."""
        return {number: lane.next for number, lane in self.lanes.lanes.items()}

    def states(self) -> Mapping[str, RowState]:
        states: dict[str, RowState] = {"late": self.table.rows, "put aside": self.table.pages}
        if self.matcher is not None:
            self.matcher.gather(self.bound)
            states |= {"live": self.matcher.live, "held": self.matcher.held}
        return states

    def meta(self) -> dict[str, Any]:
        own = {"bound": self.bound, "clock": self.clock, "since": self.since}
        counts = {"late": self.table.count, "dropped": self.table.dropped, "extra": self.counters.extra}
        return super().meta() | own | counts | {"lanes": self.lanes.to_json()}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self.bound, self.clock, self.since = meta["bound"], meta["clock"], meta["since"]
        self.future.on_clock(self.clock)
        self.table.count, self.table.dropped = meta["late"], meta["dropped"]
        self.counters.extra = dict(meta["extra"])
        self.lanes.remember(meta["lanes"])

    def rebuild(self) -> None:
        if self.matcher is not None:
            self.matcher.rebuild()

    def measure(self) -> Counters:
        if self.matcher is not None:
            self.matcher.purge(self.bound, self.given, now=True)
        return super().measure()


def _moved(page: Page, starts: I64 | None) -> Page:
    return page if starts is None else Page(starts, page.re, page.payload, page.re_new)
