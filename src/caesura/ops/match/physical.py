"""`MatchRows` at work: rows of groups from the first search that may still find something else.

A page changes rows of some groups; these are searched again from there, and equal results cancel. A search is
settled when no row that it looked at, and no row that could stand there, comes any more; time moves on to the
first search that is not. What settled searches found stays, with the lifetimes that its rows have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.page import take_rows
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import later
from caesura.ops.match.matcher import RowMatcher
from caesura.ops.match.node import MatchRows
from caesura.ops.match.search import Found, Segments
from caesura.ops.match.values import RowColumns
from caesura.ops.over.rows import RowsInOrder, SentResults, distinct
from caesura.plan import GivenUp
from caesura.punctuation import INFINITY, MIN_TIME, Pattern


class Searched(NamedTuple):
    """Rows of groups in order, where searches began among them, and what they found."""

    owner: I64
    rows: I64
    le: I64
    segments: Segments
    found: Found
    begin: I64
    """Of each result, the row at which the search began that found it; of an unmatched row itself."""
    fields: dict[str, I64]
    results: pa.RecordBatch


class MatchOperator(RowsInOrder):
    """Rows that searches may still look at, what was sent of them, and where each group stands."""

    node: MatchRows
    holds_back = True

    def __init__(self, node: MatchRows) -> None:
        schema = node.inputs[0].schema
        ties = [*node.order, *(name for name in schema.names if name not in node.order)]
        super().__init__(node, node.group, node.passed, ("settled",), ties)
        own = {"k1": np.uint64, "k2": np.uint64, "le": np.int64, "at": np.int64, "matches": np.int64}
        keys = pa.schema([schema.field(name) for name in node.group])
        self.groups = RowState({**own, "lost": np.int64}, keys)
        """By group: where its next search begins (a start, and how many rows there are passed over), how many
        matches it has had before, and whether rows of it are gone."""
        self._matcher = RowMatcher(node)
        self._index()

    # -- groups ----------------------------------------------------------------------------------------------

    @property
    def settled(self) -> I64:
        le: I64 = self.groups.get("le")
        return le

    def _begin_groups(self) -> None:
        if self.groups.live < self.groups.size:
            self.groups.compact()
        self._groups.encode(self.groups.get("k1"), self.groups.get("k2"))
        self._wakes, self._stands = Grown(np.int64), Grown(np.int64)
        """By group, the time up to which progress changes nothing, and the start of its first open search."""
        self._wakes.extend(np.full(self.groups.size, MIN_TIME))
        self._stands.extend(np.full(self.groups.size, INFINITY))
        self._last: tuple[I64, Searched] | None = None
        """What the last page changed, as it was searched."""

    def _open_groups(self, payload: pa.RecordBatch, slot: I64, fresh: I64) -> None:
        if len(fresh):
            k1, k2 = self._group_ids(payload)
            zeros = np.zeros(len(fresh), np.int64)
            fields = {
                "k1": k1,
                "k2": k2,
                "le": zeros + MIN_TIME,
                "at": zeros,
                "matches": zeros,
                "lost": zeros,
            }
            self.groups.append(fields, payload.select(self._group))
            self._wakes.extend(zeros + MIN_TIME)
            self._stands.extend(zeros + INFINITY)
        every = distinct(slot)
        self.groups.keep(every, np.ones(len(every), np.bool_))

    def _forget(self, slots: I64) -> None:
        """Groups of which nothing is kept any more."""
        for name in ("at", "matches", "lost"):
            self.groups.get(name)[slots] = 0
        self.groups.get("le")[slots] = MIN_TIME
        self.groups.kill(slots)

    # -- searching -------------------------------------------------------------------------------------------

    def _searched(self, slots: I64) -> Searched:
        """All rows of some groups, searched from where each stands."""
        owner, rows = self._rows_of(slots)
        there = self.rows.get("n")[rows] > 0
        owner, rows, _ = self._sorted(owner[there], rows[there], there[there])
        le = self.rows.get("le")[rows]
        segments = self._segments(slots, owner, le)
        columns = RowColumns(self.rows.payload.take(rows), le, self.node.inputs[0].time)
        numbers = self.groups.get("matches")[slots]
        found = self._matcher.found(columns, segments, owner, numbers)
        place, begin, measures = self._matcher.shown(found, columns, segments, numbers)
        if self.node.shown == "all with unmatched":
            unmatched = self._unmatched(slots, found, segments, owner, rows)
            place, begin = np.append(place, unmatched), np.append(begin, unmatched)
            measures = [pa.concat_arrays([one, pa.nulls(len(unmatched), one.type)]) for one in measures]
        results = pa.RecordBatch.from_arrays(measures, schema=self.sent.schema)
        fields = {"row": rows[place], "place": self._places(rows)[place], "settled": np.zeros_like(place)}
        return Searched(owner, rows, le, segments, found, begin, fields, results)

    def _segments(self, slots: I64, owner: I64, le: I64) -> Segments:
        low, high = (np.searchsorted(owner, np.arange(len(slots)), side=s) for s in ("left", "right"))
        passed = le < self.settled[slots][owner]
        start = low + np.bincount(owner[passed], minlength=len(slots)) + self.groups.get("at")[slots]
        begin = np.where(self.groups.get("lost")[slots] > 0, -1, low)
        return Segments(low, high, start, begin)

    def _unmatched(self, slots: I64, found: Found, segments: Segments, owner: I64, rows: I64) -> I64:
        """The rows from the first search of each group on that are in no match, of settled ones neither.

        A settled result keeps its place in its family: the row that it was sent of may end elsewhere by now.
        """
        unmatched = np.arange(len(owner)) >= segments.start[owner]
        unmatched[found.row] = False
        unmatched[found.begin[np.diff(found.first) == 0]] = False
        every = self._rows_of(slots)[1]
        family = self._family(np.concatenate([every, rows]))
        first = np.full(int(family.max(initial=-1)) + 1, -1, np.int64)
        first[family[len(every) :][::-1]] = np.arange(len(rows))[::-1]
        of, old = self._links.gather(every)
        settled = self.sent.alive[old] & self._settled_results(old) & (first[family[of]] >= 0)
        unmatched[first[family[of[settled]]] + self.sent.get("place")[old[settled]]] = False
        return np.flatnonzero(unmatched)

    # -- results ---------------------------------------------------------------------------------------------

    def _computed(self, changed: I64) -> SentResults:
        slots = distinct(self._slot.view[changed])
        searched = self._searched(slots)
        self._last = slots, searched
        return SentResults(self._open_results(slots), searched.fields, searched.results)

    def _open_results(self, slots: I64) -> I64:
        """What was sent of groups by searches that are not settled."""
        old = self._live(self._rows_of(slots)[1])
        open_: I64 = old[self.sent.get("settled")[old] == 0]
        return open_

    def _rows_of(self, slots: I64) -> tuple[I64, I64]:
        """(group, row) of all rows of some groups."""
        every = np.ones(len(slots), np.int64)
        return self._order.between(slots, every * MIN_TIME, every * INFINITY, self.rows.alive)

    def _corrected(self, changed: I64, settled: Mask) -> I64:
        """Rows that do not come any more: their ends change, and results of them may be settled."""
        self._wakes.view[self._slot.view[changed]] = MIN_TIME
        return changed[self.rows.get("le")[changed] < self._bound(changed)]

    def _settled_results(self, old: I64) -> Mask:
        settled: Mask = self.sent.get("settled")[old] > 0
        return settled

    def _purge(self) -> int:
        rows = np.flatnonzero(self.rows.alive)
        if len(rows) == 0:
            self._forget_groups()
            return INFINITY
        slots = self._slot.view[rows]
        bound = np.full(self.groups.size, MIN_TIME, np.int64)
        bound[slots] = self._bound(rows)
        slots = distinct(slots)
        awake = (bound[slots] > self._wakes.view[slots]) | (bound[slots] == INFINITY)
        waiting = int(self._stands.view[slots[~awake]].min(initial=INFINITY))
        for some, searched in self._to_settle(slots[awake]):
            stand = self._stand(searched, bound[some])
            self._settle_results(some, searched, stand)
            waiting = min(waiting, self._move_on(some, searched, stand, bound[some]))
            self._let_go(some, searched, stand, bound[some])
        self._last = None
        self._forget_groups()
        if self.rows.wasteful or self.sent.wasteful:
            self._index()
        return waiting

    def _to_settle(self, slots: I64) -> Iterator[tuple[I64, Searched]]:
        """Groups, searched; what the last page brought has been just now."""
        if self._last is not None and np.isin(self._last[0], slots).all():
            yield self._last
            slots = slots[~np.isin(slots, self._last[0])]
        if len(slots):
            yield slots, self._searched(slots)

    def _stand(self, searched: Searched, bound: I64) -> I64:
        """By group, the first search that may still find something else; its end where there is none."""
        owner, le, reach = searched.owner, searched.le, searched.found.reach
        high = searched.segments.high
        passed = searched.segments.low + np.bincount(owner[le < bound[owner]], minlength=len(bound))
        open_ = (reach >= passed[owner]) & (bound[owner] != INFINITY)
        if self.node.ends_in_time:
            open_ &= later(le, self.node.within or 0) >= bound[owner]
        waiting = np.flatnonzero(open_)
        stand = high.copy()
        np.minimum.at(stand, owner[waiting], waiting)
        return stand

    def _settle_results(self, slots: I64, searched: Searched, stand: I64) -> None:
        """Marks what was found by searches that are settled now."""
        if (stand == searched.segments.start).all():
            return
        of = searched.owner[searched.begin]
        moved = stand != searched.segments.start
        some = np.flatnonzero(moved[of])
        fields = {name: values[some] for name, values in searched.fields.items()}
        fields["settled"] = (searched.begin < stand[of])[some].astype(np.int64)
        self._keep_sent(self._open_results(slots[moved]), fields, take_rows(searched.results, some))

    def _move_on(self, slots: I64, searched: Searched, stand: I64, bound: I64) -> int:
        """Notes where each group stands; gives the least start of a search that is not settled."""
        le, segments, found = searched.le, searched.segments, searched.found
        start = bound.copy()
        there = np.flatnonzero(stand < segments.high)
        start[there] = np.minimum(bound[there], le[stand[there]])
        waits = start < bound
        before = np.bincount(searched.owner[le < start[searched.owner]], minlength=len(slots))
        settled = found.begin < stand[found.owner]
        self.groups.get("le")[slots] = np.maximum(start, self.settled[slots])
        self.groups.get("at")[slots] = np.where(waits, stand - segments.low - before, 0)
        self.groups.get("matches")[slots] += np.bincount(found.owner[settled], minlength=len(slots))
        self.groups.touch(slots)
        self._sleep(slots, searched, stand)
        return int(start[waits].min(initial=INFINITY))

    def _sleep(self, slots: I64, searched: Searched, stand: I64) -> None:
        """Notes up to where progress changes nothing of groups."""
        le, high = searched.le, searched.segments.high
        there = np.flatnonzero(stand < high)
        reach = searched.found.reach[stand[there]]
        inside = reach < high[there]
        wakes, stands = (np.full(len(slots), INFINITY, np.int64) for _ in range(2))
        stands[there] = le[stand[there]]
        wakes[there[inside]] = le[reach[inside]]
        if self.node.ends_in_time:
            wakes[there] = np.minimum(wakes[there], later(stands[there], self.node.within or 0))
        if not self.node.inputs[0].properties.fixed_ends:
            passed = np.flatnonzero(le < self.settled[slots][searched.owner])
            np.minimum.at(wakes, searched.owner[passed], self.rows.get("re")[searched.rows[passed]])
        self._wakes.view[slots], self._stands.view[slots] = wakes, stands

    def _let_go(self, slots: I64, searched: Searched, stand: I64, bound: I64) -> None:
        """Rows that are passed over, whose ends are settled too, and that nothing reads."""
        rows = distinct(searched.rows)
        group = np.searchsorted(slots, self._slot.view[rows])
        le, re = self.rows.get("le")[rows], self.rows.get("re")[rows]
        over = bound[group] == INFINITY
        end = le if self.node.inputs[0].properties.fixed_ends else re
        final = ((le < self.settled[slots][group]) & (end < bound[group])) | over
        family = self._family(rows)
        open_ = np.zeros(int(family.max(initial=-1)) + 1, np.bool_)
        open_[family[~final]] = True
        final &= ~open_[family]
        read = np.arange(len(searched.rows)) >= (stand - self.node.behind)[searched.owner]
        needed = np.zeros(self.rows.size, np.bool_)
        needed[searched.rows[read]] = True
        lost = final & (over | ~needed[rows])
        self.sent.kill(self._live(rows[final]))
        self.rows.get("n")[rows[lost]] = 0
        self.rows.kill(rows[lost])
        self.groups.get("lost")[slots[group[lost]]] = 1
        self.groups.touch(slots)

    def _forget_groups(self) -> None:
        """Groups without rows; those whose matches are numbered when they are over."""
        live = np.flatnonzero(self.groups.alive)
        held = np.zeros(self.groups.size, np.bool_)
        held[self._slot.view[np.flatnonzero(self.rows.alive)]] = True
        if self.node.numbered:
            batch = self.groups.payload.take(live)
            columns = {name: batch.column(name) for name in self.node.group}
            bound = self.promises[0].effective_cti(columns=columns)
            held[live[np.broadcast_to(np.asarray(bound), len(live)) != INFINITY]] = True
        self._forget(live[~held[live]])

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        given_up = super().give_up(pattern)
        if given_up is not None:
            live = np.flatnonzero(self.groups.alive)
            batch = self.groups.payload.take(live)
            columns = {name: batch.column(name) for name in self.node.group}
            self._forget(live[pattern.matches({**columns, "LE": np.zeros(len(live), np.int64)})])
        return given_up

    def states(self) -> dict[str, RowState]:
        return {**super().states(), "groups": self.groups}
