"""Frames of all rows before: what the settled rows of a group come to, and results that go on from there.

     LE RE | id v |      group_by("id").over(rows=INFINITY).agg(s=sum("v"))
      1  2 | 7  5 | +         1  2 | 7 5 5  | +
      3  4 | 7  6 | +   ->    3  4 | 7 6 11 | +

A settled row is summed up once, in order, and never taken out again; rows behind it begin with that sum.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.identity import Secret, plain_zeros
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.ops.aggregate.accumulators.along import EnteringRows, given_along, runs
from caesura.ops.aggregate.accumulators.sums import follow_slots
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.slots import Slots
from caesura.ops.over.frames import Frames
from caesura.ops.over.node import OverFrame
from caesura.punctuation import INFINITY, MIN_TIME

UNTIL = "until"


def totals_of(node: OverFrame) -> Slots:
    """The accumulators of a step's aggregates, of values that only come."""
    source = node.inputs[0]
    aggregates = [(name, one) for name, one in node.columns if isinstance(one, Aggregate)]
    fields = {UNTIL: np.int64}
    return Slots(aggregates, source.schema, node.group, time=source.time, insert_only=True, fields=fields)


def running(node: OverFrame) -> bool:
    """Whether every column of a frame of all rows before follows from what they come to and the next row."""
    if node.rows != INFINITY:
        return False
    slots = totals_of(node)
    plans = zip(slots.aggregates, slots.plans, strict=True)
    return all(len(p) < 2 or runs(p[-1], counts_values=a.rule.counts_values) for (_, a), p in plans)


class RunningFrames(Frames):
    """Columns of rows in order, and what the rows before them come to, by group."""

    def __init__(self, node: OverFrame, secret: Secret) -> None:
        super().__init__(node)
        self._slots = self.slots = totals_of(node)
        self._secret = secret
        names = [name for name, one in node.columns if getattr(one, "kind", "") == "first_value"]
        schema = pa.schema([node.schema.field(name) for name in names])
        self._first_names = names
        self.firsts = RowState({"slot": np.int64}, schema)
        """The values of the first row of each group that is summed up."""

    @property
    def until(self) -> I64:
        """Per slot, the time before which rows are summed up."""
        return self.slots.rows.get(UNTIL)

    def slots_of(self, payload: pa.RecordBatch) -> I64:
        """The slots of the groups of these rows; new ones are no state before a row is summed up."""
        at = plain_zeros(payload.select(list(self._node.group)))
        slot = self.slots.of_keys(at, self._secret, lambda count: {UNTIL: np.full(count, MIN_TIME)})
        self.slots.rows.keep(slot, self.slots.rows.get("rows")[slot] > 0)
        return slot

    def along(self, slots: I64, owner: I64, le: I64, payload: pa.RecordBatch, inside: Mask) -> list[pa.Array]:
        """One column each, for the rows that are inside; the groups of ``owner`` have these slots."""
        entering = np.flatnonzero(le >= self.until[slots][owner])
        values = [make(payload, le, le).take(pa.array(entering)) for make in self.slots.makers]
        gives = inside[entering]
        steps = EnteringRows(owner[entering], gives, int(gives.sum()), np.zeros(0, np.bool_))
        _, folded = given_along(self.slots, slots, steps, values)
        at = np.flatnonzero(inside)
        begin, first = np.searchsorted(owner, owner[at]), np.full(len(slots), -1, np.int64)
        first[owner[entering][::-1]] = entering[::-1]
        columns = self.columns(folded, payload, le, owner, at, begin, first[owner[at]])
        return self._with_firsts(columns, slots[owner[at]])

    def _with_firsts(self, columns: list[pa.Array], slot: I64) -> list[pa.Array]:
        """The same with the first values of groups that have rows summed up."""
        if not self._first_names or self.firsts.size == 0:
            return columns
        row = np.full(self.slots.rows.size, -1, np.int64)
        live = np.flatnonzero(self.firsts.alive)
        row[self.firsts.get("slot")[live]] = live
        known = row[slot] >= 0
        stored = self.firsts.payload.take(np.maximum(row[slot], 0))
        places = [i for i, (name, _) in enumerate(self._node.columns) if name in self._first_names]
        for place, column in zip(places, stored.columns, strict=True):
            both = pa.concat_arrays([columns[place], column])
            mine = np.arange(len(slot))
            columns[place] = both.take(pa.array(np.where(known, mine + len(slot), mine)))
        return columns

    def sum_up(self, slot: I64, le: I64, n: I64, payload: pa.RecordBatch) -> None:
        """Adds rows to their groups' slots for good; they stand in order."""
        touched, lead = np.unique(slot, return_index=True)
        new = lead[self.slots.rows.get("rows")[touched] == 0]
        if self._first_names and len(new):
            made = [make for make in self.makers if make is not None]
            kinds = [one for _, one in self._node.columns if not isinstance(one, Aggregate)]
            some = payload.take(pa.array(new))
            values = [
                make(some, le[new], le[new])
                for make, one in zip(made, kinds, strict=True)
                if one.kind == "first_value"
            ]
            self.firsts.append(
                {"slot": slot[new]}, pa.RecordBatch.from_arrays(values, schema=self.firsts.schema)
            )
        self.slots.add(slot, n, [make(payload, le, le) for make in self.slots.makers])
        self.slots.settle(touched)

    def forget(self, slot: I64) -> None:
        """Lets go of what the rows of groups that are over came to."""
        if len(slot) == 0:
            return
        gone = np.zeros(self.slots.rows.size, np.bool_)
        gone[slot] = True
        self.slots.drop(slot)
        self.firsts.kill(np.flatnonzero(self.firsts.alive & gone[self.firsts.get("slot")]))

    def tidy(self) -> None:
        """Moves slots together; whoever has their numbers asks again."""
        keep = self.slots.tidy()
        if keep is not None:
            follow_slots(self.firsts, keep)

    def states(self) -> dict[str, RowState]:
        return {**self.slots.states(), "firsts": self.firsts}

    def rebuild(self) -> None:
        rows = self.slots.rows
        keep = np.flatnonzero(rows.alive) if rows.live < rows.size else None
        self.slots.rebuild()
        if keep is not None:
            follow_slots(self.firsts, keep)
