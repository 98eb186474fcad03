"""Tumbling and hopping windows by asking every window which rows overlap it.

>>> tumbling([(1, 12, {"v": 3})], [], 10, 0, {"n": ("count", None)})
[(0, 10, {'n': 1}), (10, 20, {'n': 1})]
>>> grid(-(2**63) + 9, -(2**63) + 14, 10, 5, 2)[0] == (-(2**63) + 1, -(2**63) + 10)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from caesura.punctuation import INFINITY, Pattern
from caesura.testing.oracles.aggregates import Aggregates, aggregated, grouped
from caesura.testing.oracles.rows import Payload, Row, Rows

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
    hop: int | None = None,
) -> Rows:
    """One row per group and window that some row overlaps; the window is its lifetime."""
    every = size if hop is None else hop
    out: Rows = []
    for group in grouped(rows, keys):
        limit = horizon({name: group[0][2][name] for name in keys})
        ends = [re for _, re, _ in group if re != INFINITY]
        for start, end in grid(min(le for le, _, _ in group), max([limit, *ends]), size, every, offset):
            members = [row for row in group if belongs(row, start, end, limit)]
            out += [(start, end, aggregated(keys, aggs, members))] if members else []
    return out


def grid(low: int, high: int, size: int, every: int, offset: int) -> list[tuple[int, int]]:
    """The windows from one that ends before ``low`` to those that start before ``high``.

    Time ends with windows cut, and begins with one: the last that holds its first tick, from there on.
    """
    earliest = (EARLIEST + 1 - offset) // every
    first = max(earliest, (low - size - offset) // every)
    starts = range(first * every + offset, high, every)
    return [(max(EARLIEST + 1, start), min(INFINITY, start + size)) for start in starts]


def belongs(row: Row, start: int, end: int, limit: int) -> bool:
    """Whether a row overlaps a window; without end, if time has reached the window."""
    le, re, _ = row
    return le < end and start < re and (re != INFINITY or start < limit)


def horizon(patterns: Sequence[Pattern]) -> Horizon:
    """How far punctuation, in the order given, took a group before it closed the group for good."""

    def reached(group: Payload) -> int:
        bounds = [p.time_bound for p in patterns if _concerns(p.without_time(), group)]
        finite = takewhile(lambda t: t != INFINITY, (t for t in bounds if t is not None))
        return max(finite, default=EARLIEST)

    return reached


def _concerns(pattern: Pattern, group: Payload) -> bool:
    return set(pattern.attributes) <= set(group) and pattern.matches_row(group)
