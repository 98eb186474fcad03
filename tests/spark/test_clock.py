"""On Spark too an idle lane is let go, and a clock promises, while no row comes."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from caesura.events import Page
from caesura.runtime.buckets.aligner import Epoch
from caesura.spark import CallbackSink, start


def test_windows_close_by_the_clock_while_a_lane_is_empty_and_no_row_comes(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "laned").mkdir()
    (tmp_path / "timed").mkdir()
    laned = pa.table({"ts": [1, 2, 30], "id": [1, 1, 1], "lane": [0, 0, 0], "at": [0, 1, 2]})
    pq.write_table(laned, tmp_path / "laned" / "0.parquet")
    now = datetime.now(UTC).replace(tzinfo=None)
    pq.write_table(pa.table({"ts": pa.array([now], pa.timestamp("us"))}), tmp_path / "timed" / "0.parquet")
    frame = spark.readStream.schema("ts long, id long, lane long, at long").parquet(str(tmp_path / "laned"))
    idling = cz.from_spark(
        frame, lane="lane", offset="at", lanes=2, time="ts", punctuate=cz.delay(0, idle="1s"), name="idling"
    )
    beating = cz.read.parquet(tmp_path / "timed", time="ts", punctuate=cz.heartbeat("1s"), name="beating")
    outputs = {
        "idle": idling.tumbling(10).agg(n=cz.count()),
        "beat": beating.tumbling("1s").agg(n=cz.count()),
    }
    seen: dict[str, int] = {}
    closed = threading.Event()

    def take(epoch: Epoch) -> None:
        for name, items in epoch.items.items():
            seen[name] = seen.get(name, 0) + sum(len(item) for item in items if isinstance(item, Page))
        if seen.get("idle") and seen.get("beat"):
            closed.set()

    nodes = {name: stream.node for name, stream in outputs.items()}
    query = start(nodes, spark, sink=CallbackSink(take), checkpoint=tmp_path / "cp", output="final")
    for _ in range(120):
        if closed.wait(5):
            break
        assert query.active, query.wait()
    query.drain()
    query.stop()
    assert seen == {"idle": 1, "beat": 1}
