"""Tumbling windows by asking every window which rows overlap it.

>>> tumbling([(1, 12, {"v": 3})], [], 10, 0, {"n": ("count", None)})
[(0, 10, {'n': 1}), (10, 20, {'n': 1})]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caesura.punctuation import INFINITY, Pattern
from caesura.testing.oracles.aggregates import Aggregates, aggregated, grouped
from caesura.testing.oracles.rows import Payload, Row, Rows, key

EARLIEST = -(2**63)
Horizon = Callable[[Payload], int]
"""From a group's key columns to where windows of rows that never end stop to start."""


def tumbling(
    rows: Rows,
    keys: Sequence[str],
    size: int,
    offset: int,
    aggs: Aggregates,
    horizon: Horizon = lambda _: 0,
) -> Rows:
    """One row per group and window that some row overlaps; the window is its lifetime."""
    out: Rows = []
    for group in grouped(rows, keys):
        limit = horizon({name: group[0][2][name] for name in keys})
        ends = [re for _, re, _ in group if re != INFINITY]
        start = (min(le for le, _, _ in group) - offset) // size * size + offset
        while start < max([limit, *ends]):
            members = [row[2] for row in group if _belongs(row, start, size, limit)]
            if members:
                out.append((start, start + size, aggregated(keys, aggs, members)))
            start += size
    return out


def _belongs(row: Row, start: int, size: int, limit: int) -> bool:
    le, re, _ = row
    return le < start + size and start < re and (re != INFINITY or start < limit)


def horizon(rows: Rows, keys: Sequence[str], patterns: Sequence[Pattern]) -> Horizon:
    """How far time is known to have come for a group: its rows' ends, and punctuation that covers it."""

    def reached(group: Payload) -> int:
        mine = [row for row in rows if key(row[2], keys) == key(group, keys)]
        ends = [t for le, re, _ in mine for t in (le, re)]
        told = [p.time_bound for p in patterns if _speaks_of(p.without_time(), group)]
        return max([EARLIEST, *(t for t in [*ends, *told] if t is not None and t != INFINITY)])

    return reached


def _speaks_of(pattern: Pattern, group: Payload) -> bool:
    return set(pattern.attributes) <= set(group) and pattern.matches_row(group)
