"""Every example says what its timeline shows, on the embedded engine.

``CAESURA_GOLDEN=write`` writes what the examples say now; read the difference before you keep it.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

from caesura.cli.late import listed
from caesura.cli.load import load

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMELINES = sorted(EXAMPLES.glob("*/expected/*.txt"))
FOLDERS = sorted({file.parents[1] for file in TIMELINES})
LATE = "late"


def said(file: Path) -> str:
    """What the example says now: a stream's timeline, or the rows that were refused."""
    pipeline = str(file.parents[1] / "pipeline.py")
    if file.stem == LATE:
        return "\n".join(listed(load(pipeline).run().late, 20)) + "\n"
    return load(f"{pipeline}:{file.stem}").run().timeline() + "\n"


@pytest.mark.parametrize("file", TIMELINES, ids=lambda f: f"{f.parents[1].name}-{f.stem}")
def test_an_example_says_what_its_timeline_shows(file: Path) -> None:
    if os.environ.get("CAESURA_GOLDEN") == "write":
        file.write_text(said(file))
    assert said(file) == file.read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_an_example_has_a_page_that_names_its_streams(folder: Path) -> None:
    page = (folder / "README.md").read_text()
    assert [f.stem for f in (folder / "expected").glob("*.txt") if f.stem not in page] == []


def test_the_average_price_is_that_of_valid_bids_on_open_auctions() -> None:
    example = EXAMPLES / "auctions" / "pipeline.py"
    rows = load(f"{example}:average").run().table().to_pylist()
    module = runpy.run_path(str(example))
    _, opened, made = module["generated"]()
    prices: dict[tuple[int, str], list[int]] = {}
    for bid in made:
        for auction in opened:
            alive = auction["opens"] <= bid["ts"] < auction["closes"]
            if alive and auction["auction"] == bid["auction"] and bid["price"] >= auction["reserve"]:
                prices.setdefault((bid["ts"] // 1800 * 1800, auction["category"]), []).append(bid["price"])
    expected = {key: (sum(some) / len(some), len(some)) for key, some in prices.items()}
    assert {(r["LE"], r["category"]): (r["price"], r["bids"]) for r in rows} == expected


@pytest.mark.slow
def test_feedback_keeps_the_traffic_map_live_and_zooming_in_saves_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "traffic"))
    story = runpy.run_path(str(EXAMPLES / "traffic" / "feedback.py"))
    table = story["readings"](15)
    live = {how: story["stops"](table, how) for how in ("union", "pace", "pace with feedback")}
    assert live["pace with feedback"]["useful"] > live["pace"]["useful"] >= live["union"]["useful"]
    everything, one = story["zoom"](table, tmp_path).values()
    assert all(one[what] < everything[what] for what in everything if what != "ms")


@pytest.mark.slow
def test_of_the_live_map_a_freeway_that_nobody_looks_at_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "traffic"))
    made = runpy.run_path(str(EXAMPLES / "traffic" / "data.py"))["arriving"](tmp_path, minutes=10)
    assert sum(1 for _ in made) == 30
    plans = runpy.run_path(str(EXAMPLES / "traffic" / "pipeline.py"))
    live = plans["live_map"](tmp_path)
    assert live.run().history == plans["speed_map"](tmp_path).run().history
    query = live.query(output="marked")
    for _ in range(6):
        query.step()
    query.assume("freeway <> 1")
    query.run()
    unread = {name: query.counters()[name].feedback.get("rows not read", 0) for name in ("sensors", "probes")}
    assert unread["sensors"] > 2_000 and unread["probes"] > 200
    assert {name: source.rows_unread for name, source in query.status().sources.items()} == unread
