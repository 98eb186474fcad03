"""Per step: at which place covered rows vanish, which state goes, and what is told above."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from feedback_streams import ANY, INSERTS, counted, feed, rows, stream

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.plan import Properties
from caesura.punctuation import ge, lt

Plan = Callable[[Stream, Stream], Stream]
BEFORE = " LE RE | id v |\n 1 2 | 1 5 | +\n 1 2 | 2 6 | +"
AFTER = " LE RE | id v |\n 3 4 | 1 7 | +\n 3 4 | 2 8 | +\n-- definite: * --"
OTHER = " LE RE | id w |\n 0 9 | 1 1 | +\n 0 9 | 2 2 | +\n-- definite: * --"
INPUT, OUTPUT = "stopped at the input", "stopped at the output"

STEPS: dict[str, tuple[Plan, Pattern, dict[str, int], str | None]] = {
    "where": (lambda a, b: a.where(col("v") > 0), Pattern(id=1), {INPUT: 1}, "id = 1"),
    "select": (lambda a, b: a.select(k=col("id")), Pattern(k=1), {OUTPUT: 1}, "id = 1"),
    "select computed": (lambda a, b: a.select("id", w=col("v") * 2), Pattern(w=14), {OUTPUT: 1}, None),
    "union": (lambda a, b: a.union(a), Pattern(id=1), {OUTPUT: 2}, "id = 1"),
    "shift": (lambda a, b: a.shift(5), Pattern(LE=ge(8), id=1), {OUTPUT: 1}, "LE >= 3, id = 1"),
    "set_duration": (lambda a, b: a.set_duration(3), Pattern(RE=ge(6)), {OUTPUT: 2}, "LE >= 3"),
    "chop": (lambda a, b: a.chop(4), Pattern(id=1), {INPUT: 1}, "id = 1"),
    "clip": (lambda a, b: a.clip(b, "id"), Pattern(id=1), {INPUT: 1}, "id = 1"),
    "join": (lambda a, b: a.join(b, "id"), Pattern(v=7), {INPUT: 1}, "v = 7"),
    "join on keys": (lambda a, b: a.join(b, "id"), Pattern(id=1), {INPUT: 1, "purged rows": 1}, "id = 1"),
    "join of both": (lambda a, b: a.join(b, "id"), Pattern(v=7, w=1), {OUTPUT: 1}, None),
    "left join": (lambda a, b: a.join(b, "id", how="left"), Pattern(v=7), {INPUT: 1}, "v = 7"),
    "left join on keys": (
        lambda a, b: a.join(b, "id", how="left"),
        Pattern(id=1),
        {INPUT: 1},
        "id = 1",
    ),
    "right join": (lambda a, b: a.join(b, "id", how="right"), Pattern(v=7), {OUTPUT: 1}, None),
    "full join": (lambda a, b: a.join(b, "id", how="full"), Pattern(v=7), {OUTPUT: 1}, None),
    "semi join": (lambda a, b: a.join(b, "id", how="semi"), Pattern(v=7), {INPUT: 1}, "v = 7"),
    "anti join": (lambda a, b: a.join(b, "id", how="anti"), Pattern(id=1), {INPUT: 1}, "id = 1"),
    "hopping": (
        lambda a, b: a.group_by("id").hopping(4, every=2).agg(n=cz.count()),
        Pattern(id=1),
        {INPUT: 1, "purged rows": 2},
        "id = 1",
    ),
    "hopping by time": (
        lambda a, b: a.group_by("id").hopping(4, every=2).agg(n=cz.count()),
        Pattern(LE=ge(0)),
        {INPUT: 2, "purged rows": 2},
        "LE >= 2",
    ),
    "impute": (
        lambda a, b: a.impute("v", lambda batch: [0] * batch.num_rows, missing=col("v") >= 5, budget=1),
        Pattern(id=2),
        {INPUT: 1, "purged rows": 1},
        "id = 2",
    ),
    "difference": (
        lambda a, b: a.difference(b.select("id", v=col("w"))),
        Pattern(id=1),
        {INPUT: 1, "purged rows": 3},
        "id = 1",
    ),
    "pace": (lambda a, b: a.pace(within=99, tells="nobody"), Pattern(id=1), {OUTPUT: 1}, "id = 1"),
    "deadline": (lambda a, b: a.deadline(99), Pattern(id=1), {OUTPUT: 1}, "id = 1"),
    "distinct": (lambda a, b: a.distinct(), Pattern(id=1), {INPUT: 1, "purged rows": 2}, "id = 1"),
    "tumbling": (
        lambda a, b: a.group_by("id").tumbling(10).agg(n=cz.count()),
        Pattern(id=1),
        {INPUT: 1, "purged rows": 1},
        "id = 1",
    ),
    "tumbling by time": (
        lambda a, b: a.group_by("id").tumbling(2).agg(n=cz.count()),
        Pattern(LE=ge(2)),
        {INPUT: 2},
        "LE >= 2",
    ),
    "tumbling by value": (lambda a, b: a.tumbling(10).agg(n=cz.count()), Pattern(n=4), {OUTPUT: 1}, None),
    "totals": (
        lambda a, b: a.group_by("id").totals(n=cz.count()),
        Pattern(id=1),
        {INPUT: 1, "purged rows": 1},
        "id = 1",
    ),
    "snapshot": (
        lambda a, b: a.group_by("id").snapshot().agg(n=cz.count()),
        Pattern(id=1),
        {INPUT: 1, "purged rows": 2},
        "id = 1",
    ),
    "session": (
        lambda a, b: a.group_by("id").session(1).agg(n=cz.count()),
        Pattern(id=1),
        {INPUT: 1, "purged rows": 2},
        "id = 1",
    ),
    "bucket": (lambda a, b: a.bucket("v", 2), Pattern(wid=3), {OUTPUT: 1}, "v in [6..7]"),
    "instrument": (
        lambda a, b: a.instrument(every=99, pattern=Pattern(id=9)),
        Pattern(id=1),
        {OUTPUT: 1},
        "id = 1",
    ),
}


def streams() -> tuple[Stream, Stream]:
    a = stream(id="int", v="int")
    return a, stream("b", INSERTS.but(points=False, max_duration=None), id="int", w="int")


@pytest.mark.parametrize("name", STEPS)
def test_covered_rows_vanish_where_the_rule_says(name: str) -> None:
    build, pattern, places, sent = STEPS[name]
    a, b = streams()
    plan = build(a, b)
    query = plan.query()
    above = next(c for c in query.graph.cells if c.label == "input")
    above.feedback.listen().switches = cz.plan.feedback.Switches(exploit=False)  # type: ignore[attr-defined]
    if "b" in query.inputs:
        feed(query, OTHER, "b")
    feed(query, BEFORE)
    query.assume(pattern)
    messages = [str(m.pattern) for m in query.upstream_feedback("a")]
    feed(query, AFTER)
    step = query.cell("out").operator.counters
    query.counters()
    for place in (INPUT, OUTPUT, "purged rows"):
        assert step.feedback.get(place, 0) == places.get(place, 0), place
    assert messages == ([sent] if sent else [])
    assert all(told.get("guard state", 0) == 0 for told in counted(query).values())


def test_a_retract_is_dropped_only_with_its_insert() -> None:
    plan = stream(known=ANY, id="int").where(col("id") >= 0)
    query = plan.query()
    feed(query, " LE RE | id |\n 1 9 | 1 | +")
    query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 2 9 | 1 | +\n 2 9->5 | 1 | -\n 1 9->4 | 1 | -")
    assert rows(query, plan) == [(1, 4, 1)]
    assert counted(query)["input"]["guard state"] == 2  # the pattern, and the row that it keeps in mind
    feed(query, " LE RE | id |\n-- 6 --\n-- definite: id = 1 --")
    assert counted(query)["input"]["guard state"] == 0


def test_a_window_that_was_told_is_taken_back_before_it_is_given_up() -> None:
    plan = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query()
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +")
    query.assume(Pattern(id=1))
    assert rows(query, plan) == [(0, 10, 2, 1)]


def test_what_an_outer_join_may_still_cut_is_corrected_until_nothing_is_held() -> None:
    left, right = stream(known=ANY, id="int"), stream("b", ANY, id="int", w="int")
    query = left.join(right, "id", how="left").query()
    feed(query, " LE RE | id |\n 1 9 | 1 | +")
    query.assume(Pattern(id=1))
    assert query.upstream_feedback("b") == []  # the row on the left may still be cut
    for label in "ab":
        feed(query, " LE RE | id |\n-- 20 --" if label == "a" else " LE RE | id w |\n-- 20 --", label)
    assert [str(m.pattern) for m in query.upstream_feedback("b")] == ["id = 1"]


def test_a_guard_that_punctuation_has_passed_is_not_mounted() -> None:
    query = stream(id="int").where(col("id") > 0).query()
    feed(query, " LE RE | id |\n-- 20 --")
    query.assume(Pattern(LE=lt(10)))
    assert counted(query)["where"] == {"too late": 1, "guard state": 0, "suppressed": 0}


def test_an_operators_guard_that_could_never_go_is_not_mounted_but_sent_on() -> None:
    plan = stream(id="int").where(col("id") > 0).instrument(every=1, pattern=Pattern(id=9))
    query = plan.query()
    feed(query, " LE RE | id |\n 1 2 | 3 | +")
    assert counted(query)["where"]["could never be removed"] == 1
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["id = 9"]


def test_only_what_all_consumers_assume_is_left_out() -> None:
    readings = stream(id="int").where(col("id") >= 0)
    query = cz.runtime.Query({"x": readings.select("id").node, "y": readings.select(k=col("id")).node})  # type: ignore[attr-defined]
    query.assume(Pattern(id=lt(5)), output="x")
    assert counted(query)["where"]["waiting for other consumers"] == 1
    query.assume(Pattern(k=ge(3)), output="y")
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["id in [3..4]"]


def test_feedback_is_not_sent_twice() -> None:
    query = stream(id="int").where(col("id") > 0).select("id").query()
    query.assume(Pattern(id=lt(5)))
    query.assume(Pattern(id=3))
    assert counted(query)["select"]["sent up"] == 1
    assert counted(query)["select"]["known already"] == 1


@pytest.mark.parametrize("known", [ANY, INSERTS], ids=["with retractions", "inserts alone"])
def test_a_bound_on_a_value_closes_groups_only_where_it_cannot_be_left_again(known: Properties) -> None:
    plan = stream(known=known, id="int").group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query(speculate="watermark")
    query.assume(Pattern(n=ge(2)))
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 1 | +")
    crossed = counted(query)["tumbling"].get("crossed", 0)
    assert crossed == (1 if known is INSERTS else 0)
    if known is ANY:  # one is taken back, and the window is below the bound again
        feed(query, " LE RE | id |\n 1 2->1 | 1 | -\n-- definite: * --")
        assert rows(query, plan) == [(0, 10, 1, 1)]
