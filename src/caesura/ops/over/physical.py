"""`OverFrame` at work: rows beside what is computed over those around them.

A page changes rows from some start on up to another. What reaches over them, that is so many rows or so much
time behind (before, for `lead`), is computed again from the rows that are kept; equal results cancel.
A row whose result is settled is not computed again: where its end changes, results stay in their order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import later
from caesura.ops.over.frames import Frames
from caesura.ops.over.node import OverFrame
from caesura.ops.over.rows import RowsInOrder, SentResults
from caesura.ops.over.running import RunningFrames
from caesura.plan import GivenUp
from caesura.punctuation import INFINITY, MIN_TIME, Pattern


class OverOperator(RowsInOrder):
    """Rows that are settled not yet or that frames reach, and what was sent of them."""

    node: OverFrame

    def __init__(self, node: OverFrame) -> None:
        names = node.inputs[0].schema.names
        super().__init__(node, node.group, names, (), names)
        self.holds_back = bool(node.ahead)
        self._running = RunningFrames(node, self.secret) if node.runs else None
        self._frames = self._running or Frames(node)
        self._index()

    @property
    def settled(self) -> I64:
        return self._settled.view

    def _begin_groups(self) -> None:
        self._settled = Grown(np.int64)
        self._totals = Grown(np.int64)
        """The slot of what each group's rows before come to."""

    def _open_groups(self, payload: pa.RecordBatch, slot: I64, fresh: I64) -> None:
        settled = np.full(len(fresh), MIN_TIME)
        if self._running is not None:
            totals = self._running.slots_of(payload)
            self._totals.extend(totals)
            settled = self._running.until[totals]
        self._settled.extend(settled)

    def _index(self) -> None:
        if self._running is not None:
            self._running.tidy()
        super()._index()
        if self.rows.size:
            self._settle(np.arange(self.rows.size))

    def _computed(self, changed: I64) -> SentResults:
        """Results around rows that came or went."""
        slots, place = np.unique(self._slot.view[changed], return_inverse=True)
        le = self.rows.get("le")[changed]
        low, high = np.full(len(slots), INFINITY, np.int64), np.full(len(slots), MIN_TIME, np.int64)
        np.minimum.at(low, place, le)
        np.maximum.at(high, place, le)
        node, span = self.node, self.node.reach
        low = np.maximum(self._nth(slots, low, -node.ahead), self.settled[slots])
        if self._running is not None:
            return self._computed_along(self._running, slots, low)
        high = np.maximum(self._nth(slots, high, node.behind), np.minimum(later(high, span), INFINITY - 1))
        first = np.minimum(self._nth(slots, low, -node.behind), later(low, -span))
        last = self._nth(slots, high, node.ahead)
        owner, rows = self._order.between(slots, first, last, self.rows.alive)
        start = self.rows.get("le")[rows]
        inside = (start >= low[owner]) & (start <= high[owner])
        looked = rows[inside]
        there = self.rows.get("n")[rows] > 0
        owner, rows, inside = self._sorted(owner[there], rows[there], inside[there])
        le = self.rows.get("le")[rows]
        results = self._frames.results(owner, le, self.rows.payload.take(rows), inside)
        made = rows[inside]
        fields = {"row": made, "place": self._places(made)}
        return SentResults(
            self._live(looked), fields, pa.RecordBatch.from_arrays(results, schema=self.sent.schema)
        )

    def _computed_along(self, running: RunningFrames, slots: I64, low: I64) -> SentResults:
        """Results of groups from these times on, going on from what is settled."""
        settled = self.settled[slots]
        first = np.minimum(self._nth(slots, settled, -self.node.behind), settled)
        end = np.full(len(slots), INFINITY - 1)
        owner, rows = self._order.between(slots, first, end, self.rows.alive)
        inside = self.rows.get("le")[rows] >= low[owner]
        looked = rows[inside]
        there = self.rows.get("n")[rows] > 0
        owner, rows, inside = self._sorted(owner[there], rows[there], inside[there])
        le, payload = self.rows.get("le")[rows], self.rows.payload.take(rows)
        results = running.along(self._totals.view[slots], owner, le, payload, inside)
        made = rows[inside]
        fields = {"row": made, "place": self._places(made)}
        return SentResults(
            self._live(looked), fields, pa.RecordBatch.from_arrays(results, schema=self.sent.schema)
        )

    def _sum_up(self, running: RunningFrames, rows: I64) -> None:
        """Adds rows that are settled now to what the rows before come to."""
        slot = self._slot.view[rows]
        totals = self._totals.view[slot]
        le, settled = self.rows.get("le")[rows], self._settled.view[slot]
        np.maximum.at(self._settled.view, slot, running.until[totals])
        some = np.flatnonzero((le >= running.until[totals]) & (le < settled) & (self.rows.get("n")[rows] > 0))
        if len(some):
            owner, each, _ = self._sorted(totals[some], rows[some], np.zeros(len(some), np.bool_))
            ones = np.ones(len(each), np.int64)
            running.sum_up(owner, self.rows.get("le")[each], ones, self.rows.payload.take(each))
            touched, place = np.unique(owner, return_index=True)
            running.until[touched] = self._settled.view[self._slot.view[each[place]]]

    def _nth(self, slots: I64, time: I64, n: int) -> I64:
        """The time of the n-th distinct start before (below zero) or behind a time, or the last there is."""
        return self._order.nth(slots, time, n, self.rows.alive)

    def _settle(self, rows: I64) -> tuple[I64, I64]:
        """Per row, the time before which its group is settled, and the start before which its results are."""
        slot, le = self._slot.view[rows], self.rows.get("le")[rows]
        bound = self._bound(rows)
        self._settled.view[slot] = bound
        if self.node.ahead:
            old = le < bound
            order = np.lexsort((-le[old], slot[old]))
            slots, times, n = slot[old][order], le[old][order], self.rows.get("n")[rows[old][order]]
            first = np.searchsorted(slots, slots)
            total = np.cumsum(n)
            later_rows = total - n - np.where(first > 0, total[np.maximum(first - 1, 0)], 0)
            waits = (later_rows < self.node.ahead) & (bound[old][order] != INFINITY)
            np.minimum.at(self._settled.view, slots[waits], times[waits])
        if self._running is not None:
            self._sum_up(self._running, rows)
        return bound, self._settled.view[slot]

    def _purge(self) -> int:
        """Lets go of what is settled and that no frame reaches; gives the least start that is not settled."""
        rows = np.flatnonzero(self.rows.alive)
        if self._running is not None:
            self._forget_groups(self._running)
        if len(rows) == 0:
            return INFINITY
        if self.promises[0].size == 0 and self.promises[0].cti == INFINITY:
            self._drop_all(rows)
            return INFINITY
        bound, settled = self._settle(rows)
        le, re = self.rows.get("le")[rows], self.rows.get("re")[rows]
        over = bound == INFINITY
        end = le if self.node.inputs[0].properties.fixed_ends else re
        final = ((le < settled) & (end < bound)) | over
        family = self._family(rows)
        open_ = np.zeros(int(family.max()) + 1, np.bool_)
        open_[family[~final]] = True
        final &= ~open_[family]
        slots, place = np.unique(self._slot.view[rows], return_inverse=True)
        first = np.full(len(slots), INFINITY, np.int64)
        np.minimum.at(first, place, settled)
        reach = np.minimum(self._nth(slots, first, -self.node.behind), later(first, -self.node.reach))
        lost = rows[final & ((le < reach[place]) | self._beyond(rows, place, first) | over)]
        _, at = self._links.gather(rows[final])
        self.sent.kill(at[self.sent.alive[at]])
        self.rows.get("n")[lost] = 0
        self.rows.kill(lost)
        waiting = int(le[~over & (le >= settled)].min(initial=INFINITY))
        if self.rows.wasteful or self.sent.wasteful:
            self._index()
        return waiting

    def _forget_groups(self, running: RunningFrames) -> None:
        """Lets go of what rows of groups came to that are over."""
        known, totals = self.promises[0], running.slots.rows
        if known.size == 0 and known.cti != INFINITY:
            return
        slots = np.flatnonzero(totals.alive)
        keys = totals.payload.take(slots).columns
        columns = dict(zip(self.node.group, keys, strict=True))
        bound = np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(slots))
        running.forget(slots[bound == INFINITY])

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the groups that match, unless a result of one is settled."""
        if self._running is not None:
            totals = self._running.slots.rows
            slots = np.flatnonzero(totals.alive)
            keys = dict(zip(self.node.group, totals.payload.take(slots).columns, strict=True))
            if pattern.matches({**keys, "LE": np.zeros(len(slots), np.int64)}).any():
                return None
        return super().give_up(pattern)

    def states(self) -> dict[str, RowState]:
        return super().states() | ({} if self._running is None else self._running.states())

    def rebuild(self) -> None:
        if self._running is not None:
            self._running.rebuild()
        super().rebuild()

    def _drop_all(self, rows: I64) -> None:
        """Lets go of everything: nothing can come any more."""
        self.rows.get("n")[rows] = 0
        self.rows.kill(rows)
        self.sent.kill(np.flatnonzero(self.sent.alive))
        self._index()

    def _beyond(self, rows: I64, place: I64, first: I64) -> Mask:
        """Which rows frames do not reach, though they reach others with the same start."""
        beyond = np.zeros(len(rows), np.bool_)
        le, behind = self.rows.get("le")[rows], self.node.behind
        old = (le < first[place]) & (behind > 0)
        many = np.bincount(place[old], minlength=len(first)) > behind
        some = np.flatnonzero(old & many[place])
        if len(some):
            owner, each, _ = self._sorted(place[some], rows[some], beyond[some])
            ends = np.searchsorted(owner, owner, side="right")
            needed = each[ends - np.arange(len(owner)) <= behind]
            far = le[some] < later(first, -self.node.reach)[place[some]]
            beyond[some] = far & ~np.isin(rows[some], needed)
        return beyond
