"""A query with maps inside at work: its own automaton, one keyed automaton per map, then the values.

>>> import pyarrow as pa
>>> from caesura import qre
>>> from caesura.expr import col
>>> of = qre.items(pa.schema([("end", pa.bool_()), ("id", pa.int64())]))
>>> own, end = qre.atom(~col("end"), 1, items=of), qre.match(col("end"), items=of)
>>> body = qre.split(qre.iter1(own, qre.sum()), end, op=col("_0"))
>>> most = qre.apply(qre.map_collect(col("end"), "id", body, every=qre.letter(col("end"))), qre.rel().max())
>>> word = pa.record_batch({"end": [False, False, True, False, True], "id": [1, 1, 0, 2, 0]})
>>> qre.evaluate(qre.iter1(most, qre.sum()), word)
[undefined, undefined, 2, undefined, 3]
"""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64
from caesura.qre.automaton import Automaton, automaton
from caesura.qre.bytecode import CODE
from caesura.qre.collect import CollectStage, Maps
from caesura.qre.collect_kernel import DEAD, run_nested
from caesura.qre.deferral import Later, MapBuilder
from caesura.qre.fragments import BEGIN
from caesura.qre.lowering import HANDLE, flattened
from caesura.qre.oracle import UNDEFINED
from caesura.qre.query import MapCollect, Query
from caesura.qre.stage import CHUNK, NO_FLOATS, NO_LOG, Array, Stage
from caesura.qre.types import ValueType


class NestedMap(CollectStage):
    """The registers of the keys of one map inside a query; threads begin whenever the query says so."""

    def __init__(self, node: MapCollect) -> None:
        super().__init__(node, kernel="table")
        self.ri[0, 0] = DEAD
        states = [s.positions for s in self.auto.states]
        self.void = states.index(frozenset()) if frozenset() in states else len(states)
        self.restart: I64 = np.array([s.restart for s in self.auto.states], np.int64)

    def _automaton(self, body: Query) -> Automaton:
        return automaton(body, restarts=True)[0]

    def maps(
        self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None, starts: Array, wants: Array
    ) -> Maps:
        """Feeds a page; gives the maps at the rows that are wanted."""
        page = self.reader.page(batch, le, re)
        synced = page.mask(self.node.sync)
        keys = [page.column(e) for _, e in self.by]
        at = np.flatnonzero(synced)
        self._refuse_null_keys(page, keys, synced, at)
        self._deepen(len(at))
        self.synced += len(at)
        letters, arrays = self._letters(page, None), self.auto.inputs.arrays(page)
        outs: list[tuple[Array, ...]] = []
        for lo in range(0, len(synced), CHUNK):
            hi = min(len(synced), lo + CHUNK)
            slots = self._encoded(keys, synced[lo:hi], lo, hi)
            outs += self._piece(slots, letters, synced, arrays, starts, wants, lo, hi)
            self._drop_shared()
        return self._maps(outs)

    def _piece(
        self,
        slots: I64,
        letters: I64,
        synced: Array,
        arrays: list[Array],
        starts: Array,
        wants: Array,
        lo: int,
        hi: int,
    ) -> list[tuple[Array, ...]]:
        t, size, at = self.tables, hi - lo, 0
        columns = self.gathered(arrays, lo, hi)
        outs: list[tuple[Array, ...]] = []
        while at < size:
            room = max(size, 2 * self.keys.count + 16)
            out_slot = np.empty(room, np.int64)
            places = 2 * len(t.out_kinds)
            out_i, out_f = np.empty((places, room), np.int64), np.empty((places, room), np.float64)
            found = np.empty((size, 2), np.int64)
            self.meta[2:] = 0
            at = run_nested(
                at,
                size,
                slots,
                letters[lo:hi],
                synced[lo:hi],
                starts[lo:hi],
                wants[lo:hi],
                *columns,
                t.code,
                t.steps,
                self.restart,
                self.void,
                *(self.ri, self.rf, self.rings, self.real, self.si, self.sf),
                t.out_place,
                self.active,
                self.meta,
                out_slot,
                out_i,
                out_f,
                found,
                NO_LOG,
                NO_FLOATS,
            )
            n, m = int(self.meta[2]), int(self.meta[3])
            outs.append(
                (found[:m, 0] + lo, found[:m, 1], out_slot[:n], out_i[:, :n].copy(), out_f[:, :n].copy())
            )
        return [self._with_keys(o) for o in outs]


class NestedStage(Stage):
    """A query over the whole stream, with maps inside."""

    def __init__(self, query: Query) -> None:
        super().__init__(query, kernel="table")
        self.inner = [NestedMap(node) for node in self.built.maps]
        count = len(self.built.maps)
        self.begins: Array = np.zeros((len(self.auto.states) + 1, count), np.bool_)
        for number, state in enumerate(self.auto.states):
            for _, moves in state.moves.values():
                for name in (s for m in moves for s in m.put if s.startswith(BEGIN)):
                    self.begins[number, int(name.removeprefix(BEGIN))] = True
        self.values: list[Any] = list(self.built.constants)
        self._most = _most(self.tables.code, self.tables.steps)
        self._pages: list[tuple[Array, Array, Array, Array, int]] = []
        self._traces: list[I64] = []

    def _automaton(self, body: Query) -> Automaton:
        auto, builder = automaton(body, make=MapBuilder)
        assert isinstance(builder, MapBuilder)
        self.built = builder
        return auto

    def _log(self, size: int, lo: int) -> tuple[Array, ...]:
        made, args = self._most
        log = np.zeros((size * made + 1, 3), np.int64)
        whole, real = np.zeros(size * args + 1, np.int64), np.zeros(size * args + 1)
        first = len(self.values) + sum(int(page[3][0]) for page in self._pages)
        cursor = np.array([0, 0, 0, first], np.int64)
        trace = np.zeros(size, np.int64)
        self._pages.append((log, whole, real, cursor, lo))
        self._traces.append(trace)
        return log, whole, real, cursor, trace

    def answers(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        """Feeds a page; the value at each item, or UNDEFINED."""
        self._pages, self._traces = [], []
        got = self.run(batch, le, re)
        trace = np.concatenate(self._traces) if self._traces else np.zeros(0, np.int64)
        self._work_out(self._maps_at(batch, le, re, trace))
        out: list[Any] = [UNDEFINED] * batch.num_rows
        for row, number in zip(got.rows.tolist(), got.values.to_pylist(), strict=True):
            out[row] = self.values[number]
        self._forget()
        return out

    def _maps_at(
        self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None, trace: I64
    ) -> list[dict[int, Any]]:
        """Per map inside, its values at the rows where the query takes them."""
        out = []
        for number, inner in enumerate(self.inner):
            wants = np.zeros(batch.num_rows, np.bool_)
            for log, _, _, cursor, lo in self._pages:
                some = log[: cursor[0]]
                wants[some[some[:, 0] == -1 - number, 1] + lo] = True
            out.append(_as_dicts(inner.maps(batch, le, re, self.begins[trace, number], wants)))
        return out

    def _work_out(self, maps: list[dict[int, Any]]) -> None:
        """Every logged value, in order: what it is made of was logged before it."""
        for log, whole, real, cursor, lo in self._pages:
            some = log[: cursor[0]]
            plain = {
                int(n): self._plain(self.built.later[n], some[some[:, 0] == n], whole, real)
                for n in np.unique(some[:, 0])
                if n >= 0
            }
            seen = dict.fromkeys(plain, 0)
            for op, row, first in some.tolist():
                if op < 0:
                    self.values.append(maps[-1 - op].get(row + lo, {}))
                    continue
                later = self.built.later[op]
                env, at = {}, first
                for name, t in later.parts:
                    if t is None:
                        env[name] = self.values[whole[at]]
                        at += 1
                    else:
                        env[name] = plain[op][name][seen[op]]
                        at += 2 * len(flattened(t))
                seen[op] += 1
                self.values.append(later.run(env))

    def _plain(self, later: Later, nodes: I64, whole: Array, real: Array) -> dict[str, list[Any]]:
        """The plain arguments of all values that one operation makes, by name."""
        out: dict[str, list[Any]] = {}
        at = 0
        for name, t in later.parts:
            if t is None:
                at += 1
                continue
            out[name] = self._unpacked(t, nodes[:, 2] + at, whole, real)
            at += 2 * len(flattened(t))
        return out

    def _unpacked(self, t: ValueType, first: I64, whole: Array, real: Array) -> list[Any]:
        kinds = [kind for _, kind, _ in flattened(t)]
        data = [(real if kind == "f" else whole)[first + 2 * j] for j, kind in enumerate(kinds)]
        flags: list[Array | None] = [whole[first + 2 * j + 1] != 0 for j in range(len(kinds))]
        return self.arrow(t, data, flags, len(first)).to_pylist()  # type: ignore[no-any-return]

    def _forget(self) -> None:
        """Keeps the values that threads hold, and numbers them anew."""
        known = len(self.built.constants)
        columns = [1 + j for j, name in enumerate(self.tables.registers_i) if self._is_number(name)]
        held = sorted({int(self.ri[0, j]) for j in columns if self.ri[0, j] >= known})
        again = {old: known + new for new, old in enumerate(held)}
        self.values = [*self.values[:known], *(self.values[old] for old in held)]
        for j in columns:
            self.ri[0, j] = again.get(int(self.ri[0, j]), int(self.ri[0, j]))

    def arrow(self, t: ValueType, leaves: list[Array], flags: list[Array | None], rows: int) -> pa.Array:
        if t is not HANDLE:
            return super().arrow(t, leaves, flags, rows)
        flags.pop(0)
        return pa.array(leaves.pop(0))

    def saved(self) -> dict[str, Any]:
        """What must survive a restart beside the registers."""
        names = ("ri", "rf", "rings", "keys", "active", "meta", "key_store", "seen", "synced")
        inner = [{n: getattr(m, n) for n in names} | {"texts": m.auto.inputs.texts} for m in self.inner]
        return {"values": self.values, "inner": inner}

    def restored(self, saved: dict[str, Any]) -> None:
        """Takes back what `saved` gave."""
        self.values = saved["values"]
        for inner, state in zip(self.inner, saved["inner"], strict=True):
            inner.auto.inputs.texts = state.pop("texts")
            for name, value in state.items():
                setattr(inner, name, value)

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(m.nbytes for m in self.inner) + len(pickle.dumps(self.values))

    @property
    def held(self) -> int:
        return sum(m.held for m in self.inner)

    def _is_number(self, register: str) -> bool:
        return register.split("@")[0] in self.built.numbers


def _as_dicts(maps: Maps) -> dict[int, Any]:
    """Maps by their rows."""
    columns = [c.to_pylist() for c in maps.keys.columns]
    keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    values = maps.values.to_pylist()
    cut = zip(maps.rows.tolist(), pairwise([*maps.starts.tolist(), len(values)]), strict=True)
    return {row: dict(zip(keys[a:b], values[a:b], strict=True)) for row, (a, b) in cut}


def _most(code: I64, steps: I64) -> tuple[int, int]:
    """The most values, and arguments, that one item may log."""
    made = args = 0
    for _, begin, end, _ in steps.reshape(-1, 4).tolist():
        ops = code[begin:end, 0] if end > begin else code[:0, 0]
        made = max(made, int((ops == CODE["make"]).sum()))
        args = max(args, int(((ops == CODE["push_i"]) | (ops == CODE["push_f"])).sum()))
    return made, args


__all__ = ["NestedStage"]
