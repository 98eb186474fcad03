"""The least or greatest value of each slot that no word holds, where values only come: one per slot.

>>> slots = RowState({"low_row": np.int64})
>>> low = Leading("low", "min", pa.string())
>>> _ = slots.append(low.zeros(2))
>>> low.add(slots, np.array([0, 1, 0]), np.ones(3, np.int64), pa.array(["b", "c", "a"]))
>>> low.value(slots, np.arange(2)).to_pylist(), low.rows.live
(['a', 'c'], 2)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.order import ranks
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.accumulators.sums import Fields, follow_slots, present

SPARE = 64


class Leading:
    """One row per slot that has a value: the extreme so far."""

    def __init__(self, name: str, kind: str, t: pa.DataType) -> None:
        self.name, self.sign, self.type = name, 1 if kind == "min" else -1, t
        self.rows = RowState({"slot": np.int64}, pa.schema([("value", t)]))

    def fields(self) -> Fields:
        return {f"{self.name}_row": np.int64}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {f"{self.name}_row": np.full(count, -1, np.int64)}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, _, values = present(at, weights, values)
        if len(at) == 0:
            return
        order = np.lexsort((self.order(values), at))
        new = np.ones(len(order), np.bool_)
        new[1:] = at[order][1:] != at[order][:-1]
        best = order[new]
        slot, values = at[best], values.take(pa.array(best))
        held = slots.get(f"{self.name}_row")[slot]
        leads = self._leads(values, held)
        slot, values, held = slot[leads], values.filter(pa.array(leads)), held[leads]
        self.rows.kill(held[held >= 0])
        first = self.rows.append(
            {"slot": slot}, pa.RecordBatch.from_arrays([values], schema=self.rows.schema)
        )
        slots.get(f"{self.name}_row")[slot] = np.arange(first, first + len(slot))
        if self.rows.size > 2 * self.rows.live + SPARE:
            self._sweep(slots)

    def order(self, values: pa.Array) -> I64:
        """Ranks from the one that leads on."""
        return self.sign * ranks(values)

    def _leads(self, values: pa.Array, held: I64) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which values lead over the rows that are held, or have none to lead over."""
        leads = held < 0
        old = np.flatnonzero(~leads)
        if len(old):
            before = self.rows.payload.take(held[old]).column(0)
            order = self.order(pa.concat_arrays([values.take(pa.array(old)), before]))
            leads[old] = order[: len(old)] < order[len(old) :]
        return leads

    def value(self, slots: RowState, at: I64) -> pa.Array:
        row = slots.get(f"{self.name}_row")[at]
        if self.rows.size == 0:
            return pa.nulls(len(at), self.type)
        taken = self.rows.payload.take(np.maximum(row, 0)).column(0)
        return pc.if_else(pa.array(row >= 0), taken, pa.scalar(None, self.type))

    def free(self, slots: RowState, at: I64) -> None:
        row = slots.get(f"{self.name}_row")[at]
        self.rows.kill(row[row >= 0])
        slots.get(f"{self.name}_row")[at] = -1
        if self.rows.size > 2 * self.rows.live + SPARE:
            self._sweep(slots)

    def compact(self, keep: I64) -> None:
        follow_slots(self.rows, keep)

    def states(self) -> dict[str, RowState]:
        return {"leading": self.rows}

    def rebuild(self, slots: RowState) -> None:
        slots.get(f"{self.name}_row")[:] = -1
        self._sweep(slots)

    def _sweep(self, slots: RowState) -> None:
        """Moves the rows that lead together."""
        if self.rows.live < self.rows.size:
            self.rows.compact()
        slot = self.rows.get("slot")
        slots.get(f"{self.name}_row")[slot] = np.arange(self.rows.size)
        slots.touch(slot)
