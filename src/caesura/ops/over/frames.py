"""Results of rows over the rows around them: members of frames laid out, neighbours looked up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.expr import compile_expr
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import later
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.slots import Slots
from caesura.ops.over.node import Neighbour, OverFrame

AT_ONCE = 1 << 21
"""So many members are laid out at a time."""


class Frames:
    """Computes the columns of an `OverFrame` for rows in order."""

    def __init__(self, node: OverFrame) -> None:
        source = node.inputs[0]
        self._node = node
        aggregates = [(name, one) for name, one in node.columns if isinstance(one, Aggregate)]
        self._slots = Slots(aggregates, source.schema, (), time=source.time, insert_only=True, fields={})
        self._make = [
            compile_expr(one.value, source.schema, time=source.time) if isinstance(one, Neighbour) else None
            for _, one in node.columns
        ]

    def results(self, owner: I64, le: I64, payload: pa.RecordBatch, inside: Mask) -> list[pa.Array]:
        """One column each, for the rows that are inside; rows stand by owner, in order."""
        at = np.flatnonzero(inside)
        begin = np.searchsorted(owner, owner[at])
        low, high = self._frame(owner, le, at, begin)
        values = [make(payload, le, le) for make in self._slots.makers]
        folded = iter(fold_ranges(self._slots, low, high, values))
        columns = []
        for (_, one), make in zip(self._node.columns, self._make, strict=True):
            if make is None:
                columns.append(next(folded))
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


def fold_ranges(slots: Slots, low: I64, high: I64, values: list[pa.Array]) -> list[pa.Array]:
    """The aggregates of ranges of rows; ``values`` are the columns that the slots want of all rows."""
    if not slots.aggregates:
        return []
    ends = np.cumsum(high - low)
    cuts = np.searchsorted(ends, np.arange(AT_ONCE, int(ends[-1]) if len(ends) else 0, AT_ONCE))
    parts = np.split(np.arange(len(low)), np.unique(cuts))
    found = [_part(slots, low[some], high[some], values) for some in parts]
    return [pa.concat_arrays(list(columns)) for columns in zip(*found, strict=True)]


def _part(slots: Slots, low: I64, high: I64, values: list[pa.Array]) -> list[pa.Array]:
    count, size = len(low), high - low
    name = np.arange(count).astype(np.uint64)
    slots.find(name, name)
    slots.open(name, name, pa.record_batch({}), {})
    owner = np.repeat(np.arange(count), size)
    member = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(low, size)
    wanted = pa.array(member)
    slots.add(owner, np.ones(len(owner), np.int64), [column.take(wanted) for column in values])
    out = slots.results(np.arange(count))
    slots.drop(np.arange(count))
    slots.tidy()
    return out
