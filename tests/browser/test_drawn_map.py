"""The speed map on its page in a real browser, over readings that are read in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import violations
from playwright.sync_api import expect

from caesura.io.sinks.rows import rows_table

TRAFFIC = Path(__file__).parents[2] / "examples" / "traffic"


def test_the_map_is_looked_at_and_zoomed(
    page: Any, shot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(TRAFFIC)
    import data
    import map_page
    import pipeline

    try:
        for _ in data.arriving(tmp_path, minutes=8):
            pass
        stream = pipeline.speed_map(tmp_path)
        query, speeds = stream.query(output="marked"), map_page.SpeedMap()
        query.run()
        rows = rows_table(query.take("out"), stream.node.schema, stream.node.time)
        half = rows.num_rows // 2
        speeds.take(0, rows.slice(0, half))
        with query.console(open_page=False, name="speed map") as server:
            speaker = server.console.watched.speaker
        own = map_page.MapPage(speeds, speaker).own_page()
        with query.console(open_page=False, name="speed map", pages=[own]) as server:
            page.goto(server.url)
            assert page.url.endswith("/map")
            expect(page.locator("svg.map .road")).to_have_count(5)
            expect(page.locator("#about")).to_contain_text("epoch 0")
            speeds.take(1, rows.slice(half))
            expect(page.locator("#about")).to_contain_text("epoch 1")
            expect(page.locator("svg.map .flash").first).to_be_attached()
            expect(page.locator("svg.map rect").first).to_be_visible()
            page.wait_for_timeout(300)
            shot("map")
            assert violations(page) == []
            page.get_by_role("button", name="I-2").click()
            expect(page.get_by_role("status").first).to_contain_text("ignores freeway <> 2")
            expect(page.locator("svg.map .road")).to_have_count(1)
            page.get_by_role("button", name="Stations 5 to 9").click()
            expect(page.locator("svg.map .station")).to_have_count(5)
            shot("map-freeway")
            assert violations(page) == []
    finally:
        for name in ("data", "map_page", "pipeline"):
            sys.modules.pop(name, None)
