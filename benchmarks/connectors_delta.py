"""Epochs merged into a Delta table: ours, beside a MERGE that is written by hand in `foreachBatch`.

No jar of Delta's merges on this Spark (delta-spark 4.3.0 is of an earlier one: NoSuchMethodError), so by hand
rows are merged with the same library as ours, `deltalake`: Spark takes the last row of every key of a batch,
and the driver merges, with the number of the batch in the same commit. An epoch's time is that between two
commits of the table, so that starting a query is told apart, as the time until its first commit.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report

EPOCHS, ROWS, KEYS = 4, 1_000_000, 100_000
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("road", pa.string())])


def written(folder: Path) -> Path:
    """A file an epoch, of rows that replace each other."""
    folder.mkdir()
    random = np.random.default_rng(7)
    for epoch in range(EPOCHS):
        ts = np.arange(ROWS) + epoch * ROWS
        ids = random.integers(0, KEYS, ROWS)
        road = pa.array([f"A{n}" for n in range(17)]).take(pa.array(ids % 17))
        rows = pa.table({"ts": ts, "id": ids, "v": random.random(ROWS), "road": road})
        pq.write_table(rows, folder / f"{epoch:03d}.parquet")
    return folder


def ours(spark: Any, data: Path, place: Path) -> deltalake.DeltaTable:
    """The current row of every sensor, as a plan."""
    readings = cz.read.parquet(data, time="ts", punctuate=cz.delay(0), name="readings")
    readings.latest("id").upserts("id").start(
        spark,
        sink=cz.delta(place / "table"),
        checkpoint=place / "checkpoint",
        trigger="available",
        files_per_epoch=1,
        bounded_columns={"readings": ["id"]},
    ).wait()
    return deltalake.DeltaTable(str(place / "table"))


def in_process(spark: Any, data: Path, place: Path) -> deltalake.DeltaTable:
    """The same plan without Spark, saved after every file."""
    readings = cz.read.parquet(data, time="ts", punctuate=cz.delay(0), name="readings")
    plan = readings.latest("id").upserts("id")
    query = plan.query(checkpoint=place / "checkpoint", sink=cz.delta(place / "table"), every="1h")
    saved = 0
    while query.step():
        [reader] = query.runner._readers
        if (done := reader.position.get("0", 0) // ROWS) > saved:
            query.save()
            saved = done
    query.save()
    return deltalake.DeltaTable(str(place / "table"))


def by_hand(spark: Any, data: Path, place: Path) -> deltalake.DeltaTable:
    """The same with Spark's own streaming: the last row of every key of a batch is merged, if it is later."""
    from pyspark.sql.functions import max_by, struct

    table = str(place / "table")
    deltalake.DeltaTable.create(table, SCHEMA.append(pa.field("ts", pa.int64())))

    def merge(batch: Any, number: int) -> None:
        latest = batch.groupBy("id").agg(max_by(struct("v", "road", "ts"), "ts").alias("row"))
        rows = latest.select("id", "row.v", "row.road", "row.ts").toArrow()
        opened = deltalake.DeltaTable(table)
        if number <= (-1 if (last := opened.transaction_version("bench")) is None else last):
            return
        mark = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("bench", number)])
        merge = opened.merge(rows, "s.id = t.id", "s", "t", commit_properties=mark)
        merge.when_matched_update_all("s.ts >= t.ts").when_not_matched_insert_all().execute()

    stream = spark.readStream.schema("ts long, id long, v double, road string").format("parquet")
    stream = stream.option("maxFilesPerTrigger", 1).load(str(data)).writeStream.foreachBatch(merge)
    checkpoint = str(place / "checkpoint")
    stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    return deltalake.DeltaTable(table)


def report_merges(report: Report, pairs: int) -> None:
    """Both in turns, over the same files, in one session."""
    ways: dict[str, Callable[[Any, Path, Path], deltalake.DeltaTable]] = {
        "ours": ours,
        "here": in_process,
        "hand": by_hand,
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    first: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        data = written(Path(folder) / "data")
        spark = cz.session("bench-delta", master="local[2]", buckets=2)
        for turn in range(pairs + 1):
            found = {}
            for name in sorted(ways, reverse=bool(turn % 2)):
                place = Path(tempfile.mkdtemp(dir=folder))
                began = time.time()
                table = ways[name](spark, data, place)
                commits = committed(table)
                if turn:  # the first run compiles
                    first[name].append(commits[0] - began)
                    took[name].append((commits[-1] - commits[0]) / (EPOCHS - 1))
                found[name] = pa.table(table.to_pyarrow_table()).select(SCHEMA.names).sort_by("id")
            assert found["ours"] == found["here"] == found["hand"], "all tables hold the same"
        spark.stop()
    times = {name: {"ms": _ms(took[name]), "first_ms": _ms(first[name])} for name in ways}
    report.add("an epoch merged into Delta by hand", **times["hand"])
    for way, name in (("ours", "on Spark"), ("here", "in this process")):
        ratio = statistics.median(h / mine for h, mine in zip(took["hand"], took[way], strict=True))
        report.add(f"an epoch merged into Delta {name}", None, {"foreachBatch": ratio}, **times[way])


def committed(table: deltalake.DeltaTable) -> list[float]:
    """When the table's epochs were committed, in seconds."""
    merges = [one for one in table.history() if one["operation"] == "MERGE"]
    assert len(merges) >= EPOCHS, len(merges)  # in this process a batch may end behind a file
    return sorted(one["timestamp"] / 1000 for one in merges)


def _ms(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 1)
