"""Rows of groups, found by the slot of their group: a state, and a chain of rows for each slot.

>>> rows = LinkedRows(RowState({"slot": np.int64, "time": np.int64}))
>>> rows.state.append({"slot": np.array([3, 5]), "time": np.array([1, 2])})
0
>>> rows.state.kill(np.array([0]))
>>> rows.has(np.array([3, 5])).tolist()
[False, True]
"""

from __future__ import annotations

import numpy as np

from caesura.events.rows import SMALL, RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, Mask


class LinkedRows:
    """A state whose rows have a slot each."""

    def __init__(self, state: RowState) -> None:
        self.state = state
        self.chains = Chains()

    def link(self) -> None:
        """Chains the rows that came since the last time."""
        if self.chains.size < self.state.size:
            self.chains.add(self.state.get("slot")[self.chains.size :])

    def oldest_first(self, slots: I64) -> tuple[I64, I64]:
        """(place in ``slots``, row) of every row of these slots, by slot and then as they came."""
        owner, row = self.chains.gather(slots[::-1])
        return len(slots) - 1 - owner[::-1], np.ascontiguousarray(row[::-1])

    def live_of(self, slots: I64) -> I64:
        """The live rows of these slots."""
        _, row = self.chains.gather(slots)
        return row[self.state.alive[row]]

    def has(self, slots: I64) -> Mask:
        """Which of these slots have a live row."""
        self.link()
        owner, row = self.chains.gather(slots)
        found = np.zeros(len(slots), np.bool_)
        found[owner[self.state.alive[row]]] = True
        return found

    @property
    def crowded(self) -> bool:
        """Whether more rows are dead than a page may leave behind."""
        return self.state.size > 2 * self.state.live + SMALL

    def compact(self) -> None:
        """Moves the live rows together; they are chained when they are next looked for."""
        if self.state.live == 0:
            self.chains.release(self.state.get("slot")[: self.chains.size])
        else:
            self.chains = Chains()
        if self.state.live < self.state.size:
            self.state.compact()

    def renumber(self, new: I64) -> None:
        """Slots have other numbers."""
        live = np.flatnonzero(self.state.alive)
        self.state.get("slot")[live] = new[self.state.get("slot")[live]]
        self.state.touch(live)
        self.chains = Chains()
