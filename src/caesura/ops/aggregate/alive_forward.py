"""`Alive` for rows that only begin, in groups that go forward in time: results follow those that hold now.

A page is filed when the next one or a punctuation comes. What lies before its CTI goes into the sums of its
group at once, and results that ended before it are never written down.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown, taken
from caesura.events.deferred import Deferred, DeferredPage
from caesura.events.identity import LOCAL, identity
from caesura.events.nested import NO_MASK
from caesura.events.page import NO_NEW_END, Page
from caesura.events.referred import ReferredStore
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.ops.aggregate.accumulators.along import AlongPoints, EnteringRows, mark_moves
from caesura.ops.aggregate.accumulators.extremes import Grows
from caesura.ops.aggregate.result_chain import differ
from caesura.ops.aggregate.slots import Slots
from caesura.punctuation import INFINITY, MIN_TIME

NO_LINK = -1


class PendingPoints(NamedTuple):
    """The points of a page with their values, and the results it gave."""

    slot: I64
    time: I64
    values: list[pa.Array]
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
    moves: bool
    """Whether rows that change no result were left out: the others are extremes of their groups."""
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
    slot: I64, start: I64, changes: Mask, link: I64, last: I64, kept: I64, re: I64, ended: I64, ends: I64
) -> tuple[int, int]:
    """Which results are links of their own, and when they end; which links end by them, and when."""
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
        last[s] = count
        kept[count] = i
        re[count] = INFINITY
        count += 1
    return count, over


class Forward:
    """By slot, the result that holds now and when the last point was."""

    def __init__(self, slots: Slots, points: RowState, sent: RowState) -> None:
        self._slots, self._points, self._sent = slots, points, sent
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
        sent, points = self._sent, self._points
        live = np.flatnonzero(sent.alive)
        slot = sent.get("slot")[live]
        np.maximum.at(self._last.view, slot, sent.get("le")[live])
        holds = sent.get("re")[live] == INFINITY
        self._link.view[slot[holds]] = live[holds]
        live = np.flatnonzero(points.alive)
        np.maximum.at(self._last.view, points.get("slot")[live], points.get("time")[live])

    def _reach(self) -> None:
        more = self._slots.rows.size - self._link.size
        if more > 0:
            self._link.extend(np.full(more, NO_LINK))
            self._last.extend(np.full(more, MIN_TIME))

    def forget(self, slots: I64) -> None:
        """Slots that show nothing any more."""
        self._link.view[slots] = NO_LINK

    def refresh(self, at: I64, le: I64, slots: I64, row: I64) -> None:
        """Takes points that were followed otherwise, and the results that hold since then."""
        np.maximum.at(self._last.view, at, le)
        self._link.view[slots] = row

    def behind(self, at: I64, le: I64) -> Mask:
        """Which points are of groups that have one at their time or later."""
        self._reach()
        late = le <= self._last.view[at]
        if not late.any():
            return late
        apart = np.zeros(self._slots.rows.size, np.bool_)
        apart[at[late]] = True
        return apart[at]

    def new_points(self, touched: I64, at: I64, le: I64, values: list[pa.Array]) -> BegunRows:
        """New points in order of time, behind those of their groups that are not summed up."""
        place = np.empty(self._slots.rows.size, np.int64)
        place[touched] = np.arange(len(touched))
        known = self._unsettled(touched)
        if len(known):
            at = np.concatenate([self._points.get("slot")[known], at])
            le = np.concatenate([self._points.get("time")[known], le])
            before = self._points.payload.take(known).columns if values else []
            values = [pa.concat_arrays(pair) for pair in zip(before, values, strict=True)]
        group, first = taken(place, at), len(known)
        moves = self._moves(touched, group, values)
        if len(moves):  # the others change no result
            some = np.flatnonzero(moves)
            first = int(np.searchsorted(some, first))
            group, at, le = (taken(column, some) for column in (group, at, le))
            values = [value.take(pa.array(some)) for value in values]
        gives, following = np.empty(len(at), np.bool_), np.empty(len(touched), np.int64)
        given = last_at_times(group, frozen(le), first, following, gives)
        rows = EnteringRows(group, gives, given)
        own = (at, le) if given == len(at) else (at[gives], le[gives])
        skips = len(moves) > 0
        return BegunRows(rows, values, *own, known, moves=skips, differ=self._counts_rows or skips)

    def _moves(self, touched: I64, group: I64, values: list[pa.Array]) -> Mask:
        """The rows that change a result; empty unless only extremes are asked for and no value is null."""
        only = len(self._extremes) == len(self._slots.aggregates)
        if not only or any(values[place].null_count for place, _ in self._extremes):
            return NO_MASK
        moves = np.zeros(len(group), np.bool_)
        for place, part in self._extremes:
            mark_moves(part, self._slots.rows, touched, group, values[place], moves)
        return moves

    def _unsettled(self, touched: I64) -> I64:
        points = self._points
        if points.live == 0:
            return touched[:0]
        wanted = np.zeros(self._slots.rows.size, np.bool_)
        wanted[touched] = True
        found = np.flatnonzero(points.alive & wanted[points.get("slot")])
        return found[np.argsort(points.get("time")[found], kind="stable")]

    def changed(self, points: BegunRows, columns: list[pa.Array], given: pa.RecordBatch) -> Page:
        """The change by results in order of time, filed with `file`; given the keys of the page's rows."""
        slot, start = points.slot, points.time
        last, changes = np.empty(self._link.size, np.int64), np.full(len(slot), points.differ)
        if not points.differ:
            self._find_changes(slot, last, columns, changes)
        kept, re, ended, ends = (np.empty(len(slot), np.int64) for _ in range(4))
        count, over = link_results(slot, start, changes, self._link.view, last, kept, re, ended, ends)
        if count < len(slot):
            kept = kept[:count]
            slot, start, columns = slot[kept], start[kept], [c.take(pa.array(kept)) for c in columns]
        if count == len(given):  # each row gave one
            keys = given.columns
        else:
            keys = self._slots.rows.payload.take(slot).columns if len(self._slots.keys) else []
        new = pa.RecordBatch.from_arrays([*keys, *columns], schema=self._sent.schema)
        self._links = (slot, start, re[:count], new)
        return self._page(ended[:over], ends[:over], start, re[:count], new)

    def _find_changes(self, slot: I64, last: I64, columns: list[pa.Array], changes: Mask) -> None:
        """Marks the results that are not what held before; the first of a slot beside what was sent of it."""
        before = np.empty(len(slot), np.int64)
        results_before(slot, last, before)
        first = np.flatnonzero(before == NO_LINK)
        before[first] = first
        for column in columns:
            changes |= differ(column, before)
        changes[first] = True
        sent, link = self._sent, self._link.view
        first = first[link[slot[first]] >= 0]
        old = sent.payload.take(link[slot[first]]).columns[len(sent.schema) - len(columns) :]
        changes[first] = ~_same(old, [column.take(pa.array(first)) for column in columns])

    def _page(self, row: I64, end: I64, start: I64, re: I64, new: pa.RecordBatch) -> Page:
        """Results that were sent end, and new ones begin."""
        sent = self._sent
        sent.get("re")[row] = end
        sent.touch(row)
        if len(row) == 0:
            return Page(start, re, new)
        assert isinstance(sent.payload, ReferredStore)
        parts = ((sent.payload.frozen(), row), (ReferredStore.over(new), np.arange(len(start))))
        le = np.concatenate([sent.get("le")[row], start])
        ends = np.concatenate([np.full(len(row), INFINITY), re])
        re_new = np.concatenate([end, np.full(len(start), NO_NEW_END)])
        return DeferredPage(le, ends, Deferred(parts, (), sent.schema), re_new)

    def hold(self, at: I64, le: I64, values: list[pa.Array], run: PageRun) -> None:
        """Takes the points whose change was made last, to be filed later; they are in order of time."""
        self._last.view[at] = le
        self._pending = PendingPoints(at, le, values, *self._links, run)

    def file(self, cti: int) -> None:
        """Keeps what may still change of the last page, and sums up the rest."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        settled = int(np.searchsorted(pending.time, cti))
        self._sum_up(pending, settled, cti)
        slot, time = pending.slot[settled:], pending.time[settled:]
        fields = {"slot": slot, "time": time, "n": np.ones(len(slot), np.int64)}
        values = [value[settled:] for value in pending.values]
        batch = pa.RecordBatch.from_arrays(values, schema=self._points.schema) if values else None
        self._points.append(fields, batch)
        kept = np.flatnonzero(pending.re >= cti)
        slot, re = pending.link_slot[kept], pending.re[kept]
        fields = {"slot": slot, "le": pending.le[kept], "re": re}
        number = self._sent.append(fields, pending.payload, kept) + np.arange(len(kept))
        holds = re == INFINITY
        self._link.view[slot[holds]] = number[holds]

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
        if points.moves:
            self._count(pending.slot[:settled], touched)
            for along in pending.run.ran.values():
                fields.update(along.extreme_after(last[gave]))
        else:
            for along in pending.run.ran.values():
                along.fields_after(last[gave], fields)
            self._add_rest(pending, settled, last, fields)
        slots.put(gave, fields)

    def _count(self, at: I64, touched: I64) -> None:
        """Counts rows whose values are not null; their extremes are known otherwise."""
        slots = self._slots
        number = np.bincount(at, minlength=slots.rows.size)[touched]
        names = {"rows"}
        for count, extreme in slots.plans:
            names |= {*count.fields(), *(name for name in extreme.fields() if name.endswith("_seen"))}
        slots.put(touched, {name: slots.rows.get(name)[touched] + number for name in names})

    def _add_rest(self, pending: PendingPoints, settled: int, last: I64, fields: dict[str, I64]) -> None:
        """Adds points up to the last results where those do not tell the sum; old points are over."""
        known, state = pending.run.points.known, self._points
        done = np.flatnonzero(last[state.get("slot")[known]] != NO_LINK)
        others = self._slots.others(fields)
        if others:
            rows = np.concatenate([done, np.arange(len(known), len(known) + settled)])
            at = np.concatenate([state.get("slot")[known[done]], pending.slot[:settled]])
            values = pending.run.points.values
            for place, part in others:
                part.add(self._slots.rows, at, np.ones(len(at), np.int64), values[place].take(pa.array(rows)))
        state.get("n")[known[done]] = 0
        state.kill(known[done])


def _same(a: list[pa.Array], b: list[pa.Array]) -> Mask:
    count = len(a[0]) if a else 0
    one, other = identity(a, count, LOCAL), identity(b, count, LOCAL)
    found: Mask = (one[0] == other[0]) & (one[1] == other[1])
    return found
