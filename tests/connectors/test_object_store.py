"""Places in a real S3-compatible server: races, sources, sinks, and a checkpoint with faults between puts."""

from __future__ import annotations

import multiprocessing
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults import Kill, Killed
from test_durable import Ledger, counts, run, written

import caesura as cz
from caesura.errors import StreamError
from caesura.events import History
from caesura.io.places import Place
from caesura.runtime.sinks.delta import DeltaSink


def test_a_put_replaces_a_create_does_not_and_listings_are_of_one_folder(bucket):
    file = Place.of(bucket) / "a b" / "1.json"
    assert not file.exists() and file.create(b"1") and not file.create(b"2")
    file.put(b"3")
    (Place.of(bucket) / "a b" / "deep" / "2.json").put(b"x" * 5)
    assert file.read_bytes() == b"3" and [f.name for f in (Place.of(bucket) / "a b").files()] == ["1.json"]
    assert (Place.of(bucket) / "a b" / "deep").is_folder()
    file.remove()
    file.remove()
    assert not file.exists()


def _create(uri, number, start, told):
    start.wait()
    for turn in range(5):
        told.put((turn, number)) if (Place.of(uri) / f"{turn}.json").create(str(number).encode()) else None


def test_of_all_processes_that_create_a_file_one_wins(bucket):
    context = multiprocessing.get_context("spawn")
    told, start = context.Queue(), context.Barrier(3)
    racers = [context.Process(target=_create, args=(bucket, n, start, told)) for n in range(3)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    winners = sorted(told.get(timeout=60) for _ in range(5))
    assert [turn for turn, _ in winners] == list(range(5)) and told.empty()
    assert all((Place.of(bucket) / f"{turn}.json").read_text() == str(n) for turn, n in winners)


def test_of_all_threads_that_create_a_file_one_wins(bucket):
    won: list[tuple[int, int]] = []
    start = threading.Barrier(6)

    def race(number):
        start.wait()
        won.extend((t, number) for t in range(8) if (Place.of(bucket) / f"{t}").create(b"x"))

    racers = [threading.Thread(target=race, args=(n,)) for n in range(6)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(turn for turn, _ in won) == list(range(8))


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_files_are_read_and_views_are_claimed_there(bucket, scheme):
    place = Place.of(bucket.replace("s3:", f"{scheme}:"))
    for number in range(2):
        sink = pa.BufferOutputStream()
        rows = {"t": [number * 10 + n for n in range(10)], "id": [n % 2 for n in range(10)]}
        pq.write_table(pa.table(rows), sink, row_group_size=3)
        (place / "in" / f"{number}.parquet").put(sink.getvalue().to_pybytes())
    readings = cz.read.parquet(str(place / "in"), time="t", name="readings")
    assert readings.run().table().num_rows == 20
    views = cz.pipeline(all=readings, total=readings.totals(n=cz.count()))
    views.write(str(place / "views"), claims=cz.tokens(every=10))
    assert cz.read_claimed(str(place / "views")).table("total")["n"].to_pylist()[-1] == 20


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_checkpoint_goes_on_after_a_fault_at_every_put(bucket, after):
    with Kill(None).armed() as steps:
        run(f"{bucket}/whole")
    for at in range(steps.count):
        with pytest.raises(Killed), Kill(at, after=after).armed():
            run(f"{bucket}/{at}")
        run(f"{bucket}/{at}")
        assert written(f"{bucket}/{at}") == written(f"{bucket}/whole"), at


def test_of_two_queries_on_one_checkpoint_the_earlier_stops(bucket):
    ledger = Ledger()
    first = counts().query(checkpoint=bucket, sink=ledger, every="1h")
    first.step()
    counts().query(checkpoint=bucket, sink=ledger).run()
    with pytest.raises(StreamError, match="another process goes on with the checkpoint"):
        first.run()
    assert History.of(ledger.items(), counts().schema) == counts().run().history


def test_a_delta_table_there_has_every_epoch_once(bucket):
    pytest.importorskip("deltalake", reason="not run: deltalake is not installed")
    with pytest.raises(Killed), Kill(9).armed():
        counts().query(checkpoint=f"{bucket}/cp", sink=DeltaSink(f"{bucket}/out"), every="0s").run()
    sink = DeltaSink(f"{bucket}/out")
    counts().query(checkpoint=f"{bucket}/cp", sink=sink, every="0s").run()
    rows = sorted(map(str, counts().run().changes().to_pylist()))
    assert sorted(map(str, sink.read_back("out").to_pylist())) == rows


def test_a_folder_there_holds_the_table_after_a_fault_at_a_put(bucket):
    table = counts().upserts(["id", "LE"])
    for at in (3, 7, 11):
        place = f"{bucket}/{at}"
        with pytest.raises(Killed), Kill(at, after=bool(at % 2)).armed():
            table.query(checkpoint=f"{place}/cp", sink=cz.parquet(f"{place}/now"), every="0s").run()
        query = table.query(checkpoint=f"{place}/cp", sink=cz.parquet(f"{place}/now"), every="0s")
        query.run()
        wanted = counts().run().table()
        assert sorted(map(str, query.table().to_pylist())) == sorted(map(str, wanted.to_pylist()))


def test_a_delta_table_there_is_read_by_version(bucket):
    deltalake = pytest.importorskip("deltalake", reason="not run: deltalake is not installed")
    options = {"allow_http": "true"}
    for number in range(2):
        rows = pa.table({"t": [number], "id": [number]})
        deltalake.write_deltalake(f"{bucket}/t", rows, mode="append", storage_options=options)
    read = cz.read.delta(f"{bucket}/t", time="t", until="latest")
    assert read.run().table()["id"].to_pylist() == [0, 1]


def test_a_bucket_that_is_not_there_is_named(bucket):
    with pytest.raises(StreamError, match="s3://no-such-bucket/x' cannot be read") as error:
        counts().query(checkpoint="s3://no-such-bucket/x")
    assert "no-such-bucket" in error.value.remedy


@pytest.mark.parametrize("there", [True, False], ids=["replaced", "new"])
def test_an_update_begins_again_where_another_put_came_between(bucket, there):
    file, seen = Place.of(bucket) / "fence", []
    if there:
        file.put(b"1")

    def count(held):
        seen.append(held)
        if (
            len(seen) == 1
        ):  # this server holds an object against if-match before it locks it: no race of threads
            file.put(b"5")
        return str(1 + int(held or 0)).encode()

    assert file.update(count) == b"6" == file.read_bytes()
    assert seen == [b"1" if there else None, b"5"]
