"""Filters, projections and unions, recomputed on the whole history.

>>> where([(1, 5, {"v": 3}), (2, 4, {"v": 9})], lambda row: row["v"] > 4)
[(2, 4, {'v': 9})]
"""

from __future__ import annotations

from collections.abc import Callable

from caesura.testing.oracles.rows import Payload, Rows


def where(rows: Rows, predicate: Callable[[Payload], bool | None]) -> Rows:
    """The rows for which the predicate is true; null is not true."""
    return [(le, re, p) for le, re, p in rows if predicate(p)]


def select(rows: Rows, make: Callable[[Payload], Payload]) -> Rows:
    """The rows with another payload."""
    return [(le, re, make(p)) for le, re, p in rows]


def union(a: Rows, b: Rows) -> Rows:
    """The rows of both."""
    return [*a, *b]
