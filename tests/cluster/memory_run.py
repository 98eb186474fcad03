"""A join in a process of its own, whose workers may take little memory: its folder, and how much."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError

ROWS, FILES = 150_000, 4


def main() -> None:
    folder, memory = Path(sys.argv[1]), sys.argv[2]
    (folder / "in").mkdir()
    for number in range(FILES):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        texts = pa.array([f"{i:0600d}" for i in ids.tolist()])
        pq.write_table(pa.table({"ts": ids, "id": ids, "text": texts}), folder / "in" / f"{number}.parquet")
    spark = cz.session("workers", master="local[1]", buckets=1, spark_executor_pyspark_memory=memory)
    right = rows(folder, "again").select("id", other=col("text"))
    try:
        rows(folder, "rows").join(right, "id").start(
            spark, sink=folder / "out", checkpoint=folder / "cp", trigger="available", files_per_epoch=1
        ).wait()
    except StreamError as error:
        sys.stdout.write(str(error))
    spark.stop()


def rows(folder: Path, name: str) -> Stream:
    """All of them live on, so that both sides of a join keep them."""
    source = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(10**9), name=name)
    return source.set_duration(10**9)


if __name__ == "__main__":
    main()
