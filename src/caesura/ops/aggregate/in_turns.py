"""Points of groups read one after the other from the accumulators, where no kernel follows them.

The first time of every group is added to its slot and read, then the second; all is taken out in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64
from caesura.kernels.sums import each_once
from caesura.ops.aggregate.accumulators.along import PointSteps
from caesura.ops.aggregate.accumulators.slide import GIVE
from caesura.ops.aggregate.slots import Slots


@dataclass(frozen=True)
class InTurns:
    """Points in order of (group, time), with what comes or goes there."""

    slots: I64
    """The slot of each group."""
    owner: I64
    """The group of each point."""
    time: I64
    sign: I64
    values: list[pa.Array]

    def read(self, slots: Slots, steps: PointSteps, types: list[pa.DataType]) -> tuple[I64, list[pa.Array]]:
        """How many rows there are, and the results of these types, wherever the steps give some."""
        owner, time = self.owner, self.time
        new = np.ones(len(owner), np.bool_)
        new[1:] = (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])
        number = np.cumsum(new) - 1
        first = np.searchsorted(owner, owner)
        turn = number - number[first] if len(owner) else number
        order = np.argsort(turn, kind="stable")
        ends = np.searchsorted(turn[order], np.arange(int(turn.max(initial=-1)) + 2))
        found: list[Any] = []
        for a, b in pairwise(ends.tolist()):
            some = order[a:b]
            groups = each_once(owner[some])
            values = [v.take(pa.array(some)) for v in self.values]
            slots.add(self.slots[owner[some]], self.sign[some], values)
            at = self.slots[groups]
            found.append((groups, slots.rows.get("rows")[at].copy(), slots.results(at)))
        slots.add(self.slots[owner], -self.sign, self.values)
        if not found:
            return np.zeros(0, np.int64), [pa.array([], t) for t in types]
        return self._in_order(found, steps)

    def _in_order(self, found: list[Any], steps: PointSteps) -> tuple[I64, list[pa.Array]]:
        """What was read turn by turn, by group and time; those that are given."""
        owner, time = self.owner, self.time
        turns = np.repeat(np.arange(len(found)), [len(groups) for groups, _, _ in found])
        groups = np.concatenate([groups for groups, _, _ in found])
        order = np.lexsort((turns, groups))
        new = np.ones(len(owner), np.bool_)
        new[:-1] = (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])
        gives = np.flatnonzero(steps.kind == GIVE)
        last = np.cumsum(new)[steps.row[gives - 1]] - 1
        pick = order[last]
        count = np.concatenate([n for _, n, _ in found])[pick]
        columns = [
            pa.concat_arrays([results[k] for _, _, results in found]).take(pa.array(pick))
            for k in range(len(found[0][2]))
        ]
        return count, columns
