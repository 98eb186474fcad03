"""Whatever is cut off, changed or taken away of a stopped query is named, or does no harm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import caesura as cz
from caesura.errors import CaesuraError, StreamError
from caesura.events import History
from caesura.io.places import Place
from caesura.io.sinks.protocol import EpochSink
from caesura.runtime.metrics.status import Board
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.runtime.sinks.verify import committed_flaws

ROWS = [{"t": t - 4 * (t % 7 == 6), "id": t % 3} for t in range(24)]


def counts():
    readings = cz.from_rows(ROWS, time="t", punctuate=cz.delay(1), name="readings", batch_size=4)
    return readings.group_by("id").tumbling(10).agg(n=cz.count())


def begun(folder, sink=None):
    """A query that was stopped after some epochs."""
    query = counts().query(checkpoint=folder / "cp", sink=sink or folder / "out", every="1h")
    for _ in range(3):
        assert query.step()
        assert query.step()
        query.save()
    query.close()


def finished(folder):
    query = counts().query(checkpoint=folder / "cp", sink=folder / "out", every="1h")
    query.run()
    return sorted(map(str, query.table("out").to_pylist()))


def files(folder):
    """What a start reads: everything but rows that were written, and locks."""
    some = [f for f in folder.rglob("*") if f.is_file() and not f.name.endswith((".part", ".parquet"))]
    return sorted(str(f.relative_to(folder)) for f in some)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    begun(folder)
    whole = tmp_path_factory.mktemp("whole")
    begun(whole)
    return folder, finished(whole)


def harmed(file, how):
    data = file.read_bytes()
    match how:
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(data[: len(data) // 2])
        case "last":
            file.write_bytes(data[:-1])


@pytest.mark.parametrize("how", ["gone", "empty", "cut", "last"])
def test_each_file_of_a_query_is_named_or_healed(how, stopped, tmp_path):
    folder, wanted = stopped
    healed = []
    for name in files(folder):
        copy = tmp_path / name.replace("/", "-")
        shutil.copytree(folder, copy)
        harmed(copy / name, how)
        try:
            assert finished(copy) == wanted, name
            healed.append(name)
        except CaesuraError as error:
            assert Path(name).name in str(error) or "manifest" in str(error), (name, error)
    assert {Path(name).name for name in healed} <= HEALED[how], healed


TOLD = {"plan.json", "status.json"}
HEALED = {
    "gone": {"lease.json", "query", "fence", "last", "00000002.json", "00000001.json", "00000000.json"}
    | TOLD,
    "empty": {"00000002.json"} | TOLD,
    "cut": {"00000002.json"} | TOLD,
    "last": {"00000002.json"} | TOLD,
}
"""The file before the last manifest is read by nobody; an owner is known by the commits; what is there for
whoever looks on is written anew.
"""


def test_a_commit_says_which_query_and_start_made_it(stopped):
    folder, _ = stopped
    commits = sorted((folder / "out" / "_commits").glob("*.json"))
    said = [json.loads(file.read_text()) for file in commits]
    assert {(c["format"], c["fence"], c["query"]) for c in said} == {
        (1, 1, (folder / "out" / "_commits" / "query").read_text())
    }


def test_a_folder_whose_owner_is_lost_goes_with_its_own_query_only(stopped, tmp_path):
    folder, wanted = stopped
    shutil.copytree(folder, tmp_path / "own")
    (tmp_path / "own" / "out" / "_commits" / "query").unlink()
    with pytest.raises(StreamError, match="was written from another checkpoint"):
        counts().query(checkpoint=tmp_path / "other", sink=tmp_path / "own" / "out")
    assert finished(tmp_path / "own") == wanted


def test_a_deposed_start_commits_nothing_however_late_it_wakes(tmp_path):
    def sink():
        made = ParquetSink(str(tmp_path))
        made.open({"out": counts().node})
        made.attach("query")
        return made

    early = sink()
    early.commit(0, [])
    late = sink()
    late.commit(1, [])
    with pytest.raises(StreamError, match="another start of this query"):
        early.commit(1, [])
    (tmp_path / "_commits" / "fence").write_text("1")  # as the early one has read it before it fell asleep
    with pytest.raises(StreamError, match="its number is 2"):
        early.commit(1, [])
    assert json.loads((tmp_path / "_commits" / "000001.json").read_text())["fence"] == 2


def test_what_was_written_and_changed_since_is_found(stopped, tmp_path):
    folder, _ = stopped
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    count, flaws = committed_flaws(Place.of(out))
    assert (count > 2, flaws) == (True, [])
    first, second, *_ = sorted((out / "out").glob("*.parquet"))
    first.unlink()
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    (out / "out" / "epoch-000001-77.parquet").write_bytes(data)
    _, flaws = committed_flaws(Place.of(out))
    assert [flaw.rpartition("' ")[2] for flaw in flaws] == [
        "of epoch 0 is gone",
        "of epoch 2 was changed after it was committed",
        "is named by no commit: it was written by hand",
    ]


class Failing(EpochSink):
    """A sink that is away when the second epoch comes."""

    def __init__(self):
        self.epochs, self.board, self.away = [], Board(), False

    def last_epoch(self):
        return self.epochs[-1].number if self.epochs else None

    def take(self, epoch):
        if self.away:
            raise OSError("not now")
        self.epochs.append(epoch)


@pytest.mark.parametrize("how", ["gone", "empty", "cut", "last"])
def test_an_epoch_that_the_sink_lacks_and_is_damaged_is_named(how, tmp_path):
    sink = Failing()
    query = counts().query(checkpoint=tmp_path, sink=sink, every="1h")
    assert query.step()
    sink.away = True
    with pytest.raises(OSError, match="not now"):
        query.run()
    sink.away = False
    [file] = (tmp_path / "output").glob("*.packets")
    harmed(file, how)
    with pytest.raises(StreamError, match=rf"{file.name}', which the sink has not got yet, is"):
        counts().query(checkpoint=tmp_path, sink=sink, every="1h")


def test_a_checkpoint_that_is_behind_its_sink_is_refused(tmp_path):
    sink = Failing()
    counts().query(checkpoint=tmp_path / "one", sink=sink, every="1h").run()
    with pytest.raises(StreamError, match="the sink has epoch 0, and the query goes on behind epoch -1"):
        counts().query(checkpoint=tmp_path / "two", sink=sink, every="1h")
    assert History.of([i for e in sink.epochs for i in e.items["out"]], counts().node.schema)
