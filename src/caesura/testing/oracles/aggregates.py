"""Aggregates over the values of a group, exactly, and totals per group.

>>> total([0.1] * 10), total([1e308, 1e308, -1e308]), total([3, None])
(1.0, 1e+308, 3)
>>> totals([(1, 4, {"k": 1, "v": 2}), (0, 2, {"k": 1, "v": 5})], ["k"], {"s": ("sum", "v")})
[(0, 4, {'k': 1, 's': 7})]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

from caesura.testing.oracles.rows import Payload, Rows, canonical, key, place

Aggregates: TypeAlias = Mapping[str, tuple[Any, ...]]
"""Output name to kind (as the engine calls it), column (None counts rows), and the option if it has one."""


def total(values: Sequence[Any]) -> Any:
    """The sum: exact for integers, the exact sum rounded once for floats; None for no value."""
    some = [v for v in values if v is not None]
    if not some or not isinstance(some[0], float):
        with localcontext(Context(prec=80)):
            return sum(some) if some else None
    if not all(math.isfinite(v) for v in some):
        return sum(v for v in some if not math.isfinite(v))
    return nearest(sum(map(Fraction, some), Fraction(0)))


def nearest(exact: Fraction) -> float:
    """The double nearest to a number; infinity where there is none."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def nearest_root(exact: Fraction) -> float:
    """The double nearest to a square root."""
    with localcontext(Context(prec=80, Emin=-9999, Emax=9999)):
        return float((Decimal(exact.numerator) / Decimal(exact.denominator)).sqrt())


def ordinary(found: float, exact: Fraction, power: int) -> bool:
    """Whether a result is far from the ends of the range of doubles, or 0 indeed."""
    return exact == 0 or 2.0**-power < abs(found) < 2.0**power


Oracle: TypeAlias = Callable[[list[Any], Any], Any]
"""From the values that are there, ascending (NaN is the greatest), and the aggregate's option."""
ORACLES: dict[str, Oracle] = {}


def oracle(kind: str) -> Callable[[Oracle], Oracle]:
    """Names the oracle of a kind of aggregate."""

    def named(function: Oracle) -> Oracle:
        ORACLES[kind] = function
        return function

    return named


def aggregate(kind: str, values: Sequence[Any], option: Any = 0, starts: Sequence[int] = ()) -> Any:
    """One aggregate of values, of rows that start at these times; nulls do not count."""
    some = [v for v in values if v is not None]
    if kind in TIMED:
        by_start = [(t, v) for t, v in zip(starts, values, strict=True) if v is not None]
        return TIMED[kind](by_start) if by_start else None
    return ORACLES[kind](sorted(some, key=place), option)


TIMED: dict[str, Callable[[list[tuple[int, Any]]], Any]] = {
    "first": lambda some: min(some, key=lambda one: (one[0], place(one[1])))[1],
    "last": lambda some: max(some, key=lambda one: (one[0], place(one[1])))[1],
    "max_by": lambda some: _by(some, max(place(pair["by"]) for _, pair in some)),
    "min_by": lambda some: _by(some, min(place(pair["by"]) for _, pair in some)),
}
"""From the values and the starts of their rows."""


def _by(some: list[tuple[int, Any]], best: tuple[Any, ...]) -> Any:
    """The value of the row that began first of those with the best `by`, the least of several."""
    found = [(le, pair["value"]) for le, pair in some if place(pair["by"]) == best]
    return min(found, key=lambda one: (one[0], place(one[1])))[1]


@oracle("count")
def _count(some: list[Any], _: float) -> int:
    return len(some)


@oracle("sum")
def _sum(some: list[Any], _: float) -> Any:
    return total(some)


@oracle("min")
def _min(some: list[Any], _: float) -> Any:
    return some[0] if some else None


@oracle("max")
def _max(some: list[Any], _: float) -> Any:
    return some[-1] if some else None


@oracle("avg")
def _avg(some: list[Any], _: float) -> float | None:
    return float(total(some)) / len(some) if some else None


@oracle("approx_count_distinct")
def _approx_count_distinct(some: list[Any], _: float) -> int:
    return len({canonical(v) for v in some})  # of as few as are drawn, the estimate is exact


@oracle("count_distinct")
def _count_distinct(some: list[Any], _: float) -> int:
    return len({canonical(v) for v in some})


@oracle("collect")
def _collect(some: list[Any], _: float) -> list[Any]:
    return some


@oracle("collect_set")
def _collect_set(some: list[Any], _: float) -> list[Any]:
    return list({canonical(v): v for v in some}.values())


@oracle("string_agg")
def _string_agg(some: list[Any], separator: Any) -> str | None:
    if isinstance(separator, tuple):  # with an order, which comes before the text
        separator, descending = separator
        some = [list(one.values())[-1] for one in (some[::-1] if descending else some)]
    return separator.join(some) if some else None


@oracle("bool_or")
def _bool_or(some: list[bool], _: float) -> bool | None:
    return any(some) if some else None


@oracle("bool_and")
def _bool_and(some: list[bool], _: float) -> bool | None:
    return all(some) if some else None


@oracle("top_k")
def _top_k(some: list[Any], k: float) -> dict[str, Any]:
    best = [*some[::-1], *[None] * int(k)]
    return {f"top{i + 1}": best[i] for i in range(int(k))}


@oracle("quantile")
def _quantile(some: list[Any], q: float) -> Any:
    return some[max(0, math.ceil(q * len(some)) - 1)] if some else None


@oracle("percentile")
def _percentile(some: list[Any], p: float) -> Any:
    if not some:
        return None
    position = p * (len(some) - 1)
    low, high = float(some[math.floor(position)]), float(some[math.ceil(position)])
    if low == high or math.floor(position) == position:
        return low
    if math.isinf(low) or math.isinf(high):
        return low + high
    return (math.ceil(position) - position) * low + (position - math.floor(position)) * high


@oracle("median")
def _median(some: list[Any], _: float) -> Any:
    low, high = (some[(len(some) - 1) // 2], some[len(some) // 2]) if some else (None, None)
    if low is None or high is None:
        return None
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return (low + high) / 2
    return nearest((Fraction(low) + Fraction(high)) / 2)


@oracle("median_absolute_deviation")
def _median_absolute_deviation(some: list[Any], _: float) -> Any:
    middle = _median(some, 0)
    if middle is None:
        return None
    return _median(sorted((abs(float(v) - middle) for v in some), key=lambda v: (v != v, v)), 0)


@oracle("mode")
def _mode(some: list[Any], _: float) -> Any:
    copies = Counter(canonical(v) for v in some)
    return max(some, key=lambda v: copies[canonical(v)]) if some else None  # the first of several: the least


@oracle("variance")
def _variance(some: list[Any], ddof: float) -> float | None:
    exact = _spread(some, ddof)
    return exact if exact is None or isinstance(exact, float) else nearest(exact)


def _spread(some: list[Any], ddof: float) -> Fraction | float | None:
    """The variance as it is; NaN where a value is not finite, None where there are too few."""
    if len(some) <= ddof:
        return None
    some = [float(v) for v in some]
    if not all(map(math.isfinite, some)):
        return math.nan
    exact = [Fraction(v) for v in some]
    mean = sum(exact, Fraction(0)) / len(exact)
    return sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (len(exact) - int(ddof))


@oracle("stddev")
def _stddev(some: list[Any], ddof: float) -> float | None:
    exact = _spread(some, ddof)
    if exact is None or isinstance(exact, float):
        return exact
    found = nearest(exact)
    return math.sqrt(found) if exact == 0 or 2.0**-900 < found < 2.0**950 else nearest_root(exact)


def _exact_pairs(some: list[Any]) -> list[tuple[Fraction, Fraction]] | None:
    """The pairs without nulls; None where a number is not finite."""
    pairs = [tuple(map(float, pair.values())) for pair in some if None not in pair.values()]
    if not all(math.isfinite(v) for pair in pairs for v in pair):
        return None
    return [(Fraction(x), Fraction(y)) for x, y in pairs]


def _pairs(some: list[Any]) -> int:
    return sum(None not in pair.values() for pair in some)


def _covariance(pairs: list[tuple[Fraction, Fraction]], ddof: int) -> Fraction:
    mean_x, mean_y = (sum(column, Fraction(0)) / len(pairs) for column in zip(*pairs, strict=True))
    return sum(((x - mean_x) * (y - mean_y) for x, y in pairs), Fraction(0)) / (len(pairs) - ddof)


def _covariance_of(some: list[Any], ddof: int) -> float | None:
    if _pairs(some) <= ddof:
        return None
    pairs = _exact_pairs(some)
    return math.nan if pairs is None else nearest(_covariance(pairs, ddof))


@oracle("covar_pop")
def _covar_pop(some: list[Any], _: float) -> float | None:
    return _covariance_of(some, 0)


@oracle("covar_samp")
def _covar_samp(some: list[Any], _: float) -> float | None:
    return _covariance_of(some, 1)


@oracle("corr")
def _corr(some: list[Any], _: float) -> float | None:
    if _pairs(some) < 2:
        return None
    pairs = _exact_pairs(some)
    if pairs is None:
        return math.nan
    across, down = (_covariance([(p[i], p[i]) for p in pairs], 0) for i in (0, 1))
    over = _covariance(pairs, 0)
    if 0 in (across, down):
        return None
    exact = [across, down, over]
    found = [nearest(each) for each in exact]
    if all(ordinary(a, b, 480) for a, b in zip(found, exact, strict=True)):
        return max(-1.0, min(1.0, found[2] / (math.sqrt(found[0]) * math.sqrt(found[1]))))
    root = nearest_root(over * over / (across * down))
    return root if over > 0 else -root


def aggregated(keys: Sequence[str], aggs: Aggregates, rows: Rows) -> Payload:
    """The output payload of one group: its keys, then its aggregates."""
    members = [row[2] for row in rows]
    out: Payload = {name: members[0][name] for name in keys}
    starts = [le for le, _, _ in rows]
    for name, (kind, column, *option) in aggs.items():
        values = [_value_of(p, column) for p in members]
        out[name] = aggregate(kind, values, option[0] if option else 0, starts)
    return out


def _value_of(payload: Payload, column: Any) -> Any:
    """The value that an aggregate reads; of two columns a pair, unless the second is null."""
    if not isinstance(column, tuple):
        return True if column is None else payload[column]
    value, by = (payload[name] for name in column)
    return None if by is None else {"value": value, "by": by}


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
