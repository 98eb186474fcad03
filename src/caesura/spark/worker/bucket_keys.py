"""Bucket keys that Spark's own hash spreads evenly, over as many partitions as there are or fewer.

>>> spark_hash(0), spark_hash(1)
(933211791, -559580957)
>>> [spark_hash(k) % 3 for k in bucket_keys(3)]
[0, 1, 2]
>>> [spark_hash(k) % 5 for k in bucket_keys(8)]
[0, 1, 2, 3, 4, 0, 1, 2]
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count

EVEN = 8
"""Up to so many buckets lie evenly over every smaller number of partitions."""
_SMALLER = 840
"""What 1 to 8 all divide."""

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


@lru_cache
def bucket_keys(buckets: int) -> list[int]:
    """One key per bucket; of n partitions, bucket b lies in partition b % n.

    So for every n up to `EVEN` buckets, and for those that divide a larger number of them.
    """
    modulus = _SMALLER if buckets <= EVEN else buckets
    found: dict[int, int] = {}
    for key in count():
        place = spark_hash(key) % modulus
        if place < buckets:
            found.setdefault(place, key)
        if len(found) == buckets:
            return [found[b] for b in range(buckets)]
    raise AssertionError
