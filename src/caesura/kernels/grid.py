"""Windows of one size at every hop, numbered by where they start, and cut where time ends.

The last window that would hold the first tick of time begins there; none lies before it. A window that
would end beyond infinity ends with it.

>>> grid = lattice(10, 5, 2)
>>> times = np.array([3, 12])
>>> grid.first(times).tolist(), grid.last(times).tolist()
([-1, 1], [0, 2])
>>> grid.start(np.array([-1, 2])).tolist(), grid.end(np.array([-1, 2])).tolist()
([-3, 12], [7, 22])
>>> grid.start(grid.least) == FIRST, grid.end(grid.greatest) == INFINITY
(True, True)
"""

from __future__ import annotations

from functools import lru_cache
from typing import overload

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64
from caesura.kernels.ticks import FIRST, later
from caesura.punctuation.time import INFINITY, MIN_TIME

NO_NEW_END = MIN_TIME
"""The new end of a row that is no retract."""
LONGEST = 2**60
"""Sizes and hops up to which sums of them stay within 64 bits."""
PIECES_LIMIT = 50_000_000
"""How many pieces, or windows with members, the rows of one page may make."""


class Lattice:
    """The numbers, starts and ends of windows on a grid; for columns of times, and for single ones."""

    def __init__(self, size: int, hop: int, offset: int, limit: int = INFINITY) -> None:
        self.size, self.hop, self.offset = size, hop, offset % hop
        self.limit = limit
        """Where the last windows end: with time, or a tick before it, where an end of INFINITY is none."""
        self.least = (FIRST - self.offset) // hop
        """The earliest window."""
        self.greatest = (INFINITY - 1 - self.offset) // hop
        """The last window."""
        self.least_end = max(FIRST, min(INFINITY, self.least * hop + self.offset + size))

    @overload
    def first(self, t: int) -> int: ...
    @overload
    def first(self, t: I64) -> I64: ...
    def first(self, t: int | I64) -> int | I64:
        """The first window that ends after t."""
        if isinstance(t, int):
            if t >= INFINITY:
                return self.greatest + 1
            return max(self.least, (t - self.offset - self.size) // self.hop + 1)
        back = self.offset + self.size
        if len(t) and (t.min() < MIN_TIME + back or t.max() == INFINITY):
            number, rest = np.divmod(t, self.hop)
            number = np.where(t == INFINITY, self.greatest, number + (rest - back) // self.hop)
        else:
            number = (t - back) // self.hop
        return np.maximum(number + 1, self.least)

    @overload
    def last(self, t: int) -> int: ...
    @overload
    def last(self, t: I64) -> I64: ...
    def last(self, t: int | I64) -> int | I64:
        """The last window that starts at t or before."""
        if isinstance(t, int):
            return max(self.least, (t - self.offset) // self.hop)
        number: I64 = (t - self.offset) // self.hop
        if len(t) and t.min() < MIN_TIME + self.offset:
            whole, rest = np.divmod(t, self.hop)
            number = np.maximum(whole + (rest - self.offset) // self.hop, self.least)
        return number

    @overload
    def begin(self, t: int) -> int: ...
    @overload
    def begin(self, t: I64) -> I64: ...
    def begin(self, t: int | I64) -> int | I64:
        """The first window that starts at t or later; so many are before it."""
        if isinstance(t, int):
            return self.least if t <= FIRST else self.last(t - 1) + 1
        return self.last(np.maximum(t, FIRST + 1) - 1) + (t > FIRST)

    @overload
    def start(self, number: int) -> int: ...
    @overload
    def start(self, number: I64) -> I64: ...
    def start(self, number: int | I64) -> int | I64:
        """Where a window starts."""
        if isinstance(number, int):
            return min(INFINITY, max(FIRST, number * self.hop + self.offset))
        start = number * self.hop + self.offset
        if len(number) == 0 or (number.min() > self.least and number.max() <= self.greatest):
            return start
        return np.where(number <= self.least, FIRST, np.where(number > self.greatest, INFINITY, start))

    @overload
    def end(self, number: int) -> int: ...
    @overload
    def end(self, number: I64) -> I64: ...
    def end(self, number: int | I64) -> int | I64:
        """Where a window ends."""
        if isinstance(number, int):
            return self.least_end if number <= self.least else min(self.limit, self.start(number) + self.size)
        return self.close(self.start(number))

    def close(self, start: I64) -> I64:
        """Where the windows end that start there."""
        ends = np.where(start == FIRST, self.least_end, later(start, self.size))
        return ends if self.limit == INFINITY else np.minimum(ends, self.limit)


def tally(first: I64, after: I64) -> tuple[I64, int]:
    """How many windows lie in [first, after) each, and in all; never too few.

    >>> tally(np.array([3, 5, MIN_TIME]), np.array([7, 5, INFINITY]))[1] > 2**62
    True
    """
    apart = after.view(np.uint64) - first.view(np.uint64)
    count = np.where(after > first, np.minimum(apart, np.uint64(INFINITY)), np.uint64(0)).view(np.int64)
    return count, int(count.sum(dtype=np.float64))


def spread(first: I64, count: I64) -> tuple[I64, I64]:
    """(row, number) of so many numbers from the first on, row by row.

    >>> [part.tolist() for part in spread(np.array([3, 9, 5]), np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [3, 4, 5, 6, 7]]
    """
    rows = np.repeat(np.arange(len(first)), count)
    return rows, first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)


@lru_cache
def lattice(size: int, hop: int, offset: int = 0, limit: int = INFINITY) -> Lattice:
    """The lattice of a grid."""
    return Lattice(size, hop, offset, limit)


@kernel
def whole_windows(le: I64, re: I64, re_new: I64, offset: int, every: int, window: I64, weight: I64) -> bool:
    """Whether every row comes or goes as a whole, inside one window: then that window, and 1 or -1.

    An empty ``re_new`` means inserts only, an empty ``re`` means points. Rows in the windows at the ends of
    time are not looked at.
    """
    low = 0
    high = 0
    at = 0
    for i in range(len(le)):
        t = le[i]
        if t < low or t >= high:
            if t < MIN_TIME + 2 * every or t > INFINITY - 2 * every:
                return False
            at = (t - offset) // every
            low = at * every + offset
            high = low + every
        if len(re) and re[i] > high:
            return False
        window[i] = at
        weight[i] = 1
        if len(re_new) and re_new[i] != NO_NEW_END:
            if re_new[i] > t:
                return False
            weight[i] = -1
    return True
