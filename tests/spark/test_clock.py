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


def test_rows_timed_by_the_clock_have_the_same_times_when_their_epoch_runs_again(
    spark: Any, tmp_path: Path
) -> None:
    bids = cz.from_rows([{"bidder": 1}], time=cz.ingestion_time())
    assert bids.run_batch(spark).history.rows()[0][0] > datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6
    (tmp_path / "bids").mkdir()
    schema = pa.schema([("bidder", pa.int64())])
    bids = cz.read.parquet(tmp_path / "bids", schema=schema, time=cz.ingestion_time())
    counted = bids.group_by("bidder").tumbling("10s").agg(n=cz.count(), at=cz.max("bidder"))
    outputs = {"counts": counted.node, "times": bids.select("bidder", at=cz.start()).node}
    runs: list[dict[int, list[str]]] = []
    for number in range(3):
        if number < 2:
            pq.write_table(pa.table({"bidder": [number, 7]}), tmp_path / "bids" / f"{number}.parquet")
        else:
            (tmp_path / "cp" / "commits" / str(max(runs[1]))).unlink()
        seen: dict[int, list[str]] = {}
        runs.append(seen)

        def take(epoch: Epoch, seen: dict[int, list[str]] = seen) -> None:
            pages = [item for items in epoch.items.values() for item in items if isinstance(item, Page)]
            seen[epoch.number] = sorted(str(row) for page in pages for row in page.rows())

        start(outputs, spark, sink=CallbackSink(take), checkpoint=tmp_path / "cp", trigger="available").wait()
    last = max(runs[1])
    assert runs[1][last]
    assert runs[2][last] == runs[1][last]


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
