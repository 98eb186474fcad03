"""Tables of versions as sources on Spark: a start reads what earlier ones have not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.events import History, Item

pytest.importorskip("pyspark")
from caesura.spark import MemorySink


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    made = cz.session("caesura-tables", master="local[2]", buckets=1)
    yield made
    made.stop()


ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


def test_versions_of_a_delta_table_are_read_once_across_starts(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    deltalake.write_deltalake(place, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    items: list[Item] = []
    for change in (None, lambda table: table.update(updates={"v": "'z'"}, predicate="id = 1")):
        if change is not None:
            change(deltalake.DeltaTable(place))
        sink = MemorySink()
        now = cz.read.delta(place, key="id", punctuate=cz.delay("0s"))
        options: dict[str, Any] = {"checkpoint": str(tmp_path / "c"), "trigger": "available"}
        now.start(spark, sink=sink, allow_unbounded=True, **options).wait()
        items += sink.items()
    rows = History.of(items, now.schema).table().to_pylist()
    endless = [(row["v"], row["RE"] == cz.INFINITY) for row in rows]
    assert sorted(endless) == [("a", False), ("b", True), ("z", True)]


CHANGES = [("c", 1, 1, "a"), ("c", 2, 2, "b"), ("u", 3, 1, "z"), ("d", 4, 2, None)]
"""What a database did: operation, second, key, value."""
HALVES = {0: {1: "a", 2: "b"}, 2: {1: "z"}}
"""What is in the table after so many more changes."""


def debezium(spark: Any, folder: Path, first: int) -> cz.Stream:
    """Two more changes as Debezium's records, in a file."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    lines = []
    for n, (op, second, key, value) in list(enumerate(CHANGES))[first : first + 2]:
        row = {"id": key, "v": value}
        told = {"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}
        lines.append(json.dumps({**told, "source": {"ts_ms": second * 1000, "lsn": n}}))
    (folder / f"{first}.json").write_text("\n".join(lines))
    return cz.read.debezium(folder, key="id", schema=schema, name="rows", punctuate=cz.delay("0s"))


def change_feed(spark: Any, folder: Path, first: int) -> cz.Stream:
    """The same as the change feed of a Delta table, in a DataFrame that streams."""
    names = {"c": "insert", "u": "update_postimage", "d": "delete"}
    stamp = pa.timestamp("us", "UTC")
    schema = pa.schema([("_change_type", pa.string()), ("_commit_version", pa.int64())])
    for field in (("_commit_timestamp", stamp), ("id", pa.int64()), ("v", pa.string())):
        schema = schema.append(pa.field(*field))
    some = list(enumerate(CHANGES))[first : first + 2]
    rows = [(names[op], n, second * 10**6, key, value) for n, (op, second, key, value) in some]
    columns = [
        pa.array(values).cast(f.type) for values, f in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    pq.write_table(pa.table(columns, schema=schema), folder / f"{first}.parquet")
    feed = spark.readStream.schema(spark.read.parquet(str(folder)).schema).parquet(str(folder))
    return cz.from_cdf(feed, key="id", name="rows", punctuate=cz.delay("0s"))


@pytest.mark.parametrize(
    ("source", "sink"), [(debezium, "folder"), (debezium, "iceberg"), (change_feed, "iceberg log")]
)
def test_changes_of_a_table_are_followed_into_another_across_starts(
    spark: Any, tmp_path: Path, source: Callable[..., cz.Stream], sink: str
) -> None:
    files, place = tmp_path / "in", str(tmp_path)
    files.mkdir()
    catalog = {"name": "x", "type": "sql", "uri": f"sqlite:///{place}/c.db", "warehouse": f"file://{place}/w"}
    for first, left in HALVES.items():
        stream = source(spark, files, first)
        stream = stream if sink == "iceberg log" else stream.upserts("id")
        target = cz.parquet(tmp_path / "t") if sink == "folder" else cz.iceberg("x.t", catalog=catalog)
        options: dict[str, Any] = {"checkpoint": str(tmp_path / "c"), "trigger": "available"}
        query = stream.start(spark, sink=target, allow_unbounded=True, **options)
        query.wait()
        held = query.table()
        if sink == "iceberg log":  # it holds the history
            held = held.filter(pc.is_null(held.column("RE")))
        assert dict(zip(held.column("id").to_pylist(), held.column("v").to_pylist(), strict=True)) == left
