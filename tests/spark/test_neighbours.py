"""A worker that holds a fragment steps it for a sibling; for another stamp, or when gone, nobody does."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from caesura.runtime.packet import Row
from caesura.spark import neighbours
from caesura.spark.neighbours import Place, Worked

PLACE: Place = ("query", 1, 0)
ROWS: list[Row] = [(1, "in", 0, "a", 0, b"data")]


def _step(place: Place, stamp: str, rows: list[Row], closes: bool) -> Worked | None:
    if any(row[1] == "fails" for row in rows):
        raise RuntimeError("a step that fails")
    if stamp != "now":
        return None
    return Worked(rows, {"gone": None, "kept": b"k"}, "next", {}, {"source": 7}, {}, [])


def _sibling(ready: Event) -> None:
    neighbours.tell(PLACE, "now", _step)
    ready.set()
    Event.wait(multiprocessing.get_context("fork").Event())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_sibling_steps_what_it_holds_until_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "_folder", lambda: tmp_path / "home")
    forks = multiprocessing.get_context("fork")
    assert neighbours.ask(PLACE, "now", ROWS, False) is None
    ready = forks.Event()
    sibling = forks.Process(target=_sibling, args=(ready,), daemon=True)
    sibling.start()
    assert ready.wait(20)
    worked = neighbours.ask(PLACE, "now", ROWS, False)
    assert worked == Worked(ROWS, {"gone": None, "kept": b"k"}, "next", {}, {"source": 7}, {}, [])
    assert neighbours.ask(PLACE, "before", ROWS, False) is None
    assert neighbours.ask(("query", 1, 1), "now", ROWS, False) is None
    assert neighbours.ask(PLACE, "now", [(1, "fails", 0, "a", 0, b"")], False) is None
    sibling.kill()
    sibling.join()
    assert neighbours.ask(PLACE, "now", ROWS, False) is None
