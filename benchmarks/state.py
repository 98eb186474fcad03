"""State that is large: what a restart costs that has to read it again, and state beyond the memory there is.

``restore``: a join holds ``--state-mb`` in one bucket. The query is stopped and started again on Spark, so
that the first epoch reads the state from the checkpoint; the same with next to no state is taken off.
``paging``: a join holds ``--paged-mb`` of wide rows, of which ``--budget-mb`` may lie in memory.
``files``: the same state is written to files and read back in this process, without Spark around it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report
from benchmarks.spark_joins import wide_rows
from caesura import Stream
from caesura.events import Page
from caesura.events.identity import LOCAL
from caesura.io.places import Place
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.buckets.fragment import Fragment
from caesura.spark.worker.chunk_files import ChunkFiles, FileRow

FOR_EVER = 10**12
ROW_BYTES = 150
"""What a row of `wide_rows` takes in the state of a join."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench state")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--state-mb", type=int, default=500, help="state of the bucket that is restored")
    parser.add_argument("--starts", type=int, default=3, help="how often the query is started again")
    parser.add_argument("--only", default="files,restore,paging")
    parser.add_argument("--paged-mb", type=int, default=4000, help="state of the join that goes to the disk")
    parser.add_argument("--budget-mb", type=int, default=300, help="how much of it may lie in memory")
    options = parser.parse_args(arguments)
    report, wanted = Report("state", options.json), options.only.split(",")
    if "files" in wanted:
        files(report, options.state_mb, options.starts)
    if "paging" in wanted:
        paging(report, options.paged_mb, options.budget_mb)
    if "restore" in wanted:
        restore(report, options.state_mb, options.starts)


def files(report: Report, megabytes: int, times: int) -> None:
    """A bucket's state into files at a checkpoint's place, and from there back into a new fragment."""
    folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
    try:
        for side in ("left", "right"):
            (folder / side).mkdir()
            pq.write_table(wide_rows(1, 0, FOR_EVER), folder / side / "0.parquet")
        stages = cut(prune({"out": _join(folder).node}), 1)
        chunks = _filled(Fragment(stages, 1, 0, 1, LOCAL), megabytes).snapshot()
        own = ChunkFiles(Place.of(folder / "chunks"), "1-0", epoch=0, attempt=0, retained=100)
        with stopwatch() as writing:
            row, small = own.save(FileRow(), chunks)
        runs = []
        for _ in range(times):
            fragment = Fragment(stages, 1, 0, 1, LOCAL)
            with stopwatch() as reading:
                fragment.restore({n: d for n, d in small.items() if d is not None} | own.read(row))
            runs.append(reading)
            fragment.release()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.add(
        f"files_{megabytes}MB",
        write_seconds=round(writing["wall"], 2),
        write_cpu_seconds=round(writing["cpu"], 2),
        restore_seconds=round(statistics.median(run["wall"] for run in runs), 2),
        restore_cpu_seconds=round(statistics.median(run["cpu"] for run in runs), 2),
        mb=round(sum(file.length for file in row.named.values()) / 1e6),
    )


def paging(report: Report, megabytes: int, budget: int) -> None:
    """A join whose state is larger than its memory, beside one that holds as much as the budget in memory."""
    for how, held in (("memory", budget), ("mapped", megabytes), ("limited", megabytes)):
        command = [sys.executable, "-m", "benchmarks.state_paging", str(held), str(budget), how]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        report.add(f"join_{held}MB_{how}", **json.loads(done.stdout))


@contextmanager
def stopwatch() -> Iterator[dict[str, float]]:
    """Seconds that pass, and that this process works in them."""
    found: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield found
    found |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _filled(fragment: Fragment, megabytes: int) -> Fragment:
    """A fragment whose join holds so much."""
    join = next(cell.operator for cell in fragment.query.graph.cells if cell.label == "join")
    rows = wide_rows(megabytes * 1_000_000 // ROW_BYTES, 0, FOR_EVER)
    for batch in rows.combine_chunks().to_batches(max_chunksize=1 << 17):
        payload = batch.select(["key", "wide"])
        list(join.page(0, Page(batch["le"].to_numpy(), batch["re"].to_numpy(), payload)))
    return fragment


def restore(report: Report, megabytes: int, starts: int) -> None:
    """The first epoch of a start that finds state, beside one that finds none."""
    spark = cz.session("caesura-bench", master="local[2]", buckets=1, spark_driver_memory="4g")
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    firsts: dict[int, list[float]] = {}
    size = 0
    for held in (0, megabytes):
        folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
        try:
            firsts[held] = _restarts(spark, folder, held, starts)
            size = sum(
                file.stat().st_size for file in (folder / "cp" / "chunks").rglob("*") if file.is_file()
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    spark.stop()
    with_state, without = (statistics.median(firsts[held]) for held in (megabytes, 0))
    report.add(
        f"restore_{megabytes}MB",
        seconds=round(with_state - without, 2),
        least_seconds=round(min(firsts[megabytes]) - without, 2),
        most_seconds=round(max(firsts[megabytes]) - without, 2),
        without_state_seconds=round(without, 2),
        files_mb=round(size / 1e6),
    )


def _restarts(spark: Any, folder: Path, held: int, starts: int) -> list[float]:
    """Seconds of the first epoch of each start but the one that brings the state."""
    from benchmarks.spark import durations

    found: list[float] = []
    for side in ("left", "right"):
        (folder / side).mkdir()
    for number in range(starts + 1):
        rows = max(10, held * 1_000_000 // ROW_BYTES) if number == 0 else 10
        left = folder / "left" / f"{number:05d}.parquet"
        pq.write_table(wide_rows(rows, number, FOR_EVER), left, row_group_size=1 << 17)
        pq.write_table(wide_rows(10, number, 1), folder / "right" / f"{number:05d}.parquet")
        query = _join(folder).start(
            spark,
            sink=folder / "out",
            checkpoint=folder / "cp",
            trigger="available",
            allow_unbounded=True,
        )
        query.wait()
        found.append(durations(query.query)[0])
    return found[1:]


def _join(folder: Path) -> Stream:
    left, right = (
        cz.read.parquet(folder / side, time="le", end="re", punctuate=cz.delay(1), name=side)
        for side in ("left", "right")
    )
    return left.join(right.select("key"), on="key")
