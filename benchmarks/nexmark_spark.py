"""NEXMark's queries in Spark's own Structured Streaming: those that it can express.

Every run reads the Parquet files as streams, available-now, on ``local[2]``, and throws its rows away.
Queries of whole rows by rank (q9, q18, q19), of distinct counts (q15, q16) and of an average of maxima (q4)
are not among them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.nexmark_sql import SQL

SAME = ("q0", "q1", "q2", "q3", "q13", "q14", "q20", "q21", "q22")
"""Those whose SQL is as for DuckDB."""
SPARK = {name: SQL[name] for name in SAME} | {
    "q7": """
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid B JOIN (
  SELECT max(price) AS maxprice, window(dateTime, '10 seconds') AS w FROM bid GROUP BY w
) B1 ON B.price = B1.maxprice AND B.dateTime >= B1.w.start AND B.dateTime < B1.w.end""",
    "q8": """
SELECT P.id, P.name, P.w.start AS starttime
FROM (
  SELECT id, name, window(dateTime, '10 seconds') AS w FROM person GROUP BY id, name, w
) P JOIN (
  SELECT seller, window(dateTime, '10 seconds') AS w FROM auction GROUP BY seller, w
) A ON P.id = A.seller AND P.w = A.w""",
    "q10": """
SELECT auction, bidder, price, dateTime, extra,
  date_format(dateTime, 'yyyy-MM-dd') AS day, date_format(dateTime, 'HH:mm') AS minute
FROM bid""",
    "q11": """
SELECT bidder, count(*) AS bid_count
FROM bid GROUP BY bidder, session_window(dateTime, '10 seconds')""",
    "q17": SQL["q17"].replace("strftime(dateTime, '%Y-%m-%d')", "date_format(dateTime, 'yyyy-MM-dd')"),
}
UPDATES = ("q17",)
"""Those whose groups never close."""


class SparkStreaming:
    """A session with the files as streams."""

    def __init__(self, folder: Path) -> None:
        import caesura as cz

        self.spark: Any = cz.session("caesura-nexmark", master="local[2]", spark_driver_memory="3g")
        self.spark.conf.set("spark.sql.shuffle.partitions", "2")
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._folder = folder
        self._runs = 0
        self._pid = self.spark._jvm.java.lang.ProcessHandle.current().pid()
        for name in ("person", "auction", "bid"):
            home = folder / f"{name}_files"
            home.mkdir()
            os.link(folder / f"{name}.parquet", home / "0.parquet")
            schema = self.spark.read.parquet(str(home)).schema
            stream = self.spark.readStream.schema(schema).parquet(str(home))
            for time in ("dateTime", "expires"):
                if time in stream.columns:
                    stream = stream.withColumn(time, stream[time].cast("timestamp"))
            stream.withWatermark("dateTime", "3 seconds").createOrReplaceTempView(name)
        side = pq.read_table(folder / "side.parquet").to_pylist()
        self.spark.createDataFrame(side).cache().createOrReplaceTempView("side")

    def run(self, name: str) -> Callable[[], object]:
        """One run of a query over all files."""

        def once() -> None:
            self._runs += 1
            home = self._folder / f"checkpoint{self._runs}"
            writer = self.spark.sql(SPARK[name]).writeStream.format("noop")
            writer = writer.outputMode("update" if name in UPDATES else "append")
            writer = writer.option("checkpointLocation", str(home)).trigger(availableNow=True)
            writer.start().awaitTermination()
            shutil.rmtree(home)

        return once

    def cpu(self) -> float:
        """The CPU seconds of the Java process so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Ends the session."""
        self.spark.stop()
