"""Which rows belong to one of several buckets: each asks for its own, or they are divided once for many.

Law: both give the same.

>>> keys, le = np.array([3, 4, 3, 5, 6]), np.arange(5)
>>> parts = [divided(keys, ALL_VALID, le, le + 1, np.uint64(9), 2, n) for n in (0, 1)]
>>> sorted(np.concatenate([p.rows for p in parts]).tolist()), [3 in p.keys for p in parts].count(True)
([0, 1, 2, 3, 4], 1)
>>> once = RowsByBucket.of_keys(keys, ALL_VALID, np.uint64(9), 2)
>>> all(once[n].tolist() == parts[n].rows.tolist() for n in (0, 1))
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, frozen
from caesura.kernels.sums import order_stretches

ALL_VALID: Mask = np.zeros(0, np.bool_)
FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
HALF = np.uint64(32)
OTHERS, UNKNOWN = -2, -1
"""Of a number elsewhere: that it is not for this bucket, and that its number here is not known yet."""


@kernel
def divide_whole(
    keys: I64, valid: Mask, le: I64, re: I64, start: np.uint64, buckets: int, number: int,
    rows: I64, o_keys: I64, o_le: I64, o_re: I64,
) -> int:  # fmt: skip
    """The rows whose key, a whole number, lies in a bucket, with their keys and lifetimes.

    Rows without a key lie in the first. All rows are written, the others over and over, so that there is no
    branch to guess.
    """
    count, many, mine = 0, np.uint64(buckets), np.uint64(number)
    for i in range(len(keys)):
        word = (np.uint64(keys[i]) ^ start) * FIRST
        word = (word ^ (word >> HALF)) * SECOND
        at = ((word >> HALF) * many) >> HALF
        if len(valid) > 0 and not valid[i]:
            at = np.uint64(0)
        rows[count] = i
        o_keys[count] = keys[i]
        o_le[count] = le[i]
        o_re[count] = re[i]
        count += at == mine
    return count


@kernel
def number_whole(keys: I64, valid: Mask, start: np.uint64, buckets: int, out: I64) -> None:
    """The bucket of each key, a whole number; the first for rows without one."""
    many = np.uint64(buckets)
    for i in range(len(keys)):
        word = (np.uint64(keys[i]) ^ start) * FIRST
        word = (word ^ (word >> HALF)) * SECOND
        out[i] = np.int64(((word >> HALF) * many) >> HALF)
    for i in range(len(valid)):
        out[i] *= valid[i]


@kernel
def number_hashed(hashes: U64, buckets: int, out: I64) -> None:
    """The bucket of each hash."""
    many = np.uint64(buckets)
    for i in range(len(hashes)):
        out[i] = np.int64(((hashes[i] >> HALF) * many) >> HALF)


@kernel
def pick_known(who: I64, known: I64, rows: I64, found: I64) -> int:
    """The rows of those who are known, or are yet to be, with what is known of each; not of `OTHERS`."""
    count = 0
    for i in range(len(who)):
        rows[count] = i
        found[count] = known[who[i]]
        count += found[count] != OTHERS
    return count


class Division(NamedTuple):
    """The rows of a bucket, with their keys and lifetimes."""

    rows: I64
    keys: I64
    le: I64
    re: I64


class RowsByBucket:
    """The rows of all buckets, found in one pass: those of each in the order of the page."""

    def __init__(self, numbers: I64, buckets: int) -> None:
        self._order, self._ends = np.empty(len(numbers), np.int64), np.zeros(buckets, np.int64)
        order_stretches(numbers, 0, self._ends, self._order)

    @staticmethod
    def of_keys(keys: I64, valid: Mask, start: np.uint64, buckets: int) -> RowsByBucket:
        """By keys that are whole numbers."""
        numbers = np.empty(len(keys), np.int64)
        number_whole(frozen(keys), valid, start, buckets, numbers)
        return RowsByBucket(numbers, buckets)

    @staticmethod
    def of_hashes(hashes: U64, buckets: int) -> RowsByBucket:
        """By hashes of keys."""
        numbers = np.empty(len(hashes), np.int64)
        number_hashed(hashes, buckets, numbers)
        return RowsByBucket(numbers, buckets)

    def __getitem__(self, number: int) -> I64:
        """The rows of a bucket."""
        return self._order[self._ends[number - 1] if number else 0 : self._ends[number]]


def divided(
    keys: I64, valid: Mask, le: I64, re: I64, start: np.uint64, buckets: int, number: int
) -> Division:
    """The rows whose key, a whole number, lies in a bucket."""
    room = [np.empty(len(keys) + 1, np.int64) for _ in range(4)]
    given = frozen(keys), valid, frozen(le), frozen(re)
    count = divide_whole(*given, start, buckets, number, *room)
    return Division(*(some[:count] for some in room))
