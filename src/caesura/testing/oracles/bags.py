"""Difference and distinct by counting copies at every instant.

Layer k of a payload is the set of instants with at least k copies, cut into maximal intervals.

>>> distinct([(1, 4, {"v": 7}), (2, 9, {"v": 7})])
[(1, 9, {'v': 7})]
>>> difference([(1, 4, {"v": 7}), (2, 9, {"v": 7})], [(3, 5, {"v": 7})], mode="bag")
[(1, 4, {'v': 7}), (5, 9, {'v': 7}), (2, 3, {'v': 7})]
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

from caesura.testing.oracles.rows import Payload, Rows, maximal, same


def difference(left: Rows, right: Rows, *, mode: Literal["bag", "set"]) -> Rows:
    """`max(0, n - m)` copies, or with sets one copy where there is a left one and no right one."""
    if mode == "bag":
        return _layers(left, right, lambda n, m: max(0, n - m))
    return _layers(left, right, lambda n, m: int(n > 0 and m == 0))


def distinct(rows: Rows) -> Rows:
    """One copy wherever there is any."""
    return _layers(rows, [], lambda n, _: int(n > 0))


def _layers(left: Rows, right: Rows, copies: Callable[[int, int], int]) -> Rows:
    kinds: dict[object, Payload] = {}
    for _, _, payload in left:
        kinds.setdefault(same(payload), payload)
    out: Rows = []
    for kind, payload in kinds.items():
        mine = [(le, re) for le, re, p in left if same(p) == kind]
        theirs = [(le, re) for le, re, p in right if same(p) == kind]
        times = sorted({t for span in mine + theirs for t in span})
        height = {
            (a, b): copies(sum(s <= a < e for s, e in mine), sum(s <= a < e for s, e in theirs))
            for a, b in pairwise(times)
        }
        for k in range(1, max(height.values(), default=0) + 1):
            out += [(s, e, payload) for s, e in maximal(span for span, n in height.items() if n >= k)]
    return out
