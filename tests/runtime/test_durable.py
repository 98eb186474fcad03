"""A query with a checkpoint: killed anywhere and made again, it goes on; of two on one place, one stops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import DEPTH
from faults import Kill, Killed

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError, StreamError
from caesura.events import History, draw
from caesura.io import Reader
from caesura.io.places import Place
from caesura.io.sinks.protocol import EpochSink
from caesura.io.sources.source import Source
from caesura.plan import NOTHING_NOW, Raw
from caesura.runtime.durable.query import DurableQuery
from caesura.runtime.metrics.status import Board
from caesura.runtime.sinks.parquet import ParquetSink

ROWS = [{"t": t - 4 * (t % 7 == 6), "id": t % 3} for t in range(24)]


def counts(rows=ROWS, size=10):
    readings = cz.from_rows(rows, time="t", punctuate=cz.delay(1), name="readings", batch_size=8)
    return readings.group_by("id").tumbling(size).agg(n=cz.count())


def memory():
    return f"memory://{uuid.uuid4().hex}"


def written(store):
    """What counts in a Parquet sink, as rows, and the late rows that it names."""
    place = Place.of(f"{store}/out")
    commits = [json.loads(file.read_text()) for file in (place / "_commits").files(".json")]
    parts = [part for commit in commits for part in commit["files"]]
    rows = [(p["output"], pq.read_table((place / p["output"] / p["file"]).open()).to_pylist()) for p in parts]
    return Counter((output, tuple(row.items())) for output, some in rows for row in some)


def run(store):
    """Three epochs or so, and the last one."""
    query = counts().query(checkpoint=f"{store}/cp", sink=f"{store}/out", every="1h")
    while all(query.step() for _ in range(4)):
        query.save()
    query.run()


class Ledger(EpochSink):
    """A sink in the test that remembers its epochs, as a database would."""

    def __init__(self):
        self.epochs, self.board = {}, Board()

    def last_epoch(self):
        return max(self.epochs, default=None)

    def take(self, epoch):
        assert epoch.number not in self.epochs
        self.epochs[epoch.number] = epoch

    def items(self):
        return [item for number in sorted(self.epochs) for item in self.epochs[number].items.get("out", [])]


def test_a_run_without_a_kill_writes_what_a_plain_run_gives():
    store = memory()
    run(store)
    plain = counts().run()
    rows = Counter(("out", tuple(row.items())) for row in plain.changes().to_pylist())
    found = written(store)
    assert Counter({k: n for k, n in found.items() if k[0] == "out"}) == rows
    late = sum(n for (output, _), n in found.items() if output == "_late")
    assert late == plain.late["readings"].num_rows > 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_put_it_goes_on_and_nothing_is_lost_or_twice(after):
    whole = memory()
    with Kill(None).armed() as steps:
        run(whole)
    assert steps.count > 12
    for at in range(steps.count):
        store = memory()
        with pytest.raises(Killed), Kill(at, after=after).armed():
            run(store)
        run(store)
        assert written(store) == written(whole), at


@pytest.mark.parametrize("at", range(0, 16, 3))
def test_killed_twice_in_a_row_too(at):
    store, ledger = memory(), Ledger()
    for kill in (Kill(at), Kill(at // 2, after=True), Kill(None)):
        with kill.armed():
            try:
                counts().query(checkpoint=store, sink=ledger, every="0s").run()
            except Killed:
                continue
    assert History.of(ledger.items(), counts().schema) == counts().run().history


def test_two_sources_that_meet_are_saved_together():
    left = cz.from_rows(ROWS, time="t", punctuate=cz.delay(3), name="left", batch_size=5)
    right = cz.from_rows(ROWS[::2], time="t", punctuate=cz.delay(3), name="right", batch_size=5)
    joined = left.set_duration(5).join(right.set_duration(5), on="id")
    store, ledger = memory(), Ledger()
    for steps in (3, 9):
        query = joined.query(checkpoint=store, sink=ledger, every="1h")
        for _ in range(steps):
            query.step()
        query.save()
        query.step()  # of which nothing is saved
    joined.query(checkpoint=store, sink=ledger).run()
    assert History.of(ledger.items(), joined.schema) == joined.run().history


class Growing(Reader):
    """A live source: what a list holds now, and more later; it never ends."""

    schema = pa.schema([("t", pa.int64()), ("id", pa.int64())])
    key = "growing"
    poll_seconds = 0.0

    def __init__(self, rows):
        self.rows = rows

    def describe(self):
        return "growing"

    def latest(self):
        return {0: len(self.rows)}

    def read(self, offsets):
        at = offsets.get(0, 0)
        while True:
            if at == len(self.rows):
                yield NOTHING_NOW
                continue
            batch = pa.RecordBatch.from_pylist(self.rows[at : at + 4], self.schema)
            yield Raw(0, at, batch)
            at += batch.num_rows


def test_a_live_source_is_read_on_from_where_it_was_saved():
    rows, store, ledger = list(ROWS[:6]), memory(), Ledger()

    def start():
        shape = counts().node  # for its types only
        while shape.inputs:
            shape = shape.inputs[0]
        source = Source(reader=Growing(rows), shape=shape.shape, policy=shape.policy, name="readings")
        plan = Stream(source).group_by("id").tumbling(10).agg(n=cz.count())
        return plan.query(checkpoint=store, sink=ledger, every="1h")

    for more in (6, 12, 18, 24):
        rows[:] = ROWS[:more]
        query = start()
        while query.parts.readers["readings"].offsets.get(0, 0) < more:
            query.step()
        for _ in range(5):
            query.step()
        query.save()
    with pytest.raises(CaesuraError, match="rows of it are gone"):
        rows[:] = ROWS[:18]
        start()
    got = [row for row in History.of(ledger.items(), counts().schema).rows() if row[1] <= 20]
    assert got == [row for row in counts().run().history.rows() if row[1] <= 20]


def test_a_later_start_takes_over_and_the_earlier_one_stops():
    store, ledger = memory(), Ledger()
    first = counts().query(checkpoint=store, sink=ledger, every="1h")
    for _ in range(3):
        first.step()
    second = counts().query(checkpoint=store, sink=ledger, every="0s")
    with pytest.raises(StreamError, match="another process goes on with the checkpoint"):
        first.save()
    with pytest.raises(StreamError, match="another process goes on with the checkpoint"):
        first.step()
    second.run()
    counts().query(checkpoint=store, sink=ledger).run()
    assert History.of(ledger.items(), counts().schema) == counts().run().history


def test_a_start_whose_number_is_free_again_finds_the_later_manifests():
    store, ledger = memory(), Ledger()
    first = counts().query(checkpoint=store, sink=ledger, every="1h")
    for _ in range(3):
        first.step()
    counts().query(checkpoint=store, sink=ledger, every="0s").run()
    assert not (Place.of(store) / "manifests" / "00000001.json").exists()
    with pytest.raises(StreamError, match="another process goes on with the checkpoint"):
        first.save()
    assert History.of(ledger.items(), counts().schema) == counts().run().history


def test_output_without_a_sink_is_given_when_it_is_saved_and_again_after_a_restart():
    store = memory()
    query = counts().query(checkpoint=store, every="1h")
    while query.step():
        pass
    assert query.take("out") == [] and query.late() == {}
    query.save()
    items = query.take("out")
    assert History.of(items, counts().schema) == counts().run().history
    assert query.take("out") == [] and query.late()["readings"].num_rows
    again = counts().query(checkpoint=store)
    assert draw(again.take("out")) == draw(items)


def test_epochs_are_saved_when_they_are_due_and_not_where_nothing_changed():
    clock, store = [0.0], memory()
    query = DurableQuery({"out": counts().node}, checkpoint=Place.of(store), every=10, now=lambda: clock[0])
    names = lambda: [file.name for file in (Place.of(store) / "manifests").files()]  # noqa: E731
    query.step()
    assert names() == ["00000000.json"]
    clock[0] = 10.0
    query.step()
    assert names() == ["00000000.json", "00000001.json"]
    last = query.save()
    assert query.save() == last and len(names()) == 2


def test_old_files_are_removed():
    store = memory()
    query = counts([{"t": t, "id": 1} for t in range(160)], size=10).query(checkpoint=store, every="0s")
    query.run()
    place = Place.of(store)
    assert len((place / "manifests").files()) == 2 and len((place / "state").files()) < 70
    assert len((place / "output").files()) <= 1


def test_another_plan_and_torn_files_are_refused_by_name():
    store = memory()
    counts().query(checkpoint=store).run()
    with pytest.raises(StreamError, match="belongs to another plan"):
        counts(size=20).query(checkpoint=store)
    manifest = (Place.of(store) / "manifests").files()[-1]
    whole = manifest.read_bytes()
    manifest.put(whole[:-9])
    with pytest.raises(StreamError, match=f"{manifest.name}' is not whole"):
        counts().query(checkpoint=store)
    manifest.put(whole)
    (Place.of(store) / "state").files()[0].remove()
    with pytest.raises(CaesuraError, match="which a restart needs, is gone"):
        counts().query(checkpoint=store)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sink": "out"}, "without a checkpoint there are none"),
        ({"checkpoint": "cp", "claims": cz.tokens()}, "makes no claims"),
        ({"checkpoint": "cp", "every": 10}, "the time to save after is 10, a number without a unit"),
        ({"checkpoint": "cp", "every": "soon"}, "soon"),
        ({"checkpoint": "cp", "sink": 7}, "is no sink"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_made(options, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaesuraError, match=text):
        counts().query(**options)
    assert list(tmp_path.iterdir()) == []


def test_with_a_sink_nothing_is_left_to_take():
    query = counts().query(checkpoint=memory(), sink=ParquetSink(memory()))
    with pytest.raises(StreamError, match="goes to the sink"):
        query.take("out")


def test_a_process_that_is_killed_goes_on_in_another(tmp_path):
    script = Path(__file__).with_name("killed_durable.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for at in (7, -1) if DEPTH == 1 else (5, 9, -1):
        call = [sys.executable, script, tmp_path, str(at)]
        done = subprocess.run(call, env=env, capture_output=True, text=True)
        assert done.returncode == (-9 if at >= 0 else 0), done.stderr
    run(f"{tmp_path}/whole")
    assert written(tmp_path) == written(f"{tmp_path}/whole")


def run_on(folder, ledger, times, **policy):
    """Reads a folder that got another file; what has come out until now, and the rows that were late."""
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(pa.table({"t": times}), folder / "in" / f"{min(times):03}.parquet")
    readings = cz.read.parquet(folder / "in", time="t", punctuate=cz.delay(1, **policy))
    counted = readings.tumbling(10).agg(n=cz.count())
    counted.query(checkpoint=folder / "cp", output="final", sink=ledger).run()
    late = sum(t.num_rows for epoch in ledger.epochs.values() for some in epoch.late.values() for t in some)
    return [(le, n) for le, _, (n,) in History.of(ledger.items(), counted.schema).rows()], late


def test_a_folder_that_has_grown_is_read_on(tmp_path):
    ledger = Ledger()
    assert run_on(tmp_path, ledger, [1, 2, 11]) == ([(0, 2)], 0)
    assert run_on(tmp_path, ledger, [12, 13, 25]) == ([(0, 2), (10, 3)], 0)


def test_where_the_end_of_a_folder_was_promised_what_comes_later_is_late(tmp_path):
    ledger = Ledger()
    assert run_on(tmp_path, ledger, [1, 2, 11], closes=True) == ([(0, 2), (10, 1)], 0)
    assert run_on(tmp_path, ledger, [12, 13, 25], closes=True) == ([(0, 2), (10, 1)], 3)
