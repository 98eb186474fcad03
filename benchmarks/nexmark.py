"""NEXMark beside DuckDB and Polars: the public streaming benchmark of persons, auctions and bids.

Every query runs in pages in this process, on one thread, with output "changes" and "final", over rows in
order and over rows that come up to 3 s late; its answer must equal DuckDB's over the same tables. Ratios are
of CPU seconds (DuckDB with one thread and with two), medians of alternating runs; lines of code beside the
SQL's.
"""

from __future__ import annotations

import argparse
import inspect
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.nexmark_clock import arriving, beside_readings
from benchmarks.nexmark_data import House, disordered, house
from benchmarks.nexmark_queries import QUERIES, Streams
from benchmarks.nexmark_sql import SQL
from benchmarks.report import Report


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench nexmark")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="comma-separated queries, like q5,q18")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="equality only, no timing")
    options = parser.parse_args(arguments)
    report = Report("nexmark", options.json)
    names = options.only.split(",") if options.only else list(QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(house(options.events), Path(folder))
        for name in names:
            bench.compare(report, name, options.times, timed=not options.check)


class Bench:
    """The tables, in order and late, in memory and as Parquet files."""

    def __init__(self, tables: House, folder: Path) -> None:
        self.events = sum(len(t) for t in tables)
        self.side = pa.table({"key": np.arange(10_000), "value": [f"value {i}" for i in range(10_000)]})
        self.orders = {"in order": tables, "3 s late": House(*(disordered(t) for t in tables))}
        self.folder = folder
        for name, table in zip(House._fields, tables, strict=True):
            pq.write_table(table, folder / f"{name}.parquet")

    def streams(self, order: str) -> Streams:
        """The tables as streams."""
        tables = self.orders[order]
        ends = pa.array(tables.auction["expires"].cast(pa.int64()).to_numpy() + 1, pa.timestamp("us"))
        closing = tables.auction.append_column("closes", ends)
        made = (*(_stream(table) for table in tables), _stream(closing, end="closes"))
        return Streams(*made, self.side, arriving(tables.bid))

    def ours(self, name: str, order: str, output: str) -> pa.Table:
        """Our answer: the rows of a view that still hold at the end, or all rows."""
        return answer(QUERIES[name](self.streams(order)), output)

    def theirs(self, name: str, threads: int) -> Callable[[], pa.Table]:
        """DuckDB's answer over the tables in memory."""
        base = duckdb.connect()
        base.execute(f"SET threads = {threads}")
        for table, rows in zip(House._fields, self.orders["in order"], strict=True):
            base.register(table, rows)
        base.register("side", self.side)
        return lambda: base.sql(SQL[name]).to_arrow_table()

    def compare(self, report: Report, name: str, times: int, *, timed: bool) -> None:
        """Equality in every form, then how long each takes."""
        if name == "q12":  # runs differ by their readings of the clock, so that each is compared with its own
            ours, theirs = (counted(table) for table in beside_readings(self.streams("in order")))
            report.add(name, equal={"changes": ours == theirs}, rows=sum(theirs.values()))
            return
        wanted = counted(self.theirs(name, 2)())
        equal = {
            f"{order}, {output}": counted(self.ours(name, order, output)) == wanted
            for order in self.orders
            for output in ("changes", "final")
        }
        lines = {"ours": lines_of(QUERIES[name]), "sql": SQL[name].strip().count("\n") + 1}
        if not timed:
            report.add(name, equal=equal, rows=sum(wanted.values()), lines=lines)
            return
        runs: dict[str, Callable[[], object]] = {
            output: lambda output=output: self.ours(name, "in order", output)
            for output in ("changes", "final")
        }
        runs |= {f"duckdb {threads}": self.theirs(name, threads) for threads in (1, 2)}
        cpu, wall = alternating(runs, times)
        ratios = {
            f"{output}, cpu of {other}": cpu[other] / cpu[output]
            for output in ("changes", "final")
            for other in ("duckdb 1", "duckdb 2")
        }
        report.add(
            name, self.events / wall["final"], ratios, equal=equal, rows=sum(wanted.values()), lines=lines,
            cpu_s={k: round(v, 3) for k, v in cpu.items()},
        )  # fmt: skip


def _stream(table: pa.Table, **more: Any) -> cz.Stream:
    made = cz.from_arrow(table, time="dateTime", punctuate=cz.delay("3s"), **more)
    return made.with_columns(dateTime=cz.start())


def answer(stream: cz.Stream, output: str) -> pa.Table:
    """What a query says in the end: of rows that never end those, else all."""
    table = stream.run(output=output).history.table()
    endless = pc.equal(table["RE"].cast(pa.int64()), cz.INFINITY)
    table = table.filter(endless) if pc.any(endless).as_py() else table
    return table.drop_columns(["LE", "RE"])


def counted(table: pa.Table) -> dict[tuple[object, ...], int]:
    """The rows with how often each comes; columns by name, doubles to twelve digits."""
    columns = []
    for name in sorted(table.column_names):
        values = table[name].to_pylist()
        columns.append([float(f"{v:.12g}") if isinstance(v, float) else v for v in values])
    found: dict[tuple[object, ...], int] = {}
    for row in zip(*columns, strict=True):
        found[row] = found.get(row, 0) + 1
    return found


def lines_of(query: Callable[..., object]) -> int:
    """The lines of a query's body."""
    return len(inspect.getsource(query).strip().splitlines()) - 1


def alternating(
    runs: dict[str, Callable[[], object]], times: int
) -> tuple[dict[str, float], dict[str, float]]:
    """CPU and wall seconds, medians of runs that take turns; the first turn does not count."""
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    wall: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(times + 1):
        for name, run in runs.items():
            before, began = time.process_time(), time.perf_counter()
            run()
            if turn:
                cpu[name].append(time.process_time() - before)
                wall[name].append(time.perf_counter() - began)
    return tuple({n: statistics.median(v) for n, v in taken.items()} for taken in (cpu, wall))  # type: ignore[return-value]
