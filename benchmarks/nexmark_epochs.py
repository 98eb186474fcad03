"""NEXMark on Spark: our queries beside Spark's own, by epochs, in one session, over the same Parquet files.

Both read a file of each table an epoch and write Parquet. Spark's own file sink takes no updates, so those of
q17, whose groups never close, are appended epoch by epoch, as its users do it. Runs take turns, and the first
epochs of each do not count.
"""

from __future__ import annotations

import shutil
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.nexmark_data import House
from benchmarks.nexmark_queries import QUERIES, Streams
from benchmarks.nexmark_spark import SPARK, UPDATES
from benchmarks.report import Report
from benchmarks.spark import WARM, durations, steady


class OnSpark:
    """A session, and the tables as folders of files, one for each epoch."""

    def __init__(self, tables: House, side: pa.Table, folder: Path, epochs: int) -> None:
        self.spark: Any = cz.session(
            "caesura-nexmark", master="local[2]", buckets=2, spark_driver_memory="6g"
        )
        self.folder, self.side, self.epochs = folder, side, epochs + WARM
        self.events = sum(len(table) for table in tables) // self.epochs
        edges = np.quantile(
            tables.bid["dateTime"].cast(pa.int64()).to_numpy(), np.arange(1, self.epochs) / self.epochs
        )
        for name, table in tables._asdict().items():
            (folder / name).mkdir()
            cuts = [0, *np.searchsorted(_times(table), edges), len(table)]
            for number, (low, high) in enumerate(pairwise(cuts)):
                pq.write_table(table.slice(low, high - low), folder / name / f"{number:04d}.parquet")
        self.spark.createDataFrame(side.to_pylist()).cache().createOrReplaceTempView("side")

    def compare(self, report: Report, name: str, rounds: int) -> None:
        """The median epoch of each."""
        theirs, ours = [], []
        for turn in range(rounds):
            theirs.append(self._spark(name, self.folder / f"spark-{name}-{turn}"))
            ours.append(self._ours(name, self.folder / f"ours-{name}-{turn}"))
        own, mine = statistics.median(steady(theirs)), statistics.median(steady(ours))
        report.add(
            f"{name} on spark",
            self.events / mine,
            {"spark_own": own / mine},
            epoch_s=round(mine, 3),
            spark_own_epoch_s=round(own, 3),
            first_epoch_s=[round(run[0], 2) for run in ours],
            spark_own_first_epoch_s=[round(run[0], 2) for run in theirs],
        )

    def _spark(self, name: str, out: Path) -> list[float]:
        for table in House._fields:
            home = str(self.folder / table)
            schema = self.spark.read.parquet(home).schema
            stream = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(home)
            for time in ("dateTime", "expires"):
                if time in stream.columns:
                    stream = stream.withColumn(time, stream[time].cast("timestamp"))
            stream.withWatermark("dateTime", "3 seconds").createOrReplaceTempView(table)
        writer = self.spark.sql(SPARK[name]).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(out / "cp"))
        if name in UPDATES:
            data = str(out / "data")
            writer = writer.outputMode("update").foreachBatch(
                lambda rows, _: rows.write.mode("append").parquet(data)
            )
        else:
            writer = writer.outputMode("append").format("parquet").option("path", str(out / "data"))
        return self._ended(writer.start(), out)

    def _ours(self, name: str, out: Path) -> list[float]:
        read = {table: self._read(table) for table in House._fields}
        streams = Streams(**read, open_auction=read["auction"], side=self.side, arriving=read["bid"])
        query = QUERIES[name](streams).start(
            self.spark,
            sink=out / "data",
            checkpoint=out / "cp",
            output="changes" if name in UPDATES else "final",
            trigger="available",
            files_per_epoch=1,
            allow_unbounded=True,
        )
        query.wait()
        return self._ended(query.query, out)

    def _read(self, table: str) -> cz.Stream:
        made = cz.read.parquet(self.folder / table, time="dateTime", punctuate=cz.delay("3s"))
        return made.with_columns(dateTime=cz.start())

    def _ended(self, query: Any, out: Path) -> list[float]:
        query.awaitTermination()
        taken = durations(query)
        assert len(taken) == self.epochs, f"{len(taken)} epochs with data, not {self.epochs}"
        shutil.rmtree(out, ignore_errors=True)
        return taken

    def close(self) -> None:
        """Ends the session."""
        self.spark.stop()


def _times(table: pa.Table) -> np.ndarray:
    times: np.ndarray = table["dateTime"].cast(pa.int64()).to_numpy()
    return times
