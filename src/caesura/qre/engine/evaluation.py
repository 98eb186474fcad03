"""A whole query at work on pages: compiled stages where they will do, the plain-Python twin elsewhere.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> from caesura.qre.language.build import atom, iter_
>>> from caesura.qre.language.folds import sum_
>>> from caesura.qre.language.items import items
>>> query = iter_(atom(items=items(pa.schema([("v", pa.int64())])), op=col("v")), sum_())
>>> evaluate(query, pa.record_batch({"v": [1, 2, 3]}))
[1, 3, 6]
>>> explain(query)
'kernel: 1 position, 2 states, 2 registers'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.chunks import ChunkFormat
from caesura.events.page import empty_page
from caesura.expr import Column
from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import Pattern
from caesura.qre.checking.inference import part_types, value_type
from caesura.qre.compiler.columns import reader_of
from caesura.qre.compiler.deferral import has_maps
from caesura.qre.compiler.lowering import NotCompiled
from caesura.qre.engine.map import CollectStage, core
from caesura.qre.engine.map_columns import Maps
from caesura.qre.engine.nested import NestedStage
from caesura.qre.engine.outputs import as_rows, at_rows, flat, output_schema
from caesura.qre.engine.pattern import Stage
from caesura.qre.engine.sketch import Kernel, SketchStage, ends_once, sketched
from caesura.qre.engine.ticks import woven
from caesura.qre.kernels.segments import Entries, aggregated, by_columns
from caesura.qre.language.arguments import KERNELS, batch_of, one_of, queried
from caesura.qre.language.query import Combine, MapCollect, Partition, Pipe, Query, walk
from caesura.qre.language.scalar import Closure
from caesura.qre.language.types import MapOf, Record, columns, to_arrow
from caesura.qre.language.whole_numbers import fits, no_value, refuse_void, whole
from caesura.qre.reference.interpreter import Twin
from caesura.qre.reference.oracle import UNDEFINED


@dataclass
class PipeState:
    """What is saved of a pipe."""

    first: bytes
    second: bytes


PIPE = ChunkFormat("a pipe", PipeState)


class Evaluator:
    """Runs a query page by page; the state is one value that can be saved."""

    def __init__(self, query: Query, *, kernel: Kernel = "auto") -> None:
        if queried("evaluate", query).items is None:
            raise PlanError(
                "the items of this query are not known.", remedy="Call query.on(qre.items(schema)) first."
            )
        one_of("evaluate", kernel, KERNELS, "kernel")
        self.query = query
        self.kernel = kernel
        self.schema = output_schema(query)
        self.reason = ""
        self.first: Evaluator | None = None
        self.second: Evaluator | None = None
        self.stage: Stage | SketchStage | None = None
        self.twin: Twin | None = None
        self.ops: list[Closure] = []
        self.departed: I64 = np.zeros(0, np.int64)
        """The events of the last page at which the stream, or a key's, left the rate's language for ever."""
        if isinstance(query, Pipe):
            self.first, self.second = (
                Evaluator(query.first, kernel=kernel),
                Evaluator(query.second, kernel=kernel),
            )
            return
        self._prepare()

    @property
    def parts(self) -> bool:
        """Whether maps may be had before anything is applied, and that may be had of other maps."""
        inner = self.query
        while isinstance(inner, Combine) and len(inner.parts) == 1:
            inner = inner.parts[0]
        if self.collects:
            return True
        flat_ = core(inner) is not None and to_arrow(value_type(inner).value) is not None  # type: ignore[union-attr]
        return isinstance(self.stage, NestedStage) and flat_

    @property
    def collects(self) -> bool:
        """Whether the query is a compiled map-collect, with operations on its maps or without."""
        return isinstance(self.stage, CollectStage)

    def _prepare(self) -> None:
        if self.kernel == "twin":
            self.reason = "the twin was asked for"
        else:
            try:
                self.stage = self._compiled()
                if isinstance(self.stage, Stage):
                    self.stage.reader = reader_of(self.query)
                return
            except NotCompiled as verdict:
                self.reason = f"{verdict} runs in Python only"
        self.twin = Twin(self.query)

    def _compiled(self) -> Stage | SketchStage:
        sketch = sketched(self.query)
        if sketch is not None and ends_once(self.query, sketch[0]):
            return SketchStage(self.query, kernel=self.kernel)
        if sketch is not None and sketch[1].structure is not None:
            raise NotCompiled(f"'{sketch[1]}' over pieces that may go on after their end")
        inner = self.query
        ops: list[Closure] = []
        while isinstance(inner, Combine) and len(inner.parts) == 1 and _maps_inside(inner):
            ops.append(inner.op.closure(part_types(inner)))
            inner = inner.parts[0]
        found = core(inner)
        if found is not None:
            self.ops = ops[::-1]
            self._applied = _applied(self.query)
        if found is not None and not has_maps(found[0].body):
            return CollectStage(inner, kernel=self.kernel)
        if has_maps(self.query):
            return NestedStage(self.query)
        return Stage(self.query, kernel=self.kernel)

    # Running.

    def run(
        self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None
    ) -> tuple[I64, pa.RecordBatch]:
        """(row of the page, output row) for every answer, in order; a map is as many rows as it has keys."""
        if self.first is not None and self.second is not None:
            rows, items = self.first.items(batch, le, re)
            self.departed = self.first.departed
            if len(rows) == 0:
                return rows, empty_page(self.schema).payload
            after, out = self.second.run(items)
            self.departed = np.sort(np.append(self.first.departed, rows[self.second.departed]))
            return rows[after], out
        if isinstance(self.stage, SketchStage):
            got = self.stage.run(batch, le, re)
            self.departed = self.stage.pieces.departed
            return got
        if isinstance(self.stage, CollectStage):
            return self._collected(self.stage, batch, le, re)
        if isinstance(self.stage, NestedStage):
            return as_rows(self.query, self._nested(self.stage, batch, le, re), batch, self.schema)
        if isinstance(self.stage, Stage):
            answers = self.stage.run(batch, le, re)
            self.departed = self.stage.departed
            return answers.rows, self._flat(answers.values, answers.rows, batch, le, re)
        values = self._plain(batch, le, re)
        return as_rows(self.query, values, batch, self.schema)

    def timed(
        self, batch: pa.RecordBatch, le: I64, ticks: I64 | None = None
    ) -> tuple[I64, pa.RecordBatch, Callable[[], I64]]:
        """(times, output rows, numbers of their answers), for events in order and ticks between them."""
        if ticks is not None and isinstance(self.stage, CollectStage) and self.stage.takes_ticks(len(le)):
            maps, _ = self.ticked_maps(batch, le, ticks)
            if not self.ops:
                sizes = np.diff(np.append(maps.starts, len(maps.values)))
                times = np.repeat(ticks[maps.rows], sizes)
                return times, self._entries(maps), lambda: np.repeat(np.arange(len(sizes)), sizes)
            rows, out = self.of_maps(maps, batch, len(ticks))
            return ticks[rows], out, lambda: rows
        if ticks is not None:
            batch, le = woven(batch, le, ticks)
        rows, out = self.run(batch, le)
        if ticks is not None and len(self.departed):
            events = ~batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
            self.departed = np.maximum(np.cumsum(events)[self.departed] - 1, 0)
        return le[rows], out, lambda: rows

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        """The value at each item, or UNDEFINED; for people and tests."""
        if self.first is not None and self.second is not None:
            rows, items = self.first.items(batch, le, re)
            return at_rows(rows, self.second.values(items), batch.num_rows)
        if isinstance(self.stage, CollectStage):
            maps = self.stage.collect(batch, le, re)
            return at_rows(maps.rows, self._applied_to(maps), batch.num_rows)
        if isinstance(self.stage, SketchStage):
            rows, out = self.stage.run(batch, le, re)
            return at_rows(rows, out.column(0).to_pylist(), batch.num_rows)
        if isinstance(self.stage, NestedStage):
            return self._nested(self.stage, batch, le, re)
        if isinstance(self.stage, Stage):
            answers = self.stage.run(batch, le, re)
            return at_rows(answers.rows, answers.values.to_pylist(), batch.num_rows)
        return self._plain(batch, le, re)

    def _nested(self, stage: NestedStage, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> list[Any]:
        values = stage.answers(batch, le, re)
        refuse_void(values, batch)
        self.departed = stage.departed
        return values

    def _plain(self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> list[Any]:
        assert self.twin is not None
        values = self.twin.run(batch, le, re)
        refuse_void(values, batch)
        self.departed = np.array(self.twin.departed, np.int64)
        return values

    def items(
        self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None = None
    ) -> tuple[I64, pa.RecordBatch]:
        """The answers as items of the next query: (row, item)."""
        if isinstance(self.query, Partition) and type(self.stage) is Stage:
            answers = self.stage.run(batch, le, re)
            self.departed = self.stage.departed
            return answers.rows, flat(answers.values, value_type(self.query.body))
        if isinstance(value_type(self.query), MapOf) or isinstance(self.query, Partition):
            found = [(i, v) for i, v in enumerate(self.values(batch, le, re)) if v is not UNDEFINED]
            plain = not isinstance(value_type(self.query), Record)
            items = [{"value": v} if plain else v for _, v in found]
            body = output_schema(self.query.body if isinstance(self.query, Partition) else self.query)
            return np.array([i for i, _ in found], np.int64), pa.RecordBatch.from_pylist(items, body)
        return self.run(batch, le, re)

    def _flat(
        self, values: pa.Array, rows: I64, batch: pa.RecordBatch, le: I64 | None, re: I64 | None
    ) -> pa.RecordBatch:
        out = flat(values, value_type(self.query))
        if not isinstance(self.query, Partition) or not isinstance(self.stage, Stage):
            return pa.RecordBatch.from_arrays(out.columns, schema=self.schema) if out.num_columns else out
        page = self.stage.reader.page(batch, le, re)
        keys = [page.column(e).take(pa.array(rows)) for _, e in self.query.by]
        return pa.RecordBatch.from_arrays([*keys, *out.columns], schema=self.schema)

    def _collected(
        self, stage: CollectStage, batch: pa.RecordBatch, le: I64 | None, re: I64 | None
    ) -> tuple[I64, pa.RecordBatch]:
        maps = stage.collect(batch, le, re)
        self.departed = stage.departed
        return self.of_maps(maps, batch, batch.num_rows)

    def maps(self, batch: pa.RecordBatch, le: I64) -> Maps:
        """The maps of a query that is a compiled map-collect, as they are before anything is applied."""
        if isinstance(self.stage, NestedStage):
            return self._as_maps(self._nested(self.stage, batch, le, None))
        assert isinstance(self.stage, CollectStage)
        maps = self.stage.collect(batch, le)
        self.departed = self.stage.departed
        return maps

    def _as_maps(self, values: list[Any]) -> Maps:
        """Maps as columns."""
        found = [(row, v) for row, v in enumerate(values) if v is not UNDEFINED]
        starts = np.cumsum([0, *(len(v) for _, v in found)])[:-1]
        kept = self._map_type().value
        fields = list(self.schema)[: len(self.schema) - len(columns(kept))]
        keys = [key if len(fields) > 1 else (key,) for _, v in found for key in v]
        named = [pa.array([key[j] for key in keys], f.type) for j, f in enumerate(fields)]
        made = pa.array([one for _, v in found for one in v.values()], to_arrow(kept))
        rows = np.array([row for row, _ in found], np.int64)
        batch = pa.RecordBatch.from_arrays(named, schema=pa.schema(fields))
        return Maps(rows, starts.astype(np.int64), batch, made)

    def ticked_maps(self, batch: pa.RecordBatch, le: I64, ticks: I64) -> tuple[Maps, I64]:
        """As `maps`, with ticks between the events; and the times of the maps."""
        if isinstance(self.stage, CollectStage) and self.stage.takes_ticks(len(le)):
            maps = self.stage.collect_ticked(batch, le, np.searchsorted(le, ticks, side="left"))
            self.departed = self.stage.departed
            return maps, ticks[maps.rows]
        batch, le = woven(batch, le, ticks)
        maps = self.maps(batch, le)
        return maps, le[maps.rows]

    def of_maps(self, maps: Maps, batch: pa.RecordBatch, count: int) -> tuple[I64, pa.RecordBatch]:
        """(row, output row) of what the query makes of maps."""
        reduced = self._reduced(maps)
        if reduced is not None:
            out = flat(reduced, value_type(self.query))
            return maps.rows, pa.RecordBatch.from_arrays(out.columns, schema=self.schema)
        if self.ops:
            values = at_rows(maps.rows, self._applied_to(maps), count)
            return as_rows(self.query, values, batch, self.schema)
        sizes = np.diff(np.append(maps.starts, len(maps.values)))
        return np.repeat(maps.rows, sizes), self._entries(maps)

    def _entries(self, maps: Maps) -> pa.RecordBatch:
        out = flat(maps.values, self._map_type().value)
        return pa.RecordBatch.from_arrays([*maps.keys.columns, *out.columns], schema=self.schema)

    def _reduced(self, maps: Maps) -> pa.Array | None:
        """The query's one operation on all maps at once, where it is an aggregate of their columns."""
        if len(self.ops) != 1 or len(maps.keys.columns) != 1 or not isinstance(self.query, Combine):
            return None
        entries = Entries(maps.starts, maps.keys.column(0), maps.values)
        got = aggregated(self.query.op, entries)
        return None if got is None else got.cast(to_arrow(value_type(self.query)))

    def _applying(self) -> str:
        query, stage = self.query, self.stage
        one = len(self.ops) == 1 and isinstance(stage, CollectStage) and len(stage.by) == 1
        return "by columns" if one and isinstance(query, Combine) and by_columns(query.op) else "in Python"

    def _map_type(self) -> MapOf:
        t = value_type(self.query)
        assert isinstance(t, MapOf)
        return t

    def _applied_to(self, maps: Maps) -> list[Any]:
        """The maps as Python values, with the query's outer operations applied."""
        reduced = self._reduced(maps)
        if reduced is not None:
            return reduced.to_pylist()  # type: ignore[no-any-return]
        ends = [*maps.starts.tolist(), len(maps.values)]
        keys = [c.to_pylist() for c in maps.keys.columns]
        named = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        values = maps.values.to_pylist()
        out: list[Any] = []
        for begin, end in pairwise(ends):
            value: Any = dict(zip(named[begin:end], values[begin:end], strict=True))
            for name, op in zip(self._applied, self.ops, strict=True):
                value = op({name: value})
            if not fits(value):
                raise no_value("a map's item", whole(value))
            out.append(value)
        return out

    # State.

    def save(self) -> bytes:
        """Everything that must survive a restart."""
        if self.first is not None and self.second is not None:
            return PIPE.write(PipeState(self.first.save(), self.second.save()))
        return self._held.save()

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave."""
        if self.first is not None and self.second is not None:
            state = PIPE.read(saved)
            self.first.load(state.first)
            self.second.load(state.second)
            return
        self._held.load(saved)

    @property
    def _held(self) -> Stage | SketchStage | Twin:
        found = self.stage if self.stage is not None else self.twin
        assert found is not None
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        if self.first is not None and self.second is not None:
            return self.first.nbytes + self.second.nbytes
        return self._held.nbytes

    def close(self, pattern: Pattern) -> None:
        """Lets go of the keys of a partition that a promise on their columns covers.

        All items of such keys must have been read.
        """
        if self.first is not None:
            self.first.close(pattern)
            return
        assert isinstance(self.query, Partition)
        names = key_columns(self.query)

        def covered(columns: list[pa.Array]) -> Mask:
            return pattern.matches({n: c for n, c in zip(names, columns, strict=True) if n is not None})

        if isinstance(self.stage, Stage):
            self.stage.close(covered)
        elif self.twin is not None:
            self.twin.states = {k: s for k, s in self.twin.states.items() if not _covers(pattern, names, k)}

    @property
    def held(self) -> int:
        """How many keys and values are kept besides a fixed number of registers."""
        if self.first is not None and self.second is not None:
            return self.first.held + self.second.held
        if isinstance(self.stage, SketchStage):
            return self.stage.pieces.held + self.stage.memory.held
        if isinstance(self.stage, Stage):
            return self.stage.held
        assert self.twin is not None
        keyed = isinstance(self.query, Partition)
        return len(self.twin.states) if keyed else _entries(list(self.twin.states.values()))

    @property
    def keys(self) -> int:
        """How many keys hold state."""
        if self.first is not None and self.second is not None:
            return self.first.keys + self.second.keys
        return self.stage.held if isinstance(self.stage, Stage) else len(getattr(self.twin, "states", ()))

    @property
    def departures(self) -> int:
        """How many items led out of the rate's language."""
        if self.first is not None and self.second is not None:
            return self.first.departures + self.second.departures
        if isinstance(self.stage, SketchStage):
            return self.stage.pieces.departures
        held = self.stage or self.twin
        return 0 if held is None else held.departures

    @property
    def operations(self) -> int:
        """The most instructions that one item took so far, counted by the table-driven kernel."""
        if self.first is not None and self.second is not None:
            return self.first.operations + self.second.operations
        if isinstance(self.stage, SketchStage):
            return self.stage.pieces.operations
        return int(self.stage.work[0]) if self.stage is not None else 0

    def explain(self) -> str:
        """How the query runs, and why where it runs on the twin."""
        if self.first is not None and self.second is not None:
            return f"{self.first.explain()}\n>> {self.second.explain()}"
        if isinstance(self.stage, SketchStage):
            return f"kernel: {self.stage.what}"
        if self.stage is None:
            return f"twin: {self.reason}"
        auto = self.stage.auto
        parts = [_many(len(auto.masks), "position"), _many(len(auto.states), "state")]
        if auto.grows:
            parts[1] = "states as they are needed"
        parts.append(_many(len(auto.registers), "register"))
        kind = "kernel per key" if self.stage.by else "kernel"
        maps = ", maps collected" if isinstance(self.stage, CollectStage) else ""
        if isinstance(self.stage, NestedStage):
            inside = sum(isinstance(node, MapCollect) for node in walk(self.query))
            maps = f", {_many(inside, 'map')} inside"
        applied = f", applied to maps {self._applying()}" if self.ops and self.collects else ""
        return f"{kind}: {', '.join(parts)}{maps}{applied}"


def key_columns(query: Partition) -> list[str | None]:
    """Per part of a partition's key the column that it is; None for what is computed."""
    return [e.name if isinstance(e, Column) else None for _, e in query.by]


def _covers(pattern: Pattern, names: list[str | None], key: Any) -> bool:
    parts = key if len(names) > 1 else (key,)
    return pattern.matches_row({n: v for n, v in zip(names, parts, strict=True) if n is not None})


def _entries(state: Any) -> int:
    """How many entries the maps inside a state of the twin have."""
    if isinstance(state, dict):
        return len(state) + sum(map(_entries, state.values()))
    return sum(map(_entries, state)) if isinstance(state, (tuple, list)) else 0


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _maps_inside(query: Combine) -> bool:
    return any(isinstance(node, MapCollect) for node in walk(query))


def _applied(query: Query) -> list[str]:
    names: list[str] = []
    while isinstance(query, Combine) and len(query.parts) == 1:
        names.append(query.names[0])
        query = query.parts[0]
    return names[::-1]


def evaluate(query: Query, batch: pa.RecordBatch | pa.Table, *, kernel: Kernel = "auto") -> list[Any]:
    """The value of every prefix of a word but the empty one."""
    running = Evaluator(query, kernel=kernel)
    assert query.items is not None
    return running.values(batch_of("evaluate", batch, query.items.schema))


def explain(query: Query) -> str:
    """How a query would run."""
    return Evaluator(query).explain()
