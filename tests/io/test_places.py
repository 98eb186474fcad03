"""Places: one class for every path that a user gives, and no folder that is called like a URI."""

from __future__ import annotations

import gzip
import inspect
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import caesura as cz
import caesura.spark as on_spark
from caesura.api.pipeline import Pipeline
from caesura.api.stream import Stream
from caesura.audit import audit
from caesura.cli.main import app
from caesura.errors import CaesuraError
from caesura.io.places import Place, objects
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark.loop_log.log import LoopLog


@pytest.fixture(params=["local", "file", "memory"])
def place(request, tmp_path):
    given = {"local": str(tmp_path), "file": tmp_path.as_uri(), "memory": f"memory://{tmp_path.name}"}
    return Place.of(given[request.param]) / "some"


def names(folder):
    return {file.name for file in folder.iterdir()}


def test_a_put_replaces_and_a_create_does_not(place):
    file = place / "a b.json"
    assert file.create(b"1") and not file.create(b"2") and file.read_bytes() == b"1"
    file.put(b"3")
    assert (file.read_text(), file.size, file.first_bytes(9)) == ("3", 1, b"3")


def test_a_folder_lists_whole_files_only(place):
    assert not place.exists() and place.files() == []
    for name in ("b.json", "a.json", "c.txt", "deep/d.json"):
        (place / name).put(b"x")
    (place / "deep" / "d.json").remove()
    (place / "deep" / "d.json").remove()
    assert [file.name for file in place.files(".json")] == ["a.json", "b.json"]
    assert place.is_folder() and not place.is_file() and (place / "c.txt").is_file()


def test_of_all_who_create_a_file_one_is_told_so(place):
    told: list[bool] = []
    start = threading.Barrier(8)

    def race(number: int) -> None:
        start.wait()
        if (place / "1.json").create(str(number).encode()):
            told.append((place / "1.json").read_text() == str(number))

    racers = [threading.Thread(target=race, args=(n,)) for n in range(8)]
    for one in racers:
        one.start()
    for one in racers:
        one.join()
    assert told == [True]


def test_no_update_of_a_file_is_lost(place):
    start, made = threading.Barrier(4), []

    def race() -> None:
        start.wait()
        made.extend(
            int((place / "n").update(lambda held: str(1 + int(held or 0)).encode())) for _ in range(9)
        )

    racers = [threading.Thread(target=race) for _ in range(4)]
    for one in racers:
        one.start()
    for one in racers:
        one.join()
    assert sorted(made) == list(range(1, 37)) and [file.name for file in place.files()] == ["n"]


def test_a_put_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    file = Place.of(tmp_path) / "a.json"
    file.put(b"old")

    def full(handle: int) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no room"):
        file.put(b"new")
    assert file.read_bytes() == b"old" and names(tmp_path) == {"a.json"}


def test_a_private_file_is_for_its_owner(tmp_path):
    (Place.of(tmp_path) / "secret").create(b"x", private=True)
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0


def test_names_of_one_place_are_one_place(tmp_path):
    assert Place.of(tmp_path.as_uri()).identity == Place.of(tmp_path).identity
    assert Place.of("s3a://b//x/").identity == Place.of("s3://b/x").identity == "s3://b/x"
    assert Place.of("s3://b/x").hadoop == "s3a://b/x" and str(Place.of("s3a://b") / "x") == "s3a://b/x"


@pytest.mark.parametrize("given", [7, b"bytes", 1.5, ["out"]])
def test_what_is_no_path_is_refused_as_such(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: cz.read.parquet(given, time="t"), lambda: STREAM.query(checkpoint=given)):
        with pytest.raises(CaesuraError):
            call()
    assert names(tmp_path) == set()


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "csv.gz"])
def test_files_are_read_from_any_place(place, kind):
    rows = pa.table({"t": [1, 2, 3], "id": [7, 8, 9]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=1)
    text = b"t,id\n1,7\n2,8\n3,9\n"
    data = {
        "parquet": sink.getvalue().to_pybytes(),
        "csv": text,
        "csv.gz": gzip.compress(text),
        "json": b'{"t": 1, "id": 7}\n{"t": 2, "id": 8}\n{"t": 3, "id": 9}\n',
    }
    (place / f"a.{kind}").put(data[kind])
    read = getattr(cz.read, kind.partition(".")[0])
    assert read(str(place), time="t").run().table()["id"].to_pylist() == [7, 8, 9]
    assert len(cz.table(str(place)).schema) == 2


# -- every entry point ------------------------------------------------------------------------------------

STREAM = cz.from_rows([{"t": 1, "id": 7}], time="t")
VIEWS = cz.pipeline(all=STREAM)
ENTRIES = {
    "read.parquet(path)": lambda uri: cz.read.parquet(uri, time="t"),
    "read.csv(path)": lambda uri: cz.read.csv(uri, time="t"),
    "read.json(path)": lambda uri: cz.read.json(uri, time="t"),
    "read.debezium(path)": lambda uri: cz.read.debezium(uri, key="id"),
    "read.delta(path)": lambda uri: cz.read.delta(uri, key="id"),
    "table(history)": lambda uri: cz.table(lambda: [{"id": 1}], reload="10m", history=uri),
    "duckdb(path)": lambda uri: cz.duckdb(uri),
    "delta(path)": lambda uri: cz.delta(uri),
    "parquet(path)": lambda uri: cz.parquet(uri).open({}) or cz.parquet(uri).reach(),
    "avro(schema)": lambda uri: cz.avro(uri),
    "avro(reader)": lambda uri: cz.avro({"type": "record", "name": "r", "fields": []}, reader=uri),
    "protobuf(descriptors)": lambda uri: cz.protobuf(uri, "Reading"),
    "script(source)": lambda uri: cz.script(f"{uri}/views.sql"),
    "from_claimed(path)": lambda uri: cz.from_claimed(uri, "all"),
    "read_claimed(path)": lambda uri: cz.read_claimed(uri),
    "Stream.start(sink)": lambda uri: STREAM.start(None, sink=uri),
    "Stream.start(checkpoint)": lambda uri: STREAM.start(None, checkpoint=uri),
    "Stream.to_spark(loop_log)": lambda uri: STREAM.to_spark(None, loop_log=uri),
    "Stream.query(checkpoint)": lambda uri: STREAM.query(checkpoint=uri),
    "Stream.query(sink)": lambda uri: STREAM.query(checkpoint="here", sink=uri),
    "Stream.prepare_upgrade(checkpoint)": lambda uri: STREAM.prepare_upgrade(uri),
    "Stream.create_view(sink)": lambda uri: STREAM.create_view(None, "speeds", sink=uri),
    "Pipeline.start(path)": lambda uri: VIEWS.start(None, path=uri, checkpoint="here"),
    "Pipeline.start(checkpoint)": lambda uri: VIEWS.start(None, path="here", checkpoint=uri),
    "Pipeline.write(path)": lambda uri: VIEWS.write(uri),
    "Pipeline.writing(path)": lambda uri: VIEWS.writing(uri),
    "Pipeline.prepare_upgrade(path)": lambda uri: VIEWS.prepare_upgrade(uri),
}
UNTYPED = {
    "table": lambda uri: cz.table(uri),
    "audit": lambda uri: audit(uri, plan=VIEWS.nodes),
    "ParquetSink": lambda uri: ParquetSink(uri).open({}),
    "DeltaSink": lambda uri: on_spark.DeltaSink(uri).open({}),
    "LoopLog": lambda uri: LoopLog(uri).own("me"),
}
COMMANDS = (
    ["late", "URI"],
    ["state", "URI"],
    ["rescale", "URI", "--buckets", "2"],
    ["feedback", "URI", "list"],
    ["audit", "URI"],
    ["new", "URI"],
    ["run", "flow.py", "--sink", "URI"],
    ["run", "flow.py", "--checkpoint", "URI", "--trigger", "1 second"],
    ["preview", "flow.py", "--html", "URI"],
)


@pytest.fixture(params=["hdfs://namenode/x", "s3a://bucket/x", "s3://bucket/x"])
def uri(request, tmp_path, monkeypatch):
    """A place that cannot be used: of an unknown kind, or on a server that is not there."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(objects, "RETRIES", {"max_retries": 0})
    objects._opened.cache_clear()
    (tmp_path / "flow.py").write_text(
        "import caesura as cz\nrows = cz.from_rows([{'t': 1}], time='t', punctuate=cz.delay(1))\n"
    )
    yield request.param
    objects._opened.cache_clear()


@pytest.mark.parametrize("entry", [*ENTRIES, *UNTYPED])
def test_a_place_that_cannot_be_used_is_refused_by_name_before_anything_is_made(uri, entry, tmp_path):
    with pytest.raises(CaesuraError) as error:
        (ENTRIES | UNTYPED)[entry](uri)
    assert uri in error.value.problem and error.value.remedy
    assert names(tmp_path) == {"flow.py"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_refuse_it_too(uri, command, tmp_path):
    done = CliRunner().invoke(app, [uri if word == "URI" else word for word in command])
    assert done.exit_code == 1 and uri in done.stderr, done.output
    assert names(tmp_path) <= {"flow.py", "__pycache__"}


def test_the_walk_has_every_call_that_takes_a_path():
    groups = {"": cz, "Stream.": Stream, "Pipeline.": Pipeline, "read.": cz.read}
    found = {
        f"{prefix}{name}({parameter})"
        for prefix, group in groups.items()
        for name in dir(group)
        if not name.startswith("_") and inspect.isroutine(call := getattr(group, name))
        for parameter, about in inspect.signature(call).parameters.items()
        if "Path" in str(about.annotation)
    }
    assert found == set(ENTRIES)
