"""Rows found by a whole-number key's low bits: no table between a key and its registers.

It works while the keys that are open at once differ in some low bits, as numbers given out in turn do.
A row at rest may be taken over by another key, so closed keys leave nothing behind.

>>> placed(np.array([7, 8, 9]), 4).tolist(), placed(np.array([1, 5]), 4) is None
([3, 0, 1], True)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64

Array = np.ndarray[Any, Any]

MIN_ROWS = 64
LARGE_TABLE = 65_536
MAX_ROWS_PER_KEY = 8
"""More rows than so many a key, and the keys are looked up in a table instead."""


@kernel
def move_rows(source: Array, old: I64, new: I64, target: Array) -> None:
    """Copies rows of one table into rows of another."""
    for i in range(len(old)):
        for j in range(source.shape[1]):
            target[new[i], j] = source[old[i], j]


@kernel
def lay_out(
    keys: I64,
    ri: I64,
    rf: Array,
    rings: Array,
    base: int,
    free: int,
    keys_new: I64,
    ri_new: I64,
    rf_new: Array,
    rings_new: Array,
) -> bool:
    """Moves the rows in use into a table of more rows, by low bits; False if two keys fall on one."""
    mask = len(keys_new) - base - 1
    for row in range(base, len(ri_new)):
        keys_new[row] = ~(row - base)
        ri_new[row, 0] = free
    for row in range(len(ri)):
        if row >= base and ri[row, 0] == free:
            continue
        at = row
        if row >= base:
            at = (keys[row] & mask) + base
            if ri_new[at, 0] != free:
                return False
            keys_new[at] = keys[row]
        for j in range(ri.shape[1]):
            ri_new[at, j] = ri[row, j]
        for j in range(rf.shape[1]):
            rf_new[at, j] = rf[row, j]
        for ring in range(rings.shape[0]):
            for j in range(rings.shape[2]):
                rings_new[ring, at, j] = rings[ring, row, j]
    return True


@kernel
def in_use(ri: I64, base: int, free: int) -> int:
    """How many rows are."""
    count = 0
    for row in range(base, len(ri)):
        count += ri[row, 0] != free
    return count


def moved(source: Array, old: I64, new: I64, size: int) -> Array:
    """A table of so many rows with those of another, each in its new place, and zeros.

    >>> moved(np.array([[5], [6]]), np.array([1]), np.array([2]), 3).tolist()
    [[0], [0], [6]]
    """
    target = np.zeros((size, source.shape[1]), source.dtype)
    move_rows(source, old, new, target)
    return target


def placed(keys: I64, size: int) -> I64 | None:
    """Each key's row among ``size``; None if two keys fall on one."""
    rows = keys & (size - 1)
    taken = np.zeros(size, np.bool_)
    taken[rows] = True
    return rows if np.count_nonzero(taken) == len(rows) else None


def size_for(keys: I64) -> int | None:
    """A number of rows that keeps keys apart, with room; None if that is far more than there are keys."""
    size = MIN_ROWS
    while size < (2 if len(keys) < LARGE_TABLE else 1) * len(keys):
        size *= 2
    while size <= MAX_ROWS_PER_KEY * (len(keys) + 1024):
        if placed(keys, size) is not None:
            return size
        size *= 2
    return None


def unclaimed(size: int, base: int = 0) -> I64:
    """Keys of rows that are nobody's: each has other low bits than its row."""
    return ~np.arange(-base, size, dtype=np.int64)
