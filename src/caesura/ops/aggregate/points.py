"""Where rows of groups come and go: points in time, found by group, and by value when one is taken back.

Points are looked up by value only from the first end on that moves: until then they are kept as they come,
and equal ones lie side by side.

>>> points = Points(RowState({"slot": np.int64, "time": np.int64, "n": np.int64}), Secret.drawn())
>>> page = Page(np.array([1]), np.array([9]), pa.record_batch({"v": [7]}))
>>> points.take(page, np.array([0]), [])
2
>>> points.of(np.array([0]), slots=1, fresh=2)[1].tolist()
[0, 1]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.columns import taken
from caesura.events.delta import deltas
from caesura.events.identity import Secret, identity
from caesura.events.nested import NO_MASK
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, U64, Mask, mix_int
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, distinct
from caesura.ops.aggregate.linked_rows import LinkedRows
from caesura.ops.ordered import merge_runs
from caesura.punctuation import INFINITY

SCAN = 4
"""All points are looked at where so many times those of a page are not fewer: chaining them costs more."""


class Points:
    """So many rows with these values come or, below zero, go, at a time of a slot."""

    def __init__(self, state: RowState, secret: Secret) -> None:
        self.state, self._secret = state, secret
        self.linked = LinkedRows(state)
        self._known = KeyTable()
        self._merges = False
        """Whether equal points are one from the start: some have come, and were looked for."""

    def take(self, page: Page, at: I64, values: list[pa.Array]) -> int:
        """Takes the points of a page whose rows are of these slots; gives how many are new."""
        before = self.state.size
        if self._merges or ends_that_move(page).any():
            self._put_counted(page, at, values)
        else:
            self._put_loose(page, at, values)
        return self.state.size - before

    def _put_loose(self, page: Page, at: I64, values: list[pa.Array]) -> None:
        """Rows begin, and end once: no point goes."""
        rows, time, n = loose_points(page)
        same = len(rows) == len(page) and bool((n > 0).all())
        columns = values if same else [value.take(pa.array(rows)) for value in values]
        self._append(at[rows], time, n, columns)

    def add(self, slot: I64, time: I64, n: I64, values: list[pa.Array]) -> None:
        """Takes points that are of no page any more."""
        if self._merges:
            self._count(slot, time, n, values)
        else:
            self._append(slot, time, n, values)

    def _append(self, slot: I64, time: I64, n: I64, values: list[pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays(values, schema=self.state.schema) if values else None
        self.state.append({"slot": slot, "time": time, "n": n}, batch)

    def _put_counted(self, page: Page, at: I64, values: list[pa.Array]) -> None:
        """Points that come and go again are none."""
        self._merge()
        change = deltas(page)
        ends = np.flatnonzero(change.re != INFINITY)
        rows = np.concatenate([change.rows, change.rows[ends]])
        slot, time = at[rows], np.concatenate([change.le, change.re[ends]])
        columns = [value.take(pa.array(rows)) for value in values]
        self._count(slot, time, np.concatenate([change.weight, -change.weight[ends]]), columns)

    def _count(self, slot: I64, time: I64, n: I64, values: list[pa.Array]) -> None:
        """Adds to the points that are there, and to new ones; all are known by value."""
        number, fresh = self._known.encode(*self._ids(slot, time, values))
        if len(fresh):
            batch = pa.RecordBatch.from_arrays(values, schema=self.state.schema) if values else None
            fields = {"slot": slot[fresh], "time": time[fresh], "n": np.zeros(len(fresh), np.int64)}
            self.state.append(fields, None if batch is None else take_rows(batch, fresh))
        self._add(number, n)

    def _add(self, row: I64, n: I64) -> None:
        add_weights(row, n, self.state.get("n"))
        some = distinct(row, self.state.size)
        self.state.touch(some)
        self.state.keep(some, self.state.get("n")[some] != 0)

    def _merge(self) -> None:
        """Finds the points that were kept as they came; from the first equal ones on none is."""
        first = self._known.count
        slot, time = self.state.get("slot")[first:], self.state.get("time")[first:]
        if len(slot) == 0:
            return
        loose = np.arange(first, self.state.size)
        values = self.state.payload.take(loose).columns if len(self.state.schema) else []
        number, fresh = self._known.encode(*self._ids(slot, time, values))
        if len(fresh) == len(loose):
            return
        self._merges = True
        weight = self.state.get("n")[first:].copy()
        self.state.get("n")[first:] = 0
        row = np.concatenate([np.arange(first), loose[fresh]])[number]
        self._add(np.concatenate([row, loose]), np.concatenate([weight, np.zeros(len(loose), np.int64)]))
        self.compact()

    def _ids(self, slot: I64, time: I64, values: list[pa.Array]) -> tuple[U64, U64]:
        every = np.arange(len(slot))
        a, b = identity(values, len(slot), self._secret)
        h1, h2 = np.empty(len(slot), np.uint64), np.empty(len(slot), np.uint64)
        mix_int(a, b, every, slot, h1, h2)
        mix_int(h1, h2, every, time, h1, h2)
        return h1, h2

    def compact(self) -> None:
        """Moves the live points together."""
        self.linked.compact()
        self._known = KeyTable()
        if self._merges and self.state.size:
            values = self.state.payload.all().columns if len(self.state.schema) else []
            self._known.encode(*self._ids(self.state.get("slot"), self.state.get("time"), values))

    def of(self, slots_wanted: I64, *, slots: int, fresh: int) -> tuple[I64, I64]:
        """(place in the slots wanted, row) of their live points; of how many slots, and points just taken."""
        state = self.state
        if state.size <= SCAN * fresh:
            place = np.full(slots, -1, np.int64)
            place[slots_wanted] = np.arange(len(slots_wanted))
            owner = place[state.get("slot")]
            row = np.flatnonzero(state.alive & (owner >= 0))
            return owner[row], row
        self.linked.link()
        owner, row = self.linked.oldest_first(slots_wanted)
        live = state.alive[row]
        return owner[live], row[live]


def loose_points(page: Page) -> tuple[I64, I64, I64]:
    """Where rows begin and end, each once: the row, the time, and 1 or -1; begins first."""
    if page.retracts is None or page.re_new is None:
        begins, re = np.arange(len(page)), page.re
    else:
        begins, re = np.flatnonzero(~page.retracts), np.where(page.retracts, page.re_new, page.re)
    ends = np.flatnonzero(re != INFINITY)
    n = np.ones(len(begins) + len(ends), np.int64)
    n[len(begins) :] = -1
    return np.concatenate([begins, ends]), np.concatenate([page.le[begins], re[ends]]), n


def in_order_of_time(page: Page) -> tuple[I64, I64, Mask]:
    """Where rows begin and end, each once, in order of time: the row, the time, and whether it ends."""
    row, time, n = loose_points(page)
    begins = int(np.count_nonzero(n > 0))
    sooner = time[:begins]
    if (sooner[1:] >= sooner[:-1]).all():
        order, ends = np.empty(len(row), np.int64), begins + np.argsort(time[begins:])
        row[begins:], time[begins:] = row[ends], time[ends]
        one = np.zeros(len(row), np.int64)
        merge_runs(one[:begins], time[:begins], one[begins:], time[begins:], order)
    else:
        order = np.argsort(time)
    return taken(row, order), taken(time, order), order >= begins


def ends_that_move(page: Page) -> Mask:
    """Which rows go altogether, or have another end than they had: a point is then taken back.

    >>> page = Page.of(pa.record_batch({"v": [7, 7]}), le=[1, 1], re=[9, INFINITY], re_new=[5, 5])
    >>> ends_that_move(page).tolist()
    [True, False]
    """
    if page.retracts is None or page.re_new is None:
        return NO_MASK
    again: Mask = page.retracts & ((page.re != INFINITY) | (page.re_new <= page.le))
    return again
