"""Which rows belong to one of several buckets: each bucket asks for its own, and all ask alike.

>>> keys, le = np.array([3, 4, 3, 5, 6]), np.arange(5)
>>> parts = [divided(keys, ALL_VALID, le, le + 1, np.uint64(9), 2, n) for n in (0, 1)]
>>> sorted(np.concatenate([p.rows for p in parts]).tolist()), [3 in p.keys for p in parts].count(True)
([0, 1, 2, 3, 4], 1)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, frozen

ALL_VALID: Mask = np.zeros(0, np.bool_)
FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
HALF = np.uint64(32)


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
def pick_hashed(hashes: U64, buckets: int, number: int, out: I64) -> int:
    """The rows whose hash lies in a bucket."""
    count, many, mine = 0, np.uint64(buckets), np.uint64(number)
    for i in range(len(hashes)):
        out[count] = i
        count += ((hashes[i] >> HALF) * many) >> HALF == mine
    return count


class Division(NamedTuple):
    """The rows of a bucket, with their keys and lifetimes."""

    rows: I64
    keys: I64
    le: I64
    re: I64


def divided(
    keys: I64, valid: Mask, le: I64, re: I64, start: np.uint64, buckets: int, number: int
) -> Division:
    """The rows whose key, a whole number, lies in a bucket."""
    room = [np.empty(len(keys) + 1, np.int64) for _ in range(4)]
    given = frozen(keys), valid, frozen(le), frozen(re)
    count = divide_whole(*given, start, buckets, number, *room)
    return Division(*(some[:count] for some in room))


def hashed_rows_of_bucket(hashes: U64, buckets: int, number: int) -> I64:
    """The rows whose hash lies in a bucket."""
    out = np.empty(len(hashes) + 1, np.int64)
    return out[: pick_hashed(hashes, buckets, number, out)]
