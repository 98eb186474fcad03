"""Histories for people: text, HTML and plots."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

import caesura as cz
from caesura import INFINITY, History
from caesura.events import parse
from caesura.events.show import timeline

VISITS = [
    {"from": 10, "to": 20, "id": 3, "who": "<ann>"},
    {"from": 15, "to": 40, "id": 4, "who": "bob"},
]


def visits() -> cz.Stream:
    return cz.from_rows(VISITS, time="from", end="to")


def test_a_preview_is_printed_as_a_timeline() -> None:
    assert str(visits().preview()).splitlines() == [
        " LE  RE | id who   |    10                                    40",
        " 10  20 | 3  <ann> | +  [===========)",
        " 15  40 | 4  bob   | +         [===============================)",
    ]


def test_a_timeline_still_reads_as_a_drawn_stream() -> None:
    result = visits().run()
    assert History.of(parse(result.timeline()), result.node.schema) == result.history


def test_an_event_that_never_ends_points_to_the_right() -> None:
    page = History.from_rows([(3, INFINITY, (1,))], parse(" LE RE | id |\n 1 2 | 1 | +")[0].schema).page
    assert timeline(page, width=10).splitlines()[1] == "  3  inf | 1  | +  [========>"


def test_an_empty_history_is_a_heading() -> None:
    assert visits().where(cz.col("id") > 9).preview().timeline() == " LE  RE | id who |"


def test_times_of_day_are_shown_as_such() -> None:
    noon = datetime(2024, 5, 1, 12)
    stream = cz.from_rows([{"ts": noon + timedelta(minutes=m), "id": m} for m in (0, 7)], time="ts")
    text = str(stream.tumbling("5m").agg(n=cz.count()).preview())
    assert "2024-05-01 12:05:00  2024-05-01 12:10:00 | 1 | +" in text


@pytest.mark.parametrize(
    "thing",
    [
        visits(),
        visits().explain(),
        visits().run(),
        visits().run().history,
        visits().query(),
        visits().trace("id = 3"),
        visits().check(),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_a_notebook_shows_it_as_html_without_letting_data_in(thing: Any) -> None:
    page = thing._repr_html_()
    assert page.count("<table") == page.count("</table>")
    assert "<ann>" not in page


def test_html_draws_each_lifetime_where_it_lies() -> None:
    page = visits().run()._repr_html_()
    assert "left:0.0%;width:33.3%" in page
    assert "left:16.7%;width:83.3%" in page


def test_a_plot_has_a_line_per_lifetime_and_a_trace_per_group() -> None:
    figure = visits().plot(by="who", value="id")
    assert [trace.name for trace in figure.data] == ["who=<ann>", "who=bob"]
    assert figure.data[1].x[:2] == (15, 40)
    assert figure.data[1].y[:2] == (4, 4)


def test_a_plot_of_a_wrong_column_lists_the_right_ones() -> None:
    with pytest.raises(cz.PlanError, match="Did you mean 'who'"):
        visits().plot(by="whom")


def test_a_plot_without_plotly_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(cz.PlanError, match=r"pip install 'caesura\[plot\]'"):
        visits().plot()
