"""Thrifty windows say which values can no longer count, and nothing is lost by it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from feedback_laws import covers, patterns
from feedback_streams import ANY, INSERTS, counted, feed, rows, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from test_feedback_buckets import batch, run, source, timed

import caesura as cz
from caesura import Stream, col
from caesura.errors import PlanError
from caesura.events import History, Page, violations
from caesura.feedback.worth import Worth
from caesura.plan.feedback import Switches
from caesura.punctuation import INFINITY, cti
from caesura.runtime import Query

EXAMPLES = examples(2)
TOP = {"top": cz.top_k("v", 2)}


def windows(a: Stream, *, thrifty: bool = True, **aggregates: Any) -> Stream:
    return a.group_by("id").tumbling(10, thrifty=thrifty).agg(**(aggregates or TOP))


def test_a_window_says_which_values_no_longer_count() -> None:
    plan = windows(stream(id="int", v="int"))
    query = plan.query()
    feed(
        query,
        " LE RE | id v |\n 0 1 | 1 60 | +\n 0 1 | 1 70 | +\n 1 2 | 1 50 | +\n 2 3 | 1 65 | +\n 2 3 | 2 9 | +",
    )
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE in [0..9], id = 1, v < 66"]
    more = " LE RE | id v |\n 4 5 | 1 65 | +\n 4 5 | 1 66 | +\n 12 13 | 1 3 | +\n 4 5 | 2 3 | +"
    feed(query, more + "\n-- definite: * --")
    assert rows(query, plan) == [
        (0, 10, 1, {"top1": 70, "top2": 66}),
        (0, 10, 2, {"top1": 9, "top2": 3}),
        (10, 20, 1, {"top1": 3, "top2": None}),
    ]
    assert counted(query)["input"]["stopped at the output"] == 1
    assert all(told.get("guard state", 0) == 0 for told in counted(query).values())


def test_most_rows_of_a_window_need_not_come_and_few_messages_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards look here although they do not pay before pages of a hundred rows."""
    monkeypatch.setattr(Worth, "pays", True)
    values = [(7919 * n) % 10_007 for n in range(4000)]
    came = {}
    for thrifty in (False, True):
        plan = windows(stream(id="int", v="int").where(col("v") >= 0), thrifty=thrifty, top=cz.top_k("v", 5))
        query = plan.query(speculate="watermark")
        for at in range(0, 4000, 100):
            batch = pa.record_batch({"id": [1] * 100, "v": values[at : at + 100]})
            query.feed("a", Page.of(batch, le=[at // 1000] * 100, re=[at // 1000 + 1] * 100))
            query.run()
        query.feed("a", cti(INFINITY))
        query.run()
        came[thrifty] = query.counters()["tumbling"].rows_in
        [(_, _, _, best)] = rows(query, plan)
        assert list(best.values()) == sorted(values)[:-6:-1]
    said = query.counters()["tumbling"].feedback["thresholds sent"]
    assert came[False] == 4000
    assert came[True] <= 250
    assert said <= 5


def test_a_column_with_several_aggregates_goes_by_the_least_threshold() -> None:
    plan = windows(
        stream(id="int", v="int", w="int"), top=cz.top_k("v", 3), best=cz.max("v"), far=cz.max("w")
    )
    query = plan.query()
    feed(query, " LE RE | id v w |" + "".join(f"\n 0 1 | 1 {v} {-v} | +" for v in range(6)))
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE in [0..9], id = 1, v < 4, w < 1"]


def test_rows_of_several_windows_are_not_spoken_of() -> None:
    plan = windows(
        stream(known=INSERTS.but(points=False, aligned=False, max_duration=None), id="int", v="int")
    )
    query = plan.query()
    feed(query, " LE RE | id v |\n 0 3 | 1 6 | +\n 0 3 | 1 7 | +\n 1 30 | 1 5 | +\n 2 3 | 1 8 | +")
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE >= 0, RE < 11, id = 1, v < 8"]


@pytest.mark.parametrize("values", ["null", "nan"])
def test_a_window_without_k_numbers_says_nothing(values: str) -> None:
    query = windows(stream(id="int", v="float")).query()
    feed(query, " LE RE | id v |" + f"\n 0 1 | 1 {values} | +" * 5)
    assert query.upstream_feedback("a") == []


def test_a_window_whose_rows_may_be_taken_back_says_nothing() -> None:
    query = windows(stream(known=ANY, id="int", v="int")).query()
    feed(query, " LE RE | id v |" + "\n 0 1 | 1 5 | +" * 9)
    assert query.upstream_feedback("a") == []


def test_aggregates_for_which_every_row_counts_forbid_it() -> None:
    a = stream(id="int", v="int")
    with pytest.raises(PlanError, match=r"'n' is count\(\), for which every row counts"):
        windows(a, top=cz.top_k("v", 2), n=cz.count())
    with pytest.raises(PlanError, match="thrifty windows need a plain column"):
        windows(a, top=cz.top_k("v", 2, where=col("v") > 3))
    with pytest.raises(PlanError, match="only windows of top_k and max"):
        a.tumbling(10, thrifty=True).agg(clip="both", top=cz.max("v"))


points = st.tuples(st.integers(0, 25), st.integers(1, 2), st.none() | st.integers(-5, 20))


@settings(max_examples=10 * EXAMPLES, deadline=None)
@given(st.lists(points, max_size=40), st.integers(1, 3), st.booleans(), st.data())
def test_law_6_holds_with_thresholds(some: list[Any], k: int, all_at_once: bool, data: st.DataObject) -> None:
    """Whatever is left out, with and without feedback from the consumer."""
    top = {"top": cz.top_k("v", k)}
    a = stream(id="int", v="int").where(col("id") > 0)
    plans = [windows(a, thrifty=t, **top) for t in (False, True)]
    wanted = History.of(fed(plans[0].query(), some, all_at_once), plans[0].schema)
    query = plans[1].query()
    said = data.draw(st.none() | patterns(pa.schema([("id", pa.int64())])))
    if said is not None:
        query.assume(said)
    if data.draw(st.booleans()):  # the source itself leaves nothing out, the step does
        next(c for c in query.graph.cells if c.label == "input").feedback.listen().switches = Switches(
            exploit=False
        )
    got = History.of(fed(query, some, all_at_once), plans[1].schema)
    assert not got.bag - wanted.bag
    missing = [r for r in wanted.rows() if r not in got.rows()] if said is not None else []
    assert all(covers([] if said is None else [said], plans[1].schema, missing))
    assert said is not None or got == wanted
    assert all(told.get("guard state", 0) == 0 for told in counted(query).values())


def fed(query: Query, some: list[Any], all_at_once: bool) -> list[Any]:
    """What comes out of rows that come in any order, in one page or in many."""
    size = max(1, len(some)) if all_at_once else 3
    for at in range(0, len(some), size):
        part = some[at : at + size]
        batch = pa.record_batch(
            {
                "id": pa.array([i for _, i, _ in part], pa.int64()),
                "v": pa.array([v for *_, v in part], pa.int64()),
            }
        )
        query.feed("a", Page.of(batch, le=[t for t, *_ in part], re=[t + 1 for t, *_ in part]))
        query.run()
    query.feed("a", cti(INFINITY))
    query.run()
    return query.take("out")


SHAPES: dict[str, Any] = {
    "grouped": windows,
    "whole": lambda a, *, thrifty: a.tumbling(10, thrifty=thrifty).agg(best=cz.max("v")),
}


@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_thresholds_lose_nothing_in_buckets(shape: str, buckets: int) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(
        st.lists(
            st.lists(st.one_of(batch.map(lambda b: b * 3)), min_size=1, max_size=2), min_size=3, max_size=4
        )
    )
    def holds(batches: list[Any]) -> None:
        left = timed([[row for some in parts for row in some] for parts in batches])
        kept = Stream(source(left, 9)).where(col("id") < 3)
        plans = [SHAPES[shape](kept, thrifty=t) for t in (False, True)]
        whole = History.of(run(plans[0], 1, 4, {}).items["out"], plans[0].schema)
        items = run(plans[1], buckets, 4, {}).items["out"]
        assert violations(items) == []
        assert History.of(items, plans[1].schema) == whole

    holds()


@pytest.mark.parametrize("speculate", ["arrival", "watermark"])
def test_overlapping_windows_over_points_give_up_what_all_their_windows_have_crossed(speculate: Any) -> None:
    plan = stream(id="int").group_by("id").hopping(6, every=2).agg(n=cz.count())
    assert "gives up results that match for good" in plan.explain("feedback", pattern=cz.col("n") >= 3)
    query = plan.query(speculate=speculate)
    query.assume(cz.col("n") >= 3)
    feed(query, " LE RE | id |\n 4 5 | 1 | +\n 4 5 | 1 | +\n 5 6 | 1 | +\n 4 5 | 2 | +")
    told = query.counters()["hopping"].feedback
    assert told["crossed"] == 3 and told["purged rows"] >= 1
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE in [4..5], id = 1"]
    feed(query, " LE RE | id |\n 5 6 | 1 | +\n 6 7 | 1 | +\n-- definite: * --")
    assert rows(query, plan) == [(0, 6, 2, 1), (2, 8, 2, 1), (4, 10, 2, 1), (6, 12, 1, 1)]
