"""A cycle that crosses stages and buckets, and a message upwards, through the loop log on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import backward_steps
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.errors import StreamError
from caesura.events import History
from caesura.io.source import Source
from caesura.spark import MemorySink
from caesura.spark.looplog import LoopLog
from caesura.spark.running import launch
from caesura.spark.worker import Job


def test_a_cycle_across_buckets_circulates_drains_and_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(backward_steps)
    ids = [8, 5, 100, 77, 3, 640, 2000, 3000]
    (tmp_path / "in").mkdir()
    for number, some in enumerate((ids[:3], ids[3:])):
        table = pa.table({"ts": [1] * len(some), "id": some})
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    source = cz.read.parquet(tmp_path / "in", time="ts", name="numbers").node
    assert isinstance(source, Source)
    node, stages = backward_steps.loop(source)
    assert stages.backward
    sink = MemorySink()
    place = str(tmp_path / "checkpoint")
    job = Job("looping", stages, 2, "arrival", closes=False, loop=f"{place}/loop")
    query = launch(job, {"out": node}, spark, sink, place, trigger="available", files_per_epoch=1)
    query.wait()
    got = sorted(row[2][0] for row in History.of(sink.items("out"), node.schema).rows())
    assert got == backward_steps.halvings(ids)
    log = LoopLog(job.loop)
    assert len(sink.epochs) >= 11  # 2000 goes around ten times
    assert len({name.split("-")[0] for name in log.names()}) <= 4
    with pytest.raises(StreamError, match="belongs to another query"):
        log.own("another")
