"""Sensor and probe readings as in the thesis: 5 freeways, 10 stations each, 3 lanes, every 20 seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FREEWAYS, STATIONS, LANES = 5, 10, 3
SLOT = 20_000_000
START = 1_265_000_400_000_000  # a Monday morning in February 2010, in microseconds


def generate(folder: Path, *, minutes: int = 30, files: int = 6, seed: int = 1) -> None:
    """Writes files of sensors and probes; some values are null, some rows come late."""
    random = np.random.default_rng(seed)
    slots = minutes * 3
    for number in range(files):
        first, last = number * slots // files, (number + 1) * slots // files
        times = START + np.arange(first, last) * SLOT
        _write(folder / "sensors", number, sensors(times, random))
        _write(folder / "probes", number, probes(times, random))


def arriving(folder: Path, *, minutes: int = 10, seed: int = 2) -> Iterator[None]:
    """Writes the readings of 20 seconds after the other, each time it is asked for more.

    A file has its readings by freeway, so that who wants one freeway need not read the others.
    """
    random = np.random.default_rng(seed)
    times = START + np.arange(minutes * 3) * SLOT
    streams = {"sensors": sensors(times, random), "probes": probes(times, random)}
    shares = {name: np.array_split(np.arange(len(rows)), len(times)) for name, rows in streams.items()}
    for number in range(len(times)):
        for name, rows in streams.items():
            some = rows.take(pa.array(shares[name][number])).sort_by("freeway")
            _write(folder / name, number, some, group=max(1, len(some) // FREEWAYS))
        yield


def flow(times: np.ndarray, freeway: np.ndarray, station: np.ndarray) -> np.ndarray:
    """The true speed: a jam that grows and moves back along freeway 2 and 4."""
    minute = (times - START) / 60e6
    jam = np.where(freeway % 2 == 0, 1.0, 0.15) * np.exp(-(((station - 8 + minute / 5) / 2.5) ** 2))
    return 62 - 50 * jam * np.minimum(1, minute / 6)


def sensors(times: np.ndarray, random: np.random.Generator) -> pa.Table:
    grid = np.array(np.meshgrid(times, range(1, FREEWAYS + 1), range(STATIONS), range(LANES), indexing="ij"))
    ts, freeway, station, lane = grid.reshape(4, -1)
    mph = flow(ts, freeway, station) + random.normal(0, 4, len(ts))
    ts = ts + random.integers(0, SLOT, len(ts))
    null = random.random(len(ts)) < 0.03
    table = pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us")),
            "freeway": freeway,
            "station": station,
            "lane": lane,
            "mph": pa.array(np.maximum(1, mph), mask=null),
        }
    )
    return _arrive(table, ts, random, late=0.01)


def probes(times: np.ndarray, random: np.random.Generator) -> pa.Table:
    count = len(times) * 16
    ts = np.repeat(times, 16) + random.integers(0, SLOT, count)
    freeway = random.integers(1, FREEWAYS + 1, count)
    station = random.integers(0, STATIONS, count)
    mph = np.maximum(1, flow(ts, freeway, station) + random.normal(0, 7, count))
    table = pa.table(
        {"ts": pa.array(ts, pa.timestamp("us")), "freeway": freeway, "station": station, "mph": mph}
    )
    return _arrive(table, ts, random, late=0.03)


def _arrive(table: pa.Table, ts: np.ndarray, random: np.random.Generator, late: float) -> pa.Table:
    """Rows in the order they arrive: most within seconds, a few up to two minutes later."""
    delay = random.integers(0, 15_000_000, len(ts))
    delay += np.where(random.random(len(ts)) < late, random.integers(0, 120_000_000, len(ts)), 0)
    return table.take(pa.array(np.argsort(ts + delay, kind="stable")))


def _write(folder: Path, number: int, table: pa.Table, group: int | None = None) -> None:
    """A file that appears whole; ``group`` is how many rows may be left unread together."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{number:03d}.partial"
    pq.write_table(table, partial, row_group_size=group)
    partial.rename(folder / f"{number:03d}.parquet")
