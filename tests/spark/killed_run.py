"""A run that a test kills: it reads files as they come and writes windows, and what a loop finds, to Parquet.

Usage: killed_run.py FOLDER; stops by itself when FOLDER/stop exists and all files are processed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import caesura as cz
from caesura import col
from caesura.plan import Node
from caesura.spark import start


def plan(folder: Path) -> cz.Stream:
    """Windows over a join of two windows: two exchanges, corrections inside."""
    points = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(4), name="readings")
    segs = points.group_by("seg").tumbling(10).agg(n=cz.count(), mean=cz.avg("mph"))
    cars = points.where(col("mph") > 3).group_by("car").tumbling(10).agg(m=cz.count())
    pairs = segs.select("n", seg=col("seg")).join(cars.select("m", seg=col("m") % 7), on="seg", how="left")
    return pairs.group_by("seg").tumbling(20).agg(n=cz.sum("n"), m=cz.sum("m"), rows=cz.count())


def ways(folder: Path) -> cz.Stream:
    """Which segments can be reached from the first, over readings as links; every hop may change bucket."""
    points = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(4), name="readings")
    links = points.select(a=col("seg"), b=(col("seg") * 3 + 1) % 7).set_duration(12).distinct()
    seed = points.where(col("seg") == 2).select(node=col("seg")).set_duration(9)

    def hop(found: cz.Stream) -> cz.Stream:
        return found.join(links, on={"node": "a"}).select(node=col("b"))

    return cz.fixpoint(seed, hop, keep="distinct", buckets="all")


def outputs(folder: Path) -> dict[str, Node]:
    return {"out": plan(folder).node, "ways": ways(folder).node}


def main() -> None:
    folder = Path(sys.argv[1])
    fast = {"spark_driver_extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = cz.session("caesura-killed", master="local[2]", buckets=2, **fast)
    query = start(
        outputs(folder),
        spark,
        sink=folder / "out",
        checkpoint=folder / "checkpoint",
        output="final",
        files_per_epoch=1,
    )
    (folder / "started").touch()
    while query.active:
        if (folder / "stop").exists():
            query.drain()
            query.stop()
            break
        time.sleep(0.2)
    query.wait(1)


if __name__ == "__main__":
    main()
