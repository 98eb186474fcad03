"""The worked examples of the feedback thesis, sections 1.2, 3.2, 3.4, 4.2.5 and 4.2.6."""

from __future__ import annotations

import pyarrow as pa
import pytest
from feedback_streams import counted, feed, rows, stream

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.feedback.explain import answer
from caesura.punctuation import between, ge, le, lt, value
from caesura.runtime import Query


def told(plan: Stream, pattern: Pattern) -> list[str | None]:
    """What each input of the last step is told."""
    up, _ = answer(plan.node, pattern)
    found: list[str | None] = [None] * len(plan.node.inputs)
    for port, sent in up:
        found[port] = str(sent)
    return found


def test_pace_tells_impute_what_has_lost_its_use() -> None:  # 1.2
    archive = cz.Archive(pa.table({"loc": [1, 2], "speed": [50, 60]}), ("loc",), "speed")
    readings = stream(loc="int", speed="int")
    dirty = readings.where(col("speed").is_null()).impute("speed", archive, budget=1)
    query = readings.where(col("speed").is_not_null()).pace(dirty, within=5).query()
    feed(query, " LE RE | loc speed |\n 1 2 | 1 null | +\n 2 3 | 2 null | +\n 3 4 | 1 null | +")
    feed(query, " LE RE | loc speed |\n 20 21 | 1 55 | +\n 21 22 | 2 null | +\n-- definite: * --")
    assert counted(query)["impute"]["purged rows"] == 2
    assert query.counters()["impute"].extra["filled"] == 2
    assert [row[:1] + row[2:] for row in rows(query, readings)] == [(1, 1, 50), (20, 1, 55), (21, 2, 60)]


AVERAGE = " LE RE | wid speed |\n 1 2 | 4 51 | +\n 1 2 | 25 60 | +"


def average() -> tuple[Query, Stream]:
    probes = stream(wid="int", speed="int")
    plan = probes.group_by("wid").totals(speed=cz.avg("speed"))
    return plan.query(speculate="watermark"), plan


def test_average_lets_windows_below_20_go_and_tells_its_input() -> None:  # 3.2, [<20, *]
    query, plan = average()
    feed(query, AVERAGE)
    query.assume(Pattern(wid=lt(20)))
    feed(query, " LE RE | wid speed |\n 2 3 | 4 10 | +\n 2 3 | 25 70 | +\n-- definite: * --")
    assert rows(query, plan) == [(1, 3, 25, 65.0)]
    assert counted(query)["totals"]["purged rows"] == 1
    assert counted(query)["input"]["stopped at the output"] == 1


def test_average_keeps_a_window_that_may_still_fall_below_50() -> None:  # 3.2, [*, >=50]
    query, plan = average()
    feed(query, AVERAGE)
    query.assume(Pattern(speed=ge(50.0)))
    feed(query, " LE RE | wid speed |\n 2 3 | 4 11 | +\n-- definite: * --")
    assert rows(query, plan) == [(1, 3, 4, 31.0)]  # window 4 was at 51, and ends at 31
    assert "sent up" not in counted(query)["totals"]
    assert counted(query)["totals"]["stopped at the output"] == 1


def test_max_closes_windows_that_have_crossed_the_bound_and_keeps_them_closed() -> None:  # 3.2
    probes = stream(lane="int", speed="int")
    plan = probes.group_by("lane").tumbling(10).agg(top=cz.max("speed"))
    query = plan.query(speculate="watermark")
    query.assume(Pattern(top=ge(50)))
    feed(query, " LE RE | lane speed |\n 1 2 | 1 51 | +\n 2 3 | 2 40 | +")
    assert counted(query)["tumbling"]["purged rows"] == 1
    feed(query, " LE RE | lane speed |\n 3 4 | 1 20 | +\n 13 14 | 1 20 | +\n-- definite: * --")
    assert counted(query)["input"]["stopped at the output"] == 1
    assert rows(query, plan) == [(0, 10, 2, 40), (10, 20, 1, 20)]


def test_the_three_issuances_of_an_equi_join() -> None:  # 3.4
    left, right = stream(a="int", t="int", id="int"), stream("b", t="int", id="int", b="int")
    join = left.join(right, on=["t", "id"])
    assert told(join, Pattern(t=3, id=4)) == ["id = 4, t = 3", "id = 4, t = 3"]
    assert told(join, Pattern(a=50)) == ["a = 50", None]
    assert told(join, Pattern(a=50, b=50)) == [None, None]


CASES = {
    "1: one side's own columns": (Pattern(a=le(3)), ["a <= 3", None]),
    "2: the join's columns": (Pattern(b=1), ["b = 1", "b = 1"]),
    "3: both sides' own columns": (Pattern(a=le(3), c=2), [None, None]),
    "4: all three": (Pattern(a=le(3), b=1, c=2), [None, None]),
    "5: the join's and one side's": (Pattern(a=le(3), b=1), ["a <= 3, b = 1", None]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_five_cases_of_the_join(case: str) -> None:  # 4.2.5
    pattern, wanted = CASES[case]
    join = stream(a="int", b="int").join(stream("b", b="int", c="int"), on="b")
    assert told(join, pattern) == [w and w.replace("<= 3", "< 4") for w in wanted]


@pytest.mark.parametrize("case", CASES)
def test_a_join_loses_no_uncovered_pair_in_any_case(case: str) -> None:
    """The counter-examples of 4.2.5: feedback comes before <4, 1>, which must still meet <1, 2>."""
    plan = stream(a="int", b="int").join(stream("b", b="int", c="int"), on="b")
    pattern, _ = CASES[case]
    query = plan.query()
    feed(query, " LE RE | a b |\n 0 1 | 1 1 | +\n 0 1 | 2 1 | +\n 0 1 | 3 1 | +")
    query.assume(pattern)
    feed(query, " LE RE | b c |\n 0 1 | 1 1 | +\n 0 1 | 1 2 | +\n-- definite: * --", "b")
    feed(query, " LE RE | a b |\n 0 1 | 4 1 | +\n-- definite: * --")
    came = {row[2:] for row in rows(query, plan)}
    every = {(a, 1, c) for a in (1, 2, 3, 4) for c in (1, 2)}
    covered = {r for r in every if pattern.matches_row(dict(zip("abc", r, strict=True)))}
    assert every - covered <= came <= every
    assert not came & covered


def bucketed(size: int, slide: int) -> Stream:
    return stream(t="int", v="str").bucket("t", size, slide=slide, origin=0)


BUCKETS = {
    "wid < n is attr < lower(n)": (10, 10, lt(3), "t < 30"),
    "a number of its own is its range": (10, 10, value(3), "t in [30..39]"),
    "wid <= n": (10, 10, le(3), "t < 40"),
    "wid >= n": (10, 10, ge(3), "t >= 30"),
    "a sliding wid < n is attr < lower(n)": (10, 3, lt(3), "t < 9"),
    "a sliding wid >= n lies past the windows before": (10, 3, ge(3), "t >= 16"),
    "a stretch of sliding windows": (10, 3, between(2, 9), "t in [13..29]"),
}


@pytest.mark.parametrize("case", BUCKETS)
def test_bucket_tells_exactly_the_values_of_its_windows(case: str) -> None:  # 4.2.6
    size, slide, wid, wanted = BUCKETS[case]
    assert told(bucketed(size, slide), Pattern(wid=wid)) == [wanted]


def test_one_of_many_overlapping_windows_takes_no_value_away() -> None:
    assert told(bucketed(10, 3), Pattern(wid=4)) == [None]


def test_bucket_punctuates_only_windows_that_are_closed_whole() -> None:  # 4.2.6, corrected
    plan = stream(t="int", v="str").bucket("t", 60, origin=0)
    query = plan.query()
    feed(query, " LE RE | t v |\n 0 1 | 30 a | +\n-- definite: t <= 90 --")
    promised = [str(i) for i in query.take("out") if not hasattr(i, "le")]
    assert promised == ["definite: t < 91", "definite: wid < 1"]


OUTER = ("left", "right", "full", "semi", "anti")


def joined(how: str, pattern: Pattern | None) -> tuple[list[tuple[object, ...]], Query]:
    """The example of 4.2.5, with a row on each side that meets none."""
    plan = stream(a="int", b="int").join(stream("b", b="int", c="int"), on="b", how=how)  # type: ignore[arg-type]
    query = plan.query()
    feed(query, " LE RE | a b |\n 0 1 | 1 1 | +\n 0 1 | 2 1 | +\n 0 1 | 3 9 | +")
    if pattern is not None:
        query.assume(pattern)
    feed(query, " LE RE | b c |\n 0 1 | 1 1 | +\n 0 1 | 1 2 | +\n 0 1 | 8 2 | +\n-- definite: * --", "b")
    feed(query, " LE RE | a b |\n 0 1 | 4 1 | +\n 0 1 | 2 7 | +\n-- definite: * --")
    return rows(query, plan), query


@pytest.mark.parametrize("how", OUTER)
@pytest.mark.parametrize("case", CASES)
def test_outer_forms_lose_no_uncovered_row_and_make_none_up(case: str, how: str) -> None:  # 4.2.5
    """A row left out of the side that is looked up would leave its partner without one, and show it so."""
    pattern, _ = CASES[case]
    names = "ab" if how in ("semi", "anti") else "abc"
    if not set(pattern.attributes) <= set(names):
        return
    whole, _ = joined(how, None)
    came, query = joined(how, pattern)
    covered = {r for r in whole if pattern.matches_row(dict(zip(names, r[2:], strict=True)))}
    assert set(whole) - covered <= set(came) <= set(whole)
    assert {row[2:4] for row in set(came) & covered} <= {(3, 9)}  # it had left before
    assert all(c.get("guard state", 0) == 0 for c in counted(query).values())
