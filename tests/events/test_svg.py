"""Pictures are well-formed, hold what is drawn, and run nothing."""

from __future__ import annotations

import re
from datetime import datetime
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import History, Page, parse
from caesura.events.show import drawn_svg, timeline_svg
from caesura.punctuation import INFINITY


def shapes(picture: str, kind: str) -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(picture).iter() if e.get("class") == kind]


def texts(picture: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(picture).iter() if e.tag.endswith("text")]


def ends(bar: ElementTree.Element) -> tuple[float, float]:
    """From where to where a bar goes."""
    xs = [float(x) for x in re.findall(r"[ML]([\d.]+) ", bar.get("d") or "")]
    return min(xs), max(xs)


def test_a_correction_is_drawn_where_the_end_moved() -> None:
    items = parse(" LE RE | id |\n 0 20 | 3 | +\n 0 20->15 | 3 | -\n 0 15 | 3 | -\n-- definite: time < 10 --")
    picture = drawn_svg(items, width=20)
    (first, kept), (cut, gone) = shapes(picture, "row"), shapes(picture, "cut")
    assert ends(kept)[1] == ends(cut)[0]
    assert ends(cut)[1] == ends(first)[1]
    assert ends(gone) == ends(kept)
    (promise,) = shapes(picture, "promise")
    assert float(promise.get("x1") or 0) == pytest.approx(sum(ends(first)) / 2)
    assert [t for t in texts(picture) if t in "+-"] == ["+", "-", "-"]


def test_a_lifetime_without_an_end_goes_beyond_all_others() -> None:
    page = Page.of(pa.record_batch({"id": [1, 2]}), le=[0, 5], re=[5, INFINITY])
    ended, endless = shapes(timeline_svg(page), "row")
    assert ends(endless)[1] > ends(ended)[1]


@pytest.mark.parametrize(
    "value", ["<script>alert(1)</script>", '"/><a href="x">', "]]>", "\x1b[2J\x00", "x" * 999]
)
def test_hostile_texts_are_texts(value: str) -> None:
    batch = pa.record_batch({value: [value]})
    picture = timeline_svg(Page.of(batch, le=[1], re=[2]), schema=batch.schema)
    tags = {e.tag.rpartition("}")[2] for e in ElementTree.fromstring(picture).iter()}
    assert tags == {"svg", "style", "line", "text", "path"}
    assert "\x1b" not in picture


def test_many_rows_are_counted_and_nothing_is_drawn_of_none() -> None:
    page = Page.of(pa.record_batch({"id": range(2000)}), le=list(range(2000)), re=list(range(1, 2001)))
    assert len(shapes(timeline_svg(page), "row")) == 500
    assert "and 1,500 more" in texts(timeline_svg(page))
    assert len(shapes(timeline_svg(page), "axis")) <= 8
    assert shapes(timeline_svg(History.of([], page.schema).page), "row") == []


def test_results_are_drawn_in_both_forms_with_the_times_of_their_stream() -> None:
    rows = [{"at": datetime(2024, 5, 1, 10, minute), "v": minute} for minute in (0, 1)]
    result = cz.from_rows(rows, time="at").run()
    assert "2024-05-01 10:00:00" in texts(result.timeline(format="svg", width=60))
    assert any(text.startswith("definite") for text in texts(result.draw(format="svg")))
    with pytest.raises(cz.PlanError, match="no form"):
        result.timeline(format="png")  # type: ignore[arg-type]
