"""TPC-H under change on Spark: tables as folders of Parquet files, a file for each refresh, and views."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.tpch_data import BORN, Change, Warehouse
from benchmarks.tpch_queries import QUERIES
from benchmarks.tpch_view import Row, columns_read, differences
from caesura.spark import MemorySink, start

EVENT = {"le": pa.int64(), "re": pa.int64(), "new": pa.int64(), "sign": pa.string()}


Answers = dict[str, list[list[Row]]]
"""What DuckDB says of each query: of the tables as they were first, and after each refresh."""


def written(
    warehouse: Warehouse, folder: Path, refreshes: int, share: float, names: Iterable[str]
) -> Answers:
    """Writes all tables, and then what each refresh changes; gives what DuckDB says after each of them."""
    for name in warehouse.schemas:
        _write(folder / name, 0, warehouse.first(name))
    answers: Answers = {name: [_answer(warehouse, name)] for name in names}
    for at in range(1, refreshes + 1):
        for name, change in warehouse.refresh(at, share).items():
            _write(folder / name, at, change)
        for name, said in answers.items():
            said.append(_answer(warehouse, name))
    return answers


def _answer(warehouse: Warehouse, name: str) -> list[Row]:
    return warehouse.base.execute(QUERIES[name]).fetchall()


def _write(folder: Path, at: int, change: Change) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.concat_tables([change.went, change.came])
    gone, count = change.went.num_rows, rows.num_rows
    events = [
        rows.column(BORN),
        pa.nulls(count, pa.int64()),
        pa.array([at] * gone + [None] * (count - gone), pa.int64()),
        pa.array(["-"] * gone + ["+"] * (count - gone)),
    ]
    for name, values in zip(EVENT, events, strict=True):
        rows = rows.append_column(name, values)
    file = folder / f"{at:03d}.parquet"
    pq.write_table(rows.drop_columns([BORN]), file)
    os.utime(file, (1_700_000_000 + at,) * 2)


def on_spark(spark: Any, answers: Answers, warehouse: Warehouse, folder: Path) -> dict[str, str]:
    """Runs views over the files as one query of Spark; gives what differs from DuckDB's answers, by view."""
    options: Any = {"time": "le", "end": "re", "new_end": "new", "kind": "sign"}
    tables = {name: cz.read.parquet(folder / name, name=name, **options) for name in warehouse.schemas}
    views = {
        name: cz.sql(QUERIES[name], **{t: tables[t] for t in columns_read(QUERIES[name], warehouse.schemas)})
        for name in answers
    }
    sink = MemorySink()
    nodes = {name: view.node for name, view in views.items()}
    start(nodes, spark, sink=sink, trigger="available", files_per_epoch=1, allow_unbounded=True).wait()
    found = {}
    for name, view in views.items():
        history = cz.History.of(sink.items(name), view.schema).rows()
        found[name] = "; ".join(_differing(history, answers[name]))
    return found


def _differing(history: Iterable[Any], answers: list[list[Row]]) -> Iterator[str]:
    """What a history says of the time of each refresh, and DuckDB did not."""
    rows = list(history)
    for at, wanted in enumerate(answers):
        alive: Counter[Row] = Counter(row for begin, end, row in rows if begin <= at < end)
        if difference := differences(alive, wanted):
            yield f"after refresh {at}: {difference}"
