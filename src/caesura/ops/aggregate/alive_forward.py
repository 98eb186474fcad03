"""`Alive` in groups that go forward in time: all points of a page lie behind those that were there.

Results then follow those that hold now. A page is filed when the next one comes, or somebody looks. What lies
before the CTI by then goes into the sums of its group at once, and results that ended before it are never
written down.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown, taken
from caesura.events.deferred import Deferred, DeferredPage
from caesura.events.ending import EndingRows
from caesura.events.identity import LOCAL, identity
from caesura.events.nested import NO_MASK
from caesura.events.page import NO_NEW_END, Page, take_values
from caesura.events.referred import ReferredStore
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.kernels.sums import each_once
from caesura.ops.aggregate.accumulators.along import AlongPoints, EnteringRows, extremes_of, mark_moves
from caesura.ops.aggregate.accumulators.extremes import Grows
from caesura.ops.aggregate.linked_rows import LinkedRows
from caesura.ops.aggregate.points import Points, ends_that_move, loose_points
from caesura.ops.aggregate.result_chain import differ
from caesura.ops.aggregate.slots import PageSlots, Slots
from caesura.punctuation import INFINITY, MIN_TIME

NO_LINK, UNSURE = -1, -2


class NewPoints(NamedTuple):
    """Where rows of groups come and go, in order of time, with their values."""

    who: I64
    time: I64
    leaves: Mask
    """Which of them go; empty where all come."""
    values: list[pa.Array]

    def of(self, rows: I64) -> NewPoints:
        """Some of them."""
        leaves = taken(self.leaves, rows) if len(self.leaves) else self.leaves
        values = [take_values(value, rows) for value in self.values]
        return NewPoints(taken(self.who, rows), taken(self.time, rows), leaves, values)

    def behind(self, others: NewPoints) -> NewPoints:
        """These behind others."""
        if len(others.time) == 0:
            return self
        who, time, leaves = (np.concatenate([a, b]) for a, b in zip(others[:3], self[:3], strict=True))
        values = [pa.concat_arrays(pair) for pair in zip(others.values, self.values, strict=True)]
        return NewPoints(who, time, leaves, values)


class PendingPoints(NamedTuple):
    """The points of a page, and the results it gave."""

    slot: I64
    new: NewPoints
    link_slot: I64
    le: I64
    re: I64
    payload: pa.RecordBatch
    run: PageRun


class BegunRows(NamedTuple):
    """Points in order of time with their values, and the slot and time of each that gives a result."""

    rows: EnteringRows
    values: list[pa.Array]
    slot: I64
    time: I64
    known: I64
    """The points that were there before the page; they come first."""
    new_slot: I64
    new: NewPoints
    """Those of the page, without rows that change no result where only extremes are asked for."""
    differ: bool
    """Whether no result is what held before."""


class PageRun(NamedTuple):
    """How a page's points went: the slots of its groups, and what accumulators gave, () for the rows."""

    points: BegunRows
    touched: I64
    ran: dict[tuple[Any, ...], AlongPoints]


@kernel
def last_at_times(group: I64, time: I64, known: int, following: I64, gives: Mask) -> int:
    """Which rows from row ``known`` on are the last of their group at a time, and how many.

    Rows are in order of time within each group; ``following`` has room for a time of each group.
    """
    following[:] = INFINITY
    given = 0
    for i in range(len(group) - 1, known - 1, -1):
        g = group[i]
        gives[i] = following[g] != time[i]
        if gives[i]:
            given += 1
        following[g] = time[i]
    gives[:known] = False
    return given


@kernel
def results_before(slot: I64, last: I64, before: I64) -> None:
    """The result of its slot before each one, -1 for none; ``last`` has room for one of each slot."""
    for i in range(len(slot)):
        last[slot[i]] = NO_LINK
    for i in range(len(slot)):
        before[i] = last[slot[i]]
        last[slot[i]] = i


@kernel
def link_results(
    slot: I64, start: I64, changes: Mask, present: Mask, link: I64, last: I64, kept: I64, re: I64, ended: I64,
    ends: I64,
) -> tuple[int, int]:  # fmt: skip
    """Which results are links of their own, and when they end; which links end by them, and when.

    With an empty ``present`` all are there. ``link`` forgets those that end.
    """
    count = 0
    over = 0
    for i in range(len(slot)):
        last[slot[i]] = NO_LINK
    for i in range(len(slot)):
        if not changes[i]:
            continue
        s = slot[i]
        if last[s] >= 0:
            re[last[s]] = start[i]
        elif link[s] >= 0:
            ended[over] = link[s]
            ends[over] = start[i]
            over += 1
            link[s] = NO_LINK
        if len(present) > 0 and not present[i]:
            last[s] = NO_LINK
            continue
        last[s] = count
        kept[count] = i
        re[count] = INFINITY
        count += 1
    return count, over


class Forward:
    """By slot, the result that holds now and when the last point was."""

    def __init__(self, slots: Slots, points: Points, sent: RowState, ending: EndingRows | None) -> None:
        self._slots, self._put, self._points, self._sent = slots, points, points.state, sent
        self._ending = ending
        """Where results that end are listed, if they are."""
        self._pending: PendingPoints | None = None
        self._counts_rows = any(aggregate.value is None for _, aggregate in slots.aggregates)
        """Whether rows are counted, so that no result is what held before."""
        self._extremes = [
            (slots.place(aggregate), parts[-1])
            for (_, aggregate), parts in zip(slots.aggregates, slots.plans, strict=True)
            if len(parts) == 2 and isinstance(parts[-1], Grows)
        ]
        """The values and states of those aggregates that are a least or greatest value."""
        self.reset()

    def reset(self) -> None:
        """Finds everything anew; all pages must be filed."""
        self._link, self._last = Grown(np.int64), Grown(np.int64)
        self._reach()
        self.relink()
        for state, time in ((self._sent, "le"), (self._points, "time")):
            live = np.flatnonzero(state.alive)
            np.maximum.at(self._last.view, state.get("slot")[live], state.get(time)[live])

    def relink(self) -> None:
        """Finds the results that hold now."""
        sent = self._sent
        self._reach()
        self._link.view[:] = NO_LINK
        holds = np.flatnonzero(sent.alive & (sent.get("re") == INFINITY))
        self._link.view[sent.get("slot")[holds]] = holds

    def _reach(self) -> None:
        more = self._slots.rows.size - self._link.size
        if more > 0:
            self._link.extend(np.full(more, NO_LINK))
            self._last.extend(np.full(more, MIN_TIME))

    def forget(self, slots: I64) -> None:
        """Slots that show nothing any more."""
        self._link.view[slots] = NO_LINK

    def went_otherwise(self, at: I64, page: Page) -> None:
        """Rows of these slots were followed otherwise: `hold_again` finds what holds since then."""
        row, time, _ = loose_points(page)
        np.maximum.at(self._last.view, at[row], time)
        self._link.view[at] = UNSURE

    def hold_again(self, touched: I64, results: LinkedRows) -> None:
        """Finds what holds in these slots where that is not known."""
        unsure = touched[self._link.view[touched] == UNSURE]
        if len(unsure) == 0:
            return
        results.link()
        owner, row = results.chains.gather(unsure)
        holds = self._sent.alive[row] & (self._sent.get("re")[row] == INFINITY)
        self._link.view[unsure] = NO_LINK
        self._link.view[unsure[owner[holds]]] = row[holds]

    def behind(self, groups: PageSlots, page: Page) -> Mask:
        """Which groups have a point at the time of one of their rows or later, or one that is taken back.

        The rows of a page that only begin are in order.
        """
        self._reach()
        last = self._last.view[groups.slot]
        if self._ending is None:
            return page.le[groups.first] <= last
        late = page.sync <= taken(last, groups.who)
        if page.retracts is not None:
            late |= ends_that_move(page)
        apart = np.zeros(len(last), np.bool_)
        apart[groups.who[late]] = True
        return apart

    def new_points(self, touched: I64, new: NewPoints) -> BegunRows:
        """New points in order of time, behind those of their groups that are not summed up."""
        known = self._unsettled(touched)
        old = self._kept(known, touched, new)
        skips = self._skips(old, new)
        if skips:
            old, new = self._moving(touched, old, new)
        every = new.behind(old)
        gives, following = np.empty(len(every.who), np.bool_), np.empty(len(touched), np.int64)
        given = last_at_times(every.who, frozen(every.time), len(old.who), following, gives)
        rows = EnteringRows(every.who, gives, given, every.leaves)
        at, le = taken(touched, every.who), every.time
        slot, time = at, le
        if given < len(at):
            some = np.flatnonzero(gives)
            slot, time = taken(at, some), taken(le, some)
        differ = (self._counts_rows or skips) and len(new.leaves) == 0
        return BegunRows(rows, every.values, slot, time, known, at[len(old.who) :], new, differ)

    def _kept(self, known: I64, touched: I64, like: NewPoints) -> NewPoints:
        """Points that are kept, with the columns of others."""
        if len(known) == 0:
            return NewPoints(known, known, NO_MASK, [])
        state, place = self._points, np.empty(self._slots.rows.size, np.int64)
        place[touched] = np.arange(len(touched))
        leaves = state.get("n")[known] < 0 if len(like.leaves) else NO_MASK
        values = state.payload.take(known).columns if like.values else []
        return NewPoints(place[state.get("slot")[known]], state.get("time")[known], leaves, values)

    def _skips(self, old: NewPoints, new: NewPoints) -> bool:
        """Whether rows may change no result: only extremes are asked for, and no value is null."""
        only = len(self._extremes) == len(self._slots.aggregates)
        return only and not any(v.null_count for v in (*old.values, *new.values))

    def _moving(self, touched: I64, old: NewPoints, new: NewPoints) -> tuple[NewPoints, NewPoints]:
        """The points that change a result, now or when rows come late; the others are none at all."""
        some = [np.zeros(len(points.who), np.bool_) for points in (old, new)]
        for place, part in self._extremes:
            known = extremes_of(part, self._slots.rows, touched)
            for points, moves in zip((old, new), some, strict=True):
                if len(moves):
                    mark_moves(part, known, points.who, points.values[place], moves)
        return old.of(np.flatnonzero(some[0])), new.of(np.flatnonzero(some[1]))

    def _unsettled(self, touched: I64) -> I64:
        """The points of these slots in order of time, one for each row that comes or goes with it."""
        points = self._points
        if points.live == 0:
            return touched[:0]
        wanted = np.zeros(self._slots.rows.size, np.bool_)
        wanted[touched] = True
        found = np.flatnonzero(points.alive & wanted[points.get("slot")])
        n = np.abs(points.get("n")[found])
        if (n != 1).any():
            found = np.repeat(found, n)
        return found[np.argsort(points.get("time")[found], kind="stable")]

    def changed(
        self, points: BegunRows, present: Mask, columns: list[pa.Array], given: pa.RecordBatch | None
    ) -> Page:
        """The change by results in order of time, filed with `file`; given the keys of rows that begin.

        ``present`` says which results are of any rows, and is empty where all are.
        """
        slot, start = points.slot, points.time
        last, changes = np.empty(self._link.size, np.int64), np.full(len(slot), points.differ)
        if not points.differ:
            self._find_changes(slot, last, columns, present, changes)
        kept, re, ended, ends = (np.empty(len(slot), np.int64) for _ in range(4))
        link = self._link.view
        count, over = link_results(slot, start, changes, present, link, last, kept, re, ended, ends)
        if count < len(slot):
            kept = kept[:count]
            slot, start, columns = slot[kept], start[kept], [c.take(pa.array(kept)) for c in columns]
        if given is not None and count == len(given):  # each row gave one
            keys = given.columns
        else:
            keys = self._slots.rows.payload.take(slot).columns if len(self._slots.keys) else []
        new = pa.RecordBatch.from_arrays([*keys, *columns], schema=self._sent.schema)
        self._links = (slot, start, re[:count], new)
        return self._page(ended[:over], ends[:over], start, re[:count], new)

    def _find_changes(
        self, slot: I64, last: I64, columns: list[pa.Array], present: Mask, changes: Mask
    ) -> None:
        """Marks the results that are not what held before; the first of a slot beside what was sent of it."""
        before = np.empty(len(slot), np.int64)
        results_before(slot, last, before)
        first = np.flatnonzero(before == NO_LINK)
        before[first] = first
        for column in columns:
            changes |= differ(column, before)
        if len(present):
            changes &= present & present[before]
            changes |= present != present[before]
        changes[first] = present[first] if len(present) else True
        sent, link = self._sent, self._link.view
        first = first[link[slot[first]] >= 0]
        old = sent.payload.take(link[slot[first]]).columns[len(sent.schema) - len(columns) :]
        changes[first] = ~_same(old, [column.take(pa.array(first)) for column in columns])
        if len(present):
            changes[first] |= ~present[first]

    def _page(self, row: I64, end: I64, start: I64, re: I64, new: pa.RecordBatch) -> Page:
        """Results that were sent end, and new ones begin."""
        sent = self._sent
        sent.get("re")[row] = end
        sent.touch(row)
        if self._ending is not None:
            self._ending.add(row, end)
        if len(row) == 0:
            return Page(start, re, new)
        assert isinstance(sent.payload, ReferredStore)
        parts = ((sent.payload.frozen(), row), (ReferredStore.over(new), np.arange(len(start))))
        le = np.concatenate([sent.get("le")[row], start])
        ends = np.concatenate([np.full(len(row), INFINITY), re])
        re_new = np.concatenate([end, np.full(len(start), NO_NEW_END)])
        return DeferredPage(le, ends, Deferred(parts, (), sent.schema), re_new)

    def hold(self, run: PageRun) -> None:
        """Takes the points whose change was made last, to be filed later; they are in order of time."""
        points = run.points
        self._last.view[points.new_slot] = points.new.time
        self._pending = PendingPoints(points.new_slot, points.new, *self._links, run)

    def drop_page(self) -> None:
        """Lets go of the last page, which is not filed."""
        self._pending = None

    def file(self, cti: int) -> None:
        """Keeps what may still change of the last page, and sums up the rest."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        new = pending.new
        settled = int(np.searchsorted(new.time, cti))
        self._sum_up(pending, settled, cti)
        rest = np.s_[settled:]
        n = (
            np.where(new.leaves[rest], -1, 1)
            if len(new.leaves)
            else np.ones(len(new.time) - settled, np.int64)
        )
        self._put.add(pending.slot[rest], new.time[rest], n, [value[rest] for value in new.values])
        kept = np.flatnonzero(pending.re >= cti)
        slot, re = pending.link_slot[kept], pending.re[kept]
        fields = {"slot": slot, "le": pending.le[kept], "re": re}
        number = self._sent.append(fields, pending.payload, kept) + np.arange(len(kept))
        holds = re == INFINITY
        self._link.view[slot[holds]] = number[holds]
        if self._ending is not None:
            self._ending.add(number, re)

    def _sum_up(self, pending: PendingPoints, settled: int, cti: int) -> None:
        """Brings the first points, those before the CTI, into their slots: what their groups gave last."""
        if settled == 0:
            return
        points, slots = pending.run.points, self._slots
        given = int(np.searchsorted(points.time, cti))
        last = np.full(slots.rows.size, NO_LINK)
        last[points.slot[:given]] = np.arange(given)
        touched = pending.run.touched
        gave = touched[last[touched] != NO_LINK]
        fields: dict[str, I64] = {}
        for along in pending.run.ran.values():
            along.fields_after(last[gave], fields)
        self._add_rest(pending, settled, last, fields)
        slots.put(gave, fields)

    def _add_rest(self, pending: PendingPoints, settled: int, last: I64, fields: dict[str, I64]) -> None:
        """Adds points up to the last results where those do not tell the sum; old points are over."""
        known, state = pending.run.points.known, self._points
        done = np.flatnonzero(last[state.get("slot")[known]] != NO_LINK)
        others = self._slots.others(fields)
        if others:
            rows = np.concatenate([done, np.arange(len(known), len(known) + settled)])
            at = np.concatenate([state.get("slot")[known[done]], pending.slot[:settled]])
            points = pending.run.points
            leaves = points.rows.leaves
            weights = np.where(leaves[rows], -1, 1) if len(leaves) else np.ones(len(at), np.int64)
            for place, part in others:
                part.add(self._slots.rows, at, weights, points.values[place].take(pa.array(rows)))
        over = each_once(known[done])
        state.get("n")[over] = 0
        state.kill(over)


def _same(a: list[pa.Array], b: list[pa.Array]) -> Mask:
    count = len(a[0]) if a else 0
    one, other = identity(a, count, LOCAL), identity(b, count, LOCAL)
    found: Mask = (one[0] == other[0]) & (one[1] == other[1])
    return found
