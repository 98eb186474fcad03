"""The main job: the traffic speed map on Spark, live in the terminal.

Generates half an hour of readings, runs the pipeline as one streaming query, draws the map after each
epoch, and says in the end what was final, what was corrected and what was late. Then some sensors fail,
and feedback keeps the map live (`feedback.py`, in this process). With ``--console`` it ends with the map in
the browser (`map_page.py`), where choosing a freeway is feedback to a query on Spark.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import feedback
import pyarrow as pa
import pyarrow.parquet as pq
from data import FREEWAYS, STATIONS, arriving, generate
from map_page import MapPage, SpeedMap
from pipeline import live_map, speed_map
from pyspark.sql import SparkSession

import caesura as cz
from caesura.io.sinks.protocol import LATE, Part
from caesura.spark import ParquetSink

PAINT = {"green": "\033[42;30m", "yellow": "\033[43;30m", "red": "\033[41;97m"}
PLAIN = "\033[0m"


class MapSink(ParquetSink):
    """Writes Parquet like its parent, then draws what the epoch changed."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.map: dict[tuple[int, int], tuple[float, str]] = {}
        self.count: Counter[str] = Counter()
        self.clock = ""

    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        super().commit(epoch, parts)
        for part in (part for part in parts if part.output == "out"):
            rows = pq.read_table(Path(self.path) / "out" / part.file).sort_by("LE").to_pylist()
            self.count.update(row["kind"] for row in rows)
            for row in rows:
                if row["kind"] == "+":
                    self.map[row["freeway"], row["station"]] = (row["mph"], row["colour"])
                    self.clock = max(self.clock, str(row["LE"].time()))
        self.count["late"] += sum(part.rows for part in parts if part.output == LATE)
        self.draw(epoch)

    def draw(self, epoch: int) -> None:
        print(f"\n  epoch {epoch}, map up to {self.clock}   (mph per station)")
        for freeway in range(1, FREEWAYS + 1):
            cells = []
            for station in range(STATIONS):
                mph, colour = self.map.get((freeway, station), (0.0, ""))
                cells.append(f"{PAINT.get(colour, '')}{mph:5.0f} {PLAIN}")
            print(f"  I-{freeway}  " + "".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--keep", help="a folder to keep the data and the result in")
    parser.add_argument("--console", action="store_true", help="end with the map in the browser")
    parser.add_argument("--no-open", action="store_true", help="print the link of the map, and open nothing")
    options = parser.parse_args()
    folder = Path(options.keep or tempfile.mkdtemp(prefix="caesura-demo-"))
    began = time.perf_counter()
    print(f"generating {options.minutes} minutes of sensor and probe readings ...")
    generate(folder, minutes=options.minutes)
    stream = speed_map(folder)
    print("\nthe plan:\n" + stream.explain() + "\n\nstarting Spark ...")
    spark = cz.session("caesura-demo", master="local[2]", buckets=2)
    sink = MapSink(str(folder / "map"))
    query = stream.start(spark, sink=sink, output="marked", trigger="available", files_per_epoch=2)
    query.wait()
    tell(sink.count)
    feedback.tell(options.minutes)
    if options.console:
        show_map(spark, folder / "live", open_page=not options.no_open)
    spark.stop()
    print(f"\nIt took {time.perf_counter() - began:.0f} s. {_where(folder, bool(options.keep))}")
    if not options.keep:
        shutil.rmtree(folder)


class LiveMapSink(ParquetSink):
    """Writes Parquet like its parent, then tells the map what the epoch changed."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.speeds = SpeedMap()

    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        super().commit(epoch, parts)
        files = [Path(self.path) / "out" / part.file for part in parts if part.output == "out"]
        if files:
            self.speeds.take(epoch, pa.concat_tables([pq.read_table(file) for file in files]))


def show_map(spark: SparkSession, folder: Path, *, open_page: bool) -> None:
    """A query that reads on as readings arrive, and the map of what it says on a page of the browser."""
    readings = arriving(folder, minutes=60)
    next(readings)
    sink = LiveMapSink(str(folder / "map"))
    query = live_map(folder).start(
        spark, sink=sink, checkpoint=folder / "checkpoint", output="marked", name="speed map", feedback=True
    )
    page = MapPage(sink.speeds, query.speaker()).own_page()
    with query, query.console(open_page=open_page, pages=[page]) as console:
        print(f"\nthe map, as readings arrive, until Ctrl-C:\n{console.url}", flush=True)
        try:
            for _ in readings:
                query.wait(2)
        except KeyboardInterrupt:
            print()


def tell(count: Counter[str]) -> None:
    print(f"\n{count['+']:,} estimates left at once; {count['-']:,} of them were corrected when more came;")
    print(
        f"{count['=']:,} have become final so far, and were marked; {count['late']:,} readings came too late,"
    )
    print("and are kept with the reason in the late table.")


def _where(folder: Path, keep: bool) -> str:
    if keep:
        return f"The result is in {folder / 'map' / 'out'}, the late table in {folder / 'map' / '_late'}."
    return "To keep the Parquet files: make demo ARGS='--keep FOLDER'."


if __name__ == "__main__":
    main()
