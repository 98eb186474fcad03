"""A query that only plain Python can run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64
from caesura.punctuation import Pattern
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.machine import Answered, Timed, items_of_values, key_columns, timed_by_weaving
from caesura.qre.engine.outputs import as_rows, output_schema
from caesura.qre.language.query import Partition, Query
from caesura.qre.language.types import MapOf
from caesura.qre.language.whole_numbers import refuse_void
from caesura.qre.reference.interpreter import Interpreter


class PlainMachine:
    """The interpreter, as a machine."""

    compiled = False
    operations = 0
    never_departs = False
    as_maps = None

    def __init__(self, query: Query, reason: str) -> None:
        self.query, self.reason = query, reason
        self.schema = output_schema(query)
        self.twin = Interpreter(query)
        self.departed: I64 = np.zeros(0, np.int64)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        values = self.twin.run(batch, le, re)
        refuse_void(values, batch)
        self.departed = np.array(self.twin.departed, np.int64)
        return values

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        return as_rows(self.query, self.values(batch, le, re), batch, self.schema)

    def items(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        if isinstance(value_type(self.query), MapOf) or isinstance(self.query, Partition):
            return items_of_values(self.query, self.values(batch, le, re))
        return self.run(batch, le, re)

    def timed(self, batch: pa.RecordBatch, le: I64, ticks: I64 | None = None) -> Timed:
        return timed_by_weaving(self, batch, le, ticks)

    def close(self, pattern: Pattern) -> None:
        assert isinstance(self.query, Partition)
        names = key_columns(self.query)
        states = self.twin.states
        self.twin.states = {k: s for k, s in states.items() if not _covers(pattern, names, k)}

    def save(self) -> bytes:
        return self.twin.save()

    def load(self, saved: bytes) -> None:
        self.twin.load(saved)

    @property
    def nbytes(self) -> int:
        return self.twin.nbytes

    @property
    def held(self) -> int:
        if isinstance(self.query, Partition):
            return len(self.twin.states)
        return _entries(list(self.twin.states.values()))

    @property
    def keys(self) -> int:
        return len(self.twin.states)

    @property
    def departures(self) -> int:
        return self.twin.departures

    def always_rests(self, *, again: bool) -> bool:
        return False

    def explain(self) -> str:
        return f"twin: {self.reason}"


def _covers(pattern: Pattern, names: list[str | None], key: Any) -> bool:
    parts = key if len(names) > 1 else (key,)
    return pattern.matches_row({n: v for n, v in zip(names, parts, strict=True) if n is not None})


def _entries(state: Any) -> int:
    """How many entries the maps inside a state have."""
    if isinstance(state, dict):
        return len(state) + sum(map(_entries, state.values()))
    return sum(map(_entries, state)) if isinstance(state, (tuple, list)) else 0
