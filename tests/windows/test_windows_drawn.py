"""Windows as drawn streams: what goes in, what comes out, what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura import Event, Window, uda, udo
from caesura.errors import PlanError, StreamError
from caesura.ops.input import Input
from caesura.punctuation import Pattern, between, lt, one_of, value
from caesura.runtime import Query
from caesura.testing import assert_history, draw, parse, run

READINGS = pa.schema([("id", pa.int64()), ("v", pa.int64())])
TWO = """
 LE  RE | id v |
  0  4  | 7  1 | +
  2  6  | 7  2 | +
"""


def stream() -> cz.Stream:
    return cz.Stream(Input(label="a", payload=READINGS))


@uda
def weighed(events: list[Event[int]], window: Window) -> int:
    return sum(e.payload * e.duration for e in events)


@udo(time_bound=True)
def copies(events: list[Event[int]]) -> list[Event[int]]:
    return list(events)


@udo
def early(events: list[Event[int]], window: Window) -> list[Event[int]]:
    return [Event(window.start - 1, window.end, 0)]


def test_a_snapshot_lies_between_neighbouring_end_points() -> None:
    out = run(stream().group_by("id").snapshot().agg(n=cz.count(), s=cz.sum("v")), {"a": TWO})
    assert_history(
        out,
        """
 LE  RE | id n s |
  0  2  | 7  1 1 | +
  2  4  | 7  2 3 | +
  4  6  | 7  1 2 | +
""",
    )


def test_hopping_windows_overlap_and_leave_gaps() -> None:
    wide = run(stream().hopping(4, every=2).agg(n=cz.count()), {"a": TWO})
    assert_history(wide, " LE RE | n |\n -2 2 | 1 | +\n 0 4 | 2 | +\n 2 6 | 2 | +\n 4 8 | 1 | +")
    gaps = run(stream().hopping(1, every=5).agg(n=cz.count()), {"a": TWO})
    assert_history(gaps, " LE RE | n |\n 0 1 | 1 | +\n 5 6 | 1 | +")


def test_buckets_at_the_ends_of_whole_numbers_have_their_numbers() -> None:
    far = [2**63 - 1, -(2**63), 0, None]
    rows = pa.table(
        {"ts": [1, 2, 3, 4], "v": pa.array(far, pa.int64()), "u": pa.array([2**64 - 1, 9, 0, 1], "uint64")}
    )
    stream = cz.from_arrow(rows, time="ts")
    numbers = {row["v"]: row["wid"] for row in stream.bucket("v", 10, origin=3).run().table().to_pylist()}
    assert numbers == {v: (v - 3) // 10 for v in far if v is not None}
    assert set(stream.bucket("u", 1000).run().table()["wid"].to_pylist()) == {(2**64 - 1) // 1000, 0}
    with pytest.raises(StreamError, match="has no number"):
        stream.bucket("v", 1, origin=-5).run()


def test_count_windows_span_distinct_end_points() -> None:
    by_start = run(stream().count_by_start(2).agg(n=cz.count()), {"a": TWO})
    assert_history(by_start, " LE RE | n |\n 0 3 | 2 | +")
    by_end = run(stream().count_by_end(2).agg(n=cz.count()), {"a": TWO})
    assert_history(by_end, " LE RE | n |\n 4 7 | 2 | +")
    assert not run(stream().count_by_start(3).agg(n=cz.count()), {"a": TWO})


def test_a_late_event_splits_a_session_chain_or_joins_it() -> None:
    drawn = """
 LE  RE | id v |
  0  1  | 7  1 | +
  9  10 | 7  1 | +
  5  6  | 7  1 | +
"""
    out = run(stream().session(5).agg(n=cz.count()), {"a": drawn})
    assert_history(out, " LE RE | n |\n 0 10 | 3 | +")
    out = run(stream().session(5, longest=6).agg(n=cz.count()), {"a": drawn})
    assert_history(out, " LE RE | n |\n 0 6 | 2 | +\n 9 10 | 1 | +")


@pytest.mark.parametrize(
    ("clip", "first"),
    [("none", 7), ("left", 7), ("right", 6), ("full", 6)],
    ids=["none", "left", "right", "full"],
)
def test_clipping_changes_what_a_time_sensitive_module_sees(clip: Any, first: int) -> None:
    drawn = " LE RE | id v |\n 4 11 | 7 1 | +"
    out = run(stream().tumbling(10).agg(w=weighed("v"), clip=clip), {"a": drawn})
    last = {"none": 7, "left": 1, "right": 7, "full": 1}[clip]
    assert_history(out, f" LE RE | w |\n 0 10 | {first} | +\n 10 20 | {last} | +")


def test_time_bound_results_change_only_from_the_sync_time_on() -> None:
    plan = stream().tumbling(10).apply(copies("v"), clip="full", stamp="time_bound")
    query = Query({"out": plan.node})
    for item in parse(" LE RE | id v |\n 1 9 | 7 1 | +\n-- 5 --\n 6 8 | 7 2 | +\n-- 7 --", READINGS):
        query.feed("a", item)
        query.run()
    assert "-- definite: time < 7 --" in draw(query.take("out"), schema=plan.schema)


def test_an_event_in_the_past_corrects_the_windows_it_touches_and_no_other() -> None:
    plan = stream().group_by("id").tumbling(10).agg(w=weighed("v"), clip="full")
    query = Query({"out": plan.node})
    items = parse(" LE RE | id v |\n 1 2 | 7 1 | +\n 25 26 | 7 1 | +\n 12 13 | 7 5 | +", READINGS)
    query.feed("a", items[0].take([0, 1]))  # type: ignore[union-attr]
    query.run()
    query.take("out")
    query.feed("a", items[0].take([2]))  # type: ignore[union-attr]
    query.run()
    (page,) = query.take("out")
    assert page.rows() == [(10, 20, None, (7, 5))]  # type: ignore[union-attr]


def test_bucket_numbers_windows_and_translates_patterns_both_ways() -> None:
    plan = stream().bucket("v", 10)
    out = run(
        plan, {"a": " LE RE | id v |\n 1 2 | 7 13 | +\n-- definite: v <= 15 --\n-- definite: v <= 19 --"}
    )
    told = draw(out, schema=plan.schema)
    assert "wid < 1" in told
    assert "wid < 2" in told
    node: Any = plan.node
    assert node.back(Pattern(wid=lt(3))) == Pattern(v=lt(30))
    assert node.back(Pattern(wid=value(2))) == Pattern(v=between(20, 29))
    assert node.back(Pattern(wid=one_of([1, 3]))) == Pattern(v=between(10, 19).union(between(30, 39)))
    sliding: Any = stream().bucket("v", 10, slide=5).node
    assert sliding.back(Pattern(wid=lt(3))) == Pattern(v=lt(15))


def test_trills_tumbling_reports_a_window_after_it() -> None:
    drawn = " LE RE | id v |\n 12 13 | 7 1 | +\n 15 16 | 7 2 | +"
    out = run(stream().tumbling_lifetimes(10).snapshot().agg(n=cz.count()), {"a": drawn})
    assert_history(out, " LE RE | n |\n 20 30 | 2 | +")
    out = run(stream().tumbling(10).agg(n=cz.count()), {"a": drawn})
    assert_history(out, " LE RE | n |\n 10 20 | 2 | +")


def test_filtered_aggregates_count_what_their_filter_keeps() -> None:
    plan = (
        stream()
        .tumbling(10)
        .agg(n=cz.count(), big=cz.count(where=cz.col("v") > 1), s=cz.sum("v", where=cz.col("v") > 5))
    )
    assert_history(run(plan, {"a": TWO}), " LE RE | n big s |\n 0 10 | 2 1 null | +")


def test_explain_says_what_the_output_waits_for() -> None:
    text = stream().group_by("id").session(5).agg(n=cz.count()).explain()
    assert "CTI at the start of the earliest open window; open until it can no longer change" in text
    text = stream().tumbling(5).agg(w=weighed("v")).explain()
    assert "open until its members end" in text
    assert "keeps step with input" in stream().snapshot().agg(n=cz.count()).explain()


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda s: s.tumbling(0).agg(n=cz.count()), "a window of 0 ticks can hold no event"),
        (lambda s: s.hopping(5, every=0).agg(n=cz.count()), "would never move on"),
        (lambda s: s.count_by_start(0).agg(n=cz.count()), "holds nothing"),
        (lambda s: s.session(0).agg(n=cz.count()), "ends before it begins"),
        (lambda s: s.session(5, longest=0).agg(n=cz.count()), "can hold no event"),
        (lambda s: s.snapshot().agg(), "nothing is computed"),
        (lambda s: s.count_by_end(2).apply(copies("v"), clip="left"), "would empty events"),
        (lambda s: s.tumbling(5).agg(w=weighed("v"), stamp="time_bound"), "nothing that happens later"),
        (lambda s: s.count_by_start(2).agg(n=cz.count(), stamp="time_bound"), "exists only once"),
        (lambda s: s.session(2).agg(n=cz.count(), stamp="time_bound"), "known only after it"),
        (lambda s: s.snapshot().apply(copies("v"), stamp="time_bound"), "known only later"),
        (lambda s: s.tumbling(5).agg(n=cz.count(), clip="full"), "changes lifetimes that nothing here reads"),
        (lambda s: s.tumbling(5).agg(n=cz.count(), stamp="clipped"), "a module that gives none"),
        (lambda s: s.tumbling(5).agg(n=cz.count(), stamp="whenever"), "is no policy"),
        (lambda s: s.bucket("x", 5), "there is no column 'x'"),
        (lambda s: s.bucket("v", 0), "hold nothing or never move on"),
        (lambda s: s.tumbling(5).agg(q=cz.quantile("v", 2)), "no quantile lies at 2"),
        (lambda s: s.tumbling(5).agg(q=cz.top_k("v", 0)), "top_k of 0 values"),
    ],
)
def test_what_cannot_keep_its_promises_is_refused_before_it_runs(build: Any, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        build(stream())


def test_a_module_that_stamps_before_its_window_is_stopped() -> None:
    plan = stream().tumbling(10).apply(early("v"), clip="full", stamp="unchanged")
    with pytest.raises(StreamError, match="before its window from 0 on"):
        run(plan, {"a": TWO})


def test_a_lifetime_over_too_many_windows_is_stopped() -> None:
    drawn = f" LE RE | id v |\n 0 {10**15} | 7 1 | +"
    for plan in (
        stream().hopping(2, every=1).agg(n=cz.count()),
        stream().hopping(2, every=1).agg(n=cz.count(), stamp="point_at_end"),
    ):
        with pytest.raises(StreamError, match="windows of 2 ticks"):
            run(plan, {"a": drawn})


def test_variance_is_exact_where_naive_sums_are_not() -> None:
    schema = pa.schema([("x", pa.float64())])
    plan = cz.Stream(Input(label="a", payload=schema)).tumbling(10).agg(v=cz.variance("x"))
    out = run(
        plan, {"a": " LE RE | x |\n 1 2 | 1000000001.0 | +\n 2 3 | 1000000002.0 | +\n 3 4 | 1000000003.0 | +"}
    )
    assert_history(out, " LE RE | v |\n 0 10 | 1.0 | +")
