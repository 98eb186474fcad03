"""N2 from Parquet on Spark (``local[2]``), next to the same plan in the engine without Spark.

On Spark the steady state is the median time of an epoch after the first two; without, CPU time of a run.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks import qre_data as data
from benchmarks.qre_data import paper
from benchmarks.spark import WARM, durations

EPOCHS = 8


def write(folder: Path, events: int) -> None:
    """The events as two files per epoch."""
    of = data.nexmark(events)
    table = pa.table([pa.array(of.time), *of.batch.columns], names=["ts", *of.batch.schema.names])
    size = -(-events // (2 * EPOCHS))
    for number in range(2 * EPOCHS):
        pq.write_table(table.slice(number * size, size), folder / f"{number:05d}.parquet")


def n2(events: int) -> Iterator[dict[str, Any]]:
    """Events a second on Spark and without it."""
    folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
    try:
        (folder / "in").mkdir()
        write(folder / "in", events)
        source = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(0))
        stream = source.match(paper.n2(paper.auction_items()))
        stream.run()
        begin = time.process_time()
        stream.run()
        alone = events / (time.process_time() - begin)
        spark = cz.session("caesura-bench", master="local[2]", buckets=2, spark_driver_memory="4g")
        query = stream.start(
            spark,
            sink=folder / "out",
            checkpoint=folder / "cp",
            output="final",
            allow_unbounded=True,
            trigger="available",
            files_per_epoch=2,
        )
        query.wait()
        took = durations(query.query)
        spark.stop()
        rate = events / EPOCHS / statistics.median(took[WARM:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    yield {
        "bench": "qre",
        "case": "N2 from Parquet on Spark",
        "events_per_s": round(rate),
        "embedded_from_parquet": round(alone),
        "events_per_epoch": events // EPOCHS,
        "epoch_s": [round(t, 2) for t in took],
    }
