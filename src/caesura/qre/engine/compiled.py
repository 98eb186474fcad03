"""Machines whose pattern is an automaton with registers: a pattern, a map, maps inside a pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import Pattern
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.applied import AppliedToMaps
from caesura.qre.engine.machine import Answered, Machine, MapMachine, Timed, counted
from caesura.qre.engine.map import MapStage
from caesura.qre.engine.map_columns import Maps
from caesura.qre.engine.nested import NestedStage
from caesura.qre.engine.outputs import at_rows, flat
from caesura.qre.engine.pattern import PatternStage
from caesura.qre.engine.ticks import woven
from caesura.qre.language.query import MapCollect, Query, walk
from caesura.qre.language.types import MapOf, columns, to_arrow
from caesura.qre.language.whole_numbers import refuse_void
from caesura.qre.reference.oracle import UNDEFINED


class Compiled(Machine):
    """What all of them share: the state, and what is known of it, is the stage's."""

    compiled = True
    stage: PatternStage

    def close(self, pattern: Pattern) -> None:
        names = self.key_columns

        def covered(columns: list[pa.Array]) -> Mask:
            return pattern.matches({n: c for n, c in zip(names, columns, strict=True) if n is not None})

        self.stage.close(covered)

    def save(self) -> bytes:
        return self.stage.save()

    def load(self, saved: bytes) -> None:
        self.stage.load(saved)

    @property
    def nbytes(self) -> int:
        return self.stage.nbytes

    @property
    def held(self) -> int:
        return self.stage.held

    @property
    def keys(self) -> int:
        return self.stage.held

    @property
    def departures(self) -> int:
        return self.stage.departures

    @property
    def operations(self) -> int:
        return int(self.stage.work[0])

    def always_rests(self, *, again: bool) -> bool:
        return self.stage.program.always_rests(again=again)

    def explain(self) -> str:
        auto = self.stage.auto
        states = "states as they are needed" if auto.grows else counted(len(auto.states), "state")
        parts = [counted(len(auto.masks), "position"), states, counted(len(auto.registers), "register")]
        kind = "kernel per key" if self.stage.by else "kernel"
        return f"{kind}: {', '.join(parts)}"


class PatternMachine(Compiled):
    """A pattern without maps."""

    def __init__(self, query: Query, stage: PatternStage) -> None:
        super().__init__(query)
        self.stage = stage

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        answers = self.stage.run(batch, le, re)
        self.departed = self.stage.departed
        out = flat(answers.values, value_type(self.query))
        if not self.query.partitioned_by:
            made = pa.RecordBatch.from_arrays(out.columns, schema=self.schema) if out.num_columns else out
            return answers.rows, made
        page = self.stage.reader.page(batch, le, re)
        keys = [page.column(e).take(pa.array(answers.rows)) for _, e in self.query.partitioned_by]
        return answers.rows, pa.RecordBatch.from_arrays([*keys, *out.columns], schema=self.schema)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        answers = self.stage.run(batch, le, re)
        return at_rows(answers.rows, answers.values.to_pylist(), batch.num_rows)

    def items(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        if not self.query.partitioned_by:
            return self.run(batch, le, re)
        answers = self.stage.run(batch, le, re)
        self.departed = self.stage.departed
        return answers.rows, flat(answers.values, value_type(self.query.per_key))

    @property
    def never_departs(self) -> bool:  # type: ignore[override]
        return self.stage.program.never_departs


class CollectMachine(Compiled):
    """A map of whose keys one automaton takes care, and what is applied to the maps."""

    stage: MapStage
    collected = True

    def __init__(self, query: Query, stage: MapStage, applied: AppliedToMaps) -> None:
        super().__init__(query)
        self.stage, self.applied = stage, applied

    @property
    def as_maps(self) -> MapMachine:
        return self

    def maps(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Maps:
        maps = self.stage.collect(batch, le, re)
        self.departed = self.stage.departed
        return maps

    def ticked_maps(self, batch: pa.RecordBatch, le: I64, ticks: I64) -> tuple[Maps, I64]:
        if not self.stage.takes_ticks(len(le)):
            batch, le = woven(batch, le, ticks)
            maps = self.maps(batch, le)
            return maps, le[maps.rows]
        maps = self.stage.collect_ticked(batch, le, np.searchsorted(le, ticks, side="left"))
        self.departed = self.stage.departed
        return maps, ticks[maps.rows]

    def of_maps(self, maps: Maps, batch: pa.RecordBatch, count: int) -> Answered:
        return self.applied.rows(maps, batch, count)

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        return self.of_maps(self.maps(batch, le, re), batch, batch.num_rows)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        maps = self.stage.collect(batch, le, re)
        return at_rows(maps.rows, self.applied.values(maps), batch.num_rows)

    def timed(self, batch: pa.RecordBatch, le: I64, ticks: I64 | None = None) -> Timed:
        if ticks is None or not self.stage.takes_ticks(len(le)):
            return super().timed(batch, le, ticks)
        maps, _ = self.ticked_maps(batch, le, ticks)
        if not self.applied.ops:
            sizes = np.diff(np.append(maps.starts, len(maps.values)))
            times = np.repeat(ticks[maps.rows], sizes)
            return times, self.applied.entries(maps), lambda: np.repeat(np.arange(len(sizes)), sizes)
        rows, out = self.of_maps(maps, batch, len(ticks))
        return ticks[rows], out, lambda: rows

    def explain(self) -> str:
        how = self.applied.describe(keys=len(self.stage.by)) if self.applied.ops else ""
        return f"{super().explain()}, maps collected{how}"


class NestedMachine(Compiled):
    """A pattern with maps inside; what is made of them is worked out in Python, page by page."""

    stage: NestedStage
    collected = False

    def __init__(self, query: Query, stage: NestedStage, applied: AppliedToMaps | None) -> None:
        super().__init__(query)
        self.stage, self.applied = stage, applied

    @property
    def as_maps(self) -> MapMachine | None:
        return None if self.applied is None else self

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        values = self.stage.answers(batch, le, re)
        refuse_void(values, batch)
        self.departed = self.stage.departed
        return values

    def maps(self, batch: pa.RecordBatch, le: I64) -> Maps:
        found = [(row, v) for row, v in enumerate(self.values(batch, le)) if v is not UNDEFINED]
        starts = np.cumsum([0, *(len(v) for _, v in found)])[:-1]
        t = value_type(self.query)
        assert isinstance(t, MapOf)
        fields = list(self.schema)[: len(self.schema) - len(columns(t.value))]
        keys = [key if len(fields) > 1 else (key,) for _, v in found for key in v]
        named = [pa.array([key[j] for key in keys], f.type) for j, f in enumerate(fields)]
        made = pa.array([one for _, v in found for one in v.values()], to_arrow(t.value))
        rows = np.array([row for row, _ in found], np.int64)
        return Maps(
            rows, starts.astype(np.int64), pa.RecordBatch.from_arrays(named, schema=pa.schema(fields)), made
        )

    def ticked_maps(self, batch: pa.RecordBatch, le: I64, ticks: I64) -> tuple[Maps, I64]:
        batch, le = woven(batch, le, ticks)
        maps = self.maps(batch, le)
        return maps, le[maps.rows]

    def of_maps(self, maps: Maps, batch: pa.RecordBatch, count: int) -> Answered:
        assert self.applied is not None
        return self.applied.rows(maps, batch, count)

    def explain(self) -> str:
        inside = sum(isinstance(node, MapCollect) for node in walk(self.query))
        return f"{super().explain()}, {counted(inside, 'map')} inside"
