"""Sketches and sliding windows at the top of a query: the pieces' values by the automaton, then one kernel.

`iter(f, sketch)` answers exactly where `iter_last(f)` does, with the sketch of all values so far; so the
pieces run compiled whatever the sketch is made of.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64
from caesura.qre.checking.checking import letters_of
from caesura.qre.checking.inference import value_type
from caesura.qre.checking.positions import bits, positions
from caesura.qre.compiler.lowering import NotCompiled
from caesura.qre.compiler.window_values import exact
from caesura.qre.engine.outputs import output_schema
from caesura.qre.kernels.sketches import count_events, exact_rank, running_rank, slide
from caesura.qre.language.folds import Fold
from caesura.qre.language.query import Combine, Iter, Query, Split, Window
from caesura.qre.language.sketches import EventCount, Quantile
from caesura.qre.language.types import FLOAT, INT

Array = np.ndarray[Any, Any]
Kernel = Literal["auto", "table", "generated", "twin"]
_SLIDING = {"min": 0, "max": 1, "sum": 2, "avg": 2}


def sketched(query: Query) -> tuple[Query, Fold, int] | None:
    """(body, fold, window or 0) of a query that is a sketch, or a window that automata cannot slide."""
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
        case Window(body=body, fold=fold, size=size, first=None):
            number = value_type(body) in (INT, FLOAT)
            slow = fold.evict is None or not exact(value_type(inner))
            if number and slow and fold.name in _SLIDING and (query is inner or fold.finish is not None):
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


class SketchStage:
    """One sketch for the whole stream."""

    def __init__(self, query: Query, *, kernel: Kernel = "auto") -> None:
        from caesura.qre.engine.evaluation import Evaluator
        from caesura.qre.language.build import iter_last

        found = sketched(query)
        assert found is not None
        body, self.fold, self.window = found
        self.query = query
        self.schema = output_schema(query)
        self._kind: Any = np.int64 if self.window and value_type(body) == INT else np.float64
        """Least and greatest whole numbers are whole numbers; sums of them slide by the automaton."""
        self.pieces = Evaluator(iter_last(body), kernel=kernel)
        if self.pieces.twin is not None:
            raise NotCompiled(self.pieces.reason)
        self.memory: Any = self._begun()
        self.what = f"{self.fold} over pieces; {self.pieces.explain()}"

    def _begun(self) -> Any:
        known = self.fold.structure
        if isinstance(known, Quantile) and known.epsilon is not None:
            return Buckets(known.epsilon)
        if isinstance(known, Quantile):
            return {"held": np.zeros(1024), "size": 0}
        if isinstance(known, EventCount):
            levels = max(2, known.size.bit_length() + 1)
            return {
                "ends": np.zeros((levels, known.per_size + 1), np.int64),
                "heads": np.zeros(levels, np.int64),
                "sizes": np.zeros(levels, np.int64),
                "meta": np.zeros(3, np.int64),
            }
        room = self.window + 1
        return {
            "ring": np.zeros(room, self._kind),
            "seen": np.zeros(room, np.int64),
            "back": np.zeros(2, self._kind),
            "meta": np.zeros(3, np.int64),
        }

    def run(self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> tuple[I64, pa.RecordBatch]:
        """(row, answer) for every piece that ends in the page."""
        rows, pieces = self.pieces.run(batch, le, re)
        column = pieces.column(0)
        there = np.ones(len(rows), np.bool_)
        if column.null_count:
            there = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(0)
        values = column.to_numpy(zero_copy_only=False).astype(self._kind)
        out, valid = self._answers(values, there)
        array = pa.array(out, mask=~valid).cast(self.schema.field(0).type)
        return rows, pa.RecordBatch.from_arrays([array], schema=self.schema)

    def _answers(self, values: Array, there: Array) -> tuple[Array, Array]:
        known = self.fold.structure
        if isinstance(known, Quantile):
            return self._quantiles(known, values, there)
        out = np.empty(len(values), values.dtype)
        if isinstance(known, EventCount):
            m = self.memory
            count_events(values != 0, known.size, m["ends"], m["heads"], m["sizes"], m["meta"], out)
            return out, np.ones(len(out), np.bool_)
        m, found = self.memory, np.empty(len(values), np.int64)
        op = _SLIDING[self.fold.name]
        slide(values, there, self.window, op, m["ring"], m["seen"], m["back"], m["meta"], out, found)
        if self.fold.name == "avg":
            out = out / np.maximum(found, 1)
        if self.fold.name == "sum":
            return np.where(found > 0, out, 0.0), np.ones(len(out), np.bool_)
        return out, found > 0

    def _quantiles(self, known: Quantile, values: Array, there: Array) -> tuple[Array, Array]:
        """Nulls repeat the answer before them."""
        some = values[there]
        if isinstance(self.memory, Buckets):
            answers = self.memory.run(some, known)
        else:
            answers = self._exact(some, known.q)
        last = self.memory.last if isinstance(self.memory, Buckets) else self.memory.get("last")
        at = np.cumsum(there) - 1
        known_before = np.nan if last is None else last
        out = np.where(at >= 0, answers[np.maximum(at, 0)] if len(answers) else known_before, known_before)
        if len(answers):
            if isinstance(self.memory, Buckets):
                self.memory.last = float(answers[-1])
            else:
                self.memory["last"] = float(answers[-1])
        return out, (at >= 0) | (last is not None)

    def _exact(self, values: Array, q: float) -> Array:
        held, size = self.memory["held"], self.memory["size"]
        if size + len(values) > len(held):
            held = np.append(held[:size], np.zeros(max(size, len(values)) + 1024))
        out = np.empty(len(values))
        self.memory["held"], self.memory["size"] = held, exact_rank(values, held, size, q, out)
        return out

    @property
    def nbytes(self) -> int:
        """Bytes of state: the sketch and the pieces' registers."""
        if isinstance(self.memory, Buckets):
            return self.memory.counts.nbytes + self.pieces.nbytes
        own = sum(a.nbytes for a in self.memory.values() if isinstance(a, np.ndarray))
        return own + self.pieces.nbytes


class Buckets:
    """The paper's histogram as an array: negative buckets, zero, positive buckets, in order of value."""

    def __init__(self, epsilon: float) -> None:
        self.log = float(np.log1p(epsilon))
        self.low = [0, 0]
        """The first power held of negative and of positive values."""
        self.sizes = [0, 0]
        self.counts: I64 = np.zeros(2, np.int64)
        self.pointer: I64 = np.zeros(3, np.int64)
        self.last: float | None = None

    def run(self, values: Array, known: Quantile) -> Array:
        """The quantile after each value."""
        if known.nonnegative and len(values) and values.min() < 0:
            from caesura.qre.language.sketches import Histogram, _added

            _added(Histogram(known.epsilon or 0.5), float(values.min()), True)
        if len(values) and not np.isfinite(values).all():
            from caesura.qre.language.sketches import Histogram

            Histogram(known.epsilon or 0.5).bucket(float(values[~np.isfinite(values)][0]))
        powers = self._powers(np.abs(values))
        for side, chosen in enumerate((values < 0, values > 0)):
            if chosen.any():
                self._cover(side, int(powers[chosen].min()), int(powers[chosen].max()))
        negative, zero = self.sizes[0], self.sizes[0]
        places = np.full(len(values), zero, np.int64)
        places = np.where(values > 0, zero + 1 + powers - self.low[1], places)
        places = np.where(values < 0, negative - 1 - (powers - self.low[0]), places)
        out = np.empty(len(values), np.int64)
        running_rank(places, self.counts, self.pointer, known.q, out)
        return self._edges(out)

    def _powers(self, sizes: Array) -> I64:
        safe = np.where(sizes > 0, sizes, 1.0)
        powers = np.floor(np.log(safe) / self.log).astype(np.int64)
        powers = np.where(np.exp(powers * self.log) > safe, powers - 1, powers)
        return np.where(np.exp((powers + 1) * self.log) <= safe, powers + 1, powers)

    def _edges(self, places: I64) -> Array:
        zero = self.sizes[0]
        positive = np.exp((places - zero - 1 + self.low[1]) * self.log)
        negative = -np.exp((zero - 1 - places + self.low[0]) * self.log)
        return np.where(places > zero, positive, np.where(places < zero, negative, 0.0))

    def _cover(self, side: int, low: int, high: int) -> None:
        """Makes room for the powers from low to high; the answer's place moves along."""
        if self.sizes[side] == 0:
            self.low[side] = low
        first, last = min(self.low[side], low), max(self.low[side] + self.sizes[side] - 1, high)
        if self.sizes[side] and first == self.low[side] and last < first + self.sizes[side]:
            return
        before, after = self.low[side] - first, last - first + 1 - self.sizes[side] - (self.low[side] - first)
        zero = self.sizes[0]
        if side == 0:
            self.counts = np.concatenate(
                [
                    np.zeros(after, np.int64),
                    self.counts[:zero],
                    np.zeros(before, np.int64),
                    self.counts[zero:],
                ]
            )
            self.pointer[0] += after + (before if self.pointer[0] >= zero else 0)
        else:
            parts = [
                self.counts[: zero + 1],
                np.zeros(before, np.int64),
                self.counts[zero + 1 :],
                np.zeros(after, np.int64),
            ]
            self.counts = np.concatenate(parts)
            self.pointer[0] += before if self.pointer[0] > zero else 0
        self.low[side], self.sizes[side] = first, last - first + 1
