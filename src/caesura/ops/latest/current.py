"""The current row of every key, followed through a page in one pass.

A row that starts after all others of its key ends the one before it, and nothing else changes. Keys of which
a row comes late, together with another, or is taken back are set apart, to be looked at with all their rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.events.columns import Grown
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.punctuation import INFINITY, MIN_TIME

HIDDEN = MIN_TIME
"""The end of a row that is not shown."""
NO_ROW = -1
"""A key that shows no row; rows of a page are numbered down from behind it until they are kept."""


class Followed(NamedTuple):
    """What a page did: the ends of its rows; rows kept before that ended, when, and their keys."""

    end: I64
    row: I64
    at: I64
    key: I64


@kernel
def follow_rows(
    key: I64, le: I64, weight: I64, deletes: Mask, row: I64, last: I64, apart: Mask, out: Followed
) -> int:
    """Takes rows in order of time; gives how many rows ended that were kept before.

    ``row`` and ``last`` have the current row of each key and the latest start; ``apart`` marks the keys for
    which this does not hold.
    """
    ended = 0
    for i in range(len(key)):
        k = key[i]
        if weight[i] < 0 or le[i] <= last[k]:
            apart[k] = True
            continue
        before = row[k]
        if before >= 0:
            out.row[ended] = before
            out.at[ended] = le[i]
            out.key[ended] = k
            ended += 1
        elif before < NO_ROW:
            out.end[NO_ROW - 1 - before] = le[i]
        last[k] = le[i]
        if deletes[i]:
            row[k] = NO_ROW
            out.end[i] = HIDDEN
        else:
            row[k] = NO_ROW - 1 - i
            out.end[i] = INFINITY
    return ended


@kernel
def find_last_rows(key: I64, le: I64, last: I64, out: I64) -> int:
    """Finds the rows that no other of their key starts after; gives how many.

    ``last`` has the latest start of each key before, and then with these.
    """
    for i in range(len(key)):
        if le[i] > last[key[i]]:
            last[key[i]] = le[i]
    found = 0
    for i in range(len(key)):
        if le[i] == last[key[i]]:
            out[found] = i
            found += 1
    return found


class CurrentRows:
    """By key number, the row that is shown and the latest start."""

    def __init__(self) -> None:
        self._row, self._last = Grown(np.int64), Grown(np.int64)

    def reach(self, keys: int) -> None:
        """Makes room for so many keys."""
        more = keys - self._row.size
        if more > 0:
            self._row.extend(np.full(more, NO_ROW))
            self._last.extend(np.full(more, MIN_TIME))

    def clear(self, keys: I64, owner: I64, le: I64) -> None:
        """Forgets what some keys show, given the starts of all rows that they had, those taken back too.

        A row that comes back is known by its value, so its key is set apart.
        """
        last = np.full(len(keys), MIN_TIME)
        np.maximum.at(last, owner, le)
        self._row.view[keys], self._last.view[keys] = NO_ROW, last

    def show(self, key: I64, row: I64, end: I64) -> None:
        """Takes rows with their ends."""
        shown = end == INFINITY
        self._row.view[key[shown]] = row[shown]

    def follow(self, key: I64, le: I64, weight: I64, deletes: Mask) -> tuple[Followed, Mask]:
        """Takes the rows of a page in order of time; says which rows' keys are to be looked at."""
        apart = np.zeros(self._row.size, np.bool_)
        out = Followed(*(np.empty(len(key), np.int64) for _ in range(4)))
        rows = (frozen(key), frozen(le), frozen(weight), deletes)
        ended = follow_rows(*rows, self._row.view, self._last.view, apart, out)
        some = np.flatnonzero(~apart[out.key[:ended]])
        return Followed(out.end, *(values[some] for values in out[1:])), apart[key]

    def last_rows(self, key: I64, le: I64) -> I64:
        """Which rows of a page no other of their key starts after, in it or before it."""
        out = np.empty(len(key), np.int64)
        found = find_last_rows(frozen(key), frozen(le), self._last.view.copy(), out)
        return out[:found]

    def settle(self, keys: I64, number: I64) -> None:
        """Notes under which numbers the rows of a page are kept."""
        row = self._row.view[keys]
        own = row < NO_ROW
        self._row.view[keys[own]] = number[NO_ROW - 1 - row[own]]
