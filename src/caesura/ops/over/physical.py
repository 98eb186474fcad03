"""`OverFrame` at work: rows in order of (group, start), and the results that were sent of them.

A page changes rows from some start on up to another. What reaches over them, that is so many rows or so much
time behind (before, for `lead`), is computed again from the rows that are kept; equal results cancel.
A row whose result is settled is not computed again: where its end changes, results stay in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.delta import deltas, net_page
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.rows import SMALL, RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.kernels.ticks import later
from caesura.ops.ordered import Ordered
from caesura.ops.over.frames import Frames
from caesura.ops.over.node import OverFrame
from caesura.ops.top.order import ranks
from caesura.plan import GivenUp, Operator, definite
from caesura.punctuation import INFINITY, MIN_TIME, TIME, Pattern


class OverOperator(Operator):
    """Rows that are settled not yet or that others read, and what was sent of them."""

    def __init__(self, node: OverFrame) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0]
        self._group = [source.schema.get_field_index(name) for name in node.group]
        own = {"p1": np.uint64, "p2": np.uint64, "le": np.int64, "re": np.int64, "n": np.int64}
        self.rows = RowState(own, source.schema)
        added = [node.schema.field(name) for name, _ in node.columns]
        self.sent = RowState({"row": np.int64, "place": np.int64}, pa.schema(added))
        """Results by row, and their places among those of rows that are alike."""
        self._frames = Frames(node)
        self._promised = MIN_TIME
        self._index()

    def _index(self) -> None:
        """Groups, identities and order, from what is live alone."""
        if self.rows.live < self.rows.size:
            keep = self.rows.compact()
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            live = np.flatnonzero(self.sent.alive)
            self.sent.get("row")[live] = new[self.sent.get("row")[live]]
            self.sent.touch(live)
        if self.sent.live < self.sent.size:
            self.sent.compact()
        self._groups, self._known, self._order = KeyTable(), KeyTable(), Ordered()
        self._slot, self._settled = Grown(np.int64), Grown(np.int64)
        """The group of each row, and the start before which each group's results are settled."""
        self._links = Chains()
        self._links.add(self.sent.get("row"))
        if self.rows.size:
            fields = (self.rows.get(name) for name in ("p1", "p2", "le", "re"))
            p1, p2, le, re = fields
            self._known.encode(*mixed((p1, p2), le, re))
            self._put(self.rows.payload.all(), le, 0)
            self._settle(np.arange(self.rows.size))

    def _put(self, payload: pa.RecordBatch, le: I64, first: int) -> None:
        """Takes new rows into their groups."""
        columns = plain_zeros(payload.select(self._group)).columns
        slot, fresh = self._groups.encode(*identity(columns, len(le), self.secret))
        self._settled.extend(np.full(len(fresh), MIN_TIME))
        self._slot.extend(slot)
        self._order.add(slot, le, np.arange(first, first + len(le)))

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        rows = self._counted(page)
        self.rows.keep(rows, self.rows.alive[rows] | (self.rows.get("n")[rows] > 0))
        settled = self.rows.get("le")[rows] < self._settled.view[self._slot.view[rows]]
        change = self._changed(*self._computed(rows[~settled]), *self._reordered(rows[settled]))
        self.rows.keep(rows, self.rows.get("n")[rows] > 0)
        if any(state.size > 2 * state.live + SMALL for state in (self.rows, self.sent)):
            self._index()
        return [change]

    def _counted(self, page: Page) -> I64:
        """Counts rows that come and go; gives their numbers."""
        change = deltas(page)
        p1, p2 = (half[change.rows] for half in page.ids(self.secret))
        at, fresh = self._known.encode(*mixed((p1, p2), change.le, change.re))
        if len(fresh):
            zeros = np.zeros(len(fresh), np.int64)
            le, re = change.le[fresh], change.re[fresh]
            payload = take_rows(page.payload, change.rows[fresh])
            first = self.rows.append(
                {"p1": p1[fresh], "p2": p2[fresh], "le": le, "re": re, "n": zeros}, payload
            )
            self._put(payload, le, first)
        add_weights(at, change.weight, self.rows.get("n"))
        rows = np.unique(at)
        self.rows.touch(rows)
        return rows

    def _computed(self, changed: I64) -> tuple[I64, I64, I64, list[pa.Array]]:
        """(rows looked at, rows of results, their places, results) around rows that came or went."""
        slots, place = np.unique(self._slot.view[changed], return_inverse=True)
        le = self.rows.get("le")[changed]
        low, high = np.full(len(slots), INFINITY, np.int64), np.full(len(slots), MIN_TIME, np.int64)
        np.minimum.at(low, place, le)
        np.maximum.at(high, place, le)
        node, span = self.node, self.node.span or 0
        low = np.maximum(self._nth(slots, low, -node.ahead), self._settled.view[slots])
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
        return looked, made, self._places(made), results

    def _nth(self, slots: I64, time: I64, n: int) -> I64:
        """The time of the n-th distinct start before (below zero) or behind a time, or the last there is."""
        for _ in range(abs(n)):
            if n < 0:
                found = self._order.before(slots, time, self.rows.alive)
                there = found != MIN_TIME
            else:
                found = self._order.after(slots, time, self.rows.alive)
                there = found != INFINITY
            if not there.any():
                break
            time = np.where(there, found, time)
        return time

    def _sorted(self, owner: I64, rows: I64, inside: Mask) -> tuple[I64, I64, Mask]:
        """Rows by group, start, values, then end; copies written out."""
        le, re = self.rows.get("le")[rows], self.rows.get("re")[rows]
        order = np.lexsort((re, le, owner))
        same = (owner[order][1:] == owner[order][:-1]) & (le[order][1:] == le[order][:-1])
        tied = np.append(same, False) | np.append(False, same) if len(order) else np.zeros(0, np.bool_)
        if tied.any():
            some = order[tied]
            values = [ranks(column) for column in self.rows.payload.take(rows[some]).columns]
            again = np.lexsort((re[some], *reversed(values), le[some], owner[some]))
            order[tied] = some[again]
        order = np.repeat(order, self.rows.get("n")[rows[order]])
        return owner[order], rows[order], inside[order]

    def _family(self, rows: I64) -> I64:
        """A number that rows share which start together and are alike, and end at different times."""
        p1, p2, le = (self.rows.get(name)[rows] for name in ("p1", "p2", "le"))
        return KeyTable().encode(*mixed((p1, p2), le))[0]

    def _places(self, rows: I64) -> I64:
        """The place of each row among those of its family, which follow each other."""
        family = self._family(rows)
        new = np.append(True, family[1:] != family[:-1]) if len(family) else np.zeros(0, np.bool_)
        starts = np.flatnonzero(new)
        return np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))

    def _reordered(self, changed: I64) -> tuple[I64, I64, I64, list[pa.Array]]:
        """The same for rows whose results are settled and whose ends changed: results stay in order."""
        none = np.zeros(0, np.int64)
        if len(changed) == 0:
            return none, none, none, [column.slice(0, 0) for column in self._empty()]
        slot, le = self._slot.view[changed], self.rows.get("le")[changed]
        key = np.unique(np.stack([slot, le]), axis=1)
        _, found = self._order.between(key[0], key[1], key[1], self.rows.alive)
        both = np.concatenate([changed, found])
        family = self._family(both)
        looked = found[np.isin(family[len(changed) :], family[: len(changed)])]
        family = self._family(looked)
        owner, at = self._links.gather(looked)
        live = self.sent.alive[at]
        owner, at = owner[live], at[live]
        old = at[np.lexsort((self.sent.get("place")[at], family[owner]))]
        order = np.lexsort((self.rows.get("re")[looked], family))
        made = np.repeat(looked[order], np.maximum(self.rows.get("n")[looked[order]], 0))
        return looked, made, self._places(made), list(self.sent.payload.take(old).columns)

    def _empty(self) -> list[pa.Array]:
        return [pa.array([], field.type) for field in self.sent.schema]

    def _changed(self, *parts: Any) -> Page:
        """The change from what was sent of rows to new results, which are kept."""
        looked = np.concatenate([parts[0], parts[4]])
        made, place = np.concatenate([parts[1], parts[5]]), np.concatenate([parts[2], parts[6]])
        columns = [pa.concat_arrays([a, b]) for a, b in zip(parts[3], parts[7], strict=True)]
        results = pa.RecordBatch.from_arrays(columns, schema=self.sent.schema)
        _, old = self._links.gather(looked)
        old = old[self.sent.alive[old]]
        rows = np.concatenate([self.sent.get("row")[old], made])
        added = pa.concat_batches([self.sent.payload.take(old), results])
        payload = pa.RecordBatch.from_arrays(
            [*self.rows.payload.take(rows).columns, *added.columns], schema=self.node.schema
        )
        weight = np.ones(len(rows), np.int64)
        weight[: len(old)] = -1
        page = net_page(payload, self.rows.get("le")[rows], self.rows.get("re")[rows], weight)
        self.sent.kill(old)
        self.sent.append({"row": made, "place": place}, results)
        self._links.add(made)
        return page

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        waiting = self._purge()
        if not self.node.ahead or TIME not in pattern:
            return definite(self.node.carry(port, pattern))
        until = min(self.promises[0].cti, waiting)
        items = definite(Pattern.before(until)) if until > self._promised else []
        self._promised = max(self._promised, until)
        return items

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
        return bound, self._settled.view[slot]

    def _bound(self, rows: I64) -> I64:
        known = self.promises[0]
        batch = self.rows.payload.take(rows)
        columns = {name: batch.column(at) for name, at in zip(self.node.group, self._group, strict=True)}
        return np.array(np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(rows)))

    def _purge(self) -> int:
        """Lets go of what is settled and that no frame reaches; gives the least start that is not settled."""
        rows = np.flatnonzero(self.rows.alive)
        if len(rows) == 0:
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
        reach = np.minimum(self._nth(slots, first, -self.node.behind), later(first, -(self.node.span or 0)))
        lost = rows[final & ((le < reach[place]) | self._beyond(rows, place, first) | over)]
        _, at = self._links.gather(rows[final])
        self.sent.kill(at[self.sent.alive[at]])
        self.rows.get("n")[lost] = 0
        self.rows.kill(lost)
        waiting = int(le[~over & (le >= settled)].min(initial=INFINITY))
        if self.rows.wasteful or self.sent.wasteful:
            self._index()
        return waiting

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
            far = le[some] < later(first, -(self.node.span or 0))[place[some]]
            beyond[some] = far & ~np.isin(rows[some], needed)
        return beyond

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the groups that match, unless a result of one is settled."""
        live = np.flatnonzero(self.rows.alive)
        batch = self.rows.payload.take(live)
        columns = {name: batch.column(at) for name, at in zip(self.node.group, self._group, strict=True)}
        rows = live[pattern.matches({**columns, "LE": np.zeros(len(live), np.int64)})]
        if (self.rows.get("le")[rows] < self._bound(rows)).any():
            return None
        none = np.zeros(0, np.int64)
        gone = len(rows) + self.sent.live
        page = self._changed(rows, none, none, self._empty(), none, none, none, self._empty())
        until = int(self.rows.get("re")[rows].max(initial=MIN_TIME))
        self.rows.get("n")[rows] = 0
        self.rows.kill(rows)
        self._index()
        return GivenUp([page], until, gone - self.sent.live)

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "promised": self._promised}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._promised = meta["promised"]

    def states(self) -> dict[str, RowState]:
        return {"rows": self.rows, "sent": self.sent}

    def rebuild(self) -> None:
        self._index()
