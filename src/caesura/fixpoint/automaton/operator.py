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
        self.runs = RowState({**fields, **{f"r{k}": t for k, t in enumerate(self._types)}})
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
        """Feeds events to the kernel; it stops when it may run out of room."""
        batch = self._without_nan(batch)
        run, letter = self._kernel(len(le)), self._letters(batch)
        columns = []
        for name in self._columns:
            column = batch.column(name)
            floats = pa.types.is_floating(column.type)
            filled = column.fill_null(0).cast(pa.float64() if floats else pa.int64()).to_numpy()
            columns.append(filled)
        count, *loaded = self._loaded(ROOM)
        sides = [loaded, [np.empty_like(a) for a in loaded]]
        registers = [[np.empty(len(loaded[0]), t) for t in self._types] for _ in range(2)]
        for k in range(len(self._types)):
            registers[0][k][:count] = self.runs.get(f"r{k}")[:count]
        outs = [np.empty(4 * ROOM, np.int64) for _ in range(4)]
        o_registers = [np.empty(4 * ROOM, t) for t in self._types]
        at = 0
        while at < len(le):
            before = at
            at, count, found, odd = run(
                at, le, letter, self.node.within, count, *columns, *sides[0], *sides[1], *registers[0],
                *registers[1], *outs, *o_registers,
            )  # fmt: skip
            if odd:
                sides.reverse()
                registers.reverse()
            if found:
                copies = [o[:found].copy() for o in o_registers]
                yield self._page(le, *(o[:found].copy() for o in outs), registers=copies)
            elif at == before:
                sides = [[np.append(a, np.empty_like(a)) for a in side] for side in sides]
                registers = [[np.append(a, np.empty_like(a)) for a in side] for side in registers]
                outs = [np.append(a, np.empty_like(a)) for a in outs]
                o_registers = [np.append(a, np.empty_like(a)) for a in o_registers]
        state, begin, length = sides[0]
        self._store(count, state, begin, length, registers[0])

    def _loaded(self, room: int) -> tuple[int, I64, I64, I64]:
        """The live runs in fresh arrays with room for more."""
        count = self.runs.size
        arrays = []
        for name in ("state", "begin", "length"):
            array = np.empty(max(room, 2 * count + 16), np.int64)
            array[:count] = self.runs.get(name)
            arrays.append(array)
        return count, arrays[0], arrays[1], arrays[2]

    def _store(self, count: int, state: I64, begin: I64, length: I64, registers: list[Any]) -> None:
        self.runs.kill(np.flatnonzero(self.runs.alive))
        self.runs.compact()
        fields = {"state": state[:count], "begin": begin[:count], "length": length[:count]}
        self.runs.append({**fields, **{f"r{k}": r[:count] for k, r in enumerate(registers)}})

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

    def _page(self, le: I64, row: I64, state: I64, begin: I64, length: I64, *, registers: list[Any]) -> Page:
        started = pa.array(begin).cast(self.node.time) if self.node.time != pa.int64() else pa.array(begin)
        columns = [started, pa.array(length), self._names.take(pa.array(state))]
        payload = pa.RecordBatch.from_arrays(
            [*columns, *(pa.array(r) for r in registers)], schema=self.node.schema
        )
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


def _in_order(le: I64, bound: int) -> bool:
    """Whether all of these are before the bound, each later than the one before."""
    return bool(le[-1] < bound) and bool((le[1:] > le[:-1]).all())


def _flat(column: pa.Array) -> list[pa.Array]:
    """A column as columns that can be ordered; null comes last."""
    if not pa.types.is_struct(column.type):
        return [sortable(column, nulls="last")]
    return [column.is_null(), *(part for field in column.flatten() for part in _flat(field))]
