"""A cycle that crosses stages and buckets, and a message upwards, through the loop log on Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import backward_steps
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import col
from caesura.errors import StreamError
from caesura.events import History
from caesura.io.places import Place
from caesura.io.sources.source import Source
from caesura.plan.cut import Stage, Stages
from caesura.punctuation import Intent
from caesura.spark import MemorySink, SparkQuery
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.part import SparkPart
from caesura.spark.host.running import launch
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.worker.admission import EpochLimits
from caesura.spark.worker.job import Job


def test_a_cycle_across_buckets_circulates_drains_and_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(backward_steps)
    ids = [8, 5, 100, 77, 3, 640, 2000, 999]  # two above 1000 may end each other
    (tmp_path / "in").mkdir()
    for number, some in enumerate((ids[:3], ids[3:])):
        table = pa.table({"ts": [1] * len(some), "id": some})
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    source = cz.read.parquet(tmp_path / "in", time="ts", name="numbers").node
    assert isinstance(source, Source)
    node, stages = backward_steps.loop(source)
    assert stages.backward
    sink = MemorySink()
    place = Place.of(tmp_path / "checkpoint")
    job = Job("looping", stages, 2, "arrival", closes=False, loop=f"{place}/loop")
    query = launch(
        job,
        {"out": node},
        spark,
        sink,
        SparkPart.of(place),
        trigger="available",
        limits=EpochLimits(files=1),
    )
    query.wait()
    got = sorted(row[2][0] for row in History.of(sink.items("out"), node.schema).rows())
    assert got == backward_steps.halvings(ids)
    log = LoopLog(job.loop)
    assert len(sink.epochs) >= 11  # 2000 goes around ten times
    assert len({name.split("-")[0] for name in log.names()}) <= 4
    with pytest.raises(StreamError, match="belongs to another query"):
        log.own("another")


def test_what_a_consumer_ignores_is_neither_made_nor_read(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def put(number: int) -> None:
        ids = [n for n in range(8) for _ in range(10)]
        table = pa.table({"ts": [10 * number + n % 10 for n in range(80)], "id": ids})
        partial = tmp_path / f"{number}.partial"
        pq.write_table(table, partial, row_group_size=20)
        os.utime(partial, (1_700_000_000 + number,) * 2)
        partial.rename(tmp_path / "in" / f"{number}.parquet")

    def go(sink: MemorySink) -> SparkQuery:
        points = cz.read.parquet(
            tmp_path / "in", time="ts", punctuate=cz.delay(9), batch_size=20, name="points"
        )
        stream = points.group_by("id").tumbling(10).agg(n=cz.count())
        made: SparkQuery = stream.start(
            spark,
            sink=sink,
            checkpoint=tmp_path / "cp",
            trigger="available",
            files_per_epoch=1,
            feedback=True,
        )
        made.wait()
        return made

    put(0)
    first, second = MemorySink(), MemorySink()
    query = go(first)
    spoken = query.assume(col("id") >= 4)
    assert query.feedback() == ["#1 assumed: id >= 4"]
    for number in (1, 2, 3):
        put(number)
    again = go(second)
    assert again.feedback() == ["#1 assumed: id >= 4"]
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    rows = History.of([*first.items("out"), *second.items("out")], schema).rows()
    seen = {(le, row[0]) for le, _, row in rows if le < 30}
    assert {(le, n) for le in (0, 10, 20) for n in range(4)} <= seen
    assert not [n for le, n in seen if n >= 4 and le > 0]
    assert {row[1] for le, _, row in rows if le < 30} == {10}
    told = again.status().sources["points"]
    assert told.rows_unread >= 40  # at least one whole file's share
    assert told.bytes_unread > 0
    again.withdraw(spoken.number)
    assert again.feedback() == []
    with pytest.raises(StreamError, match="no feedback #1 is standing"):
        again.withdraw(1)


def test_a_query_without_a_way_back_says_how_to_get_one(tmp_path: Path) -> None:
    source = cz.from_rows([{"ts": 1, "id": 2}], time="ts").node
    assert isinstance(source, Source)
    stages = Stages((Stage(0), Stage(1, outputs={"out": source})), {"out": source}, (source,))
    speaking = CheckpointFeedback.of(Job("mute", stages, 2, "arrival", closes=False), {"out": source})
    with pytest.raises(StreamError, match="not started to take feedback"):
        speaking.give(Intent.ASSUMED, col("id") == 2, None)
