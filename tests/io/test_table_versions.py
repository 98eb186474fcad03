"""Tables of versions as sources: a snapshot, then each commit; whatever is cut off, nothing twice or lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import load_catalog

import caesura as cz
from caesura import PlanError, StreamError
from caesura.errors import DataError
from caesura.io.changes.lake_reader import BLOCK, LakeReader

ROWS = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string())])
Row = dict[str, Any]


class Lake:
    """A table that is written as its users write it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def insert(self, *rows: Row) -> None:
        raise NotImplementedError

    def delete(self, key: int) -> None:
        raise NotImplementedError

    def upsert(self, row: Row) -> None:
        raise NotImplementedError

    def read(self, **options: Any) -> cz.Stream:
        raise NotImplementedError

    def lose(self) -> None:
        """Takes the oldest version away, as who cleans up does."""
        raise NotImplementedError


class Delta(Lake):
    feed = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        about = {"delta.enableChangeDataFeed": str(self.feed).lower()}
        deltalake.DeltaTable.create(
            str(folder / "t"), ROWS, partition_by=["v"] if self.feed else None, configuration=about
        )

    @property
    def table(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(str(self.folder / "t"))

    def insert(self, *rows: Row) -> None:
        deltalake.write_deltalake(self.table, pa.Table.from_pylist(rows, ROWS), mode="append")

    def delete(self, key: int) -> None:
        self.table.delete(f"id = {key}")

    def upsert(self, row: Row) -> None:
        merge = self.table.merge(pa.Table.from_pylist([row], ROWS), "s.id = t.id", "s", "t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def read(self, **options: Any) -> cz.Stream:
        return cz.read.delta(self.folder / "t", **options)

    def lose(self) -> None:
        self.table.create_checkpoint()
        for version in range(3):
            (self.folder / "t" / "_delta_log" / f"{version:020d}.json").unlink()


class DeltaWithoutFeed(Delta):
    feed = False


class Iceberg(Lake):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.about = {
            "name": "x",
            "type": "sql",
            "uri": f"sqlite:///{folder}/c.db",
            "warehouse": f"file://{folder}/w",
        }
        self.catalog = load_catalog(**self.about)
        self.catalog.create_namespace("db")
        self.catalog.create_table("db.t", schema=ROWS)

    @property
    def table(self) -> Any:
        return self.catalog.load_table("db.t")

    def insert(self, *rows: Row) -> None:
        self.table.append(pa.Table.from_pylist(rows, ROWS))

    def delete(self, key: int) -> None:
        self.table.delete(f"id = {key}")

    def upsert(self, row: Row) -> None:
        self.table.upsert(pa.Table.from_pylist([row], ROWS), ["id"])

    def read(self, **options: Any) -> cz.Stream:
        return cz.read.iceberg("db.t", catalog=self.about, **options)

    def lose(self) -> None:
        first = self.table.snapshots()[0].snapshot_id
        self.table.maintenance.expire_snapshots().by_id(first).commit()


KINDS: dict[str, Callable[[Path], Lake]] = {
    "delta": Delta,
    "delta without feed": DeltaWithoutFeed,
    "iceberg": Iceberg,
}


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return KINDS[request.param](tmp_path)


def reader_of(stream: cz.Stream) -> LakeReader:
    node = stream.node
    while node.inputs:
        node = node.inputs[0]
    return node.reader  # type: ignore[attr-defined, no-any-return]


def row(key: int, v: str = "a") -> Row:
    return {"id": key, "ts": key, "v": v}


def read_ids(reader: LakeReader, at: int) -> tuple[list[int], int]:
    """What a reader gives from an offset on, and where it is then."""
    ids: list[int] = []
    for raw in reader.read({0: at}):
        assert raw.offset == at  # type: ignore[union-attr]
        at = raw.end  # type: ignore[union-attr]
        ids += raw.batch["id"].to_pylist()  # type: ignore[union-attr]
    return ids, at


def test_appended_rows_come_once_from_whatever_offset_one_goes_on(lake: Lake) -> None:
    lake.insert(row(1), row(2))
    lake.insert(row(3))
    reader = reader_of(lake.read(time="ts", until="latest"))
    ids, end = read_ids(reader, 0)
    assert ids == [1, 2, 3]
    first = next(raw for raw in reader.read({}) if raw.batch.num_rows)  # type: ignore[union-attr]
    cut = first.offset + 1  # type: ignore[union-attr]
    lake.insert(row(4))
    assert read_ids(pickle.loads(pickle.dumps(reader)), cut) == ([2, 3, 4], end + BLOCK)
    assert read_ids(reader, end) == ([4], end + BLOCK)
    between = [raw.batch["id"].to_pylist() for raw in reader.read_between({0: 0}, {0: end})]
    assert [n for some in between for n in some] == [1, 2, 3]


def test_a_reader_can_begin_behind_what_is_there(lake: Lake) -> None:
    lake.insert(row(1))
    reader = reader_of(lake.read(time="ts", until="latest", start="latest"))
    ids, end = read_ids(reader, 0)
    lake.insert(row(2))
    assert (ids, read_ids(reader, end)[0]) == ([], [2])
    assert "is read from the version" in reader.cannot_replay(), "an audit would read other rows"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(2), deadline=None)
@given(st.integers(0, 99))
def test_the_current_rows_are_those_of_the_table_across_restarts(tmp_path_factory, kind, seed):
    random, lake = Random(seed), KINDS[kind](tmp_path_factory.mktemp("lake"))
    lake.insert(row(0), row(1))
    current: dict[int, str] = {0: "a", 1: "a"}
    now = lake.read(key="id", punctuate=cz.delay("0s"))
    query, rows, saved = now.query(), [], {}
    for step in range(6):
        key = random.randrange(3)
        if key in current and random.random() < 0.4:
            lake.delete(key)
            del current[key]
        else:
            current[key] = random.choice("abc")
            lake.upsert(row(key, current[key]))
        if step == 5 or random.random() < 0.4:
            while query.runner._readers[0].offsets != {0: reader_of(now).latest()[0]}:
                query.step()
            rows += query.take("out")
            saved |= query.snapshot()
            query = now.query()
            query.restore({name: data for name, data in saved.items() if data is not None})
    assert held(rows) == current
    again = lake.read(key="id", until="latest").run().table().to_pylist()
    assert {r["id"]: r["v"] for r in again if r["RE"] is None} == current


def held(items: list[Any]) -> dict[int, str]:
    """The rows without an end that changes leave."""
    from caesura.events import Page
    from caesura.io.sinks.current import TableLayout, net_change

    schema = next((item.schema for item in items if isinstance(item, Page)), None)
    if schema is None:
        return {}
    layout = TableLayout(schema, pa.timestamp("us", "UTC"), ("id",), history=False)
    return {r["id"]: r["v"] for r in net_change(items, layout).put.to_pylist()}


def test_versions_that_take_rows_back_are_refused_without_a_key(lake: Lake) -> None:
    lake.insert(row(1), row(2))
    reader = reader_of(lake.read(time="ts", until="latest"))
    _, end = read_ids(reader, 0)
    lake.delete(1)
    with pytest.raises(StreamError, match=r"takes rows back \((DELETE|overwrite|delete)\)"):
        read_ids(reader, end)


def test_a_version_that_is_gone_stops_the_query_by_name(lake: Lake) -> None:
    lake.insert(row(1))
    reader = reader_of(lake.read(time="ts", until="latest", start="latest"))
    lake.insert(row(2))
    lake.insert(row(3))
    lake.lose()
    with pytest.raises(StreamError, match="cannot be read any more"):
        read_ids(reader, BLOCK)
    with pytest.raises(StreamError, match="the latest version is"):
        read_ids(reader, 90 * BLOCK)


def test_rows_laid_out_anew_say_nothing(tmp_path: Path) -> None:
    lake = DeltaWithoutFeed(tmp_path)
    lake.insert(row(1))
    lake.insert(row(2))
    reader = reader_of(lake.read(time="ts", until="latest"))
    _, end = read_ids(reader, 0)
    lake.table.optimize.compact()
    assert read_ids(reader, end) == ([], end + BLOCK)


def test_files_that_were_vacuumed_are_named(tmp_path: Path) -> None:
    lake = DeltaWithoutFeed(tmp_path)
    lake.insert(row(1))
    reader = reader_of(lake.read(key="id", until="latest"))
    _, end = read_ids(reader, 0)
    lake.delete(1)
    lake.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(StreamError, match=r"its file '.*parquet' is not there"):
        read_ids(reader, end)


def test_an_iceberg_table_without_a_snapshot_is_empty_and_one_that_was_rolled_back_stops(
    tmp_path: Path,
) -> None:
    lake = Iceberg(tmp_path)
    reader = reader_of(lake.read(time="ts", until="latest"))
    assert read_ids(reader, 0) == ([], 0)
    lake.insert(row(1))
    lake.insert(row(2))
    _, end = read_ids(reader, 0)
    lake.table.manage_snapshots().rollback_to_snapshot(lake.table.snapshots()[0].snapshot_id).commit()
    with pytest.raises(StreamError, match="the latest version is 1"):
        read_ids(reader, end)
    lake.insert(row(3))
    with pytest.raises(StreamError, match="rolled back"):
        read_ids(reader, end)


def test_rows_can_count_from_their_commit(lake: Lake) -> None:
    lake.insert(row(1))
    stream = lake.read(time="_commit_timestamp", until="latest")
    assert stream.columns == ROWS.names and stream.run().table()["id"].to_pylist() == [1]


def test_what_tells_a_table_nothing_is_refused(lake: Lake) -> None:
    for options, message in (
        ({"time": "ts", "start": "earliest"}, "start='earliest' tells"),
        ({"key": "id", "time": "ts"}, "count from when they are committed"),
        ({"key": "idd"}, "Did you mean 'id'"),
        ({}, "which column tells"),
    ):
        with pytest.raises(PlanError, match=message):
            lake.read(**options)


def test_tables_that_are_not_there_are_named(tmp_path: Path) -> None:
    lake = Iceberg(tmp_path)
    for read in (
        lambda: cz.read.delta(tmp_path / "none", key="id"),
        lambda: cz.read.iceberg("db.none", catalog=lake.about, key="id"),
    ):
        with pytest.raises(DataError, match=r"there is no (Delta|Iceberg) table"):
            read()
    with pytest.raises(PlanError, match="names no table of a catalog"):
        cz.read.iceberg("t", catalog=lake.about, key="id")
    with pytest.raises(PlanError, match=r"catalog .* cannot be opened"):
        cz.read.iceberg("db.t", catalog={"type": "sql"}, key="id")


def test_the_change_feed_of_a_table_is_its_current_rows(tmp_path: Path) -> None:
    lake = Delta(tmp_path)
    lake.insert(row(1), row(2))
    lake.upsert(row(1, "b"))
    lake.table.update(updates={"id": "7"}, predicate="id = 2")
    feed = pa.table(lake.table.load_cdf(0))
    rows = cz.from_cdf(feed, key="id").run().table().to_pylist()
    assert {(r["id"], r["v"]) for r in rows if r["RE"] is None} == {(1, "b"), (7, "a")}
