"""Rows made for a hash without a secret: what an attacker who knows the code would send.

The hash is the one that identities had once: two lanes of MurmurHash3's finaliser, which anyone can invert.
"""

from __future__ import annotations

import numpy as np

from caesura.kernels.hashing import I64

M1, M2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
M3, M4 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
ALL = (1 << 64) - 1

PAIR = ((21517, 3343681107879025369), (2124, 6837902944929056))
"""Two rows of two whole numbers with one identity: found among 200 million pairs, in seconds."""


def scramble(x: int) -> int:
    """A bijection of 64 bits."""
    x = (x ^ (x >> 33)) * M1 & ALL
    x = (x ^ (x >> 33)) * M2 & ALL
    return x ^ (x >> 33)


def unscramble(x: int) -> int:
    """What `scramble` took."""
    x ^= x >> 33
    x = x * pow(M2, -1, 1 << 64) & ALL
    x ^= x >> 33
    x = x * pow(M1, -1, 1 << 64) & ALL
    return x ^ (x >> 33)


def unkeyed(row: tuple[int, ...]) -> tuple[int, int]:
    """The identity that a row of whole numbers had without a secret."""
    h1 = h2 = 0
    for place, word in enumerate(row, 1):
        h1 = scramble((h1 * M3 + word + place) & ALL)
        h2 = scramble(((h2 ^ word) * M4 + place + M3) & ALL)
    return h1, h2


def crowded(count: int) -> I64:
    """Whole numbers whose unkeyed identities all begin to probe a table at its first place."""
    return np.array([unscramble(n << 32) - 1 & ALL for n in range(1, count + 1)], np.uint64).view(np.int64)


def steps(index: I64, home: I64) -> int:
    """How many places all keys of an open-addressing table lie behind the one where their search begins."""
    there = np.flatnonzero(index >= 0)
    return int(((there - home[index[there]]) % len(index)).sum())
