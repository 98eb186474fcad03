"""The data sets of the thesis' chapter 7, made from a seed: sensors, probes, locations.

150 sensors (5 freeways, 10 stations, 3 lanes) report every 20 seconds, with punctuation every minute; 50
probes report every five minutes, each row with a punctuation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import caesura as cz
from caesura import Stream
from caesura.events import Item, Page
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import Pattern, Punctuation, cti, lt

POINTS = Properties(insert_only=True, points=True, aligned=True, max_duration=1)
SENSORS, PROBES = 150, 50
MINUTE = 60

SENSOR = pa.schema(
    [
        ("sensor_id", pa.int64()),
        ("ts", pa.int64()),
        ("volume", pa.int64()),
        ("speed", pa.int64()),
        ("occupancy", pa.int64()),
    ]
)
PROBE = pa.schema(
    [
        ("probe_id", pa.int64()),
        ("ts", pa.int64()),
        ("freeway_id", pa.int64()),
        ("milepost", pa.int64()),
        ("speed", pa.int64()),
    ]
)


def sensor_stream(label: str = "sensor") -> Stream:
    return Stream(Input(label=label, payload=SENSOR, known=POINTS))


def probe_stream() -> Stream:
    return Stream(Input(label="probe", payload=PROBE, known=POINTS))


def locations() -> pa.Table:
    """Where each sensor is: 150 rows."""
    ids = np.arange(SENSORS)
    return pa.table({"sensor_id": ids, "freeway_id": ids // 30, "milepost": 100 + ids % 30 // 3})


def sensors(
    minutes: int, *, missing: bool = False, numbered: bool = False, page: int = 1, seed: int = 1
) -> Iterator[Item]:
    """Per so many minutes a page, and what is then promised; ``missing`` blanks every other speed.

    ``numbered`` also promises on the column `ts`, which bucket makes window numbers of.
    """
    random = np.random.default_rng(seed)
    ids = np.tile(np.arange(SENSORS), 3 * page)
    within = np.repeat(np.arange(0, page * MINUTE, 20), SENSORS)
    count = len(ids)
    for minute in range(0, minutes, page):
        ts = minute * MINUTE + within
        speed = pa.array(random.integers(0, 80, count))
        if missing:
            speed = pa.array(speed.to_numpy(), mask=np.arange(count) % 2 == 1)
        columns = [pa.array(ids), pa.array(ts), pa.array(random.integers(0, 40, count)), speed]
        columns.append(pa.array(random.integers(0, 100, count)))
        batch = pa.RecordBatch.from_arrays(columns, schema=SENSOR)
        yield Page(ts.astype(np.int64), ts.astype(np.int64) + 1, batch)
        yield from _promised((minute + page) * MINUTE, numbered)


def probes(minutes: int, seed: int = 2) -> Iterator[Item]:
    """Every five minutes each probe's row, and a punctuation for it."""
    random = np.random.default_rng(seed)
    for begin in range(0, minutes, 5):
        ts = np.full(PROBES, begin * MINUTE, np.int64)
        columns = [np.arange(PROBES), ts, random.integers(0, 5, PROBES), random.integers(100, 110, PROBES)]
        columns.append(random.integers(0, 80, PROBES))
        yield Page(ts, ts + 1, pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=PROBE))
        for probe in range(PROBES - 1):
            yield Punctuation(Pattern(probe_id=probe, time=lt((begin + 5) * MINUTE)))
        yield from _promised((begin + 5) * MINUTE, False)


def _promised(t: int, numbered: bool) -> Iterator[Item]:
    yield cti(t)
    if numbered:
        yield Punctuation(Pattern(ts=lt(t)))


def table_of(items: list[Item]) -> pa.Table:
    """The rows of a stream as one table."""
    return pa.Table.from_batches([item.payload for item in items if isinstance(item, Page)])


def write_csv(file: Path, minutes: int, *, behind: int = 0, numbered: bool = False) -> Path:
    """The sensors' rows and punctuation, one line each, as the thesis' files have them."""
    tables: list[pa.Table] = []
    for item in sensors(minutes, numbered=numbered):
        if isinstance(item, Page):
            table = pa.Table.from_batches([item.payload]).append_column("at", pa.array(item.le))
            tables.append(table.append_column("punct", pa.nulls(len(item), pa.string())))
        else:
            name = item.pattern.attributes[0]
            said = f"{name} < {max(0, item.pattern[name].last + 1 - behind)}"
            empty = {column: pa.nulls(1, pa.int64()) for column in (*SENSOR.names, "at")}
            tables.append(pa.table({**empty, "punct": [said]}))
    csv.write_csv(pa.concat_tables(tables), file)
    return file


def csv_stream(file: Path) -> Stream:
    """Reads what `write_csv` wrote."""
    schema = SENSOR.append(pa.field("at", pa.int64())).append(pa.field("punct", pa.string()))
    return cz.read.csv(file, time="at", punctuate=cz.in_data("punct"), schema=schema)
