"""NEXMark beside DuckDB, Polars and Spark: the public streaming benchmark of persons, auctions and bids.

Every query runs in pages in this process, on one thread, with output "changes" and "final", over rows in
order and over rows that come up to 3 s late; its answer must equal DuckDB's over the same tables. Then all
read the same Parquet files: DuckDB with one thread and with two, Polars, and with ``--spark`` Spark's own
streaming on ``local[2]``, available-now. What reading the files takes of ours is shown apart. Ratios are of
CPU and wall seconds, theirs over ours, medians of alternating runs; lines of code beside the SQL's.
"""

from __future__ import annotations

import argparse
import inspect
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.nexmark_clock import arriving, beside_readings
from benchmarks.nexmark_data import House, disordered, house
from benchmarks.nexmark_epochs import OnSpark
from benchmarks.nexmark_polars import POLARS, frames, tables_as_frames
from benchmarks.nexmark_queries import QUERIES, Streams
from benchmarks.nexmark_spark import SPARK, SparkStreaming
from benchmarks.nexmark_sql import SQL
from benchmarks.nexmark_threads import by_threads
from benchmarks.report import Report
from caesura.io import Source
from caesura.plan import Raw
from caesura.runtime.query.result import enlarge, for_one_run, query_of

OUTPUTS = ("changes", "final")
BY_CLOCK = ("q12",)
"""Runs of these differ by their readings of the clock: each is compared with DuckDB over its own."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench nexmark")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="comma-separated queries, like q5,q18")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="equality only, no timing")
    parser.add_argument("--timing", action="store_true", help="timing only, no equality")
    parser.add_argument(
        "--memory", action="store_true", help="time over Arrow tables in memory, not Parquet files"
    )
    parser.add_argument("--spark", action="store_true", help="Spark's own streaming too, where it can")
    parser.add_argument("--on-spark", action="store_true", help="ours on Spark beside Spark's own, by epochs")
    parser.add_argument("--epochs", type=int, default=4, help="steady epochs of a run, with --on-spark")
    parser.add_argument("--threads", default="", help="numbers like 1,4: by the clock, DuckDB with as many")
    options = parser.parse_args(arguments)
    report = Report("nexmark", options.json)
    names = options.only.split(",") if options.only else list(QUERIES)
    if options.on_spark:
        on_spark(report, names, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(house(options.events), Path(folder), in_memory=options.memory)
        for name in names:
            if not options.timing:
                bench.check(report, name)
        if options.check:
            return
        if options.threads:
            by_threads(report, bench, names, list(map(int, options.threads.split(","))), options.times)
            return
        if not options.spark:
            for name in names:
                bench.compare(report, name, options.times)
            add_means(report)
            return
        with closing(SparkStreaming(Path(folder))) as spark:
            for name in names:
                bench.compare(report, name, options.times, spark)
        add_means(report)


def on_spark(report: Report, names: list[str], options: argparse.Namespace) -> None:
    """Those of the queries that Spark can express, on Spark."""
    with tempfile.TemporaryDirectory() as folder:
        host = OnSpark(house(options.events), side_table(), Path(folder), options.epochs)
        with closing(host):
            for name in names:
                if name in SPARK:
                    host.compare(report, name, options.times)
    ratios = [row["ratio_to"]["spark_own"] for row in report.rows]
    report.add("median on spark", None, {"spark_own": statistics.median(ratios)}, queries=len(ratios))


def side_table() -> pa.Table:
    """The table beside the bids of q13."""
    return pa.table({"key": np.arange(10_000), "value": [f"value {i}" for i in range(10_000)]})


class Run(NamedTuple):
    """Something to measure, and the clock of its CPU seconds."""

    once: Callable[[], object]
    cpu: Callable[[], float] = time.process_time


class Bench:
    """The tables, in order and late, in memory and as Parquet files."""

    def __init__(self, tables: House, folder: Path, *, in_memory: bool = False) -> None:
        self.in_memory = in_memory
        """Whether times are taken over Arrow tables."""
        self.events = sum(len(t) for t in tables)
        self.side = side_table()
        self.orders = {"in order": tables, "3 s late": House(*(disordered(t) for t in tables))}
        self.folder = folder
        self.tables = {**tables._asdict(), "side": self.side}
        for name, table in {**self.tables, "open_auction": _closing(tables.auction)}.items():
            pq.write_table(table, folder / f"{name}.parquet")

    def streams(self, order: str) -> Streams:
        """The tables as streams."""
        tables = self.orders[order]
        made = [_stream(cz.from_arrow, table) for table in tables]
        made.append(_stream(cz.from_arrow, _closing(tables.auction), end="closes"))
        return Streams(*made, self.side, arriving(cz.from_arrow, tables.bid))

    def read(self) -> Streams:
        """The Parquet files as streams."""
        made = [_stream(cz.read.parquet, self.folder / f"{name}.parquet") for name in House._fields]
        opened = _stream(cz.read.parquet, self.folder / "open_auction.parquet", end="closes")
        return Streams(*made, opened, self.side, arriving(cz.read.parquet, self.folder / "bid.parquet"))

    def duckdb(self, name: str, threads: int) -> Callable[[], pa.Table]:
        """DuckDB's answer over the Parquet files, or the tables."""
        base = duckdb.connect()
        base.execute(f"SET threads = {threads}")
        for table, rows in self.tables.items():
            base.register(f"{table}_rows", rows)
            origin = f"{table}_rows" if self.in_memory else f"read_parquet('{self.folder}/{table}.parquet')"
            more = ", dateTime AS arrived" if name in BY_CLOCK and table == "bid" else ""
            base.execute(f"CREATE TEMP VIEW {table} AS SELECT *{more} FROM {origin}")
        return lambda: base.sql(SQL[name]).to_arrow_table()

    def polars(self, name: str) -> Callable[[], pa.Table]:
        """Polars' answer over the Parquet files, or the tables."""
        made = tables_as_frames(self.tables) if self.in_memory else frames(self.folder)
        return lambda: POLARS[name](made).collect().to_arrow()

    def check(self, report: Report, name: str) -> None:
        """Whether the answers are DuckDB's: ours in every form, and Polars'."""
        if name in BY_CLOCK:
            ours, theirs = (counted(table) for table in beside_readings(self.streams("in order")))
            report.add(f"{name} equal", equal={"changes": ours == theirs}, rows=sum(theirs.values()))
            return
        wanted = counted(self.duckdb(name, 2)())
        equal = {
            f"{order}, {output}": counted(answer(QUERIES[name](self.streams(order)), output)) == wanted
            for order in self.orders
            for output in OUTPUTS
        }
        if name in POLARS:
            equal["polars"] = counted(self.polars(name)()) == wanted
        lines = {"ours": lines_of(QUERIES[name]), "sql": SQL[name].strip().count("\n") + 1}
        report.add(f"{name} equal", equal=equal, rows=sum(wanted.values()), lines=lines)

    def compare(self, report: Report, name: str, times: int, spark: SparkStreaming | None = None) -> None:
        """How long each takes over the same files; windows of the clock beside windows of the bids' times."""
        ours = {output: Run(lambda output=output: self.answer(name, output)) for output in OUTPUTS}
        others = {f"duckdb {threads}": Run(self.duckdb(name, threads)) for threads in (1, 2)}
        if name in POLARS:
            others["polars"] = Run(self.polars(name))
        if spark is not None and name in SPARK:
            others["spark"] = Run(spark.run(name), spark.cpu)
        apart = {} if self.in_memory else {"decoding": Run(self._decoding(name))}
        cpu, wall = alternating({**ours, **others, **apart}, times)
        for output in OUTPUTS:
            ratios = {
                f"{other} {kind}": taken[other] / taken[output]
                for other in others
                for kind, taken in (("cpu", cpu), ("wall", wall))
            }
            shown = (output, *apart, *others)
            spent = {who: [round(taken[who], 3) for taken in (cpu, wall)] for who in shown}
            report.add(f"{name} {output}", self.events / wall[output], ratios, cpu_wall_s=spent)

    def answer(self, name: str, output: str, threads: int = 1) -> pa.Table:
        """Our answer over the tables or files."""
        return answer(QUERIES[name](self._registered), output, threads)

    def _decoding(self, name: str) -> Callable[[], int]:
        """Reads what a query reads of the Parquet files, as it does, and nothing more; gives the rows."""
        query = query_of(for_one_run(QUERIES[name](self._registered).node), "final", None, None)
        enlarge(query)
        sources = [reader.node for reader in query.parts.readers.values()]
        files = [node for node in sources if isinstance(node, Source) and not node.reader.in_memory]

        def read() -> int:
            batches = (batch for node in files for batch in node.read({}, node.pruned_by(list)))
            return sum(batch.batch.num_rows for batch in batches if isinstance(batch, Raw))

        return read

    @cached_property
    def _registered(self) -> Streams:
        """The tables or files as streams, made once, as DuckDB's views of them are."""
        return self.streams("in order") if self.in_memory else self.read()


def add_means(report: Report) -> None:
    """The geometric mean of each ratio over the queries that have it, and of how many."""
    for output in OUTPUTS:
        found: dict[str, list[float]] = {}
        for row in report.rows:
            ratios = row.get("ratio_to") if str(row["case"]).endswith(output) else None
            for other, ratio in ratios.items() if isinstance(ratios, dict) else ():
                found.setdefault(other, []).append(ratio)
        means = {other: statistics.geometric_mean(ratios) for other, ratios in found.items()}
        report.add(f"mean {output}", None, means, queries={other: len(r) for other, r in found.items()})


def _closing(auction: pa.Table) -> pa.Table:
    """Auctions with the time at which they close: right behind the last instant for bids."""
    ends = auction["expires"].cast(pa.int64()).to_numpy() + 1
    return auction.append_column("closes", pa.array(ends, pa.timestamp("us")))


def _stream(read: Callable[..., cz.Stream], rows: object, **more: Any) -> cz.Stream:
    made = read(rows, time="dateTime", punctuate=cz.delay("3s"), **more)
    return made.with_columns(dateTime=cz.start())


def answer(stream: cz.Stream, output: str, threads: int = 1) -> pa.Table:
    """What a query says in the end: of rows that never end those, else all."""
    page = stream.run(output=output, threads=threads).history.page
    endless = page.re == cz.INFINITY
    page = page.filter(endless) if endless.any() else page
    return pa.Table.from_batches([page.payload])


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


def alternating(runs: dict[str, Run], times: int) -> tuple[dict[str, float], dict[str, float]]:
    """CPU and wall seconds, medians of runs that take turns; the first turn does not count."""
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    wall: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(times + 1):
        for name, run in runs.items():
            before, began = run.cpu(), time.perf_counter()
            run.once()
            if turn:
                cpu[name].append(run.cpu() - before)
                wall[name].append(time.perf_counter() - began)
    return tuple({n: statistics.median(v) for n, v in taken.items()} for taken in (cpu, wall))  # type: ignore[return-value]
