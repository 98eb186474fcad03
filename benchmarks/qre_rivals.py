"""The same queries in DuckDB, in one batch, and in reactivex, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.qre_data import BID, CLOSE, ITEM, SECOND, VIEW, Data

try:
    import reactivex
    from reactivex import operators as ops
except ImportError:
    reactivex = None

Work = Callable[[], Any]


def _sql(text: str) -> Callable[[Data], Work]:
    def prepare(of: Data) -> Work:
        columns = [*of.batch.columns, pa.array(of.time)]
        events = pa.table(columns, names=[*of.batch.schema.names, "ts"])
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        connection.register("arrow", events)
        connection.execute("create table events as select * from arrow")
        return lambda: connection.execute(text).to_arrow_table()

    return prepare


DUCK: dict[str, Callable[[Data], Work]] = {
    "Y1": _sql(
        f"select ts // {SECOND} s, campaign, count(*) filter (kind = {VIEW}) from events group by 1, 2"
    ),
    "N2": _sql(
        "select max(ts) filter (kind = 3) c, sum(price) filter (kind in (1, 2)) p from events "
        "where kind > 0 group by item having c is not null"
    ),
}


def _rows(of: Data, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(of.batch.column(n).to_pylist() for n in names), of.time.tolist(), strict=True))


def _y1(of: Data) -> Work:
    rows = _rows(of, "kind", "campaign")

    def step(state: tuple[int, dict[int, int]], row: tuple[Any, ...]) -> tuple[int, dict[int, int]]:
        second, counts = state
        now = row[2] // SECOND
        if now != second:
            counts = {}
        counts[row[1]] = counts.get(row[1], 0) + 1
        return now, counts

    def work() -> None:
        source = reactivex.from_iterable(rows)
        source.pipe(ops.filter(lambda r: r[0] == VIEW), ops.scan(step, (0, {}))).subscribe(lambda _: None)

    return work


def _n2(of: Data) -> Work:
    rows = _rows(of, "kind", "item", "price")

    def work() -> None:
        prices: dict[int, float] = {}

        def close(row: tuple[Any, ...]) -> float | None:
            kind, item, price, _ = row
            if kind == ITEM:
                prices[item] = price
            elif kind == BID:
                prices[item] = prices.get(item, 0.0) + price
            elif kind == CLOSE:
                return prices.pop(item, 0.0)
            return None

        source = reactivex.from_iterable(rows)
        steps = (
            ops.map(close),
            ops.filter(lambda p: p is not None),
            ops.scan(lambda a, p: (a[0] + 1, a[1] + p), (0, 0.0)),
        )
        source.pipe(*steps).subscribe(lambda _: None)

    return work


RX: dict[str, Any] = {"Y1": _y1, "N2": _n2} if reactivex is not None else {}
