"""A worker that holds a fragment steps it for a sibling that proves itself, and for nobody else."""

from __future__ import annotations

import ast
import multiprocessing
import os
import pickle
import socket
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from caesura.runtime.packets.packet import Row
from caesura.spark.worker import neighbours, sealed
from caesura.spark.worker.neighbours import BucketKey, Worked

PLACE: BucketKey = ("query", 1, 0)
ROWS: list[Row] = [(1, "in", 0, "a", 0, b"data"), (1, "in", 0, "b", 0, b"")]
SEAL, OTHER = sealed.new_seal(), sealed.new_seal()
MADE = Worked(ROWS, {"gone": None, "kept": b"k", "empty": b""}, "next", {}, {"source": 7}, {}, [("s", "w")])


def _step(place: BucketKey, stamp: str, rows: list[Row], closes: bool, saving: str) -> Worked | None:
    if any(row[1] == "fails" for row in rows):
        os._exit(3)
    return MADE if stamp == "now" and rows == ROWS and saving == "as told" else None


def _sibling(ready: Event) -> None:
    neighbours.know(PLACE[0], SEAL)
    neighbours.tell(PLACE, "now", _step)
    ready.set()
    Event.wait(multiprocessing.get_context("fork").Event())


@pytest.fixture
def sibling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A process that holds the place; it and this one meet in a folder of the test's."""
    monkeypatch.setattr(neighbours.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(neighbours.os, "getppid", lambda: 1)
    forks = multiprocessing.get_context("fork")
    ready = forks.Event()
    process = forks.Process(target=_sibling, args=(ready,), daemon=True)
    process.start()
    assert ready.wait(60)
    neighbours.know(PLACE[0], SEAL)
    yield process
    process.kill()
    process.join()


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_sibling_steps_what_it_holds_until_it_is_gone(sibling: Any) -> None:
    assert neighbours.ask(PLACE, "now", ROWS, False, "as told") == MADE
    assert neighbours.ask(PLACE, "before", ROWS, False, "as told") is None
    assert neighbours.ask(("query", 1, 1), "now", ROWS, False, "as told") is None
    sibling.kill()
    sibling.join()
    assert neighbours.ask(PLACE, "now", ROWS, False, "as told") is None


def test_who_does_not_know_the_seal_has_nothing_stepped(sibling: Any, tmp_path: Path) -> None:
    fatal: list[Row] = [(1, "fails", 0, "a", 0, b"")]
    neighbours.know(PLACE[0], OTHER)
    assert neighbours.ask(PLACE, "now", fatal, False, "as told") is None
    neighbours.know(PLACE[0], SEAL)
    [listener] = tmp_path.rglob("*.socket")
    for message in (b"", b"x" * 200, pickle.dumps((PLACE, "now", fatal, False))):
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.connect(str(listener))
            sealed.receive(visitor)
            sealed.send(visitor, b"query")
            sealed.send(visitor, message)
            assert visitor.recv(1) == b""
    assert neighbours.ask(PLACE, "now", ROWS, False, "as told") == MADE  # it lives, and nothing was stepped


def test_a_question_cannot_be_asked_twice() -> None:
    first, second = sealed.new_challenge(), sealed.new_challenge()
    signed = b"".join(sealed.sign(SEAL, first, sealed.ASK, [b"body"]))
    assert sealed.checked(SEAL, first, sealed.ASK, signed) == b"body"
    assert sealed.checked(SEAL, second, sealed.ASK, signed) is None
    assert sealed.checked(SEAL, first, sealed.ANSWER, signed) is None


def test_a_folder_that_another_could_have_made_is_no_meeting_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours.tempfile, "gettempdir", lambda: str(tmp_path))
    home = tmp_path / f"caesura-{os.getuid()}"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    assert neighbours._folder() is None
    home.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    home.symlink_to(tmp_path / "theirs")
    assert neighbours._folder() is None
    home.unlink()
    theirs = os.getuid() + 1
    monkeypatch.setattr(sealed.os, "getuid", lambda: theirs)
    assert neighbours._folder() is None


def test_no_worker_unpickles_what_another_process_sent() -> None:
    for module in (neighbours, sealed):
        tree = ast.parse(Path(module.__file__).read_text())
        names = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {name for name in names if name.startswith(("pickle", "multiprocessing", "marshal"))}
