"""The values of each slot, counted: what first, last, top-k, quantiles, distinct and collect look at.

One multiset serves every such aggregate over the same expression. With ``timed`` a value carries its
event's start, so that first and last mean the canonical order: by start, then by value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.identity import LOCAL, identity, plain_zero
from caesura.events.nested import validity
from caesura.events.order import ranks
from caesura.events.rows import RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, distinct
from caesura.ops.aggregate.accumulators.extremes import RetractableExtreme, has_words, ranked
from caesura.ops.aggregate.accumulators.sortwords import SortWords
from caesura.ops.aggregate.accumulators.sums import Fields, follow_slots
from caesura.ops.ordered import Ordered

SPARE = 4096


def keeps_values(part: Any) -> bool:
    """Whether an accumulator holds each different value for as long as it counts."""
    return isinstance(part, Multiset | RetractableExtreme)


class Gathered(NamedTuple):
    """The values of some slots, sorted by slot and then in canonical order."""

    owner: I64
    """The place of the slot among those asked for."""
    n: I64
    values: pa.Array


class Multiset:
    """Counted distinct values per slot, linked by slot."""

    def __init__(self, name: str, t: pa.DataType, *, timed: bool) -> None:
        self.name, self.type, self.timed = name, t, timed
        fields = {"slot": np.int64, "n": np.int64, "le": np.int64}
        self.rows = RowState(fields, pa.schema([("value", t)]))
        self._table, self._chains = KeyTable(), Chains()
        self._compacted_size = 0
        self._order, self._ordered = Ordered(), 0
        """Rows in order within their slots, so many of them: the others follow when somebody asks."""
        self._words = self._sort_words()
        self._different: Grown | None = None
        """How many different values each slot has, once somebody has asked."""

    def _sort_words(self) -> SortWords:
        return SortWords(self.compared(pa.array([], self.type)).type)

    def fields(self) -> Fields:
        return {}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        le, values = self._taken(values)
        values = plain_zero(values)
        valid = validity(values)
        if len(valid):
            at, weights, le, values = at[valid], weights[valid], le[valid], values.drop_null()
        h1, h2 = self._ids(at, le, values)
        row, fresh = self._table.encode(h1, h2)
        known = self.rows.size
        if len(fresh):
            fields = {"slot": at[fresh], "n": np.zeros(len(fresh), np.int64), "le": le[fresh]}
            self.rows.append(
                fields, pa.RecordBatch.from_arrays([values.take(pa.array(fresh))], schema=self.rows.schema)
            )
            self._chains.add(at[fresh])
        add_weights(row, weights, self.rows.get("n"))
        some = distinct(row, self.rows.size)
        was, now = self.rows.alive[some] & (some < known), self.rows.get("n")[some] > 0
        self.rows.touch(some)
        self.rows.keep(some, now)
        if self._different is not None:
            self._reach(self._different, slots.size)
            by = now.astype(np.int64) - was
            add_weights(self.rows.get("slot")[some], by, self._different.view)
        if self.rows.size > 2 * self._compacted_size + SPARE:
            self.rebuild(slots)
            self._compacted_size = self.rows.size

    def _taken(self, values: pa.Array) -> tuple[I64, pa.Array]:
        if not self.timed:
            return np.zeros(len(values), np.int64), values
        return values.field(0).to_numpy(), values.field(1)

    def _ids(self, slot: I64, le: I64, values: pa.Array) -> tuple[U64, U64]:
        return mixed(identity([values], len(slot), LOCAL), slot, le)

    def gather(self, at: I64) -> Gathered:
        """What these slots hold, in canonical order."""
        owner, row = self._chains.gather(at)
        live = self.rows.alive[row]
        return self._sorted(owner[live], row[live])

    def edge(self, at: I64, limit: int, *, last: bool) -> Gathered:
        """Of what these slots hold, enough to know the first so many, or the last, in canonical order."""
        rows = self.rows
        if self._ordered < rows.size:
            if not self.in_time and self._words.take(self._compared_from(self._ordered)):
                self._order, self._ordered = Ordered(), 0
            fresh = np.arange(self._ordered, rows.size)
            time = rows.get("le")[fresh]
            if not self.in_time:
                time = self._words.of(self._compared_from(self._ordered))
            self._order.add(rows.get("slot")[fresh], time, fresh)
            self._ordered = rows.size
        return self._sorted(*self._order.edges(at, limit, rows.alive, last=last))

    @property
    def in_time(self) -> bool:
        """Whether the first value of a slot is the one that began first."""
        return self.timed

    def compared(self, values: pa.Array) -> pa.Array:
        """What the order of values is by, where it is not by time."""
        return values

    def _compared_from(self, first: int) -> pa.Array:
        return self.compared(self.rows.payload.take(np.arange(first, self.rows.size)).column(0))

    def _sorted(self, owner: I64, row: I64) -> Gathered:
        values = self.rows.payload.take(row).column(0)
        order = np.lexsort((_rank(values), self.rows.get("le")[row], owner))
        return Gathered(owner[order], self.rows.get("n")[row[order]], values.take(pa.array(order)))

    def value(self, slots: RowState, at: I64) -> pa.Array:
        """How many distinct values each slot has."""
        if self._different is None:
            self._different = Grown(np.int64)
            live = self.rows.get("slot")[self.rows.alive]
            self._different.extend(np.bincount(live, minlength=slots.size))
        self._reach(self._different, slots.size)
        return pa.array(self._different.view[at])

    @staticmethod
    def _reach(counts: Grown, slots: int) -> None:
        if counts.size < slots:
            counts.extend(np.zeros(slots - counts.size, np.int64))

    def copies(self, slot: I64, values: pa.Array) -> tuple[I64, I64]:
        """A number for each value of each slot, and how many copies there are now, by number."""
        h1, h2 = self._ids(slot, np.zeros(len(slot), np.int64), plain_zero(values))
        number, fresh = KeyTable().encode(h1, h2)
        row = self._table.find(h1[fresh], h2[fresh])
        held = np.zeros(len(fresh), np.int64)
        held[row >= 0] = self.rows.get("n")[row[row >= 0]]
        return number, held

    def compact(self, keep: I64) -> None:
        self._different = None
        follow_slots(self.rows, keep)

    def free(self, slots: RowState, at: I64) -> None:
        return None

    def states(self) -> dict[str, RowState]:
        return {"bag": self.rows}

    def rebuild(self, slots: RowState) -> None:
        self._order, self._ordered, self._words = Ordered(), 0, self._sort_words()
        self._different = None
        if self.rows.live < self.rows.size:
            self.rows.compact()
        slot, le = self.rows.get("slot"), self.rows.get("le")
        self._table, self._chains = KeyTable(), Chains()
        self._table.encode(*self._ids(slot, le, self.rows.payload.all().column(0)))
        self._chains.add(slot)


def _rank(values: pa.Array) -> I64:
    return ranked(values) if has_words(values.type) else ranks(values)
