"""The second act: sensors fail, filling in is slow, and the map falls behind; then the viewer zooms in.

A third of the readings lack their speed and are filled in from an archive that serves a few rows at a
time. Without a bound, filled rows come when nobody needs them any more. PACE keeps to five minutes behind
the furthest reading; with feedback it also tells the archive what is too late, so that the archive works
on rows that still count. When the viewer looks at one freeway, the other four are assumed away, and the
work for them stops where it begins: their row groups are not even read.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from data import FREEWAYS, SLOT, START, sensors

import caesura as cz
from caesura import Stream, col
from caesura.events import Page

WITHIN = "5m"
BUDGET = 5
"""Rows that the archive serves whenever a page or a promise comes."""


def readings(minutes: int, seed: int = 5) -> pa.Table:
    """Sensor readings, a third of them without a speed."""
    random = np.random.default_rng(seed)
    table = sensors(START + np.arange(minutes * 3) * SLOT, random)
    gone = random.random(len(table)) < 1 / 3
    mph = pa.array(table["mph"].to_numpy(zero_copy_only=False), mask=gone, from_pandas=True)
    return table.set_column(table.schema.get_field_index("mph"), "mph", mph)


def archive(rows: pa.RecordBatch) -> list[float]:
    """The usual speed of a station: a slow lookup, in earnest."""
    return [45.0 + 2 * (station % 5) for station in rows.column("station").to_pylist()]


def written(table: pa.Table, folder: Path) -> Path:
    """A file for each minute, in which each freeway has a row group of its own."""
    minutes = (table["ts"].cast(pa.int64()).to_numpy() - START) // 60_000_000
    for minute in sorted(set(minutes.tolist())):
        some = table.filter(pa.array(minutes == minute))
        with pq.ParquetWriter(folder / f"{minute:04}.parquet", some.schema) as file:
            for freeway in range(1, FREEWAYS + 1):
                file.write_table(some.filter(pc.equal(some["freeway"], freeway)))
    return folder


def from_memory(table: pa.Table) -> Stream:
    return cz.from_arrow(table, time="ts", punctuate=cz.delay("40s"), batch_size=50, name="sensors")


def from_files(folder: Path) -> Stream:
    return cz.read.parquet(folder, time="ts", punctuate=cz.delay("100s"), batch_size=50, name="sensors")


def filled(every: Stream, how: str) -> Stream:
    """Readings with their speed, and those that were filled in, in one of three ways."""
    known = every.where(col("mph").is_not_null())
    mended = every.where(col("mph").is_null()).impute("mph", archive, budget=BUDGET)
    if how == "union":
        return known.union(mended)
    return known.pace(mended, within=WITHIN, tells="upstream" if how == "pace with feedback" else "nobody")


def stops(table: pa.Table, how: str) -> dict[str, int]:
    """What comes out in time when the day ends: rows, rows that were filled, rows that came too late."""
    query = filled(from_memory(table), how).query()
    rows = useful = 0
    latest = -(2**62)
    while query.step():
        for item in query.take("out"):
            if isinstance(item, Page):
                latest = max(latest, int(item.le.max()))
                rows += len(item)
                useful += int((item.le >= latest - 5 * 60_000_000).sum())
    counted = query.counters()
    return {"rows": rows, "useful": useful, "filled": counted["impute"].extra.get("filled", 0)}


def zoom(table: pa.Table, folder: Path) -> dict[str, dict[str, int]]:
    """The work of a map that shows everything, and of one whose viewer zooms to freeway 2 half way."""
    out = {}
    half = START + (table.num_rows // 150) * SLOT // 2
    size = sum(file.stat().st_size for file in written(table, folder).iterdir())
    for name in ("all freeways", "all freeways", "freeway 2 from half time"):  # the first one warms up
        plan = filled(from_files(folder), "pace with feedback").group_by("freeway", "station").tumbling("20s")
        query = plan.agg(mph=cz.avg("mph")).query()
        rows, zoomed, began = 0, name == "all freeways", time.process_time()
        while query.step():
            for page in (item for item in query.take("out") if isinstance(item, Page)):
                rows += len(page)
                if not zoomed and int(page.le.max()) > half:
                    query.assume(col("freeway") != 2)
                    zoomed = True
        took, counted = time.process_time() - began, query.counters()
        out[name] = {
            "ms": round(1000 * took),
            "kB read": (size - counted["sensors"].feedback.get("bytes not read", 0)) // 1000,
            "rows read": counted["sensors"].rows_in,
            "rows into windows": counted["tumbling"].rows_in,
            "filled in": counted["impute"].extra.get("filled", 0),
            "changes on the map": rows,
        }
    return out


def tell(minutes: int = 30) -> None:
    """Runs all of it in this process, and prints what it saved."""
    table = readings(minutes)
    print(f"\nsensors fail: {table['mph'].null_count:,} of {table.num_rows:,} readings have no speed,")
    print(
        f"and the archive serves {BUDGET} rows at a time. On the map within {WITHIN} of the furthest reading:"
    )
    for how in ("union", "pace", "pace with feedback"):
        got = stops(table, how)
        share = f"{100 * got['useful'] / max(1, got['rows']):.0f} %"
        print(
            f"  {how:<20} {got['useful']:>7,} of {got['rows']:,} rows ({share}), {got['filled']:,} filled in"
        )
    print("\nthe viewer zooms to freeway 2 (query.assume(col('freeway') != 2)):")
    with TemporaryDirectory() as folder:
        for name, work in zoom(table, Path(folder)).items():
            print(f"  {name:<26} " + ", ".join(f"{count:,} {what}" for what, count in work.items()))


if __name__ == "__main__":
    tell()
