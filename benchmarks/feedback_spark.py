"""What feedback leaves unread on Spark: sensors in Parquet, one file an hour, a freeway to each row group.

A consumer that has zoomed to one freeway of five says so behind the first epoch. The same files without
feedback stand beside it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import caesura as cz
from benchmarks import feedback_data as data
from benchmarks.report import Report
from benchmarks.spark import WARM, durations
from caesura import col

FREEWAY = 30
"""Sensors of one freeway."""


def bytes_on_spark(report: Report, minutes: int, runs: int) -> None:
    """Row groups of files on Spark that cannot contribute are not read."""
    hours = hourly(max(480, minutes))
    spark = cz.session("caesura-bench", master="local[2]", buckets=2, spark_driver_memory="4g")
    try:
        for name, zoomed in (("all", False), ("one freeway", True)):
            with tempfile.TemporaryDirectory(prefix="caesura-bench-") as folder:
                found = read(spark, Path(folder), hours, zoomed=zoomed)
            report.add(f"bytes on Spark: {name}", **found)
    finally:
        spark.stop()


def hourly(minutes: int) -> list[pa.Table]:
    """The sensors' rows, a table an hour, freeway by freeway."""
    whole = data.table_of(list(data.sensors(minutes)))
    hour = pc.divide(whole["ts"], 60 * data.MINUTE)
    some = [whole.filter(pc.equal(hour, n)) for n in range(-(-minutes // 60))]
    return [table.sort_by([("sensor_id", "ascending"), ("ts", "ascending")]) for table in some]


def read(spark: Any, folder: Path, hours: list[pa.Table], *, zoomed: bool) -> dict[str, Any]:
    """Counts of the source behind the last epoch, and how long the epochs took."""
    (folder / "in").mkdir()
    sizes = [put(folder, number, table) for number, table in enumerate(hours[:1])]
    query = start(spark, folder)
    if zoomed:
        query.assume(col("sensor_id") >= FREEWAY)
    sizes += [put(folder, number, table) for number, table in enumerate(hours) if number > 0]
    query = start(spark, folder)
    told = query.status().sources["sensors"]
    return {
        "epoch_s": round(statistics.median(durations(query.query)[WARM:]), 2),
        "rows_not_read": told.rows_unread,
        "bytes_not_read": told.bytes_unread,
        "of": sum(sizes),
    }


def put(folder: Path, number: int, table: pa.Table) -> int:
    """Writes an hour, so that it appears whole; gives its size."""
    partial = folder / f"{number}.partial"
    pq.write_table(table, partial, row_group_size=len(table) // 5)
    os.utime(partial, (1_700_000_000 + number,) * 2)
    size = partial.stat().st_size
    partial.rename(folder / "in" / f"{number:03d}.parquet")
    return size


def start(spark: Any, folder: Path) -> Any:
    """Works off the files that are there, one an epoch."""
    late = cz.delay(60 * data.MINUTE)
    sensors = cz.read.parquet(folder / "in", time="ts", punctuate=late, name="sensors")
    query = (
        sensors.group_by("sensor_id")
        .tumbling(data.MINUTE)
        .agg(speed=cz.avg("speed"))
        .start(
            spark,
            sink=folder / "out",
            checkpoint=folder / "cp",
            trigger="available",
            files_per_epoch=1,
            feedback=True,
        )
    )
    query.wait()
    return query
