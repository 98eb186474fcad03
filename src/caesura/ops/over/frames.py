"""Results of rows over the rows around them: members of frames laid out, neighbours looked up."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.nested import NO_MASK, validity
from caesura.expr import compile_expr
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import later
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.sums import (
    NONE,
    Wide,
    WideSum,
    wide_as_float,
    wide_values,
    wide_words,
)
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.slots import Slots
from caesura.ops.over.node import Neighbour, OverFrame

HALF = np.uint64(0xFFFFFFFF)
AT_ONCE = 1 << 21
"""So many members are laid out at a time."""


class Frames:
    """Computes the columns of an `OverFrame` for rows in order."""

    def __init__(self, node: OverFrame) -> None:
        source = node.inputs[0]
        self._node = node
        aggregates = [(name, one) for name, one in node.columns if isinstance(one, Aggregate)]
        self._slots = Slots(aggregates, source.schema, (), time=source.time, insert_only=True, fields={})
        self.makers = [
            compile_expr(one.value, source.schema, time=source.time) if isinstance(one, Neighbour) else None
            for _, one in node.columns
        ]

    def results(self, owner: I64, le: I64, payload: pa.RecordBatch, inside: Mask) -> list[pa.Array]:
        """One column each, for the rows that are inside; rows stand by owner, in order."""
        at = np.flatnonzero(inside)
        begin = np.searchsorted(owner, owner[at])
        low, high = self._frame(owner, le, at, begin)
        values = [make(payload, le, le) for make in self._slots.makers]
        folded = fold_ranges(self._slots, low, high, values)
        return self.columns(folded, payload, le, owner, at, begin, low)

    def columns(
        self,
        folded: list[pa.Array],
        payload: pa.RecordBatch,
        le: I64,
        owner: I64,
        at: I64,
        begin: I64,
        low: I64,
    ) -> list[pa.Array]:
        """Aggregates, and the neighbours of the rows at these places, whose groups and frames begin there."""
        aggregates, columns = iter(folded), []
        for (_, one), make in zip(self._node.columns, self.makers, strict=True):
            if make is None:
                columns.append(next(aggregates))
                continue
            assert isinstance(one, Neighbour)
            end = np.searchsorted(owner, owner[at], side="right")
            place = {"lag": at - one.by, "lead": at + one.by, "first_value": low}[one.kind]
            there = (place >= begin) & (place < end)
            columns.append(make(payload, le, le).take(pa.array(np.where(there, place, 0), mask=~there)))
        return columns

    def _frame(self, owner: I64, le: I64, at: I64, begin: I64) -> tuple[I64, I64]:
        """The members of each row's frame: [low, high)."""
        node = self._node
        if node.span is None:
            return np.maximum(begin, at - ((node.rows or 1) - 1)), at + 1
        number = np.unique(np.concatenate([le, later(le[at], -node.span)]))
        place, reach = np.searchsorted(number, le), np.searchsorted(number, later(le[at], -node.span))
        key = owner * (len(number) + 1) + place
        own = owner[at] * (len(number) + 1)
        return np.searchsorted(key, own + reach), np.searchsorted(key, own + place[at], side="right")


class RangeSums:
    """Counts and sums of whole numbers over ranges of rows, from the sums up to each row; a `Reading`.

    >>> parts, values = (None, WideSum("sum", pa.int64())), pa.array([5, 7, -1])
    >>> RangeSums(parts, np.array([1]), np.array([3]), values).values().to_pylist()
    [6]
    """

    def __init__(self, parts: tuple[Any, ...], low: I64, high: I64, values: pa.Array | None) -> None:
        self._part = parts[-1] if parts else None
        self._low, self._high, self._values = low, high, values
        self._valid = NO_MASK if values is None else validity(values)

    @staticmethod
    def can(parts: tuple[Any, ...]) -> bool:
        """Whether these accumulators are all that such sums tell."""
        return len(parts) < 2 or (isinstance(parts[-1], WideSum) and parts[-1].result == pa.int64())

    @cached_property
    def n(self) -> I64:
        if len(self._valid) == 0:
            return self._high - self._low
        return self._between(self._valid.astype(np.int64))

    def values(self) -> pa.Array:
        return wide_values(self._wide, pa.int64())

    def floats(self) -> F64:
        return wide_as_float(self._wide, pa.int64())

    def _between(self, numbers: I64) -> I64:
        sums = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(numbers, out=sums[1:])
        found: I64 = sums[self._high] - sums[self._low]
        return found

    @cached_property
    def _wide(self) -> Wide:
        """Sums of the upper and of the lower 32 bits stay within 64; together they make 128."""
        assert self._values is not None
        low, high = wide_words(self._values)
        if len(self._valid):
            low, high = np.where(self._valid, low, 0).astype(np.uint64), np.where(self._valid, high, 0)
        upper = (high << 32) | (low >> np.uint64(32)).view(np.int64)
        under = self._between((low & HALF).view(np.int64))
        above = self._between(upper) + (under >> 32)
        total = (above.view(np.uint64) << np.uint64(32)) | (under.view(np.uint64) & HALF)
        return Wide(total, above >> 32, NONE)


def fold_ranges(slots: Slots, low: I64, high: I64, values: list[pa.Array]) -> list[pa.Array]:
    """The aggregates of ranges of rows; ``values`` are the columns that the slots want of all rows."""
    if not slots.aggregates:
        return []
    if all(RangeSums.can(parts) for parts in slots.plans):
        given = [None if a.value is None else values[slots.place(a)] for _, a in slots.aggregates]
        return [
            a.rule.finish(a, RangeSums(parts, low, high, own))
            for (_, a), parts, own in zip(slots.aggregates, slots.plans, given, strict=True)
        ]
    ends = np.cumsum(high - low)
    cuts = np.searchsorted(ends, np.arange(AT_ONCE, int(ends[-1]) if len(ends) else 0, AT_ONCE))
    parts = np.split(np.arange(len(low)), np.unique(cuts))
    found = [_part(slots, low[some], high[some], values) for some in parts]
    return [pa.concat_arrays(list(columns)) for columns in zip(*found, strict=True)]


def _part(slots: Slots, low: I64, high: I64, values: list[pa.Array]) -> list[pa.Array]:
    count, size = len(low), high - low
    name = np.arange(count).astype(np.uint64)
    slots.find(name, name)
    slots.open_as(name, name, pa.record_batch({}), {})
    owner = np.repeat(np.arange(count), size)
    member = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(low, size)
    wanted = pa.array(member)
    slots.add(owner, np.ones(len(owner), np.int64), [column.take(wanted) for column in values])
    out = slots.results(np.arange(count))
    slots.drop(np.arange(count))
    slots.tidy()
    return out
