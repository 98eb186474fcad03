"""An automaton at work: events wait until the CTI has passed them, then go through the kernel in order.

An event's place is final once the CTI is past its LE, so matches never have to be taken back; late
events and retractions before that change what waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.chunks import Chunks
from caesura.events.columns import empty_rows
from caesura.events.identity import LOCAL, identity
from caesura.events.item import Item
from caesura.events.order import sortable
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.events.waiting import take_out
from caesura.expr import compile_predicate
from caesura.fixpoint.automaton.letters import predicates
from caesura.fixpoint.automaton.node import Match
from caesura.fixpoint.automaton.written import is_narrow, item_columns, made, source
from caesura.kernels import INTERPRET_UP_TO
from caesura.kernels.hashing import I64
from caesura.kernels.keys import KeyTable
from caesura.plan import Counters, Operator, definite
from caesura.punctuation import INFINITY, Pattern

ROOM = 1 << 16


class Follow(Operator):
    """Waiting events, and the runs that are alive."""

    def __init__(self, node: Match) -> None:
        super().__init__()
        self.node, self.auto = node, node.automaton
        self.source = node.inputs[0].schema
        self.waiting = RowState({"le": np.int64}, self.source)
        self._types = [t.to_pandas_dtype() for t in self.auto.register_types().values()]
        fields = {"state": np.int64, "begin": np.int64, "length": np.int64}
        whose = pa.schema([self.source.field(name) for name in node.group]) if node.group else None
        self.runs = RowState({**fields, **{f"r{k}": t for k, t in enumerate(self._types)}}, whose)
        self.tests = predicates(self.auto)
        self._tests = [compile_predicate(p, self.source, time=node.time) for p in self.tests]
        self._columns = item_columns(self.auto)
        self._names = pa.array(self.auto.states)
        self._text = source(self.auto)
        self._seen = 0
        self._fresh: list[Page] = []
        """Pages of inserts that came last and are not among the waiting yet."""

    def _kernel(self, more: int) -> Any:
        """Machine code, once there are enough events to pay for compiling it."""
        self._seen += more
        return made(self._text, machine=self._seen > INTERPRET_UP_TO)

    # Events in.

    def page(self, port: int, page: Page) -> Iterable[Item]:
        removed = None
        if page.re_new is not None and page.retracts is not None:
            removed = page.filter(page.retracts & (page.re_new <= page.le))
            page = page.filter(~page.retracts)
        if len(page):
            self._fresh.append(page)
        if removed is not None and len(removed):
            self._settle_in()
            take_out(self.waiting, removed)
        return []

    def _settle_in(self) -> None:
        """Puts the pages that came last among the waiting."""
        for page in self._fresh:
            self.waiting.append({"le": page.le}, page.payload)
        self._fresh = []

    # Matches out.

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        bound = self.promises[0].cti
        batch, le = self._ready(bound)
        items = [page for page in self._follow(batch, le) if len(page)] if len(le) else []
        self._expire(bound)
        return [*items, *definite(self.node.carry(port, pattern))]

    def _ready(self, bound: int) -> tuple[pa.RecordBatch, I64]:
        """The waiting events before the bound, in canonical order."""
        if self.waiting.live == 0 and len(self._fresh) == 1 and _in_order(self._fresh[0].le, bound):
            page = self._fresh.pop()
            return page.payload, page.le
        self._settle_in()
        state = self.waiting
        ready = np.flatnonzero(state.alive & (state.get("le") < bound))
        le = state.get("le")[ready]
        whole = len(ready) == state.size
        batch = (
            (state.payload.all() if whole else state.payload.take(ready))
            if len(self.source)
            else empty_rows(len(ready))
        )
        if len(ready):
            state.kill(ready)
            if state.wasteful:
                state.compact()
        if len(le) > 1 and not bool((np.diff(le) > 0).all()):
            order = self._order(batch, le)
            batch, le = take_rows(batch, order), le[order]
        return batch, le

    def _order(self, batch: pa.RecordBatch, le: I64) -> I64:
        first = np.argsort(le, kind="stable")
        if bool((np.diff(le[first]) > 0).all()):
            return first
        names = [*self.node.order_by, *(n for n in batch.schema.names if n not in self.node.order_by)]
        columns: dict[str, Any] = {"": pa.array(le)}
        for name in names:
            for place, part in enumerate(_flat(batch.column(name))):
                columns[f"{name}.{place}"] = part
        table = pa.table(list(columns.values()), names=list(columns))
        return pc.sort_indices(table, sort_keys=[(n, "ascending") for n in columns]).to_numpy()  # type: ignore[no-any-return]

    def _letters(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        """Which tests of the item alone each event passes, one bit or row each; a null is no value."""
        if not self._tests:
            return np.zeros(batch.num_rows, np.uint8)
        if not is_narrow(self.tests):
            return np.stack([test(batch).astype(np.uint8) for test in self._tests])
        letter = self._tests[0](batch).astype(np.uint8)
        for j, test in enumerate(self._tests[1:], 1):
            letter |= test(batch).view(np.uint8) << np.uint8(j)
        return letter

    def _without_nan(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A column that registers read has a null where it has no number."""
        for name in self._columns:
            column = batch.column(name)
            if pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py()):
                at = batch.schema.get_field_index(name)
                batch = batch.set_column(at, name, pc.if_else(pc.is_nan(column), None, column))
        return batch

    def _follow(self, batch: pa.RecordBatch, le: I64) -> Iterable[Page]:
        """Feeds events to the kernel, group by group; it stops when it may run out of room."""
        batch = self._without_nan(batch)
        groups = RunGroups(self.runs, self.node.group, batch)
        batch, le = groups.sorted(batch), le[groups.order]
        run, letter = self._kernel(len(le)), self._letters(batch)
        columns = []
        for name in self._columns:
            column = batch.column(name)
            floats = pa.types.is_floating(column.type)
            filled = column.fill_null(0).cast(pa.float64() if floats else pa.int64()).to_numpy()
            columns.append(filled)
        held = [self.runs.get(name)[groups.taken_up] for name in self._fields]
        room = max(ROOM, 2 * len(groups.taken_up) + 16)
        sides = [[np.empty(room, h.dtype) for h in held] for _ in range(2)]
        kept = [np.empty(room, np.int64), *(np.empty(room, h.dtype) for h in held)]
        outs = [np.empty(4 * ROOM, np.int64) for _ in range(4)]
        o_registers = [np.empty(4 * ROOM, t) for t in self._types]
        at, count, now, put = 0, 0, -1, 0
        while at < len(le):
            before = at
            a, b = sides
            at, count, found, odd, now, put = run(
                at, le, letter, self.node.within, groups.number, now, put, count, *columns, groups.begins,
                *held, *a[:3], *b[:3], *a[3:], *b[3:], *kept, *outs, *o_registers,
            )  # fmt: skip
            if odd:
                sides.reverse()
            if found:
                copies = [o[:found].copy() for o in o_registers]
                yield self._page(batch, le, *(o[:found].copy() for o in outs), registers=copies)
            elif at == before:
                sides = [[np.append(a, np.empty_like(a)) for a in side] for side in sides]
                kept = [np.append(a, np.empty_like(a)) for a in kept]
                outs = [np.append(a, np.empty_like(a)) for a in outs]
                o_registers = [np.append(a, np.empty_like(a)) for a in o_registers]
        last = [np.full(count, now, np.int64), *(a[:count] for a in sides[0])]
        self._store(groups, [np.concatenate([k[:put], rest]) for k, rest in zip(kept, last, strict=True)])

    @property
    def _fields(self) -> list[str]:
        return ["state", "begin", "length", *(f"r{k}" for k in range(len(self._types)))]

    def _store(self, groups: RunGroups, after: list[Any]) -> None:
        """The runs of the groups that items came of are these now; those of others stay."""
        number, *values = after
        stay = groups.untouched
        fields = {
            name: np.concatenate([self.runs.get(name)[stay], made])
            for name, made in zip(self._fields, values, strict=True)
        }
        payload = None
        if self.node.group:
            payload = pa.concat_batches([self.runs.payload.take(stay), groups.keys_of(number)])
        self.runs.kill(np.flatnonzero(self.runs.alive))
        self.runs.compact()
        self.runs.append(fields, payload)

    def _expire(self, bound: int) -> None:
        """Runs that no item from the bound on can lengthen go."""
        if self.runs.size == 0:
            return
        begin = self.runs.get("begin")
        removed = (
            np.flatnonzero(begin <= bound - self.node.within) if bound < INFINITY else np.arange(len(begin))
        )
        if len(removed):
            self.runs.kill(removed)
            self.runs.compact()

    def _page(
        self,
        batch: pa.RecordBatch,
        le: I64,
        row: I64,
        state: I64,
        begin: I64,
        length: I64,
        *,
        registers: list[Any],
    ) -> Page:
        started = pa.array(begin).cast(self.node.time) if self.node.time != pa.int64() else pa.array(begin)
        made = {"begin": started, "length": pa.array(length), "state": self._names.take(pa.array(state))}
        made |= {n: pa.array(r) for n, r in zip(self.auto.registers, registers, strict=True)}
        made |= {n: batch.column(n).take(pa.array(row)) for n in self.node.beside}
        schema = self.node.schema
        payload = pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)
        return Page(le[row], begin + self.node.within, payload)

    # State.

    def snapshot(self) -> Chunks:
        self._settle_in()
        return super().snapshot()

    def measure(self) -> Counters:
        self._settle_in()
        return super().measure()

    def states(self) -> dict[str, RowState]:
        return {"waiting": self.waiting, "runs": self.runs}

    def rebuild(self) -> None:
        for state in self.states().values():
            if state.live < state.size:
                state.compact()


class RunGroups:
    """The groups of a page's items, numbered, and the runs that each of them has."""

    def __init__(self, runs: RowState, group: tuple[str, ...], batch: pa.RecordBatch) -> None:
        self._keys = batch.select(list(group)) if group else None
        count = batch.num_rows
        if self._keys is None:
            self.number: I64 = np.zeros(count, np.int64)
            self.order: I64 = np.arange(count)
            self.taken_up: I64 = np.arange(runs.size)
            self.untouched: I64 = np.zeros(0, np.int64)
            self.begins: I64 = np.array([0, runs.size], np.int64)
            return
        table = KeyTable()
        number, self._first = table.encode(*identity(self._keys.columns, count, LOCAL))
        self.order = np.argsort(number, kind="stable")
        self.number = number[self.order]
        own = runs.payload.all() if runs.size else self._keys.slice(0, 0)
        owner = table.find(*identity(own.columns, own.num_rows, LOCAL))
        by_owner = np.argsort(owner, kind="stable")
        edge = int(np.searchsorted(owner[by_owner], 0))
        self.untouched, self.taken_up = by_owner[:edge], by_owner[edge:]
        self.begins = np.searchsorted(owner[self.taken_up], np.arange(len(self._first) + 1))

    def sorted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The items with those of one group together, each group in its order."""
        return batch if self._keys is None else take_rows(batch, self.order)

    def keys_of(self, number: I64) -> pa.RecordBatch:
        """The keys of groups by their numbers."""
        assert self._keys is not None
        return take_rows(self._keys, self._first[number])


def _in_order(le: I64, bound: int) -> bool:
    """Whether all of these are before the bound, each later than the one before."""
    return bool(le[-1] < bound) and bool((le[1:] > le[:-1]).all())


def _flat(column: pa.Array) -> list[pa.Array]:
    """A column as columns that can be ordered; null comes last."""
    if not pa.types.is_struct(column.type):
        return [sortable(column, nulls="last")]
    return [column.is_null(), *(part for field in column.flatten() for part in _flat(field))]
