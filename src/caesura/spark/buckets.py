"""Bucket keys that Spark's own hash sends each to a partition of its own.

>>> spark_hash(0), spark_hash(1)
(933211791, -559580957)
>>> [spark_hash(k) % 3 for k in bucket_keys(3)]
[0, 1, 2]
"""

from __future__ import annotations

from itertools import count

_M = 0xFFFFFFFF


def _rotate(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & _M


def spark_hash(value: int, seed: int = 42) -> int:
    """Spark's Murmur3 of a 32-bit integer, as a signed number."""
    k = (value * 0xCC9E2D51) & _M
    k = (_rotate(k, 15) * 0x1B873593) & _M
    h = (_rotate(seed ^ k, 13) * 5 + 0xE6546B64) & _M
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _M
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _M
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def bucket_keys(buckets: int) -> list[int]:
    """One key per bucket, each in the partition of its number."""
    found: dict[int, int] = {}
    for key in count():
        found.setdefault(spark_hash(key) % buckets, key)
        if len(found) == buckets:
            return [found[b] for b in range(buckets)]
    raise AssertionError
