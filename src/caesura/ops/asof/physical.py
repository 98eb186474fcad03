"""`AsOf` at work: rows of both sides in order of (key, start), and the match that was sent of each left row.

A right row that comes or goes changes left rows up to its neighbours alone; those are found in logarithmic
time and matched anew. A left row whose match can no longer change keeps the right row that it met.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.delta import deltas, net_page
from caesura.events.identity import plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.rows import SMALL, RowState
from caesura.kernels.hashing import I64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, each_once
from caesura.kernels.ticks import later
from caesura.ops.asof.node import AsOf
from caesura.ops.join.side import key_ids
from caesura.ops.ordered import Ordered
from caesura.ops.top.order import ranks
from caesura.plan import AlignedOperator, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

NONE = -1
"""The match of a row that has none."""


class Indexes(NamedTuple):
    """How the rows of a side are found: by identity, and in order of (key, start)."""

    known: KeyTable
    key: Grown
    order: Ordered


class AsOfOperator(AlignedOperator):
    """Left rows with what was sent of them, and right rows that are, or may become, a match."""

    def __init__(self, node: AsOf) -> None:
        super().__init__(2)
        self.node = node
        schemas = [source.schema for source in node.inputs]
        self._places = [[schemas[p].get_field_index(pair[p]) for pair in node.on] for p in (0, 1)]
        self._added = [schemas[1].get_field_index(name) for name in node.right_columns]
        own = {"p1": np.uint64, "p2": np.uint64, "le": np.int64, "n": np.int64}
        sent = {"match": np.int64, "sent": np.int64}
        self.left = RowState({**own, "re": np.int64, **sent}, schemas[0])
        """Rows, how often there is each, the right row that was sent with it, and how often."""
        self.right = RowState(own, schemas[1])
        self._promised = MIN_TIME
        self._index()

    def _index(self) -> None:
        """Keys, identities and orders, from what is live alone."""
        if self.right.live < self.right.size:
            keep = self.right.compact()
            new = np.full(int(keep.max(initial=NONE)) + 2, NONE, np.int64)
            new[keep] = np.arange(len(keep))  # the last place stays NONE, for rows without a match
            live = np.flatnonzero(self.left.alive)
            self.left.get("match")[live] = new[np.minimum(self.left.get("match")[live], len(new) - 1)]
            self.left.touch(live)
        if self.left.live < self.left.size:
            self.left.compact()
        self._keys = KeyTable()
        self._sides = [Indexes(KeyTable(), Grown(np.int64), Ordered()) for _ in (0, 1)]
        for port, state in enumerate((self.left, self.right)):
            if state.size:
                self._sides[port].known.encode(*self._ids(port, *(state.get(f) for f in self._named(port))))
                self._put(port, self._key(port, state.payload.all()), state.get("le"), 0)

    @staticmethod
    def _named(port: int) -> tuple[str, ...]:
        return ("p1", "p2", "le", "re") if port == 0 else ("p1", "p2", "le")

    @staticmethod
    def _ids(port: int, p1: Any, p2: Any, *times: I64) -> Any:
        return mixed((p1, p2), *times)

    def _key(self, port: int, payload: pa.RecordBatch) -> I64:
        columns = [payload.column(i) for i in self._places[port]]
        return self._keys.encode(*key_ids(columns, payload.num_rows, self.secret, port))[0]

    def _put(self, port: int, key: I64, le: I64, first: int) -> None:
        """Takes new rows of a side into its order."""
        side = self._sides[port]
        side.key.extend(key)
        side.order.add(key, le, np.arange(first, first + len(le)))

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        rows = self._left_changed(page) if port == 0 else self._affected(*self._right_changed(page))
        change = self._rematched(rows)
        if any(state.size > 2 * state.live + SMALL for state in (self.left, self.right)):
            self._index()
        return [change]

    def _left_changed(self, page: Page) -> I64:
        change = deltas(page)
        return self._counted(0, page, change.rows, (change.le, change.re), change.weight)

    def _right_changed(self, page: Page) -> tuple[I64, I64]:
        """(key, start) of right rows that came or went; a change of an end changes nothing."""
        weight = np.ones(len(page), np.int64)
        if page.re_new is not None and page.retracts is not None:
            weight = np.where(page.retracts, np.where(page.re_new <= page.le, -1, 0), 1)
        some = np.flatnonzero(weight)
        rows = self._counted(1, page, some, (page.le[some],), weight[some])
        self.right.keep(rows, self.right.get("n")[rows] > 0)
        return self._sides[1].key.view[rows], self.right.get("le")[rows]

    def _counted(self, port: int, page: Page, rows: I64, times: tuple[I64, ...], weight: I64) -> I64:
        """Counts rows of a page that come and go; gives their numbers here."""
        state = (self.left, self.right)[port]
        p1, p2 = (half[rows] for half in page.ids(self.secret))
        at, fresh = self._sides[port].known.encode(*self._ids(port, p1, p2, *times))
        if len(fresh):
            zeros = np.zeros(len(fresh), np.int64)
            fields: dict[str, Any] = {"p1": p1[fresh], "p2": p2[fresh], "le": times[0][fresh], "n": zeros}
            if port == 0:
                fields |= {"re": times[1][fresh], "match": zeros + NONE, "sent": zeros}
            payload = take_rows(page.payload, rows[fresh])
            first = state.append(fields, payload)
            self._put(port, self._key(port, payload), fields["le"], first)
        add_weights(at, weight, state.get("n"))
        found = each_once(at)
        state.touch(found)
        return found

    def _affected(self, key: I64, start: I64) -> I64:
        """Left rows for which a right row at this start may be, or have been, the nearest."""
        order, alive = self._sides[1].order, self.right.alive
        low = start if self.node.direction == "backward" else order.before(key, start, alive)
        high = start if self.node.direction == "forward" else order.after(key, start, alive)
        if self.node.tolerance is not None:
            low = np.maximum(low, later(start, -self.node.tolerance))
            high = np.minimum(high, later(start, self.node.tolerance))
        _, rows = self._sides[0].order.between(key, low, high, self.left.alive)
        return each_once(rows)

    def _rematched(self, rows: I64) -> Page:
        """Matches these left rows again; gives the change from what was sent of them."""
        left = self.left
        count = left.get("n")[rows]
        match = np.full(len(rows), NONE, np.int64)
        match[count > 0] = self._nearest(rows[count > 0])
        shown = count if self.node.how == "left" else np.where(match == NONE, 0, count)
        before, sent = left.get("match")[rows], left.get("sent")[rows]
        other = (before != match) | (sent != shown)
        gone, new = np.flatnonzero(other & (sent > 0)), np.flatnonzero(other & (shown > 0))
        both = np.concatenate([rows[gone], rows[new]])
        page = net_page(
            self._joined(both, np.concatenate([before[gone], match[new]])),
            left.get("le")[both],
            left.get("re")[both],
            np.concatenate([-sent[gone], shown[new]]),
        )
        left.get("match")[rows] = match
        left.get("sent")[rows] = shown
        left.touch(rows[other])
        left.keep(rows, count > 0)
        return page

    def _joined(self, rows: I64, match: I64) -> pa.RecordBatch:
        mine = self.left.payload.take(rows).columns
        there = match != NONE
        theirs = self.right.payload.take(match[there])
        columns = [theirs.column(i) for i in self._added]
        if not there.all():
            place = pa.array(np.cumsum(there) - 1, mask=~there)
            columns = [column.take(place) for column in columns]
        return pa.RecordBatch.from_arrays([*mine, *columns], schema=self.node.schema)

    def _nearest(self, rows: I64) -> I64:
        """The right row that is the match of each left row; NONE where there is none."""
        key, le = self._sides[0].key.view[rows], self.left.get("le")[rows]
        order, alive = self._sides[1].order, self.right.alive
        exact = self.node.exact
        before = np.full(len(rows), MIN_TIME, np.int64)
        after = np.full(len(rows), INFINITY, np.int64)
        if self.node.direction != "forward":
            before = order.before(key, le + 1 if exact else le, alive)
        if self.node.direction != "backward":
            after = order.after(key, le - 1 if exact else le, alive)
        forward = (after != INFINITY) & ((before == MIN_TIME) | (_apart(le, after) < _apart(before, le)))
        time = np.where(forward, after, before)
        there = time != MIN_TIME
        if self.node.tolerance is not None:
            within = np.uint64(min(self.node.tolerance, 2**64 - 1))
            there &= np.where(forward, _apart(le, after), _apart(before, le)) <= within
        return self._picked(np.flatnonzero(there), key, time, forward)

    def _picked(self, some: I64, key: I64, time: I64, forward: Mask) -> I64:
        """Of right rows that start together, the last in order of values, or looking forward the first."""
        found = np.full(len(key), NONE, np.int64)
        owner, row = self._sides[1].order.between(key[some], time[some], time[some], self.right.alive)
        owner = some[owner]
        if len(row) > len(some):
            payload = self.right.payload.take(row)
            values = [ranks(column) for column in payload.columns]
            order = np.lexsort((*reversed(values), owner))
            owner, row = owner[order], row[order]
            last = np.append(owner[1:] != owner[:-1], True)
            first = np.append(True, owner[1:] != owner[:-1])
            taken = np.where(forward[owner], first, last)
            owner, row = owner[taken], row[taken]
        found[owner] = row
        return found

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        carried = self.node.carry(port, pattern)
        waiting = self._purge()
        if not self.node.waits_for_rows:
            items = self.aligned(port, carried)
        else:
            until = min(self.promises[0].cti, waiting)
            items = definite(Pattern.before(until)) if until > self._promised else []
            self._promised = max(self._promised, until)
        behind = 0 if self.promises[0].cti <= self.promises[1].cti else 1
        self.counters.held_by = "" if items else f"the {('left', 'right')[behind]} input"
        return items

    def _purge(self) -> int:
        """Lets go of what is settled; gives the least start of a left row whose match may still change."""
        left = self.left
        rows = np.flatnonzero(left.alive)
        payload, le, re = left.payload.take(rows), left.get("le")[rows], left.get("re")[rows]
        own = np.broadcast_to(self.promises[0].effective_cti(payload), len(rows))
        theirs = self._bound(1, 0, payload)
        matched = (self._horizon(rows) < theirs) | (theirs == INFINITY)
        end = le if self.node.inputs[0].properties.fixed_ends else re
        final = matched & ((end < own) | (own == INFINITY))
        waiting = int(le[~matched].min(initial=INFINITY))
        lost = rows[final]
        left.get("n")[lost] = 0
        left.get("sent")[lost] = 0
        left.kill(lost)
        self._purge_right()
        if left.wasteful or self.right.wasteful:
            self._index()
        return waiting

    def _horizon(self, rows: I64) -> I64:
        """The last start at which a right row could be nearer than the match of each left row."""
        le, match = self.left.get("le")[rows], self.left.get("match")[rows]
        if self.node.direction == "backward":
            return le
        there = match != NONE
        reach = np.full(len(rows), INFINITY, np.int64)
        start = self.right.get("le")[match[there]]
        own = le[there]
        ahead = np.minimum(_apart(own, np.maximum(own, start)), np.uint64(INFINITY)).astype(np.int64)
        back = np.minimum(_apart(np.minimum(own, start), own), np.uint64(INFINITY)).astype(np.int64)
        apart = np.maximum(ahead, back)
        reach[there] = np.where(apart >= INFINITY - np.maximum(own, 0), INFINITY, own + apart)
        if self.node.tolerance is not None:
            reach = np.minimum(reach, later(le, self.node.tolerance))
        return reach

    def _purge_right(self) -> None:
        """Right rows before both bounds go, but for the last one of a key and those that were sent."""
        right, node = self.right, self.node
        rows = np.flatnonzero(right.alive)
        if len(rows) == 0:
            return
        payload, start, key = right.payload.take(rows), right.get("le")[rows], self._sides[1].key.view[rows]
        coming = self._bound(0, 1, payload)
        bound = np.minimum(coming, self._bound(1, 1, payload))
        old = (start < bound) | (bound == INFINITY)
        needed = ~old
        if node.direction != "forward":
            last = np.full(self._keys.count, MIN_TIME, np.int64)
            np.maximum.at(last, key[old], start[old])
            near = old & (start == last[key]) & (bound != INFINITY)
            if node.tolerance is not None:
                reach = node.tolerance * (2 if node.direction == "nearest" else 1)
                near = old & (bound != INFINITY) & (later(start, reach) >= bound)
            needed |= near
        live = np.flatnonzero(self.left.alive)
        met = np.zeros(self._keys.count, np.bool_)
        met[self._sides[0].key.view[live]] = True
        needed &= met[key] | (coming != INFINITY)
        match = self.left.get("match")[live]
        held = np.zeros(right.size, np.bool_)
        held[match[match != NONE]] = True
        lost = rows[~needed & ~held[rows]]
        right.get("n")[lost] = 0
        right.kill(lost)

    def _bound(self, promises_of: int, rows_of: int, payload: pa.RecordBatch) -> I64:
        """The time before which one side is settled, for the keys of rows of a side."""
        names = self.node.keys(promises_of)
        columns = {n: payload.column(i) for n, i in zip(names, self._places[rows_of], strict=True)}
        found = self.promises[promises_of].effective_cti(columns=columns)
        return np.broadcast_to(np.asarray(found), payload.num_rows)

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "promised": self._promised}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._promised = meta["promised"]

    def states(self) -> dict[str, RowState]:
        return {"left": self.left, "right": self.right}

    def rebuild(self) -> None:
        self._index()


def _apart(earlier: I64, later: I64) -> Any:
    """How far two times lie apart, without overflow; the first must not lie behind the second."""
    return later.astype(np.uint64) - earlier.astype(np.uint64)
