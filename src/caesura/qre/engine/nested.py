"""A query with maps inside at work: its own automaton, one keyed automaton per map, then the values.

A map inside another map, or inside a partition, has its keys in groups: one for each key around it.

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

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.kernels.hashing import I64, Mask
from caesura.qre.compiler.automaton import automaton
from caesura.qre.compiler.deferral import MapBuilder
from caesura.qre.engine.deferred import DeferredMaps, ItemPage, MapEvents
from caesura.qre.engine.nested_map import GroupedMap
from caesura.qre.engine.pattern import NOTHING, Array, PatternStage, PatternState
from caesura.qre.engine.program import Program
from caesura.qre.kernels.grouped import DROP, FRESH, ITEM, SKIP
from caesura.qre.language.query import Query
from caesura.qre.reference.oracle import UNDEFINED


@dataclass
class NestedState(PatternState):
    """What is saved of a pattern with maps inside."""

    values: bytes
    maps: list[bytes]


NESTED = ChunkFormat("a pattern with maps inside", NestedState)


class NestedStage(PatternStage):
    """A query over the whole stream, or over each key of a partition, with maps inside."""

    def __init__(self, query: Query) -> None:
        super().__init__(query, kernel="table")
        children = [GroupedMap(node, several=bool(self.by)) for node in self.built.maps]
        self.inside = DeferredMaps(self.built, self.program, children, query)
        self._traces: list[I64] = []
        self._whose: list[I64] = []

    def _program(self, body: Query) -> Program:
        auto, self.built = automaton(body, make=MapBuilder)
        return Program(auto)

    def _log(self, size: int, lo: int) -> tuple[Array, ...]:
        trace = np.zeros(size, np.int64)
        self._traces.append(trace)
        return *self.inside.log(size, lo), trace

    def _read(self, rows: int) -> None:
        self._traces[-1] = self._traces[-1][:rows]

    def _slots(self, keys: list[pa.Array], lo: int, hi: int) -> I64:
        slots = super()._slots(keys, lo, hi)
        self._whose.append(slots)
        return slots

    def _tidy(self) -> None:
        """Keys keep their numbers until the page has been read."""

    def _page_read(self) -> None:
        """Neither are texts forgotten: what was logged is worked out behind it."""

    def _moved(self, old: I64, new: I64, size: int) -> None:
        super()._moved(old, new, size)
        self.inside.renumber(old, new, size)

    def answers(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        """Feeds a page; the value at each item, or UNDEFINED."""
        self._traces, self._whose = [], []
        got = self.run(batch, le, re)
        seen = self._seen(self.reader.page(batch, le, re))()
        self.inside.work_out(ItemPage(batch, le, re, seen), self._events(seen))
        out: list[Any] = [UNDEFINED] * batch.num_rows
        for row, number in zip(got.rows.tolist(), got.values.to_pylist(), strict=True):
            out[row] = self.inside.values[number]
        super()._tidy()
        super()._page_read()
        self.inside.forget(self.ri)
        return out

    def _events(self, seen: Mask | None) -> MapEvents:
        """What happens to the keys of a partition, or to the one that the whole stream is."""
        states = np.concatenate([NOTHING, *self._traces])
        rows = np.arange(len(states))
        kinds = np.where(states < 0, SKIP, ITEM)
        if not self.by:
            return MapEvents(kinds, rows, np.zeros(len(rows), np.int64), states)
        slots = np.concatenate([NOTHING, *self._whose])
        kinds[states == 0] = FRESH
        if seen is not None:
            kinds[~seen] = SKIP
        return _with_drops(MapEvents(kinds, rows, slots, states), self._resting(slots))

    def _resting(self, slots: I64) -> I64:
        touched: I64 = np.unique(slots)
        rests: Mask = self.ri[touched, 0] <= 0
        return touched[rests]

    def close(self, covered: Any) -> None:
        before = self._open_rows()
        super().close(covered)
        closed = before[self.ri[before, 0] == self.free]
        nothing = MapEvents(NOTHING, NOTHING, NOTHING, NOTHING)
        empty = pa.RecordBatch.from_pylist([], self.reader.items.schema)
        self.inside.work_out(ItemPage(empty, NOTHING, NOTHING), _with_drops(nothing, closed))

    def save(self) -> bytes:
        return NESTED.write(NestedState(**self._pattern(), **self.inside.saved()))

    def load(self, saved: bytes) -> None:
        state = NESTED.read(saved)
        self._take_pattern(state)
        self.inside.load(state.values, state.maps)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.inside.nbytes

    @property
    def held(self) -> int:
        return super().held + self.inside.held


def _with_drops(events: MapEvents, groups: I64) -> MapEvents:
    """Groups go behind everything else."""
    more = np.zeros(len(groups), np.int64)
    return MapEvents(
        np.append(events.kinds, more + DROP),
        np.append(events.items, more),
        np.append(events.groups, groups),
        np.append(events.states, more),
    )


__all__ = ["NestedStage"]
