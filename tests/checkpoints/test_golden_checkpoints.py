"""A later version goes on from what this one has saved: checkpoints are kept here, one per kind of state."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from golden_checkpoints import FOLDER, PLANS, STOPS, begin, read, renamed, restored

from caesura.errors import StreamError
from caesura.events import History, Item
from caesura.events.chunks import STATE_FORMAT
from caesura.events.page import Page
from caesura.runtime import Query

FILES = sorted(FOLDER.glob("format-*/*.zip"))


def rest_of(query: Query) -> list[Item]:
    query.run()
    return list(query.take("out"))


def test_every_plan_has_a_checkpoint_of_this_format() -> None:
    assert {f.stem for f in FILES if f.parent.name == f"format-{STATE_FORMAT}"} == set(PLANS)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_a_query_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(file: Path) -> None:
    name = file.stem
    whole, rest = rest_of(begin(name)), rest_of(restored(name, file))
    before = whole[: len(whole) - len(rest)] if name == "claims" else begun(name)
    schema = PLANS[name]().node.schema
    assert History.of([*before, *rest], schema) == History.of(whole, schema)
    assert any(isinstance(item, Page) and len(item) for item in rest), "nothing is left to do"


def begun(name: str) -> list[Item]:
    """What leaves before the state was saved."""
    query = begin(name)
    for _ in range(STOPS[-1]):
        query.step()
    return list(query.take("out"))


@pytest.mark.parametrize("name", ["texts", "plain_python", "maps"])
def test_a_pickled_checkpoint_is_refused_by_name(name: str) -> None:
    query = begin(name)
    known = {cell.label: cell.node.fingerprint for cell in query.graph.cells}
    chunks = renamed(read(FOLDER / f"format-{STATE_FORMAT}" / f"{name}.zip"), known)
    (own,) = (chunk for chunk in chunks if chunk.endswith("/query"))
    with pytest.raises(StreamError, match=r"is of Caesura 0\.1\.0, which pickled it"):
        query.restore({**chunks, own: pickle.dumps({"seen": 3})})
    del chunks["format"]
    with pytest.raises(StreamError, match=r"the saved state is of Caesura 0\.1\.0"):
        begin(name).restore(chunks)


def test_squares_that_an_older_version_saved_as_infinite_are_refused_by_name() -> None:
    with pytest.raises(StreamError, match=r"a version up to 0\.2 saved them as infinite"):
        restored("lost_squares", FOLDER / "refused" / "lost_squares.zip")


def test_what_is_restored_of_an_older_version_is_saved_so_that_it_can_be_read_again() -> None:
    for name in ("wide_spreads", "wide_totals"):
        query = restored(name, FOLDER / f"format-{STATE_FORMAT}" / f"{name}.zip")
        chunks = read(FOLDER / f"format-{STATE_FORMAT}" / f"{name}.zip")
        chunks = renamed(chunks, {cell.label: cell.node.fingerprint for cell in query.graph.cells})
        for _ in range(4):
            query.step()
            saved = query.snapshot()
            chunks |= {n: data for n, data in saved.items() if data is not None}
            chunks = {n: data for n, data in chunks.items() if saved.get(n, b"") is not None}
        query.take("out")
        again = begin(name)
        again.restore(chunks)
        assert told(rest_of(again)) == told(rest_of(query))


def told(items: list[Item]) -> list[str]:
    """Every change, in any order."""
    pages = [item for item in items if isinstance(item, Page)]
    return sorted(
        str(row) for page in pages for row in zip(page.le, page.re, page.payload.to_pylist(), strict=True)
    )
