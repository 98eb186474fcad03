"""What cannot be read goes aside with its reason and place, the rest is read; mended, it comes back."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster

import caesura as cz
from caesura.errors import CaesuraError, StreamError
from caesura.events import History
from caesura.io.places import Place
from caesura.io.sources.give_back import give_back, set_aside
from caesura.io.sources.quarantine import FOLDER

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64())])
BAD = {"csv": ["x,1", "1", "3,4,5", "7,y", '2,"'], "json": ["{", '{"t": 1', '{"t": "x", "id": 2}', "7", "[]"]}


def read(folder, form="csv", how="quarantine", **more):
    reading = {"csv": cz.read.csv, "json": cz.read.json, "parquet": cz.read.parquet}[form]
    return reading(str(folder), schema=SCHEMA, time="t", on_bad=how, name="in", **more)


def line(form, t, id):
    return f"{t},{id}" if form == "csv" else json.dumps({"t": t, "id": id})


def put(folder, name, form, lines):
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / name).write_text("\n".join([*(["t,id"] if form == "csv" else []), *lines, ""]))


def given(stream):
    """The history, and the late rows by source."""
    query = stream.query()
    query.run()
    return History.of(query.take("out"), stream.node.schema), query.late()


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("seed", range(4))
def test_the_history_is_that_of_the_lines_that_are_some(form, seed, tmp_path):
    drawn = random.Random(seed)
    ending = {"csv": "csv", "json": "jsonl"}[form]
    bad, kept = [], []
    for number in range(3):
        mixed = []
        for at in range(drawn.randrange(6)):
            kept.append({"t": 10 * number + at, "id": drawn.randrange(3)})
            mixed.append(line(form, **kept[-1]))
            while drawn.random() < 0.4:
                mixed.append(drawn.choice(BAD[form]))
                bad.append((f"{number}.{ending}", len(mixed) + (form == "csv"), mixed[-1]))
        put(tmp_path / "mixed", f"{number}.{ending}", form, mixed)
    made, late = given(read(tmp_path / "mixed", form, batch_size=2))
    wanted = History.of(cz.from_rows(kept, SCHEMA, time="t").run().items, made.schema)
    assert made == wanted
    reasons = late["in"]["reason"].to_pylist() if late else []
    assert len(reasons) == len(bad)
    for file, number, _ in bad:
        assert sum(f"/{file}', line {number}: " in reason for reason in reasons) == 1
    aside = set_aside(Place.of(tmp_path / "mixed"))
    assert sorted((s.file, b.line) for s in aside for b in s.lines) == sorted((f, n) for f, n, _ in bad)


def test_a_whole_file_goes_aside_and_what_follows_is_read(tmp_path):
    pq.write_table(pa.table({"t": [1, 2], "id": [1, 1]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    pq.write_table(pa.table({"t": [3], "other": [1]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"t": [4], "id": [2]}), tmp_path / "d.parquet")
    made, late = given(cz.read.parquet(str(tmp_path), time="t", on_bad="late", name="in"))
    assert len(made) == 3
    assert [row["offset"] for row in late["in"].to_pylist()] == [2, 3]
    assert {row["kind"] for row in late["in"].to_pylist()} == {"unread"}
    assert "has no column 'id'" in late["in"]["reason"][1].as_py()


def test_a_packed_file_that_is_cut_off_gives_none_of_its_rows(tmp_path):
    put(tmp_path, "a.csv", "csv", ["1,1"])
    packed = gzip.compress(b"t,id\n" + b"\n".join(b"%d,%d" % (t, t * 7919 % 10007) for t in range(2, 4000)))
    (tmp_path / "b.csv.gz").write_bytes(packed[:-200])
    made, late = given(read(tmp_path))
    assert len(made) == 1
    assert late["in"].num_rows == 1


def saved(folder, store):
    query = (
        read(folder, punctuate=cz.delay(100))
        .group_by("id")
        .tumbling(10)
        .agg(n=cz.count())
        .query(checkpoint=store / "cp", sink=store / "out", every="1h")
    )
    query.run()
    return query.table("out").to_pylist()


@pytest.mark.parametrize("again", ["in place", "gone"])
def test_a_file_set_aside_stays_so_for_a_query_that_goes_on(again, tmp_path):
    folder = tmp_path / "in"
    put(folder, "a.csv", "csv", ["1,1", "2,1"])
    put(folder, "b.csv", "csv", ["3,1"])
    (folder / "b.csv").write_text("nothing,like,it\n1,2,3\n")
    put(folder, "c.csv", "csv", ["4,1"])
    assert [row["n"] for row in saved(folder, tmp_path)] == [3]
    if again == "gone":
        (folder / "b.csv").unlink()
    else:
        put(folder, "b.csv", "csv", ["5,1", "6,1"])
    put(folder, "d.csv", "csv", ["7,1"])
    assert [row["n"] for row in saved(folder, tmp_path)] == [4]
    if again == "in place":
        [back] = give_back(Place.of(folder))
        assert (back.rows, back.some.given_back) == (2, "d.csv~0001.csv")
        put(folder, "e.csv", "csv", ["8,1"])
        assert [row["n"] for row in saved(folder, tmp_path)] == [7]
        assert saved(folder, tmp_path / "new") == saved(folder, tmp_path)


def test_lines_come_back_once_they_are_mended(tmp_path):
    put(tmp_path, "a.csv", "csv", ["1,1", "2,x", "3,1"])
    put(tmp_path, "b.csv", "csv", ["4,y", "5,1"])
    assert len(given(read(tmp_path))[0]) == 3
    assert all(back.problem for back in give_back(Place.of(tmp_path)))
    for file in (tmp_path / FOLDER).glob("*.csv"):
        file.write_text(file.read_text().replace("x", "1").replace("y", "1"))
    assert [back.some.given_back for back in give_back(Place.of(tmp_path))] == [
        "b.csv~0001.csv",
        "b.csv~0002.csv",
    ]
    assert not list(give_back(Place.of(tmp_path)))
    made, late = given(read(tmp_path))
    assert (len(made), late) == (5, {})


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_what_is_given_back_comes_once_wherever_that_is_cut_off(cut, tmp_path, monkeypatch):
    put(tmp_path, "a.csv", "csv", ["1,1", "2,x"])
    given(read(tmp_path))
    [file] = (tmp_path / FOLDER).glob("*.csv")
    file.write_text("t,id\n2,1\n")
    puts = []

    def counted(method):
        def put(self, *args, **options):
            puts.append(self)
            if len(puts) == cut:
                raise KeyboardInterrupt
            return method(self, *args, **options)

        return put

    with monkeypatch.context() as patched:
        patched.setattr(Place, "put", counted(Place.put))
        patched.setattr(Place, "create", counted(Place.create))
        with pytest.raises(KeyboardInterrupt):
            list(give_back(Place.of(tmp_path)))
    list(give_back(Place.of(tmp_path)))
    assert sorted(f.name for f in tmp_path.glob("*.csv")) == ["a.csv", "a.csv~0001.csv"]
    assert len(given(read(tmp_path))[0]) == 2


def test_a_file_that_was_read_and_is_damaged_later_stops_the_query(tmp_path):
    folder = tmp_path / "in"
    put(folder, "a.csv", "csv", ["1,1", "2,1"])
    saved(folder, tmp_path)
    (folder / "a.csv").write_text("nothing,like,it\n1,2,3\n")
    with pytest.raises(StreamError, match=r"'a\.csv' was written anew after it was read"):
        saved(folder, tmp_path)


def test_a_store_that_is_away_sets_nothing_aside(tmp_path, monkeypatch):
    put(tmp_path, "a.csv", "csv", ["1,1"])
    stream = read(tmp_path)

    def away(self):
        raise PermissionError(13, "not now")

    monkeypatch.setattr(Place, "open", away)
    with pytest.raises(CaesuraError, match="not now"):
        given(stream)
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("buckets", [1, 3])
def test_buckets_give_the_same(buckets, tmp_path):
    put(tmp_path, "a.csv", "csv", ["1,1", "2,x", "3,2"])
    (tmp_path / "b.csv").write_text("nothing,like,it\n1,2,3\n")
    put(tmp_path, "c.csv", "csv", ["4,1"])
    stream = read(tmp_path).group_by("id").tumbling(10).agg(n=cz.count())
    cluster = Cluster({"out": stream.node}, buckets)
    [source] = cluster.stages.sources
    for file in sorted(tmp_path.glob("*.csv")):
        cluster.epoch([(source, raw) for raw in source.reader.read_file(str(file))])
    cluster.epoch([], closes=True)
    alone, late = given(stream)
    assert History.of(cluster.items["out"], stream.node.schema) == alone
    reasons = [row for batch in cluster.late["in"] for row in batch.column("reason").to_pylist()]
    assert sorted(reasons) == sorted(late["in"]["reason"].to_pylist())
