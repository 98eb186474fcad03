"""A query at work in a plan: events wait until the CTI has passed them, then are read in order.

An event's place in the word is final once the CTI is past its LE, since a full retraction would then be
illegal; so answers never have to be taken back, and what waits is bounded by what may still change.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.chunks import Chunks
from caesura.events.columns import empty_rows
from caesura.events.delta import net_page
from caesura.events.identity import LOCAL, identity
from caesura.events.item import Item
from caesura.events.order import sortable
from caesura.events.page import Page, empty_page, take_rows
from caesura.events.rows import RowState
from caesura.events.waiting import take_out
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable
from caesura.plan import Counters, Operator, definite
from caesura.plan.operator import GivenUp
from caesura.punctuation import INFINITY, MIN_TIME, Pattern
from caesura.qre.engine.choice import machine_for
from caesura.qre.engine.machine import MapMachine
from caesura.qre.engine.ticks import Weaver
from caesura.qre.step.departures import Departures
from caesura.qre.step.node import Over


class QueryOperator(Operator):
    """Holds events that may still change, and the query's own state."""

    def __init__(self, node: Over, ports: int = 1) -> None:
        super().__init__(ports)
        self.node = node
        self.source = node.inputs[0].schema
        self.waiting = RowState({"le": np.int64}, self.source)
        self.fresh: list[Page] = []
        """Events that came since; they join those that wait when there is a retraction or a snapshot."""
        self.open = RowState({"le": np.int64}, node.schema)
        self.machine = machine_for(node.query, node.kernel)
        self.weaver = Weaver(node.every) if node.every is not None else None
        self.notes = Departures(node.query, self.source, node.time)
        self._closed: list[Pattern] = []
        """Promises on keys, of which items wait that are not read yet."""
        self._changed = False

    @property
    def as_maps(self) -> MapMachine:
        """The machine of a query of which the plan knows that its maps may be had."""
        assert self.machine.as_maps is not None
        return self.machine.as_maps

    # Events in.

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if page.re_new is None or page.retracts is None:
            self._wait(page)
            return []
        retracted = page.retracts & (page.re_new <= page.le)
        self._wait(page.filter(~page.retracts))
        if retracted.any():
            self._settle()
            take_out(self.waiting, page.filter(retracted))
        return []

    def _wait(self, page: Page) -> None:
        if len(page):
            self.fresh.append(page)

    def _settle(self) -> None:
        for page in self.fresh:
            self.waiting.append({"le": page.le}, page.payload)
        self.fresh = []

    # Answers out.

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        bound = self.promises[0].cti
        items = self._advance(bound)
        if self.node.closes_keys(pattern):
            self._closed.append(pattern)
        if self._closed:
            self._closed = [p for p in self._closed if not self._let_go(p)]
        if bound == INFINITY:
            self._end()
        return [*items, *definite(self.node.carry(port, pattern))]

    def _let_go(self, closed: Pattern) -> bool:
        """Forgets keys of which nothing comes any more; not while items of theirs wait."""
        live = np.flatnonzero(self.waiting.alive)
        waits = [self.waiting.payload.take(live), *(page.payload for page in self.fresh)]
        if any(closed.matches(batch).any() for batch in waits):
            return False
        self.machine.close(closed)
        open_ = np.flatnonzero(self.open.alive)
        if len(open_):
            covered = self.node.of_keys(closed)
            self.open.kill(open_[covered.matches(self.open.payload.take(open_))])
        self._changed = True
        return True

    def give_up(self, pattern: Pattern) -> GivenUp:
        """Forgets keys; answers are points, and those that have left stay as they are."""
        self._settle()
        own, before = self.node.by_keys(pattern), self.machine.keys
        live = np.flatnonzero(self.waiting.alive)
        given_up = live[own.matches(self.waiting.payload.take(live))] if len(live) else live
        self.waiting.kill(given_up)
        self.machine.close(own)
        self._changed = True
        lost = len(given_up) + before - self.machine.keys
        return GivenUp([], INFINITY if lost else MIN_TIME, lost)

    def _advance(self, bound: int) -> list[Item]:
        """Reads the events before the bound, run by run, with the ticks that fall due."""
        runs = self._ready(bound) or [(empty_page(self.source).payload, np.zeros(0, np.int64))]
        until = [int(le[0]) for _, le in runs[1:]] + [bound]
        items: list[Item] = []
        for (batch, le), end in zip(runs, until, strict=True):
            items += self._read(batch, le, end)
        return items

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        ticks = None if self.weaver is None else self.weaver.due(end, le)
        if len(le) == 0 and (ticks is None or len(ticks) == 0):
            return []
        self._changed = True
        times, answers, numbers = self.machine.timed(batch, le, ticks)
        self._note_departed(batch, le)
        self._note()
        if self.node.lives == "point":
            return [Page(times, times + 1, answers)] if len(times) else []
        return self._until_next(numbers(), times, answers)

    def _note_departed(self, batch: pa.RecordBatch, le: I64) -> None:
        """Notes the items at which the stream, or a key's, left the language."""
        if len(self.machine.departed):
            self.notes.add(take_rows(batch, self.machine.departed), le[self.machine.departed])

    def _ready(self, bound: int) -> list[tuple[pa.RecordBatch, I64]]:
        """The events before the bound in canonical order, as one run or several."""
        parts = [self._waited(bound)] if self.waiting.alive.any() else []
        later: list[Page] = []
        for page in self.fresh:
            early, late = _cut(page, bound)
            parts += [(early.payload, early.le)] if len(early) else []
            later += [late] if len(late) else []
        self.fresh = later
        parts = [p for p in parts if len(p[1])]
        apart = all(a[1][-1] < b[1][0] for a, b in pairwise(parts))
        if apart and all(_rising(le) for _, le in parts):
            return parts
        batch, le = parts[0]
        if len(parts) > 1:
            batch, le = _joined([b for b, _ in parts]), np.concatenate([t for _, t in parts])
        return [self._sorted(batch, le)]

    def _waited(self, bound: int) -> tuple[pa.RecordBatch, I64]:
        state = self.waiting
        ready = np.flatnonzero(state.alive & (state.get("le") < bound))
        le = state.get("le")[ready]
        batch = state.payload.take(ready) if len(self.source) else empty_rows(len(ready))
        if len(ready):
            state.kill(ready)
            if state.wasteful:
                state.compact()
        return batch, le

    def _sorted(self, batch: pa.RecordBatch, le: I64) -> tuple[pa.RecordBatch, I64]:
        """By time; only events of one time have to be compared further."""
        steps = np.diff(le)
        if bool((steps < 0).any()):
            order = np.argsort(le, kind="stable")
            batch, le = take_rows(batch, order), le[order]
            steps = np.diff(le)
        tied = steps == 0
        if not tied.any():
            return batch, le
        rows = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        order = np.arange(len(le))
        order[rows] = rows[self._order(take_rows(batch, rows), le[rows])]
        return take_rows(batch, order), le

    def _order(self, batch: pa.RecordBatch, le: I64) -> I64:
        names = list(self.node.order_by)
        rest = [n for n in batch.schema.names if n not in names]
        columns: dict[str, Any] = {"": le}
        for name in [*names, *rest]:
            columns |= _sortable(name, batch.column(name))
        table = pa.table(list(columns.values()), names=list(columns))
        keys = [(name, "ascending") for name in columns]
        return pc.sort_indices(table, sort_keys=keys).to_numpy()  # type: ignore[no-any-return]

    def _until_next(self, rows: I64, times: I64, answers: pa.RecordBatch) -> list[Item]:
        """Answers that live until the next one (of their key): the last of each stays open."""
        if len(rows) == 0:
            return []
        groups, entries = self._groups(rows, answers)
        ends = np.full(len(rows), INFINITY, np.int64)
        order = np.lexsort((entries, groups))
        g, e, t = groups[order], entries[order], times[order]
        following = np.searchsorted(g * (len(rows) + 1) + e, g * (len(rows) + 1) + e, side="right")
        has = (following < len(g)) & (g[np.minimum(following, len(g) - 1)] == g)
        ends[order[has]] = t[following[has]]
        items = self._close_open(groups, times, answers)
        keep = np.flatnonzero(ends > times)
        if len(keep):
            items.append(Page(times[keep], ends[keep], take_rows(answers, keep)))
        last = np.flatnonzero(ends == INFINITY)
        self.open.append({"le": times[last]}, take_rows(answers, last))
        return items

    def _groups(self, rows: I64, answers: pa.RecordBatch) -> tuple[I64, I64]:
        """Per output row whose answers it replaces, and the number of the answer it belongs to."""
        number = np.cumsum(np.append(0, np.diff(rows) > 0)).astype(np.int64)
        keys = [answers.column(n) for n, _ in self.node.query.partitioned_by]
        if not keys:
            return np.zeros(len(rows), np.int64), number
        return KeyTable().encode(*identity(keys, len(rows), LOCAL))[0], number

    def _close_open(self, groups: I64, times: I64, answers: pa.RecordBatch) -> list[Item]:
        live = np.flatnonzero(self.open.alive)
        if len(live) == 0:
            return []
        before = self.open.payload.take(live)
        keys = [n for n, _ in self.node.query.partitioned_by]
        ends = np.full(len(live), times[0], np.int64)
        ended: Mask = np.ones(len(live), np.bool_)
        if keys:
            table = KeyTable()
            _, fresh = table.encode(*identity([answers.column(n) for n in keys], len(times), LOCAL))
            mine = table.find(*identity([before.column(n) for n in keys], len(live), LOCAL))
            ended = mine >= 0
            ends = times[fresh][np.maximum(mine, 0)]
        done = np.flatnonzero(ended)
        le = self.open.get("le")[live[done]]
        page = net_page(
            pa.concat_batches([before.take(pa.array(done))] * 2),
            np.concatenate([le, le]),
            np.concatenate([np.full(len(done), INFINITY, np.int64), ends[done]]),
            np.concatenate([np.full(len(done), -1, np.int64), np.where(ends[done] > le, 1, 0)]),
        )
        self.open.kill(live[done])
        if self.open.wasteful:
            self.open.compact()
        return [page] if len(page) else []

    def _note(self) -> None:
        left = self.machine.departures
        if left:
            self.counters.extra["left the rate's language"] = left
        self.counters.extra["keys"] = self.machine.keys

    def _end(self) -> None:
        """The stream is over: nothing will be read or taken back any more."""
        self.machine = machine_for(self.node.query, self.node.kernel)
        live = np.flatnonzero(self.open.alive)
        self.open.kill(live)
        self._changed = True

    # State.

    def states(self) -> dict[str, RowState]:
        return {
            "waiting": self.waiting,
            "open": self.open,
            "notes": self.notes.table.rows,
            "aside": self.notes.table.pages,
        }

    def drain_notes(self) -> pa.Table | None:
        return self.notes.table.drain()

    def meta(self) -> dict[str, Any]:
        ticks = None if self.weaver is None else self.weaver.state
        return {**super().meta(), "ticks": ticks, "closed": [p.to_json() for p in self._closed]}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._closed = [Pattern.from_json(p) for p in meta["closed"]]
        if self.weaver is not None:
            self.weaver.state = meta["ticks"]

    def snapshot(self) -> Chunks:
        self._settle()
        chunks = super().snapshot()
        if self._changed:
            chunks["query"] = self.machine.save()
            chunks["departed_keys"] = self.notes.save()
            self._changed = False
        return chunks

    def restore(self, chunks: Any) -> None:
        super().restore(chunks)
        if "query" in chunks:
            self.machine.load(chunks["query"])
            self.notes.load(chunks["departed_keys"])

    def measure(self) -> Counters:
        counters = super().measure()
        counters.state_rows += sum(len(p) for p in self.fresh) - self.notes.table.kept
        counters.state_rows += self.machine.held
        counters.state_bytes += sum(p.nbytes for p in self.fresh)
        counters.state_bytes += self.machine.nbytes
        return counters


def _rising(le: I64) -> bool:
    return bool((le[1:] > le[:-1]).all())


def _cut(page: Page, bound: int) -> tuple[Page, Page]:
    """The events before a bound and the others."""
    if len(page) == 0 or page.le.max() < bound:
        return page, page.slice(0, 0)
    early = page.le < bound
    count = int(early.sum())
    if early[:count].all():
        return page.slice(0, count), page.slice(count, len(page) - count)
    return page.filter(early), page.filter(~early)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if batches[0].num_columns == 0:
        return empty_rows(sum(b.num_rows for b in batches))
    return pa.concat_batches(batches)


def _sortable(name: str, column: pa.Array) -> dict[str, pa.Array]:
    """A column as columns that can be ordered: values, then NaN, then null; structs by their fields."""
    if pa.types.is_struct(column.type):
        parts = {f"{name}?": column.is_null()}
        for i, part in enumerate(column.flatten()):
            parts |= _sortable(f"{name}.{i}", part)
        return parts
    return {name: sortable(column, nulls="last")}
