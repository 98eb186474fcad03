"""The same queries in DuckDB, in one batch, and in reactivex, each where it can say them.

reactivex gets its rows as tuples, made before, and keeps its state in plain Python containers behind few
operators: the fast way of using it.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.qre_data import BID, CLOSE, DAY, ITEM, MEASURE, PERSON, PURCHASE, SECOND, VIEW, Data

try:
    import reactivex
    from reactivex import operators as ops
except ImportError:
    reactivex = None

Work = Callable[[], Any]
TEN_MINUTES = 600 * SECOND


def _sql(text: str) -> Callable[[Data], Work]:
    def prepare(of: Data) -> Work:
        columns = [*of.batch.columns, pa.array(of.time)]
        events = pa.table(columns, names=[*of.batch.schema.names, "ts"])
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        connection.register("arrow", events)
        connection.execute("create table events as select * from arrow")
        return lambda: connection.sql(text).to_arrow_table()

    return prepare


_CLOSED = (
    "select max(ts) filter (kind = 3) c, max(category) filter (kind = 1) g, "
    "sum(price) filter (kind in (1, 2)) p from events where kind > 0 group by item having c is not null"
)
DUCK: dict[str, Callable[[Data], Work]] = {
    "Y1": _sql(
        f"select ts // {SECOND} s, campaign, count(*) filter (kind = {VIEW}) from events group by 1, 2"
    ),
    "N1": _sql(
        "select ts, sum(case when kind = 1 then 1 else -1 end) over (order by ts) from events "
        "where kind in (1, 3)"
    ),
    "N2": _sql(f"select c, avg(p) over (order by c) from ({_CLOSED})"),
    "N3": _sql(f"select c, g, avg(p) over (partition by g order by c) from ({_CLOSED})"),
    "N4": _sql(
        f"select ts // {TEN_MINUTES} t, max(now) from (select ts, "
        "sum(case when kind = 3 then 0 else price end) over (partition by item order by ts) now "
        "from events where kind > 0) group by 1"
    ),
    "P6": _sql(
        "select d, quantile_disc(n, 0.5) over (order by d) from (select d, count(*) filter (kind = 1) n from "
        f"(select kind, coalesce(sum((kind = {DAY})::int) over (order by ts rows between unbounded preceding "
        "and 1 preceding), 0) d from events) group by d)"
    ),
    "P7 w=10^4": _sql(
        "select sum((kind = 1 and value > 60)::int) over "
        "(order by ts rows between 9999 preceding and current row) from events"
    ),
}


def _rows(of: Data, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(of.batch.column(n).to_pylist() for n in names), of.time.tolist(), strict=True))


def _scan(names: tuple[str, ...], begin: Callable[[], Callable[[tuple[Any, ...]], Any]]) -> Any:
    """Rows through a function with a state of its own; what it answers leaves."""

    def prepare(of: Data) -> Work:
        rows = _rows(of, *names)

        def work() -> None:
            answered = ops.map(begin()), ops.filter(lambda v: v is not None)
            reactivex.from_iterable(rows).pipe(*answered).subscribe(lambda _: None)

        return work

    return prepare


def _y1() -> Callable[[tuple[Any, ...]], Any]:
    now, counts = 0, {}

    def step(row: tuple[Any, ...]) -> Any:
        nonlocal now, counts
        kind, campaign, time = row
        out, second = None, time // SECOND
        if second != now:
            out, counts, now = counts, {}, second
        counts[campaign] = counts.get(campaign, 0) + (kind == VIEW)
        return out

    return step


def _y2() -> Callable[[tuple[Any, ...]], Any]:
    seen: dict[tuple[int, int], int] = {}
    score: dict[int, int] = {}
    best: dict[int, tuple[int, int]] = {}

    def step(row: tuple[Any, ...]) -> Any:
        kind, ad, campaign, user, _ = row
        pair = (ad, user)
        if kind == VIEW:
            seen.setdefault(pair, 1)
        elif kind == PURCHASE and seen.get(pair) == 1:
            seen[pair] = 2
            score[ad] = score.get(ad, 0) + 1
            if score[ad] > best.get(campaign, (0, 0))[1]:
                best[campaign] = (ad, score[ad])
            return campaign, best[campaign]
        return None

    return step


def _n1() -> Callable[[tuple[Any, ...]], Any]:
    live = 0

    def step(row: tuple[Any, ...]) -> Any:
        nonlocal live
        if row[0] in (ITEM, CLOSE):
            live += 1 if row[0] == ITEM else -1
            return live
        return None

    return step


def _closing() -> Callable[[tuple[Any, ...]], Any]:
    prices: dict[int, Any] = {}

    def close(row: tuple[Any, ...]) -> Any:
        kind, item, price, category, _ = row
        if kind == ITEM:
            prices[item] = (price, category)
        elif kind == BID and item in prices:
            before, category = prices[item]
            prices[item] = (before + price, category)
        elif kind == CLOSE:
            return prices.pop(item, None)
        return None

    return close


def _n2() -> Callable[[tuple[Any, ...]], Any]:
    close = _closing()
    count, total = 0, 0.0

    def step(row: tuple[Any, ...]) -> Any:
        nonlocal count, total
        got = close(row)
        if got is None:
            return None
        count, total = count + 1, total + got[0]
        return total / count

    return step


def _n3() -> Callable[[tuple[Any, ...]], Any]:
    close = _closing()
    totals: dict[int, tuple[int, float]] = {}

    def step(row: tuple[Any, ...]) -> Any:
        got = close(row)
        if got is None:
            return None
        count, total = totals.get(got[1], (0, 0.0))
        totals[got[1]] = count + 1, total + got[0]
        return got[1], (total + got[0]) / (count + 1)

    return step


def _n4() -> Callable[[tuple[Any, ...]], Any]:
    prices: dict[int, float] = {}
    now, best = 0, 0.0

    def step(row: tuple[Any, ...]) -> Any:
        nonlocal now, best
        kind, item, price, time = row
        out, period = None, time // TEN_MINUTES
        if period != now:
            out, best, now = best, 0.0, period
        if kind != PERSON:
            prices[item] = prices.get(item, 0.0) + (price if kind != CLOSE else 0.0)
            best = max(best, prices[item])
        return out

    return step


def _n5() -> Callable[[tuple[Any, ...]], Any]:
    periods: deque[dict[int, int]] = deque([{}], 144)
    total: dict[int, int] = {}
    now = 0

    def step(row: tuple[Any, ...]) -> Any:
        nonlocal now
        kind, item, time = row
        out, period = None, time // TEN_MINUTES
        if period != now:
            out, now = max(total.items(), key=lambda e: (e[1], -e[0]), default=None), period
            if len(periods) == 144:
                for gone, n in periods[0].items():
                    total[gone] -= n
            periods.append({})
        if kind == BID:
            periods[-1][item] = periods[-1].get(item, 0) + 1
            total[item] = total.get(item, 0) + 1
        return out

    return step


def _p6() -> Callable[[tuple[Any, ...]], Any]:
    today, days = 0, []  # type: ignore[var-annotated]

    def step(row: tuple[Any, ...]) -> Any:
        nonlocal today
        if row[0] != DAY:
            today += row[0] == MEASURE
            return None
        insort(days, today)
        today = 0
        return days[(len(days) - 1) // 2]

    return step


def _p7(size: int) -> Callable[[], Callable[[tuple[Any, ...]], Any]]:
    def begin() -> Callable[[tuple[Any, ...]], Any]:
        ring: deque[bool] = deque([False] * size, size)
        count = 0

        def step(row: tuple[Any, ...]) -> Any:
            nonlocal count
            hit = row[0] == MEASURE and row[1] > 60.0
            count += hit - ring[0]
            ring.append(hit)
            return count

        return step

    return begin


_BIDS = ("kind", "item", "price", "category")
RX: dict[str, Any] = (
    {}
    if reactivex is None
    else {
        "Y1": _scan(("kind", "campaign"), _y1),
        "Y2": _scan(("kind", "ad", "campaign", "user"), _y2),
        "N1": _scan(("kind",), _n1),
        "N2": _scan(_BIDS, _n2),
        "N3": _scan(_BIDS, _n3),
        "N4": _scan(("kind", "item", "price"), _n4),
        "N5": _scan(("kind", "item"), _n5),
        "P6": _scan(("kind",), _p6),
        "P7 w=10^4": _scan(("kind", "value"), _p7(10_000)),
        "P7 w=10^7": _scan(("kind", "value"), _p7(10_000_000)),
    }
)
