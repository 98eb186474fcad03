"""TPC-H under change: the 22 queries as views, kept while orders come and go, beside DuckDB asked anew.

Every refresh is 0.1 % of the orders with their lines, in and out, and as many parts and suppliers with other
values. After each, the view must equal DuckDB on the same tables. The time of a refresh is that of feeding it
and taking what changed in the answer; DuckDB's is that of the whole query, on two threads. Medians of those
behind the first six, in which indices are made that all later ones use; ratios are DuckDB's over ours, of
wall and of CPU seconds. ``--spark`` compares the answers of Spark only.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import caesura as cz
from benchmarks.report import Report
from benchmarks.tpch_data import Warehouse, generated, schemas
from benchmarks.tpch_queries import QUERIES
from benchmarks.tpch_view import View, columns_needed, differences

WARM = 6


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench tpch")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--only", default="", help="comma-separated queries, like q5,q18")
    parser.add_argument("--refreshes", type=int, default=13)
    parser.add_argument("--data", default="", help="the folder of the tables; made where they are not there")
    parser.add_argument("--spark", action="store_true", help="equality on Spark, after all refreshes")
    parser.add_argument("--check", action="store_true", help="equality only, no timing")
    options = parser.parse_args(arguments)
    report = Report("tpch", options.json)
    names = options.only.split(",") if options.only else list(QUERIES)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(options.data or made)
        generated(options.scale, folder, {})
        if options.spark:
            _on_spark(report, names, folder, options, Path(made))
            return
        ratios = [_kept(report, name, folder, options) for name in names]
    if not options.check:
        means = {n: statistics.geometric_mean(ratio[n] for ratio in ratios) for n in ratios[0]}
        least = {n: round(min(ratio[n] for ratio in ratios), 2) for n in ratios[0]}
        report.add("geometric mean", ratio_to=means, least=least)


def _on_spark(
    report: Report, names: list[str], folder: Path, options: argparse.Namespace, made: Path
) -> None:
    from benchmarks.tpch_spark import on_spark, written

    warehouse = Warehouse(generated(options.scale, folder))
    answers = written(warehouse, made / "refreshes", options.refreshes, 0.001, names)
    spark = cz.session("tpch", master="local[2]", buckets=2)
    for name in names:
        began = time.perf_counter()
        found = on_spark(spark, {name: answers[name]}, warehouse, made / "refreshes")[name]
        assert not found, f"{name} on Spark: {found}"
        report.add(name, equal=True, host="spark", seconds=round(time.perf_counter() - began, 1))
    spark.stop()


def _kept(report: Report, name: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    needed = columns_needed(QUERIES[name], schemas(folder))
    warehouse = Warehouse(generated(options.scale, folder, needed))
    began = time.perf_counter()
    view = View(name, warehouse)
    first = {table: warehouse.first(table) for table in view.columns}
    view.apply(view.feed(0, view.pages(0, first)))
    del first
    loaded = time.perf_counter() - began
    ours, theirs = Times(), Times()
    for at in range(1, options.refreshes + 1):
        pages = view.pages(at, warehouse.refresh(at))
        with ours.taken():
            changed = view.feed(at, pages)
        with theirs.taken():
            wanted = warehouse.base.execute(view.text).fetchall()
        view.apply(changed)
        found = differences(view.rows, wanted)
        assert not found, f"{name} after refresh {at}: {found}"
    timed = {"refresh_ms": ours.wall_ms, "duckdb_ms": theirs.wall_ms}
    timed |= {"refresh_cpu_ms": ours.cpu_ms, "duckdb_cpu_ms": theirs.cpu_ms}
    ratio = {"duckdb": theirs.wall_ms / ours.wall_ms, "duckdb_cpu": theirs.cpu_ms / ours.cpu_ms}
    more: dict[str, Any] = {} if options.check else {"ratio_to": ratio, **timed}
    report.add(name, equal=True, rows=view.rows.total(), load_s=round(loaded, 2), **more)
    return ratio


class Times:
    """Wall and CPU seconds of what was done again and again."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float]] = []

    @contextmanager
    def taken(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self._taken.append((time.perf_counter() - wall, time.process_time() - cpu))

    @property
    def wall_ms(self) -> float:
        return round(1000 * statistics.median(wall for wall, _ in self._taken[-self._last :]), 2)

    @property
    def cpu_ms(self) -> float:
        return round(1000 * statistics.median(cpu for _, cpu in self._taken[-self._last :]), 2)

    @property
    def _last(self) -> int:
        """Those behind the first, if there are more."""
        return max(1, len(self._taken) - WARM)
