"""Two hours of events in 240 epochs: what the query holds stays as it was after the first few."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import col
from caesura.runtime.buckets.aligner import Epoch
from caesura.spark import CallbackSink

EPOCHS = 240
SECONDS = 30
"""Of events, in a file."""

SOON = {"spark.sql.streaming.minBatchesToRetain": 5, "spark.sql.streaming.fileSource.log.cleanupDelay": "5s"}
"""Spark keeps a hundred epochs, and the log of files for ten minutes; these epochs take half a second."""


class Sizes(CallbackSink):
    """Notes what driver, workers and checkpoint take, every twentieth epoch."""

    def __init__(self, spark: Any, checkpoint: Path) -> None:
        super().__init__(lambda epoch: None)
        self.spark, self.checkpoint = spark, checkpoint
        self.seen: list[dict[str, float]] = []

    def take(self, epoch: Epoch) -> None:
        super().take(epoch)
        if epoch.number % 20 == 19:
            self.seen.append(self._now())

    def _now(self) -> dict[str, float]:
        jvm = self.spark._jvm.java.lang
        jvm.System.gc()
        heap = jvm.Runtime.getRuntime()
        me = psutil.Process()
        files = [size for file in self.checkpoint.rglob("*") if (size := _size(file)) is not None]
        return {
            "heap": (heap.totalMemory() - heap.freeMemory()) / 2**20,
            "driver": me.memory_info().rss / 2**20,
            "workers": sum(map(_weight, me.children(recursive=True))) / 2**20,
            "checkpoint": sum(files) / 2**20,
            "files": len(files),
            "state": sum(s.state_rows for s in self.board.status().steps.values()),
        }


def _size(file: Path) -> int | None:
    """What a file takes; None for a folder, and for what Spark took away meanwhile."""
    try:
        return file.stat().st_size if file.is_file() else None
    except FileNotFoundError:
        return None


def _weight(process: psutil.Process) -> int:
    """What a Python worker takes; nothing for the JVM and its short-lived helpers, which may be gone."""
    try:
        worker = "pyspark.daemon" in " ".join(process.cmdline())
        return int(process.memory_info().rss) if worker else 0
    except psutil.NoSuchProcess:
        return 0


@pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="some minutes, for make soak")
def test_two_hours_of_events_leave_no_trace(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rng = np.random.default_rng(3)
    for number in range(EPOCHS):
        at = 1_700_000_000 + SECONDS * number + np.sort(rng.integers(0, SECONDS, 2000))
        late = rng.random(2000) < 0.02
        times = pa.array((at - 60 * late) * 1_000_000).cast(pa.timestamp("us"))
        table = pa.table(
            {"ts": times, "id": rng.integers(0, 5000, 2000) + 1000 * number, "v": rng.random(2000)}
        )
        file = tmp_path / "in" / f"{number:04d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_700_000_000 + number,) * 2)
    points = cz.read.parquet(tmp_path / "in", time="ts", punctuate=cz.delay("30s"), name="points")
    means = points.group_by("id").hopping("60s", every="20s").agg(n=cz.count(), mean=cz.avg("v"))
    stream = means.join(points.where(col("v") > 0.5).set_duration("20s"), on="id")
    for name, value in SOON.items():
        spark.conf.set(name, value)
    sink = Sizes(spark, tmp_path / "cp")
    stream.start(spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available", files_per_epoch=1).wait()
    for name in SOON:
        spark.conf.unset(name)
    first, last = sink.seen[2], sink.seen[-1]
    told = "\n".join(map(str, sink.seen))
    assert len(sink.seen) == EPOCHS // 20, told
    for what, share, slack in (
        ("heap", 1.3, 20), ("driver", 1.15, 20), ("workers", 1.25, 60),
        ("checkpoint", 1.5, 2), ("files", 1.5, 20), ("state", 1.3, 100),
    ):  # fmt: skip
        assert last[what] <= first[what] * share + slack, f"{what}\n{told}"
