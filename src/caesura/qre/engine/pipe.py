"""Two machines in a row: the second reads the answers of the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.events.page import empty_page
from caesura.kernels.hashing import I64
from caesura.punctuation import Pattern
from caesura.qre.engine.machine import Answered, Machine
from caesura.qre.engine.outputs import at_rows
from caesura.qre.language.query import Pipe


@dataclass
class PipeState:
    """What is saved of a pipe."""

    first: bytes
    second: bytes


PIPE = ChunkFormat("a pipe", PipeState)


class PipeMachine(Machine):
    """A pipe; keys are those of the first query."""

    def __init__(self, query: Pipe, first: Machine, second: Machine) -> None:
        super().__init__(query)
        self.first, self.second = first, second
        self.compiled = first.compiled and second.compiled

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        rows, items = self.first.items(batch, le, re)
        self.departed = self.first.departed
        if len(rows) == 0:
            return rows, empty_page(self.schema).payload
        return self._behind(rows, self.second.run(items))

    def _behind(self, rows: I64, answered: Answered) -> Answered:
        """Answers to the items that these rows have brought."""
        after, out = answered
        self.departed = np.sort(np.append(self.first.departed, rows[self.second.departed]))
        return rows[after], out

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        rows, items = self.first.items(batch, le, re)
        return at_rows(rows, self.second.values(items), batch.num_rows)

    def items(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        rows, items = self.first.items(batch, le, re)
        return self._behind(rows, self.second.items(items))

    def close(self, pattern: Pattern) -> None:
        self.first.close(pattern)

    def save(self) -> bytes:
        return PIPE.write(PipeState(self.first.save(), self.second.save()))

    def load(self, saved: bytes) -> None:
        state = PIPE.read(saved)
        self.first.load(state.first)
        self.second.load(state.second)

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.second.nbytes

    @property
    def held(self) -> int:
        return self.first.held + self.second.held

    @property
    def keys(self) -> int:
        return self.first.keys + self.second.keys

    @property
    def departures(self) -> int:
        return self.first.departures + self.second.departures

    @property
    def operations(self) -> int:
        return self.first.operations + self.second.operations

    def explain(self) -> str:
        return f"{self.first.explain()}\n>> {self.second.explain()}"
