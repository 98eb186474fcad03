"""A run that a test kills: it reads files as they come and writes windows, and what a loop finds, to Parquet.

Beside it runs a query that Spark starts by itself, over a DataFrame that `to_spark` gave.

Usage: killed_run.py FOLDER; stops by itself when FOLDER/stop exists and all files are processed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from quick_start import quick_start

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


SPEEDS = pa.table({"ts": [0] * 7, "end": pa.nulls(7, pa.int64()), "seg": range(7), "most": range(3, 10)})


def looked_up(folder: Path, frame: Any = None) -> cz.Stream:
    """Readings of a DataFrame, or of the same files, against tables that lie in memory."""
    how: Any = {"time": "ts", "punctuate": cz.delay(4), "name": "framed"}
    if frame is None:
        points = cz.read.parquet(folder / "in", **how)
    else:
        points = cz.from_spark(frame, lane="lane", offset="place", **how)
    arrow = cz.from_arrow(SPEEDS, time="ts", end="end")
    pandas = cz.from_pandas(SPEEDS.to_pandas().drop(columns="end"), time="ts").set_duration(10**6)
    rows = cz.from_rows([{"ts": 0, "most": n, "class_": n % 3} for n in range(3, 10)], time="ts")
    met = points.select("seg").join(arrow, on="seg").join(pandas.select("seg", also="most"), on="seg")
    met = met.join(rows.set_duration(10**6), on="most")
    return met.group_by("class_").tumbling(10).agg(n=cz.count(), most=cz.max("also"))


def frame(folder: Path, spark: Any) -> Any:
    """The files as a streaming DataFrame, each row with its place in all of them."""
    schema = "ts long, seg long, car string, mph double"
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    number = "cast(regexp_extract(_metadata.file_path, '([0-9]+)[.]parquet', 1) as long)"
    return files.selectExpr("*", "0 as lane", f"{number} as place")


def outputs(folder: Path, spark: Any = None) -> dict[str, Node]:
    some = {"out": plan(folder), "ways": ways(folder)}
    some["looked_up"] = looked_up(folder, None if spark is None else frame(folder, spark))
    return {name: stream.node for name, stream in some.items()}


def started_by_spark(folder: Path, spark: Any) -> Any:
    """Windows over a DataFrame as a DataFrame: an epoch that runs again writes its file again."""

    def put(rows: Any, epoch: int) -> None:
        partial = folder / "given" / f".{epoch}"
        pq.write_table(rows.toArrow(), partial)
        partial.rename(folder / "given" / f"{epoch}.parquet")

    (folder / "given").mkdir(exist_ok=True)
    given = looked_up(folder, frame(folder, spark)).to_spark(spark, output="final")
    place = str(folder / "checkpoint-given")
    return given.writeStream.foreachBatch(put).option("checkpointLocation", place).start()


def main() -> None:
    folder = Path(sys.argv[1])
    spark = cz.session("caesura-killed", master="local[2]", buckets=2, **quick_start())
    query = start(
        outputs(folder, spark),
        spark,
        sink=folder / "out",
        checkpoint=folder / "checkpoint",
        output="final",
        files_per_epoch=1,
    )
    given = started_by_spark(folder, spark)
    (folder / "started").touch()
    while query.active and given.isActive:
        if (folder / "stop").exists():
            given.processAllAvailable()
            given.stop()
            query.drain()
            query.stop()
            break
        time.sleep(0.2)
    given.awaitTermination(1)
    query.wait(1)


if __name__ == "__main__":
    main()
