"""A day of events in thousands of epochs, on one host; notes what the query takes while it runs.

Usage: day_run.py FOLDER HOST EPOCHS; HOST is spark or embedded. FOLDER/sizes.jsonl has a line per ten epochs.
An epoch is half a minute of events: the source has no more until the epoch before is committed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import caesura as cz
from caesura import Stream, col
from caesura.io import Offsets, Reader, Source
from caesura.io.ingress.shape import Shape
from caesura.plan import NOTHING_NOW, Raw

SECONDS, ROWS, RETAINED = 30, 200, 20
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("v", pa.float64())])


class Drawn(Reader):
    """Rows that their offset alone decides, as far as FOLDER/until says."""

    schema, spark_form, lanes, poll_seconds = SCHEMA, "lanes", 1, 0.0

    def __init__(self, folder: str) -> None:
        self.folder, self.key = folder, "a day"

    def latest(self) -> Offsets:
        return {0: ROWS * int((Path(self.folder) / "until").read_text())}

    def read(self, offsets: Offsets) -> Iterator[Any]:
        at = offsets.get(0, 0)
        while True:
            if at >= self.latest()[0]:
                yield NOTHING_NOW
                continue
            yield Raw(0, at, chunk(at // ROWS).slice(at % ROWS))
            at += ROWS - at % ROWS

    def describe(self) -> str:
        return "a day of rows"


def chunk(number: int) -> pa.RecordBatch:
    """The rows of half a minute; one in fifty is a minute late, and the keys move on."""
    drawn = np.random.default_rng(number)
    at = 1_700_000_000 + SECONDS * number + np.sort(drawn.integers(0, SECONDS, ROWS))
    times = pa.array((at - 60 * (drawn.random(ROWS) < 0.02)) * 1_000_000).cast(pa.timestamp("us"))
    return pa.record_batch([times, drawn.integers(0, 300, ROWS) + 10 * number, drawn.random(ROWS)], SCHEMA)


def stream(folder: Path) -> Stream:
    """Windows of each key, joined with its rows: two kinds of state, late rows and corrections."""
    shape = Shape.of(time="ts")
    points = Stream(Source(reader=Drawn(str(folder)), shape=shape, policy=cz.delay("30s"), name="points"))
    means = points.group_by("id").hopping("60s", every="20s").agg(n=cz.count(), mean=cz.avg("v"))
    return means.join(points.where(col("v") > 0.5).set_duration("20s"), on="id")


def until(folder: Path, number: int) -> None:
    partial = folder / ".until"
    partial.write_text(str(number))
    partial.rename(folder / "until")


def held(folder: Path) -> tuple[int, int]:
    """The bytes and the number of the files below a folder."""
    sizes = [size for root, _, names in os.walk(folder) for name in names if (size := _size(root, name)) >= 0]
    return sum(sizes), len(sizes)


def _size(root: str, name: str) -> int:
    try:
        return os.stat(f"{root}/{name}").st_size  # noqa: PTH116 - a thousand times per sample
    except FileNotFoundError:
        return -1


def sizes(folder: Path) -> dict[str, float]:
    """What driver, JVM and workers hold in memory, and what lies in the checkpoint and in local folders."""
    found = {"driver": psutil.Process().memory_info().rss, "jvm": 0, "workers": 0}
    for child in psutil.Process().children(recursive=True):
        try:
            words, rss = " ".join(child.cmdline()), child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
        kind = "jvm" if "org.apache.spark" in words else "workers" if "daemon" in words else None
        if kind is not None:
            found[kind] += rss
    for name in ("cp", "local", "logs"):
        found[name], found[f"{name} files"] = held(folder / name)
    return dict(found)


def on_embedded(folder: Path, epochs: int, note: Callable[[int, Any], None]) -> None:
    query = stream(folder).query(sink=folder / "out", checkpoint=folder / "cp", every="1h")
    for epoch in range(epochs):
        until(folder, epoch + 1)
        while not query.step():
            pass
        query.save()
        note(epoch, None)
    query.close()


def on_spark(folder: Path, epochs: int, note: Callable[[int, Any], None]) -> None:
    settings = {
        "spark_sql_streaming_minBatchesToRetain": RETAINED,
        "spark_sql_streaming_stateStore_maintenanceInterval": "1s",  # or what is to go piles up with the pace
        "spark_local_dir": folder / "local",
        "spark_driver_memory": "512m",
        "spark_driver_extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch -XX:TieredStopAtLevel=1",
    }
    spark = cz.session("caesura-day", master="local[2]", buckets=1, **settings)
    query = stream(folder).start(spark, sink=folder / "out", checkpoint=folder / "cp")
    for epoch in range(epochs):
        until(folder, epoch + 1)
        while not (folder / "cp" / "commits" / str(epoch)).exists():
            assert query.active, query.wait(1)
            time.sleep(0.005)
        note(epoch, spark)
    query.stop()
    spark.stop()


def main() -> None:
    folder, host, epochs = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for name in ("local", "logs"):
        (folder / name).mkdir(parents=True)
    os.environ["TMPDIR"] = str(folder / "logs")  # where the session's log goes
    until(folder, 0)
    out = (folder / "sizes.jsonl").open("w", buffering=1)

    def note(epoch: int, spark: Any) -> None:
        if epoch % 10 != 9:
            return
        now = {"epoch": epoch + 1, **sizes(folder)}
        if spark is not None:
            spark._jvm.java.lang.System.gc()
            heap = spark._jvm.java.lang.Runtime.getRuntime()
            now["heap"] = heap.totalMemory() - heap.freeMemory()
        out.write(json.dumps(now) + "\n")

    {"spark": on_spark, "embedded": on_embedded}[host](folder, epochs, note)


if __name__ == "__main__":
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(sys.modules[__name__])
    main()
