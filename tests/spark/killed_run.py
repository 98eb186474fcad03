"""A run that a test kills: it reads files as they come and writes final windows to Parquet.

Usage: killed_run.py FOLDER; stops by itself when FOLDER/stop exists and all files are processed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import caesura as cz
from caesura import col


def plan(folder: Path) -> cz.Stream:
    """Windows over a join of two windows: two exchanges, corrections inside."""
    points = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(4), name="readings")
    segs = points.group_by("seg").tumbling(10).agg(n=cz.count(), mean=cz.avg("mph"))
    cars = points.where(col("mph") > 3).group_by("car").tumbling(10).agg(m=cz.count())
    pairs = segs.select("n", seg=col("seg")).join(cars.select("m", seg=col("m") % 7), on="seg", how="left")
    return pairs.group_by("seg").tumbling(20).agg(n=cz.sum("n"), m=cz.sum("m"), rows=cz.count())


def main() -> None:
    folder = Path(sys.argv[1])
    spark = cz.session("caesura-killed", master="local[2]", buckets=2)
    query = plan(folder).start(
        spark, sink=folder / "out", checkpoint=folder / "checkpoint", output="final", files_per_epoch=1
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
