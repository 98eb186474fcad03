"""The oracle of columns over the rows before: each group sorted, each row looked at by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from caesura.testing.oracles.aggregates import Aggregates, aggregated, grouped
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.top import sortable

Neighbours = dict[str, tuple[str, str, int]]


def over(
    rows: Rows,
    keys: Sequence[str],
    aggs: Aggregates,
    neighbours: Neighbours,
    *,
    n: int | None = None,
    span: int | None = None,
) -> Rows:
    """Rows with aggregates of their frames, and (kind, column, offset) of others."""

    def compute(members: Rows, at: int, low: int, high: int) -> Payload:
        out = aggregated((), aggs, members[low:high])
        for name, (kind, column, by) in neighbours.items():
            place = {"lag": at - by, "lead": at + by, "first_value": low}[kind]
            out[name] = members[place][2][column] if 0 <= place < len(members) else None
        return out

    return framed(rows, keys, compute, n=n, span=span)


def framed(
    rows: Rows,
    keys: Sequence[str],
    compute: Callable[[Rows, int, int, int], Payload],
    *,
    n: int | None,
    span: int | None,
) -> Rows:
    """Rows with what is computed from their group in order, their place in it, and their frame."""
    made: Rows = []
    for group in grouped(rows, keys):
        ordered = sorted(group, key=lambda row: (row[0], _values(row[2]), row[1]))
        for at, (le, re, payload) in enumerate(ordered):
            low, high = max(0, at + 1 - (n or 1)), at + 1
            if span is not None:
                inside = [i for i, row in enumerate(ordered) if le - span <= row[0] <= le]
                low, high = inside[0], inside[-1] + 1
            made.append((le, re, {**payload, **compute(ordered, at, low, high)}))
    return made


def _values(payload: Payload) -> list[Any]:
    return [sortable(value) for value in payload.values()]
