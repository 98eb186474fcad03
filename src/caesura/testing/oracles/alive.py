"""The oracle of aggregates over what is alive: every instant by itself, equal neighbours joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from caesura.punctuation import INFINITY
from caesura.testing.oracles.aggregates import Aggregates, aggregated, grouped
from caesura.testing.oracles.rows import Payload, Rows, same


def alive(rows: Rows, keys: Sequence[str], aggs: Aggregates) -> Rows:
    """Aggregates of the rows of each group that are alive, on the longest stretches."""
    return stretched(rows, keys, lambda members, start, end: aggregated((), aggs, members))


def stretched(rows: Rows, keys: Sequence[str], compute: Callable[[Rows, int, int], Payload]) -> Rows:
    """What is computed over the rows of each group that are alive, on the longest stretches."""
    made: Rows = []
    for group in grouped(rows, keys):
        key = {name: group[0][2][name] for name in keys}
        times = sorted({t for le, re, _ in group for t in (le, re)} | {INFINITY})
        last: tuple[int, int, Payload] | None = None
        for start, end in pairwise(times):
            members = [row for row in group if row[0] <= start < row[1]]
            if not members:
                continue
            payload = {**key, **compute(members, start, end)}
            if last is not None and last[1] == start and same(last[2]) == same(payload):
                made[-1] = (last[0], end, payload)
            else:
                made.append((start, end, payload))
            last = made[-1]
    return made
