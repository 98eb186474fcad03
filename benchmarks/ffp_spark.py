"""A loop on Spark (``local[2]``, two buckets): a chain that is followed hop by hop.

Across buckets every round is an epoch; with a column that goes around unchanged all rounds stay inside
their bucket, within one epoch.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.spark import WARM, durations
from caesura import Stream, col
from caesura.spark import MemorySink


def chain(folder: Path, buckets: Any) -> Stream:
    """The nodes of a chain that can be reached from its beginning, and from where."""
    links = cz.read.parquet(folder / "links", time="ts", punctuate=cz.delay(0), name="links").set_duration(
        1000
    )
    seeds = cz.read.parquet(folder / "seeds", time="ts", punctuate=cz.delay(0), name="seeds").set_duration(
        1000
    )

    def hop(found: Stream) -> Stream:
        return found.join(links, on={"node": "a"}).select("src", node=col("b"))

    return cz.fixpoint(seeds, hop, keep="distinct", buckets=buckets)


def rounds(hops: int) -> Iterator[dict[str, Any]]:
    """Rounds a second across buckets, and how many stay inside where they can."""
    folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
    (folder / "links").mkdir()
    (folder / "seeds").mkdir()
    nodes = list(range(hops))
    pq.write_table(
        pa.table({"ts": [0] * hops, "a": nodes, "b": [n + 1 for n in nodes]}), folder / "links" / "0.parquet"
    )
    pq.write_table(pa.table({"ts": [0], "src": [0], "node": [0]}), folder / "seeds" / "0.parquet")
    spark = cz.session("caesura-bench", master="local[2]", buckets=2, spark_driver_memory="4g")
    try:
        for way in ("all", "inside"):
            stream, sink = chain(folder, way), MemorySink()
            query = stream.start(
                spark, sink=sink, checkpoint=folder / way, trigger="available", allow_unbounded=True
            )
            query.wait()
            took = durations(query.query)
            steps = query.status().steps
            inner = max((step.extra.get("rounds", 0) for step in steps.values()), default=0)
            yield {
                "case": f"Spark, {hops} hops, loop {'across buckets' if way == 'all' else 'inside a bucket'}",
                "epochs": len(took),
                "rounds_per_s": round(1 / statistics.median(took[WARM:]), 2) if way == "all" else None,
                "rounds_inside": 0 if way == "all" else inner,
                "epoch_s": [round(t, 2) for t in took],
            }
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
