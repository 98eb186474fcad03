"""Rows that share a key number, linked: add at the head, gather a key's rows.

>>> links = Chains()
>>> links.add(np.array([0, 1, 0]))
>>> owner, row = links.gather(np.array([0, 1]))
>>> sorted(zip(owner.tolist(), row.tolist()))
[(0, 0), (0, 2), (1, 1)]
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64


@kernel
def hang(keys: I64, at: int, first: int, head: I64, follow: I64) -> int:
    """Links rows from the place ``at`` on; row first + i has the key number keys[i].

    Gives the place of the first key that there is no head for; the number of keys where all are linked.
    """
    for i in range(at, len(keys)):
        key = keys[i]
        if key >= len(head):
            return i
        follow[first + i] = head[key]
        head[key] = first + i
    return len(keys)


@kernel
def count_links(keys: I64, head: I64, follow: I64) -> int:
    """How many rows the keys have in all."""
    total = 0
    for i in range(len(keys)):
        row = head[keys[i]]
        while row >= 0:
            total += 1
            row = follow[row]
    return total


@kernel
def gather_links(keys: I64, head: I64, follow: I64, owner: I64, rows: I64) -> None:
    """(place of the key, row) of every row of the keys."""
    at = 0
    for i in range(len(keys)):
        row = head[keys[i]]
        while row >= 0:
            owner[at] = i
            rows[at] = row
            at += 1
            row = follow[row]


class Chains:
    """Heads by key number, and the next row of each row; -1 ends a chain."""

    def __init__(self) -> None:
        self.head: I64 = np.full(64, -1, np.int64)
        self.follow: I64 = np.full(64, -1, np.int64)
        self.size = 0

    def clear(self) -> None:
        """Forgets all rows."""
        self.head.fill(-1)
        self.size = 0

    def release(self, keys: I64) -> None:
        """Forgets all rows, given the keys that they have: costs what there are of those."""
        self.head[keys] = -1
        self.size = 0

    def add(self, keys: I64) -> None:
        """Links the next rows, in order, to their keys."""
        end = self.size + len(keys)
        if end > len(self.follow):
            self.follow = _longer(self.follow, end)
        linked = hang(keys, 0, self.size, self.head, self.follow)
        if linked < len(keys):
            self.reach(int(keys.max()) + 1)
            hang(keys, linked, self.size, self.head, self.follow)
        self.size = end

    def reach(self, keys: int) -> None:
        """Makes room for this many key numbers."""
        if keys > len(self.head):
            self.head = _longer(self.head, keys)

    def gather(self, keys: I64) -> tuple[I64, I64]:
        """(place in ``keys``, row) of every row of these keys."""
        self.reach(int(keys.max(initial=-1)) + 1)
        total = count_links(keys, self.head, self.follow)
        owner, rows = np.empty(total, np.int64), np.empty(total, np.int64)
        gather_links(keys, self.head, self.follow, owner, rows)
        return owner, rows


def _longer(values: I64, size: int) -> I64:
    grown = np.full(max(size, 2 * len(values)), -1, np.int64)
    grown[: len(values)] = values
    return grown
