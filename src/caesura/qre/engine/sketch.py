"""Sketches and sliding windows at the top of a query: the pieces' values by the automaton, then one kernel.

`iter(f, sketch)` answers exactly where `iter_last(f)` does, with the sketch of all values so far; so the
pieces run compiled whatever the sketch is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.kernels.hashing import I64
from caesura.punctuation import Pattern
from caesura.qre.checking.checking import letters_of
from caesura.qre.checking.inference import value_type
from caesura.qre.checking.positions import bits, positions
from caesura.qre.compiler.window_values import exact
from caesura.qre.engine.machine import Answered, Machine
from caesura.qre.engine.outputs import at_rows
from caesura.qre.engine.sketch_memory import SLIDING, memory_of
from caesura.qre.language.folds import Fold
from caesura.qre.language.query import Combine, Iter, Query, SlidingWindow, Split
from caesura.qre.language.types import FLOAT, INT

Sketched = tuple[Query, Fold, int]
"""The body, the fold, and the size of the window or 0."""


def sketched(query: Query) -> Sketched | None:
    """What a query is made of that is a sketch, or a window that automata cannot slide."""
    inner = query
    if isinstance(inner, Combine) and inner.names == ("acc",):
        inner = inner.parts[0]
    match inner:
        case Iter(body=body, fold=Fold(structure=known) as fold) if known is not None:
            return body, fold, 0
        case Split(parts=(Iter(fold=Fold(structure=known) as fold), body), names=("acc", "x")) if (
            known is not None
        ):
            return body, fold, 0
        case SlidingWindow(body=body, fold=fold, size=size, first=None):
            number = value_type(body) in (INT, FLOAT)
            slow = fold.evict is None or not exact(value_type(inner))
            if number and slow and fold.name in SLIDING and (query is inner or fold.finish is not None):
                return body, fold, size
    return None


def ends_once(query: Query, body: Query) -> bool:
    """Whether a piece that has ended cannot go on: then it may be put into a sketch at once."""
    letters = letters_of(query)
    auto = positions(body.rate, lambda key: letters.mask(letters.exprs[letters.predicates[key]]))
    seen, todo = {(-1, -1)}, [(-1, -1)]
    for p, q in todo:
        for c in auto.by_letter[p].keys() & auto.by_letter[q].keys():
            for p2 in bits(auto.by_letter[p][c]):
                for q2 in bits(auto.by_letter[q][c]):
                    if auto.last >> p2 & 1 and auto.follow[q2]:
                        return False
                    if (p2, q2) not in seen:
                        seen.add((p2, q2))
                        todo.append((p2, q2))
    return True


@dataclass
class SketchState:
    """What is saved of a sketch over pieces."""

    memory: bytes
    pieces: bytes


SKETCH = ChunkFormat("a sketch", SketchState)


class SketchMachine(Machine):
    """One sketch for the whole stream."""

    compiled = True
    keys = 0

    def __init__(self, query: Query, found: Sketched, pieces: Machine) -> None:
        body, fold, window = found
        super().__init__(query)
        self.pieces = pieces
        self._kind: Any = np.int64 if window and value_type(body) == INT else np.float64
        """Least and greatest whole numbers are whole numbers; sums of them slide by the automaton."""
        self.memory = memory_of(fold, window, self._kind)
        self.what = f"{fold} over pieces; {pieces.explain()}"

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        rows, pieces = self.pieces.run(batch, le, re)
        self.departed = self.pieces.departed
        column = pieces.column(0)
        there = np.ones(len(rows), np.bool_)
        if column.null_count:
            there = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(0)
        values = column.to_numpy(zero_copy_only=False).astype(self._kind)
        out, valid = self.memory.answers(values, there)
        array = pa.array(out, mask=~valid).cast(self.schema.field(0).type)
        return rows, pa.RecordBatch.from_arrays([array], schema=self.schema)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        rows, out = self.run(batch, le, re)
        return at_rows(rows, out.column(0).to_pylist(), batch.num_rows)

    def close(self, pattern: Pattern) -> None:
        """There are no keys."""

    def save(self) -> bytes:
        return SKETCH.write(SketchState(self.memory.save(), self.pieces.save()))

    def load(self, saved: bytes) -> None:
        state = SKETCH.read(saved)
        self.memory.load(state.memory)
        self.pieces.load(state.pieces)

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes + self.pieces.nbytes

    @property
    def held(self) -> int:
        return self.memory.held + self.pieces.held

    @property
    def departures(self) -> int:
        return self.pieces.departures

    @property
    def operations(self) -> int:
        return self.pieces.operations

    def explain(self) -> str:
        return f"kernel: {self.what}"
