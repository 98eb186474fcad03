"""The Spark host beside Spark's own streaming, on the same Parquet files in the same session.

Yahoo Y1: filter views, look the campaign up, count per campaign and second. Steady state is the
median time of an epoch after the first two. One session on ``local[2]``.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report
from benchmarks.spark_joins import large_state, temporal_join
from benchmarks.y1_data import ads, campaigns, later, views

WARM = 2


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench spark")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="1,2,4,8", help="millions of events per epoch")
    parser.add_argument("--epochs", type=int, default=6, help="steady epochs for each size and round")
    parser.add_argument("--rounds", type=int, default=3, help="how often ours and Spark's own take turns")
    parser.add_argument(
        "--state-mb", type=int, default=500, help="join state per bucket, for the case 'state'"
    )
    parser.add_argument("--cores", type=int, default=2, help="cores, buckets and files of an epoch")
    parser.add_argument("--only", default="y1,idle,frame,join,state")
    options = parser.parse_args(arguments)
    report = Report("spark", options.json)
    began = time.perf_counter()
    master = f"local[{options.cores}]"
    spark = cz.session("caesura-bench", master=master, buckets=options.cores, spark_driver_memory="6g")
    report.add("session", seconds=round(time.perf_counter() - began, 1))
    wanted = options.only.split(",")
    for size in (float(s) for s in options.sizes.split(",")):
        if "y1" in wanted:
            y1(report, spark, int(size * 1e6), options.epochs, options.rounds, frame="frame" in wanted)
    if "idle" in wanted:
        idle(report, spark, options.rounds)
    if "join" in wanted:
        temporal_join(report, spark, 200_000, options.epochs)
    if "state" in wanted:
        large_state(report, spark, options.state_mb, options.epochs)
    spark.stop()


def files_of(spark: Any) -> int:
    """The files of an epoch: as many as there are cores, so that all of them read."""
    return int(spark.sparkContext.defaultParallelism)


def write_epochs(folder: Path, events: int, epochs: int, files: int) -> None:
    """The files of some epochs; time runs on from file to file."""
    part = events // files
    table = ads(part)
    for number in range(files * epochs):
        file = folder / f"{number:05d}.parquet"
        pq.write_table(later(table, number * part), file, row_group_size=1 << 18)


def y1(report: Report, spark: Any, events: int, epochs: int, rounds: int, *, frame: bool) -> None:
    """The median epoch of some rounds, in which Spark's own and ours take turns: the JVM warms to both."""
    size = f"{events // 1_000_000}M" if events >= 1_000_000 else str(events)
    made = in_turns(spark, events, epochs, rounds, frame=frame)
    own = statistics.median(steady(made["spark_own_y1"]))
    for name, runs in made.items():
        seconds = statistics.median(steady(runs))
        report.add(
            f"{name}_{size}",
            events / seconds,
            {} if name == "spark_own_y1" else {"spark_own": own / seconds},
            epoch_s_by_round=[round(statistics.median(steady([run])), 3) for run in runs],
            first_epoch_s=[round(run[0], 2) for run in runs],
        )


def in_turns(
    spark: Any, events: int, epochs: int, rounds: int, *, frame: bool = False
) -> dict[str, list[list[float]]]:
    """Seconds of each epoch, by who makes it and round."""
    made: dict[str, list[list[float]]] = {"spark_own_y1": [], "y1": []}
    folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
    try:
        data = folder / "in"
        data.mkdir()
        write_epochs(data, events, epochs + WARM, files_of(spark))
        for turn in range(rounds):
            made["spark_own_y1"].append(spark_y1(spark, data, folder / f"spark-{turn}"))
            made["y1"].append(our_y1(spark, data, folder / f"ours-{turn}"))
            if frame:
                hopped = our_y1(spark, data, folder / f"frame-{turn}", frame=True)
                made.setdefault("y1_from_spark", []).append(hopped)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return made


def steady(runs: list[list[float]]) -> list[float]:
    """The epochs of some runs, without the first of each."""
    return [seconds for run in runs for seconds in run[WARM:]]


def durations(query: Any) -> list[float]:
    """Seconds per epoch, those without data left out."""
    return [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"] > 0]


def spark_y1(spark: Any, data: Path, out: Path) -> list[float]:
    """Spark's own streaming aggregation, append mode."""
    from pyspark.sql import functions as fn

    table = spark.createDataFrame(campaigns().drop_columns(["since"]).to_pandas())
    clicks = (
        spark.readStream.schema("ts timestamp_ntz, ad long, kind byte")
        .option("maxFilesPerTrigger", files_of(spark))
        .parquet(str(data))
        .where("kind = 0")
        .withColumn("ts", fn.col("ts").cast("timestamp"))
        .join(fn.broadcast(table), "ad")
        .withWatermark("ts", "1 second")
        .groupBy("campaign", fn.window("ts", "1 second"))
        .count()
    )
    query = (
        clicks.writeStream.outputMode("append")
        .format("parquet")
        .option("path", str(out / "data"))
        .option("checkpointLocation", str(out / "cp"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return durations(query)


def our_y1(spark: Any, data: Path, out: Path, *, frame: bool = False) -> list[float]:
    if frame:
        rows = spark.readStream.schema("ts timestamp_ntz, ad long, kind byte")
        rows = rows.option("maxFilesPerTrigger", files_of(spark)).parquet(str(data))
        clicks = cz.from_spark(rows, time="ts", punctuate=cz.delay("1s"))
    else:
        clicks = cz.read.parquet(data, time="ts", punctuate=cz.delay("1s"))
    query = views(clicks).start(
        spark,
        sink=out / "data",
        checkpoint=out / "cp",
        output="final",
        trigger="available",
        files_per_epoch=files_of(spark),
    )
    query.wait()
    return durations(query.query)


def idle(report: Report, spark: Any, rounds: int) -> None:
    """An epoch with next to no data: what the machinery costs."""
    made = in_turns(spark, 20, 10, rounds)
    report.add(
        "epoch_with_no_data",
        seconds=round(statistics.median(steady(made["y1"])), 3),
        spark_own_seconds=round(statistics.median(steady(made["spark_own_y1"])), 3),
        first_epoch_s=[round(run[0], 2) for run in made["y1"]],
        spark_own_first_epoch_s=[round(run[0], 2) for run in made["spark_own_y1"]],
    )
