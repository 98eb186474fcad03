"""A trace shows, step by step, what is said because of some rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.runtime.inspect.trace import TracedEvent

ROWS = [
    {"ts": 13, "segment": 1, "speed": 62.0},
    {"ts": 24, "segment": 1, "speed": 40.0},
    {"ts": 18, "segment": 1, "speed": 48.0},
    {"ts": 41, "segment": 2, "speed": 55.0},
    {"ts": 12, "segment": 1, "speed": 99.0},
    {"ts": 45, "segment": 2, "speed": -1.0},
]


def speeds(rows: list[dict[str, Any]] = ROWS) -> cz.Stream:
    readings = cz.from_rows(rows, time="ts", punctuate=cz.delay(8), batch_size=4)
    return readings.where(col("speed") >= 0).group_by("segment").tumbling(10).agg(n=cz.count())


def drawn(told: list[TracedEvent]) -> list[str]:
    return [f"{t.kind} {t.start} {t.end} {t.payload} by {t.by}" for t in told]


def test_a_late_row_takes_back_what_was_said_and_says_it_anew() -> None:
    step = speeds().trace("ts = 18")["tumbling"]
    assert drawn(step.caused) == ["- 10 20 (1, 1) by row 2 of 'read'", "+ 10 20 (1, 2) by row 2 of 'read'"]
    assert step.otherwise == []


def test_a_first_row_shows_what_corrected_it_and_what_would_be_there_instead() -> None:
    fast = cz.from_rows(ROWS, time="ts", punctuate=cz.delay(8)).tumbling(10).agg(top=cz.max("speed"))
    step = fast.trace("ts = 13")["tumbling"]
    assert drawn(step.caused) == ["+ 10 20 (62.0,) by row 0 of 'read'"]
    assert drawn(step.otherwise) == ["+ 10 20 (48.0,) by row 2 of 'read'"]


def test_a_row_that_is_too_late_is_refused_where_it_is_read() -> None:
    step = speeds().trace("ts = 12")["read"]
    assert step.fate == "refuses 1"
    assert step.late[0]["reason"] == "time 12 came after its lane had passed 33"


def test_a_row_that_a_step_refuses_is_named_there() -> None:
    rows = [{"ts": t, "id": t} for t in (30, 2)]
    plan = cz.from_rows(rows, time="ts", punctuate=cz.delay(99)).pace(within=5, tells="nobody")
    step = plan.trace(cz.Pattern(id=2)).steps[-1]
    assert step.fate == "refuses 1"
    assert list(step.lines())[1] == "  refused: more than 5 behind the furthest start"


def test_a_filter_that_drops_a_row_is_named() -> None:
    found = speeds().trace("speed = -1")
    assert [s.fate for s in found.steps][1:] == ["drops them", "receives none of them"]


def test_a_guard_that_stops_a_row_is_named() -> None:
    fates = [s.fate for s in speeds().trace("ts = 41", assume="segment = 2").steps]
    assert "its guards stop 1" in fates
    assert fates[-1] == "receives none of them"


def test_columns_that_no_source_has_are_refused() -> None:
    with pytest.raises(cz.PlanError, match="Did you mean 'segment'"):
        speeds().trace("segmnt = 1")


def test_many_items_are_told_by_what_they_come_to() -> None:
    rows = [{"ts": 0, "v": 100}, *({"ts": t, "v": 1} for t in range(1, 9))]
    sums = cz.from_rows(rows, time="ts").tumbling(10).agg(s=cz.sum("v"))
    assert str(sums.trace("v = 100")).splitlines()[-3:] == [
        "  ... 13 more; in the end:",
        "  0  10  | 8 | -",
        "  0  10  | 108 | +",
    ]


def test_an_end_that_moves_is_a_row_that_goes_and_a_row_that_comes() -> None:
    visits = cz.from_items(" LE RE | id |\n 1 9 | 7 | +\n 1 9->5 | 7 | -")
    assert [(t.kind, t.start, t.end) for t in visits.trace("id = 7").steps[0].ends] == [("+", 1, 5)]


readings = st.tuples(st.integers(0, 20), st.integers(0, 2), st.sampled_from((-1.0, 3.0)))


@pytest.mark.slow
@given(st.lists(readings, min_size=1, max_size=8), st.integers(0, 2))
def test_the_last_step_differs_by_what_a_run_without_the_rows_lacks(
    rows: list[tuple[int, int, float]], segment: int
) -> None:
    named = [{"ts": t, "segment": s, "speed": v} for t, s, v in rows]
    others = [row for row in named if row["segment"] != segment]
    have = speeds(named).run().history.bag
    lack = speeds(others).run().history.bag if others else Counter()
    step = speeds(named).trace(f"segment = {segment}").steps[-1]
    net: Counter[Any] = Counter()
    for told in step.ends:
        net[told.start, told.end, told.payload] += 1 if told.kind == "+" else -1
    expected = Counter(have)
    expected.subtract(lack)
    assert {k: n for k, n in net.items() if n} == {k: n for k, n in expected.items() if n}
