"""Joins on the Spark host: beside the same logic by hand, and with a large state.

By hand is what one would write today: `transformWithStateInPandas` per key, row by row, with both sides'
rows in list state, matches and their corrections as output.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report

WARM = 2
ROW = "le long, re long, new long, sign string, key long, v long"
FEW_KEYS = 200


def temporal_join(report: Report, spark: Any, events: int, epochs: int) -> None:
    """Two streams of intervals, one in ten corrected, joined by key over time."""
    folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
    try:
        for side in ("left", "right"):
            (folder / side).mkdir()
            for number in range(epochs + WARM):
                rows = intervals(events // 2, number, seed=number + (100 if side == "right" else 0))
                pq.write_table(rows, folder / side / f"{number:05d}.parquet")
        theirs = by_hand(spark, folder)
        ours = our_join(spark, folder)
        own = events / statistics.median(theirs[WARM:])
        rate = events / statistics.median(ours[WARM:])
        report.add("temporal_join_by_hand", own, epochs=len(theirs) - WARM)
        report.add("temporal_join", rate, {"by_hand": rate / own}, epochs=len(ours) - WARM)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def intervals(events: int, epoch: int, seed: int) -> pa.Table:
    """Inserts of one epoch's time, and corrections of one in ten that shorten its lifetime."""
    random = np.random.default_rng(seed)
    le = np.sort(random.integers(0, 10_000, events)) + 10_000 * epoch
    key, v = random.integers(0, FEW_KEYS, events), np.arange(events) + events * epoch
    re = le + 50 + random.integers(0, 50, events)
    again = np.flatnonzero(random.random(events) < 0.1)
    order = np.argsort(np.concatenate([le, le[again] + 20]), kind="stable")
    rows = np.concatenate([np.arange(events), again])[order]
    retract = np.concatenate([np.zeros(events, bool), np.ones(len(again), bool)])[order]
    new = np.where(retract, le[rows] + 40, re[rows])
    return pa.table(
        {
            "le": le[rows],
            "re": re[rows],
            "new": new,
            "sign": np.where(retract, "-", "+"),
            "key": key[rows],
            "v": v[rows],
        }
    )


def our_join(spark: Any, folder: Path) -> list[float]:
    from benchmarks.spark import durations

    left, right = (
        cz.read.parquet(
            folder / side, time="le", end="re", new_end="new", kind="sign", punctuate=cz.delay(200), name=side
        )
        for side in ("left", "right")
    )
    joined = left.join(right.select("key", w=cz.col("v")), on="key")
    query = joined.start(
        spark,
        sink=folder / "ours",
        checkpoint=folder / "ours-cp",
        trigger="available",
        files_per_epoch=1,
        lifetimes={"left": "finite", "right": "finite"},
    )
    query.wait()
    return durations(query.query)


def by_hand(spark: Any, folder: Path) -> list[float]:
    """The same matches and corrections, row by row in Python."""
    from pyspark.sql import functions as fn
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    from benchmarks.spark import durations

    class Join(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.rows = [handle.getListState(side, "le long, re long, v long") for side in ("left", "right")]

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            import pandas as pd

            held = [list(state.get()) for state in self.rows]
            out: list[tuple[Any, ...]] = []
            latest = 0
            for frame in rows:
                for row in frame.sort_values("le", kind="stable").itertuples(index=False):
                    latest = max(latest, row.le)
                    out += _one(held, row, key[0])
            for state, some in zip(self.rows, held, strict=True):
                state.put([r for r in some if r[1] > latest - 200])
            yield pd.DataFrame(out, columns=["sign", "le", "re", "new", "key", "v", "w"])

        def close(self) -> None:
            return None

    frames = [
        spark.readStream.schema(ROW).option("maxFilesPerTrigger", 1).parquet(str(folder / side))
        for side in ("left", "right")
    ]
    both = frames[0].withColumn("side", fn.lit(0)).unionAll(frames[1].withColumn("side", fn.lit(1)))
    joined = both.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Join(),
        outputStructType="sign string, le long, re long, new long, key long, v long, w long",
        outputMode="Append",
        timeMode="None",
    )
    query = (
        joined.writeStream.outputMode("append")
        .format("parquet")
        .option("path", str(folder / "hand"))
        .option("checkpointLocation", str(folder / "hand-cp"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return durations(query)


def _one(held: list[list[Any]], row: Any, key: int) -> list[tuple[Any, ...]]:
    """What one row changes: matches that come, or ends of matches that move."""
    mine, other = held[row.side], held[1 - row.side]
    out = []
    if row.sign == "+":
        mine.append((row.le, row.re, row.v))
        for le, re, v in other:
            start, end = max(le, row.le), min(re, row.re)
            if start < end:
                out.append(("+", start, end, end, key, *((row.v, v) if row.side == 0 else (v, row.v))))
        return out
    mine[mine.index((row.le, row.re, row.v))] = (row.le, row.new, row.v)
    for le, re, v in other:
        start, before, after = max(le, row.le), min(re, row.re), min(re, row.new)
        if start < before and before != after:
            pair = (row.v, v) if row.side == 0 else (v, row.v)
            out.append(("-", start, before, max(start, after), key, *pair))
    return out


def large_state(report: Report, spark: Any, megabytes: int, epochs: int) -> None:
    """An epoch that touches one in a hundred of what a join holds, beside one that holds nothing."""
    times: dict[int, list[float]] = {}
    for held in (0, megabytes):
        folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
        try:
            times[held] = _held(spark, folder, held, megabytes, epochs)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    with_state, without = (statistics.median(times[held]) for held in (megabytes, 0))
    report.add(
        f"state_{megabytes}MB_per_bucket",
        seconds=round(with_state, 3),
        without_state_seconds=round(without, 3),
        more_seconds=round(with_state - without, 3),
        slowest_seconds=round(max(times[megabytes]), 3),
    )


def _held(spark: Any, folder: Path, held: int, megabytes: int, epochs: int) -> list[float]:
    """Epochs that each bring one in a hundred rows, behind one that brings the state."""
    from benchmarks.spark import durations

    rows = max(1, held * 2 * 1_000_000 // 150)
    few = megabytes * 2 * 1_000_000 // 150 // 100
    (folder / "left").mkdir()
    (folder / "right").mkdir()
    pq.write_table(wide_rows(rows, 0, 10**12), folder / "left" / "00000.parquet", row_group_size=1 << 17)
    pq.write_table(wide_rows(1, 0, 10**12), folder / "right" / "00000.parquet")
    for number in range(1, epochs + WARM + 1):
        pq.write_table(wide_rows(few, number, 10**12), folder / "left" / f"{number:05d}.parquet")
        pq.write_table(wide_rows(few, number, 1), folder / "right" / f"{number:05d}.parquet")
    left, right = (
        cz.read.parquet(folder / side, time="le", end="re", punctuate=cz.delay(1), name=side)
        for side in ("left", "right")
    )
    joined = left.join(right.select("key"), on="key")
    query = joined.start(
        spark,
        sink=folder / "out",
        checkpoint=folder / "cp",
        trigger="available",
        files_per_epoch=1,
        allow_unbounded=True,
    )
    query.wait()
    return durations(query.query)[1 + WARM :]


def wide_rows(rows: int, at: int, lifetime: int) -> pa.Table:
    random = np.random.default_rng(at)
    text = random.integers(0, 256, 100 * rows, np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * 100
    wide = pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text.tobytes())]
    )
    le = np.full(rows, at)
    return pa.table({"le": le, "re": le + lifetime, "key": random.integers(0, 10**9, rows), "wide": wide})
