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

LEAST = 64
MANY = 65_536
SPARSE = 8
"""More rows than so many a key, and the keys are looked up in a table instead."""


@kernel
def move_rows(source: Array, old: I64, new: I64, target: Array) -> None:
    """Copies rows of one table into rows of another."""
    for i in range(len(old)):
        for j in range(source.shape[1]):
            target[new[i], j] = source[old[i], j]


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
    size = LEAST
    while size < (2 if len(keys) < MANY else 1) * len(keys):
        size *= 2
    while size <= SPARSE * (len(keys) + 1024):
        if placed(keys, size) is not None:
            return size
        size *= 2
    return None


def unclaimed(size: int, base: int = 0) -> I64:
    """Keys of rows that are nobody's: each has other low bits than its row."""
    return ~np.arange(-base, size, dtype=np.int64)
