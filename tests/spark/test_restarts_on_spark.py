"""A restart under other settings is right, or refused by name, whatever starts the query."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import Stream
from caesura.errors import PlanError, StreamError
from caesura.io.places import Place
from caesura.spark.errors import asking_spark
from caesura.spark.host.moved import follow_move
from caesura.spark.host.read_files import take_times

PARTITIONS = "spark.sql.shuffle.partitions"
EPOCH, START = datetime(1970, 1, 1), datetime(2024, 3, 10)
"""The clocks of New York go forward on this day."""
HARMLESS = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.adaptive.enabled": "true",
}
"""Settings that may change between two starts; the answers are the same."""
Rows = list[tuple[Any, ...]]


def put(folder: Path, first: int, last: int) -> None:
    """Writes rows of these minutes."""
    folder.mkdir(exist_ok=True)
    minutes = range(first, last)
    times = pa.array([START + timedelta(minutes=m) for m in minutes], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times, "k": [m % 7 for m in minutes]}), folder / f"{first}.parquet")


def counted(stream: Stream, minutes: int = 10) -> Stream:
    return stream.group_by("k").tumbling(f"{minutes}m").agg(n=cz.count())


def expected(last: int, minutes: int = 10) -> Rows:
    """The counts by window and key, once all windows of the first minutes are over."""
    found: dict[tuple[int, int], int] = {}
    for minute in range(last):
        place = (minute // minutes, minute % 7)
        found[place] = found.get(place, 0) + 1
    return sorted((micros(window * minutes), k, n) for (window, k), n in found.items())


def micros(minute: int) -> int:
    return int((START - EPOCH + timedelta(minutes=minute)) / timedelta(microseconds=1))


@contextmanager
def settings(spark: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def streamed(spark: Any, given: Path) -> Any:
    return spark.readStream.schema("ts timestamp_ltz, k long").parquet(str(given))


def written(spark: Any, given: Path, checkpoint: Path, minutes: int = 10) -> Rows:
    """What a DataFrame of to_spark gives until the end of what is there."""
    frame = cz.from_spark(streamed(spark, given), time="ts", punctuate=cz.delay("1m"))
    made: Rows = []

    def take(batch: Any, _: int) -> None:
        made.extend(batch.selectExpr("CAST(unix_micros(LE) AS LONG)", "k", "n", "kind").collect())

    writer = counted(frame, minutes).to_spark(spark, output="final").writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    with asking_spark():
        query.awaitTermination()
    assert {row[3] for row in made} <= {"+"}
    return sorted(tuple(row)[:3] for row in made)


def test_a_dataframe_of_another_folder_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    put(first, 0, 45)
    put(other, 45, 100)

    def run(folder: str) -> None:
        frame = cz.from_spark(
            streamed(spark, Path(folder)), time="ts", name="clicks", punctuate=cz.delay("1m")
        )
        options = {"checkpoint": tmp_path / "cp", "sink": tmp_path / "out", "trigger": "available"}
        counted(frame).start(spark, **options).wait()

    run(f"{tmp_path}/f*")
    run(str(first))
    with pytest.raises(StreamError, match=r"step 'clicks'.* has read files of '.*first', and .* '.*other'"):
        run(str(other))


def test_a_dataframe_of_changes_goes_on_rightly_or_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    given, checkpoint, moved = (tmp_path / name for name in ("in", "checkpoint", "moved"))
    put(given, 0, 45)
    first = written(spark, given, checkpoint)
    put(given, 45, 100)
    with settings(spark, {PARTITIONS: 4}), pytest.raises(StreamError, match="made with 2 buckets"):
        written(spark, given, checkpoint)
    with pytest.raises(StreamError, match="belongs to another plan: it holds 'tumbling by k; 10m"):
        written(spark, given, checkpoint, 20)
    shutil.move(checkpoint, moved)
    assert follow_move(Place.of(moved))
    assert not follow_move(Place.of(moved))
    with settings(spark, HARMLESS):
        rest = written(spark, given, moved)
    assert first + rest == expected(90)


def test_a_query_goes_on_elsewhere_and_under_other_settings(spark: Any, tmp_path: Path) -> None:
    given, checkpoint, moved = (tmp_path / name for name in ("in", "checkpoint", "moved"))

    def run(place: Path, minutes: int = 10, **more: Any) -> None:
        rows = cz.read.parquet(str(given), time="ts", punctuate=cz.delay("1m"))
        options = {"checkpoint": place, "sink": tmp_path / "out", "output": "final", "trigger": "available"}
        counted(rows, minutes).start(spark, **options, **more).wait()

    put(given, 0, 45)
    with settings(spark, HARMLESS):
        run(checkpoint)
    put(given, 45, 100)
    with settings(spark, {PARTITIONS: 4}), pytest.raises(StreamError, match="made with 2 buckets"):
        run(checkpoint)
    with pytest.raises(StreamError, match="belongs to another plan"):
        run(checkpoint, 20)
    shutil.move(checkpoint, moved)
    os.utime(given / "0.parquet", (1, 1))
    with pytest.raises(StreamError, match=r"'0\.parquet' was written anew after it was read"):
        run(moved)
    assert take_times(Place.of(moved)) == 1
    run(moved)
    assert held(tmp_path / "out" / "out") == expected(90)
    pq.write_table(pq.read_table(given / "0.parquet").slice(0, 44), given / "0.parquet")  # but for minute 44
    with pytest.raises(StreamError, match=r"written anew(.|\n)*on_change='rebuild'"):
        run(moved)
    run(moved, on_change="rebuild", final_rows="new_generation")
    wanted = [(le, k, n - (le == micros(40) and k == 44 % 7)) for le, k, n in expected(90)]
    [made] = (tmp_path / "out").glob("*2*")
    assert held(made) == [row for row in wanted if row[2]]
    run(moved)


def held(folder: Path) -> Rows:
    rows = pq.read_table(folder).to_pylist()
    starts = [int((row["LE"].replace(tzinfo=None) - EPOCH) / timedelta(microseconds=1)) for row in rows]
    return sorted((le, row["k"], row["n"]) for le, row in zip(starts, rows, strict=True))


def test_what_spark_would_refuse_in_its_own_words_is_refused_in_ours(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as sf

    put(tmp_path / "in", 0, 5)
    batch = spark.read.parquet(str(tmp_path / "in"))
    frames = (batch, streamed(spark, tmp_path / "in"))
    rows, stream = (
        cz.from_spark(frame, time="ts", name="clicks", punctuate=cz.delay("1m")) for frame in frames
    )
    both = rows.join(cz.from_spark(frames[1], time="ts", name="views"), on="k")
    calls: dict[str, tuple[str, Callable[[], Any]]] = {
        "start": ("'clicks' reads a batch DataFrame", lambda: counted(rows).start(spark, sink="memory")),
        "to_spark": ("'clicks' reads a batch DataFrame", lambda: both.to_spark(spark)),
        "run_batch": ("'clicks' reads a streaming DataFrame", lambda: counted(stream).run_batch(spark)),
        "agg": ("got a column of PySpark", lambda: rows.tumbling("1m").agg(sf.sum("k").alias("t"))),
        "named": ("got a column of PySpark", lambda: rows.tumbling("1m").agg(t=sf.sum("k"))),
        "totals": ("PySpark", lambda: rows.totals(t=sf.sum("k"))),
        "watermark": (
            "a watermark on 'other'",
            lambda: cz.from_spark(
                frames[1].withColumn("other", sf.col("ts")).withWatermark("other", "1 minute"), time="ts"
            ),
        ),
    }
    for name, (why, call) in calls.items():
        with pytest.raises(PlanError, match=why):
            call()
            pytest.fail(name)


def test_a_watermark_of_spark_is_the_promise_unless_another_is_given(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", 0, 5)
    frame = streamed(spark, tmp_path / "in").withWatermark("ts", "90 seconds")
    taken, given = (
        cz.from_spark(frame, time="ts", **more).node for more in ({}, {"punctuate": cz.delay("5m")})
    )
    assert str(taken.policy) == str(cz.from_spark(frame, time="ts", punctuate=cz.delay("90s")).node.policy)
    assert str(given.policy) != str(taken.policy)


def test_a_batch_runs_plans_whose_feedback_has_nobody_to_hear_it(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in", 0, 30)
    rows = cz.read.parquet(str(tmp_path / "in"), time="ts")
    paced = counted(rows.pace(within="60m"))
    assert paced.run_batch(spark).table().num_rows == paced.run().table().num_rows == len(expected(30))
