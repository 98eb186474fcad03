"""The keys of each group that have a state of their own: lists that lead from one key's number to the next.

>>> lists = KeyLists()
>>> lists.link(0, np.array([3, 5])); lists.of(0).tolist()
[3, 5]
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from caesura.kernels.hashing import I64


@dataclass
class KeyLists:
    """Per group its first key, or -1, and how many there are; per key the next, or -1."""

    first: I64 = field(default_factory=lambda: np.full(1, -1, np.int64))
    next: I64 = field(default_factory=lambda: np.zeros(64, np.int64))
    count: I64 = field(default_factory=lambda: np.zeros(1, np.int64))

    def add_groups(self, more: int) -> None:
        """So many more groups, without keys."""
        self.first = np.append(self.first, np.full(more, -1, np.int64))
        self.count = np.append(self.count, np.zeros(more, np.int64))

    def reserve(self, keys: int) -> None:
        """Room for so many keys."""
        if len(self.next) < keys:
            self.next = np.append(self.next, np.zeros(keys - len(self.next), np.int64))

    def of(self, group: int) -> I64:
        """The keys of a group, in order."""
        out: list[int] = []
        at = int(self.first[group])
        while at >= 0:
            out.append(at)
            at = int(self.next[at])
        return np.array(out, np.int64)

    def link(self, group: int, keys: I64) -> None:
        """A group has these keys."""
        self.next[keys] = np.append(keys[1:], -1)
        self.first[group], self.count[group] = (keys[0] if len(keys) else -1), len(keys)

    def relink(self, keys: I64, groups: I64) -> None:
        """These are all keys, each of its group."""
        order = np.argsort(groups, kind="stable")
        keys, groups = keys[order], groups[order]
        last = np.append(groups[1:] != groups[:-1], np.ones(min(len(keys), 1), np.bool_))
        self.next[keys] = np.where(last, -1, np.append(keys[1:], -1)[: len(keys)])
        self.first[:] = -1
        first = np.append(np.ones(min(len(keys), 1), np.bool_), last[:-1])
        self.first[groups[first]] = keys[first]
        self.count = np.bincount(groups, minlength=len(self.first)).astype(np.int64)

    def renumber(self, old: I64, new: I64, groups: int, keys: I64, size: int) -> None:
        """Groups get other numbers; these keys remain, numbered by position, with room for so many."""
        number = np.full(len(self.next) + 1, -1, np.int64)
        number[keys] = np.arange(len(keys))
        first, count = np.full(groups, -1, np.int64), np.zeros(groups, np.int64)
        first[new], count[new] = number[self.first[old]], self.count[old]
        after = np.zeros(size, np.int64)
        after[: len(keys)] = number[self.next[keys]]
        self.first, self.next, self.count = first, after, count

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.next.nbytes + self.count.nbytes
