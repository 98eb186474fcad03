"""Slots: one per group and window, each with the accumulators of every aggregate asked for.

Several aggregates share what they have in common: `avg(x)` and `sum(x)` keep one sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import from_words
from caesura.events.rows import RowState
from caesura.expr import Expr, compile_expr, type_of
from caesura.kernels.hashing import I64, U64
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.ops.aggregate import picks
from caesura.ops.aggregate.extremes import Bag, Grows, has_words
from caesura.ops.aggregate.functions import Aggregate, result_type
from caesura.ops.aggregate.leading import Leading
from caesura.ops.aggregate.moments import Moments
from caesura.ops.aggregate.multiset import Multiset
from caesura.ops.aggregate.sums import Accumulator, Counted, FloatSum, WideSum

PART_OF = {
    "sum": "sum",
    "whole_sum": "whole_sum",
    "avg": "sum",
    "min": "min",
    "max": "max",
    "variance": "moments",
    "stddev": "moments",
    "first": "timed",
    "last": "timed",
    "top_k": "bag",
    "count_distinct": "bag",
    "quantile": "bag",
    "median": "bag",
    "collect": "bag",
}
"""What an aggregate keeps besides how many values there are; those with the same part share it."""


class Slots:
    """The accumulators of a set of aggregates, by a 128-bit key per slot."""

    def __init__(
        self,
        aggregates: Sequence[tuple[str, Aggregate]],
        schema: pa.Schema,
        keys: Sequence[str],
        *,
        time: pa.DataType,
        insert_only: bool,
        fields: Mapping[str, Any],
    ) -> None:
        self.aggregates = aggregates
        self.schema = schema
        self.time = time
        self._insert_only = insert_only
        self._parts: dict[object, tuple[int, Accumulator]] = {}
        self._values: dict[object, int] = {}
        self._types: list[pa.DataType] = []
        self.makers: list[Any] = []
        self.plans = [self._plan(aggregate) for _, aggregate in aggregates]
        own = {"h1": np.uint64, "h2": np.uint64, "rows": np.int64, **fields}
        for _, part in self._parts.values():
            own.update(part.fields())
        self.keys = pa.schema([schema.field(k) for k in keys])
        self.rows = RowState(own, self.keys)
        self._table = KeyTable()

    def _plan(self, aggregate: Aggregate) -> dict[str, Accumulator]:
        if aggregate.value is None:
            return {}
        parts = {"n": self._part("n", aggregate.value)}
        if aggregate.kind in PART_OF:
            parts["own"] = self._part(self._own(aggregate), aggregate.value)
        return parts

    def _own(self, aggregate: Aggregate) -> str:
        """What an aggregate keeps; extremes of texts and decimals that may go are picked out of all."""
        assert aggregate.value is not None
        kind = PART_OF[aggregate.kind]
        wordy = has_words(type_of(aggregate.value, self.schema, time=self.time))
        return kind if kind not in ("min", "max") or wordy or self._insert_only else "bag"

    def _part(self, kind: str, value: Expr) -> Accumulator:
        timed = kind == "timed"
        place = self._values.setdefault((timed, value.key), len(self._values))
        if place == len(self.makers):
            make = compile_expr(value, self.schema, time=self.time)
            t = type_of(value, self.schema, time=self.time)
            self.makers.append(_timed(make) if timed else make)
            self._types.append(pa.struct([("le", pa.int64()), ("v", t)]) if timed else t)
        if (kind, value.key) not in self._parts:
            name = f"{kind}{place}"
            self._parts[kind, value.key] = place, self._accumulator(kind, name, value)
        return self._parts[kind, value.key][1]

    def _accumulator(self, kind: str, name: str, value: Expr) -> Accumulator:
        t = type_of(value, self.schema, time=self.time)
        match kind:
            case "n":
                return Counted(name)
            case "moments":
                return Moments(name)
            case "bag" | "timed":
                return Multiset(name, t, timed=kind == "timed")
            case "sum":
                if pa.types.is_floating(t):
                    return FloatSum(name)
                return WideSum(name, result_type(Aggregate("sum", value), self.schema, self.time))
            case "whole_sum":
                return WideSum(name, pa.int64())
        if not has_words(t):
            return Leading(name, kind, t)
        return Grows(name, kind, t) if self._insert_only else Bag(name, kind, t)

    @property
    def parts(self) -> list[Accumulator]:
        """The accumulators, each once."""
        return [part for _, part in self._parts.values()]

    def place(self, aggregate: Aggregate) -> int:
        """Which of the value columns an aggregate with a value reads."""
        assert aggregate.value is not None
        return self._parts["n", aggregate.value.key][0]

    def type_of(self, aggregate: Aggregate) -> pa.DataType:
        """The type of the values that an aggregate reads."""
        return self._types[self.place(aggregate)]

    @property
    def result_types(self) -> list[pa.DataType]:
        """The type of each aggregate's result."""
        return [result_type(a, self.schema, self.time) for _, a in self.aggregates]

    @property
    def value_types(self) -> list[pa.Field]:
        """The columns of values that `add` wants, in order."""
        return [pa.field(f"v{i}", t) for i, t in enumerate(self._types)]

    def find(self, h1: U64, h2: U64) -> tuple[I64, I64]:
        """Slot numbers for keys, and the rows that need a new slot (see `open`), in slot order."""
        return self._table.encode(h1, h2)

    def open(self, h1: U64, h2: U64, keys: pa.RecordBatch, fields: Mapping[str, Any]) -> None:
        """Makes the slots that `find` asked for."""
        count = len(h1)
        own = {"h1": h1, "h2": h2, "rows": np.zeros(count, np.int64), **fields}
        for _, part in self._parts.values():
            own.update(part.zeros(count))
        self.rows.append(own, keys)

    def add(self, at: I64, weights: I64, values: Sequence[pa.Array]) -> None:
        """Adds weighted values to slots."""
        add_weights(at, weights, self.rows.get("rows"))
        for place, part in self._parts.values():
            part.add(self.rows, at, weights, values[place])

    def settle(self, touched: I64) -> None:
        """Notes that these slots changed; those without rows are no longer counted as state."""
        self.rows.touch(touched)
        self.rows.keep(touched, self.rows.get("rows")[touched] > 0)

    def results(self, at: I64) -> list[pa.Array]:
        """The value of every aggregate in these slots."""
        out = []
        for (_, aggregate), plan in zip(self.aggregates, self.plans, strict=True):
            out.append(self._result(aggregate, plan, at))
        return out

    def _result(self, aggregate: Aggregate, plan: dict[str, Accumulator], at: I64) -> pa.Array:
        if not plan:
            return pa.array(self.rows.get("rows")[at])
        if aggregate.kind == "count":
            return plan["n"].value(self.rows, at)
        own = plan["own"]
        if isinstance(own, Multiset):
            return _picked(aggregate, own, self.rows, at)
        if aggregate.kind in ("min", "max"):
            return own.value(self.rows, at)
        n = plan["n"].value(self.rows, at).to_numpy()
        if isinstance(own, Moments):
            return _spread(aggregate, own.variance(self.rows, at, n, int(aggregate.option)), n)
        if aggregate.kind in ("sum", "whole_sum"):
            return _null_where_empty(own.value(self.rows, at), n)
        assert isinstance(own, (FloatSum, WideSum))
        mean = own.as_float(self.rows, at) / np.maximum(n, 1)
        return from_words(mean, n > 0, pa.float64())

    def drop(self, at: I64) -> None:
        """Lets slots go, with what they alone use."""
        self.rows.kill(at)
        for _, part in self._parts.values():
            part.free(self.rows, at)

    def tidy(self) -> I64 | None:
        """Compacts when it is worth it; gives the old numbers by new number."""
        if not self.rows.wasteful:
            return None
        return self._compact()

    def _compact(self) -> I64:
        keep = self.rows.compact()
        self._table.compact(keep)
        for _, part in self._parts.values():
            part.compact(keep)
            part.rebuild(self.rows)
        return keep

    def states(self) -> dict[str, RowState]:
        own = {"slots": self.rows}
        for number, (_, part) in enumerate(self._parts.values()):
            own.update({f"{name}{number}": state for name, state in part.states().items()})
        return own

    def rebuild(self) -> None:
        """Derives the table and the chains again after a restore."""
        keep = self.rows.compact() if self.rows.live < self.rows.size else None
        self._table = KeyTable()
        self._table.encode(self.rows.get("h1"), self.rows.get("h2"))
        for _, part in self._parts.values():
            if keep is not None:
                part.compact(keep)
            part.rebuild(self.rows)


def _timed(make: Any) -> Any:
    """Values with the starts of their events."""

    def made(payload: pa.RecordBatch, le: I64, re: I64) -> pa.Array:
        return pa.StructArray.from_arrays([pa.array(le), make(payload, le, re)], ["le", "v"])

    return made


def _picked(aggregate: Aggregate, held: Multiset, rows: RowState, at: I64) -> pa.Array:
    if aggregate.kind == "count_distinct":
        return held.value(rows, at)
    count = len(at)
    match aggregate.kind:
        case "min":
            return picks.first(held.edge(at, 1, last=False), count)
        case "max":
            return picks.last(held.edge(at, 1, last=True), count)
        case "first":
            return picks.first(held.edge(at, 1, last=False), count)
        case "last":
            return picks.last(held.edge(at, 1, last=True), count)
        case "top_k":
            k = int(aggregate.option)
            return picks.top(held.edge(at, k, last=True), count, k)
    some = held.gather(at)
    match aggregate.kind:
        case "quantile":
            return picks.quantile(some, count, aggregate.option)
        case "median":
            return picks.interpolated(some, count, aggregate.option)
    return picks.collected(some, count)


def _spread(aggregate: Aggregate, variance: Any, n: I64) -> pa.Array:
    out = np.sqrt(variance) if aggregate.kind == "stddev" else variance
    return from_words(out, n > aggregate.option, pa.float64())


def _null_where_empty(values: pa.Array, n: I64) -> pa.Array:
    if (n > 0).all():
        return values
    return pa.compute.if_else(pa.array(n > 0), values, pa.scalar(None, values.type))
