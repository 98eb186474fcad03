"""A query that only plain Python can run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64
from caesura.punctuation import Pattern
from caesura.qre.engine.machine import Machine
from caesura.qre.language.query import Query
from caesura.qre.language.whole_numbers import refuse_void
from caesura.qre.reference.interpreter import Interpreter


class PlainMachine(Machine):
    """The interpreter, as a machine."""

    compiled = False

    def __init__(self, query: Query, reason: str) -> None:
        super().__init__(query)
        self.reason = reason
        self.twin = Interpreter(query)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        values = self.twin.run(batch, le, re)
        refuse_void(values, batch)
        self.departed = np.array(self.twin.departed, np.int64)
        return values

    def close(self, pattern: Pattern) -> None:
        names, states = self.key_columns, self.twin.states
        self.twin.states = {k: s for k, s in states.items() if not covers(pattern, names, k)}

    def save(self) -> bytes:
        return self.twin.save()

    def load(self, saved: bytes) -> None:
        self.twin.load(saved)

    @property
    def nbytes(self) -> int:
        return self.twin.nbytes

    @property
    def held(self) -> int:
        if self.query.partitioned_by:
            return len(self.twin.states)
        return _entries(list(self.twin.states.values()))

    @property
    def keys(self) -> int:
        return len(self.twin.states)

    @property
    def departures(self) -> int:
        return self.twin.departures

    def explain(self) -> str:
        return f"twin: {self.reason}"


def covers(pattern: Pattern, names: list[str | None], key: Any) -> bool:
    """Whether a promise on the columns of a partition's key covers a key."""
    parts = key if len(names) > 1 else (key,)
    return pattern.matches_row({n: v for n, v in zip(names, parts, strict=True) if n is not None})


def _entries(state: Any) -> int:
    """How many entries the maps inside a state have."""
    if isinstance(state, dict):
        return len(state) + sum(map(_entries, state.values()))
    return sum(map(_entries, state)) if isinstance(state, (tuple, list)) else 0
