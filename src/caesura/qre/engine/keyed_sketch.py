"""Sketches per key of a partition: the pieces' values by one automaton for all keys, then a kernel per key.

     partition(iter1(atom(op=col("v")), median(epsilon=0.01)), by="id")

A key whose items can never match again begins anew, and its sketch with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import damaged, ipc_bytes
from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import Pattern
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.compiled import PatternMachine
from caesura.qre.engine.machine import Answered, Machine
from caesura.qre.engine.outputs import at_rows
from caesura.qre.engine.plain import covers
from caesura.qre.engine.sketch import SKETCH, Sketched, SketchState
from caesura.qre.engine.sketch_memory import Buckets, Memory, memory_of
from caesura.qre.language.query import Query
from caesura.qre.language.types import INT

WEIGHED = 256
"""The memories of so many keys are weighed, and the others taken to be like them."""
FEW = 4
"""Up to so many values of a key in a page are taken one by one."""
NAN = float("nan")


class KeyedSketchMachine(Machine):
    """One sketch for every key."""

    compiled = True

    def __init__(self, query: Query, found: Sketched, pieces: PatternMachine) -> None:
        body, self._fold, self._window = found
        super().__init__(query)
        self.pieces = pieces
        self._parts = len(query.partitioned_by)
        self._kind: Any = np.int64 if self._window and value_type(body) == INT else np.float64
        self.memories: dict[Any, Memory] = {}
        self._values_held = 0
        self.what = f"{self._fold} over pieces; {pieces.explain()}"

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        rows, pieces = self.pieces.run(batch, le, re)
        self.departed = self.pieces.departed
        column, there = pieces.column(self._parts), np.ones(len(rows), np.bool_)
        if column.null_count:
            there = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(0)
        values = column.to_numpy(zero_copy_only=False).astype(self._kind)
        out, valid = np.empty(len(rows), self._kind), np.empty(len(rows), np.bool_)
        few = self._powers(values) if there.all() else []
        ended = self._ended(batch, le, re)
        for key, at in _grouped(pieces.columns[: self._parts]):
            cuts = ended.pop(key, [])
            for number, part in enumerate(np.split(at, np.searchsorted(rows[at], cuts)) if cuts else [at]):
                if number:
                    self._forget(key)
                if few and len(part) <= FEW:
                    out[part], valid[part] = self._few(key, values[part], [few[i] for i in part]), True
                elif len(part):
                    out[part], valid[part] = self._answered(key, values[part], there[part])
        for key in ended:
            self._forget(key)
        array = pa.array(out, mask=~valid).cast(self.schema.field(self._parts).type)
        columns = [*pieces.columns[: self._parts], array]
        return rows, pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _powers(self, values: Any) -> list[int]:
        """The powers of a page's values, where the sketch is made of buckets."""
        empty = memory_of(self._fold, self._window, self._kind)
        return empty.powers(values).tolist() if isinstance(empty, Buckets) else []

    def _few(self, key: Any, values: Any, powers: list[int]) -> list[float]:
        """The answers to a few values of a key, for which arrays would cost more than they save."""
        memory = self._memory(key)
        assert isinstance(memory, Buckets)
        return memory.few(values.tolist(), powers)

    def _ended(self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> dict[Any, list[int]]:
        """By key the rows at which it left the rate's language: what comes then begins anew."""
        found: dict[Any, list[int]] = {}
        if len(self.departed):
            keys = self.pieces.stage.reader.page(batch, le, re).keys(self.query.partitioned_by)
            for row in np.sort(self.departed).tolist():
                found.setdefault(_key(keys[row]), []).append(row)
        return found

    def _answered(self, key: Any, values: Any, there: Mask) -> tuple[Any, Mask]:
        memory = self._memory(key)
        before = memory.held
        answers = memory.answers(values, there)
        self._values_held += memory.held - before
        return answers

    def _memory(self, key: Any) -> Memory:
        memory = self.memories.get(key)
        if memory is None:
            memory = self.memories[key] = memory_of(self._fold, self._window, self._kind)
        return memory

    def _forget(self, key: Any) -> None:
        memory = self.memories.pop(key, None)
        self._values_held -= 0 if memory is None else memory.held

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        rows, out = self.run(batch, le, re)
        return at_rows(rows, out.column(self._parts).to_pylist(), batch.num_rows)

    def close(self, pattern: Pattern) -> None:
        self.pieces.close(pattern)
        names = self.key_columns
        for key in [key for key in self.memories if covers(pattern, names, key)]:
            self._forget(key)

    def save(self) -> bytes:
        several = self._parts > 1
        parts = [[key[i] if several else key for key in self.memories] for i in range(self._parts)]
        types = [self.schema.field(i).type for i in range(self._parts)]
        columns = [pa.array(part, t) for part, t in zip(parts, types, strict=True)]
        columns.append(pa.array([memory.save() for memory in self.memories.values()], pa.large_binary()))
        names = [*(f"key{i}" for i in range(self._parts)), "memory"]
        return SKETCH.write(
            SketchState(ipc_bytes(pa.RecordBatch.from_arrays(columns, names)), self.pieces.save())
        )

    def load(self, saved: bytes) -> None:
        state = SKETCH.read(saved)
        try:
            held = pa.ipc.open_stream(state.memory).read_next_batch()
        except (pa.ArrowInvalid, StopIteration, OSError):
            raise damaged("sketches of keys") from None
        self.memories = {}
        for *key, memory in zip(*(column.to_pylist() for column in held.columns), strict=True):
            own = memory_of(self._fold, self._window, self._kind)
            own.load(memory)
            self.memories[_key(tuple(key) if self._parts > 1 else key[0])] = own
        self._values_held = sum(memory.held for memory in self.memories.values())
        self.pieces.load(state.pieces)

    @property
    def nbytes(self) -> int:
        some = [memory.nbytes for memory in islice(self.memories.values(), WEIGHED)]
        return self.pieces.nbytes + (sum(some) * len(self.memories) // len(some) if some else 0)

    @property
    def held(self) -> int:
        return len(self.memories) + self._values_held

    @property
    def keys(self) -> int:
        return len(self.memories)

    @property
    def departures(self) -> int:
        return self.pieces.departures

    @property
    def operations(self) -> int:
        return self.pieces.operations

    @property
    def never_departs(self) -> bool:  # type: ignore[override]
        return self.pieces.never_departs

    def explain(self) -> str:
        return f"kernel per key: {self.what}"


def _grouped(columns: list[pa.Array]) -> Iterator[tuple[Any, I64]]:
    """By key the places of its answers, in their order."""
    if len(columns[0]) == 0:
        return
    numbers: dict[Any, int] = {}
    coded = [column.dictionary_encode() for column in columns]
    places = [c.indices.to_numpy(zero_copy_only=False).astype(np.int64) for c in coded]
    parts = [c.dictionary.to_pylist() for c in coded]
    if len(parts) == 1:
        keys, number = parts[0], places[0]
    else:
        kinds, number = np.unique(np.column_stack(places), axis=0, return_inverse=True)
        keys = [tuple(p[i] for p, i in zip(parts, kind, strict=True)) for kind in kinds.tolist()]
    of_kind = [numbers.setdefault(_key(key), len(numbers)) for key in keys]
    number = np.array(of_kind, np.int64)[number.ravel()]  # 0.0 and -0.0 are one key
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=len(numbers)))
    yield from zip(numbers, np.split(order, ends[:-1]), strict=True)


def _key(key: Any) -> Any:
    """A key that equals itself: all NaN are one."""
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    return NAN if isinstance(key, float) and key != key else key
