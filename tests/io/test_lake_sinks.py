"""Tables in folders, Delta and Iceberg as sinks: killed between two steps, partitioned, read by others."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from faults import Kill, Killed
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

import caesura as cz
from caesura import PlanError, StreamError
from caesura.io.places import Place
from caesura.io.sinks.partitions import partitions, with_partition
from caesura.runtime.sinks.delta import DeltaSink
from caesura.runtime.sinks.parquet import ParquetSink

ROWS = [{"t": t, "id": t % 3, "s": "ab"[t % 2]} for t in range(24)]


def now(rows: list[dict[str, Any]] = ROWS) -> cz.Stream:
    readings = cz.from_rows(rows, time="t", punctuate=cz.delay(1), name="readings", batch_size=8)
    return readings.latest("id").upserts("id")


CURRENT = {(21, "b"), (22, "a"), (23, "b")}


def run(checkpoint: str, sink: Any, stream: cz.Stream | None = None) -> None:
    query = (stream or now()).query(checkpoint=checkpoint, sink=sink, every="1h")
    while all(query.step() for _ in range(3)):
        query.save()
    query.run()


def text(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_folder_is_the_table_wherever_the_query_was_killed(after: bool) -> None:
    with Kill(None).armed() as steps:
        whole = cz.parquet(f"memory://{uuid.uuid4().hex}/now", partition_by="s")
        run(f"memory://{uuid.uuid4().hex}", whole)
    assert steps.count > 12
    for at in range(int(after), steps.count, 5):
        store = f"memory://{uuid.uuid4().hex}"
        with pytest.raises(Killed), Kill(at, after=after).armed():
            run(f"{store}/cp", cz.parquet(f"{store}/now", partition_by="s"))
        sink = cz.parquet(f"{store}/now", partition_by="s")
        run(f"{store}/cp", sink)
        assert text(sink.read_back()) == text(whole.read_back()), at
        held = {f for m in (Place.of(store) / "now" / "_manifests").files() for f in files_in(m)}
        there = {str(f).rpartition("/now/")[2] for f in (Place.of(store) / "now").files_below(".parquet")}
        assert there == held, "what no manifest names is removed"


def files_in(manifest: Place) -> list[str]:
    return [held["file"] for held in json.loads(manifest.read_text())["files"]]


def catalog(folder: Path) -> dict[str, str]:
    return {"name": "x", "type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/w"}


@contextmanager
def killed_at_commit(at: int, *, after: bool, by: type[BaseException] = Killed) -> Any:
    """The commit of that number is the last thing that happens."""
    real, count = Table._do_commit, [0]

    def commit(table: Table, *args: Any, **options: Any) -> None:
        number, count[0] = count[0], count[0] + 1
        if number == at and not after:
            raise by
        real(table, *args, **options)
        if number == at:
            raise by

    with patch.object(Table, "_do_commit", commit):
        yield


def log(rows: list[dict[str, Any]] = ROWS) -> cz.Stream:
    return cz.from_rows(rows, time="t", punctuate=cz.delay(1), name="readings", batch_size=8).latest("id")


@pytest.mark.slow
@pytest.mark.parametrize("make", [now, log], ids=["table", "log"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_iceberg_table_has_every_epoch_once_wherever_a_commit_was_cut_off(
    tmp_path: Path, make: Callable[[], cz.Stream], after: bool
) -> None:
    whole = cz.iceberg("db.whole", catalog=catalog(tmp_path))
    run(str(tmp_path / "whole"), whole, make())
    for at in (0, 2):
        name = f"db.t{at}"
        with pytest.raises(Killed), killed_at_commit(at, after=after):
            run(str(tmp_path / name), cz.iceberg(name, catalog=catalog(tmp_path)), make())
        sink = cz.iceberg(name, catalog=catalog(tmp_path))
        run(str(tmp_path / name), sink, make())
        assert text(sink.read_back()) == text(whole.read_back())
        table = load_catalog(**catalog(tmp_path)).load_table(name)
        noted = [s.summary.additional_properties["caesura.epoch"] for s in table.snapshots()]
        assert len(noted) == len(set(noted)), "one snapshot an epoch"


def test_a_commit_that_met_another_is_tried_again(tmp_path: Path) -> None:
    with killed_at_commit(2, after=False, by=CommitFailedException):
        sink = cz.iceberg("db.now", catalog=catalog(tmp_path))
        run(str(tmp_path / "cp"), sink)
    assert {(row["id"] + 21, row["s"]) for row in sink.read_back().to_pylist()} == CURRENT


def test_an_iceberg_table_with_rows_of_somebody_else_is_refused_and_an_empty_one_keeps_its_spec(
    tmp_path: Path,
) -> None:
    about = catalog(tmp_path)
    made = load_catalog(**about)
    made.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    made.create_table("db.mine", schema).append(pa.table({"id": [1], "s": ["x"]}, schema=schema))
    with pytest.raises(StreamError, match="written from another checkpoint"):
        run(str(tmp_path / "cp"), cz.iceberg("db.mine", catalog=about))
    with made.create_table("db.empty", schema).update_spec() as spec:
        spec.add_identity("s")
    sink = cz.iceberg("db.empty", catalog=about)
    run(str(tmp_path / "cp2"), sink)
    table = made.load_table("db.empty")
    assert {task.file.partition[0] for task in table.scan().plan_files()} == {"a", "b"}
    assert sink.read_back().num_rows == 3


def test_changes_are_laid_out_by_columns_and_read_back_by_us_and_others(tmp_path: Path) -> None:
    plain = text(log().run().changes())
    files = ParquetSink(str(tmp_path / "files"), partition_by=["s", "id"])
    run(str(tmp_path / "c1"), files, log())
    assert text(files.read_back("out")) == plain
    assert len(list((tmp_path / "files" / "out").glob("s=a/id=*/*.parquet"))) >= 3
    others = ds.dataset(tmp_path / "files" / "out", partitioning="hive").to_table()
    assert sorted(others.column("s").to_pylist()) == sorted(files.read_back("out")["s"].to_pylist())
    delta = DeltaSink(str(tmp_path / "delta"), partition_by=["s"])
    run(str(tmp_path / "c2"), delta, log())
    assert text(pa.table(delta.read_back("out")).select(files.read_back("out").column_names)) == plain
    assert deltalake.DeltaTable(str(tmp_path / "delta" / "out")).metadata().partition_columns == ["s"]


def test_values_that_no_folder_can_be_named_by_as_they_are_come_back() -> None:
    rows = pa.table({"s": ["", None, "a/b=c d", "ü%"], "b": [True, None, False, True], "v": [1, 2, 3, 4]})
    parts = list(partitions(rows, ["s", "b"]))
    again = pa.concat_tables([with_partition(part.rows, part.folder, rows.schema) for part in parts])
    assert again == rows and all(part.folder.count("/") == 1 for part in parts)


@pytest.mark.parametrize("make", [cz.delta, cz.parquet, lambda path, **o: ParquetSink(str(path), **o)])
def test_columns_that_no_folder_can_be_named_by_are_refused(tmp_path: Path, make: Any) -> None:
    stream = cz.from_rows([{"t": 1, "id": 7, "v": 0.5}], time="t").latest("id").upserts("id")
    for column, message in (("idd", "Did you mean 'id'"), ("v", "which is double")):
        with pytest.raises(PlanError, match=message):
            make(tmp_path / "x", partition_by=[column]).open({"out": stream.node})
