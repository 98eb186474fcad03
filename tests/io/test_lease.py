"""One process at a time goes on with a checkpoint."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest
from lease_holder import another_process, asked

import caesura as cz
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places import lease as leases
from caesura.io.places.lease import NAME, TERM, Beats, Holder, Lease


def no_wait(_: float) -> None:
    raise AssertionError("nobody waits for a process that can be seen")


def counts(folder: Path) -> cz.Stream:
    folder.mkdir(exist_ok=True)
    (folder / "0.csv").write_text("ts,id\n1,2\n")
    return cz.read.csv(folder, time="ts").group_by("id").totals(n=cz.count())


def test_a_checkpoint_that_another_process_has_is_refused_until_it_is_killed_or_taken_over(
    tmp_path: Path,
) -> None:
    place = Place.of(tmp_path / "cp")
    stream = counts(tmp_path / "in")
    with another_process(tmp_path / "cp") as process:
        with pytest.raises(StreamError, match=rf"in use by process {process.pid} of .* on .*, since 20"):
            Lease.take(place, pause=no_wait)
        with pytest.raises(StreamError, match="in use by process"):
            stream.query(checkpoint=tmp_path / "cp")
        assert [entry.name for entry in place.files()] == [NAME]  # nothing was made
        assert asked(process) == "still\n"
        stream.query(checkpoint=tmp_path / "cp", take_over=True).run()
        assert "was taken over by process" in asked(process)
    with another_process(tmp_path / "cp") as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert Lease.take(place, pause=no_wait).number == 4  # killed, even where nobody has waited for it


@pytest.fixture
def no_beats(monkeypatch: pytest.MonkeyPatch) -> Beats:
    """The leases of this process without the thread that beats, which holds each of them for a moment."""
    beats = Beats()
    monkeypatch.setattr(leases, "BEATING", beats)
    monkeypatch.setattr(leases, "BEAT", 1000)
    return beats


def elsewhere(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A checkpoint that a process on another machine has, which did not release it."""
    place = Place.of(checkpoint)
    with monkeypatch.context() as there:
        there.setattr(leases, "_machine", lambda: "another machine")
        held = Holder.here(7)
    (place / NAME).put(held.to_bytes())
    return place


def test_a_holder_on_another_machine_lives_if_it_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = elsewhere(tmp_path, monkeypatch)
    passed: list[float] = []

    def beats(seconds: float) -> None:
        passed.append(seconds)
        if len(passed) == 3:
            told = json.loads((place / NAME).read_text())
            (place / NAME).put(json.dumps({**told, "beat": told["beat"] + 1}).encode())

    with pytest.raises(StreamError, match="in use by"):
        Lease.take(place, pause=beats)
    assert len(passed) == 3
    passed.clear()
    assert Lease.take(place, pause=passed.append).number == 8
    assert sum(passed) == TERM


def test_of_two_that_see_a_dead_holder_one_has_the_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = elsewhere(tmp_path, monkeypatch)
    others: list[Lease] = []

    def slower(_: float) -> None:
        if not others:
            others.append(Lease.take(place, pause=lambda _: None))

    with pytest.raises(StreamError, match="in use by"):
        Lease.take(place, pause=slower)
    assert others[0].number == 8


def test_a_lease_is_given_back_when_it_is_not_needed_any_more(tmp_path: Path, no_beats: Beats) -> None:
    def released() -> Any:
        return json.loads((tmp_path / NAME).read_text())["released"]

    place = Place.of(tmp_path)
    lease = Lease.take(place)
    lease.beat()
    assert json.loads((tmp_path / NAME).read_text())["beat"] == 1
    lease.needed = lambda: False
    lease.beat()
    assert released()
    lease = Lease.take(place)
    assert not released()
    del lease
    gc.collect()
    no_beats.give_back()
    assert released()
    earlier, later = Lease.take(place), Lease.take(place)
    with pytest.raises(StreamError, match="was taken over"):
        earlier.check()
    earlier.beat()
    earlier.release()  # it has nothing to give back
    assert not released()
    later.check()


def test_a_forgotten_lease_is_found_in_the_middle_of_a_change_of_its_file(
    tmp_path: Path, no_beats: Beats
) -> None:
    forgotten: Any = [Lease.take(Place.of(tmp_path))]
    forgotten.append(forgotten)  # only the garbage collector finds it
    del forgotten

    def collected(data: bytes | None) -> bytes:
        gc.collect()
        return data or b""

    (Place.of(tmp_path) / NAME).update(collected)
    no_beats.give_back()
    assert json.loads((tmp_path / NAME).read_text())["released"]


def test_a_lease_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"number": 1')
    with pytest.raises(StreamError, match=r"lease\.json' is not whole"):
        Lease.take(Place.of(tmp_path))
    (tmp_path / NAME).write_text("{}")
    with pytest.raises(StreamError, match="has no 'number'"):
        Lease.take(Place.of(tmp_path))


def test_the_end_of_a_with_gives_the_checkpoint_back(tmp_path: Path) -> None:
    with counts(tmp_path / "in").query(checkpoint=tmp_path / "cp") as query:
        assert query.step()
        assert not json.loads((tmp_path / "cp" / NAME).read_text())["released"]
    assert json.loads((tmp_path / "cp" / NAME).read_text())["released"]


def test_a_lease_lies_in_a_store_too() -> None:
    place = Place.of("memory://leases/cp")
    with Lease.take(place) as lease:
        lease.beat()
        lease.check()
    assert Lease.take(place).number == 2
