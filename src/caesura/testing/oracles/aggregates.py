"""Aggregates over the values of a group, exactly, and totals per group.

>>> total([0.1] * 10), total([1e308, 1e308, -1e308]), total([3, None])
(1.0, 1e+308, 3)
>>> totals([(1, 4, {"k": 1, "v": 2}), (0, 2, {"k": 1, "v": 5})], ["k"], {"s": ("sum", "v")})
[(0, 4, {'k': 1, 's': 7})]
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from caesura.testing.oracles.rows import Payload, Rows, canonical, key

Aggregates: TypeAlias = Mapping[str, tuple[str, str | None]]
"""Output name to kind (as the engine calls it) and column; None counts rows."""


def total(values: Sequence[Any]) -> Any:
    """The sum: exact for integers, the exact sum rounded once for floats; None for no value."""
    some = [v for v in values if v is not None]
    if not some or not isinstance(some[0], float):
        return sum(some) if some else None
    if not all(math.isfinite(v) for v in some):
        return sum(v for v in some if not math.isfinite(v))
    exact = sum(map(Fraction, some), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def aggregate(kind: str, values: Sequence[Any]) -> Any:
    """One aggregate of a column's values; nulls do not count, NaN is the greatest."""
    some = [v for v in values if v is not None]
    ranked = sorted(some, key=lambda v: (v != v, v))
    match kind:
        case "count":
            return len(some)
        case "sum":
            return total(some)
        case "min":
            return ranked[0] if ranked else None
        case "max":
            return ranked[-1] if ranked else None
        case "avg":
            return float(total(some)) / len(some) if some else None
        case "count_distinct":
            return len({canonical(v) for v in some})
        case "collect":
            return "[" + ", ".join(map(_text, ranked)) + "]"
        case "top_k":
            best = ranked[::-1][:2] + [None] * 2
            return {"top1": best[0], "top2": best[1]}
        case "quantile":
            return ranked[max(0, math.ceil(0.75 * len(some)) - 1)] if some else None
    return _spread(kind, ranked)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _spread(kind: str, some: Sequence[Any]) -> Any:
    if kind == "median":
        low, high = (some[(len(some) - 1) // 2], some[len(some) // 2]) if some else (None, None)
        return None if low is None or high is None else (float(low) + float(high)) / 2
    if kind in ("variance", "stddev"):
        if len(some) < 2:
            return None
        if not all(map(math.isfinite, some)):
            return math.nan
        exact = statistics.variance([Fraction(v) for v in some])
        return float(exact) if kind == "variance" else math.sqrt(float(exact))
    raise ValueError(f"no oracle for the aggregate '{kind}'")


def timed(kind: str, column: str, rows: Rows) -> Any:
    """The first or last value, by start and then by value."""
    some = [(le, p[column] != p[column], p[column]) for le, _, p in rows if p[column] is not None]
    return (min(some) if kind == "first" else max(some))[2] if some else None


def aggregated(keys: Sequence[str], aggs: Aggregates, rows: Rows) -> Payload:
    """The output payload of one group: its keys, then its aggregates."""
    members = [row[2] for row in rows]
    out: Payload = {name: members[0][name] for name in keys}
    for name, (kind, column) in aggs.items():
        if kind in ("first", "last") and column is not None:
            out[name] = timed(kind, column, rows)
            continue
        values = [True for _ in members] if column is None else [p[column] for p in members]
        out[name] = aggregate(kind, values)
    return out


def grouped(rows: Rows, keys: Sequence[str]) -> list[Rows]:
    """The rows of each group; null keys form a group."""
    groups: dict[object, Rows] = {}
    for row in rows:
        groups.setdefault(key(row[2], keys), []).append(row)
    return list(groups.values())


def totals(rows: Rows, keys: Sequence[str], aggs: Aggregates) -> Rows:
    """One row per group over all its rows; it lives from the first start to the last end."""
    return [
        (min(r[0] for r in g), max(r[1] for r in g), aggregated(keys, aggs, g)) for g in grouped(rows, keys)
    ]
