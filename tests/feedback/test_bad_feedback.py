"""Feedback that makes no sense, comes too late or too often: an answer, and never a lost row."""

from __future__ import annotations

from feedback_streams import ANY, counted, feed, rows, stream

from caesura import Pattern, col
from caesura.feedback.responder import MAX_PATTERNS
from caesura.punctuation import ge, lt
from caesura.runtime import Query

ROWS = " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +\n-- definite: * --"


def test_feedback_that_contradicts_itself_matches_nothing() -> None:
    plan = stream(id="int").where(col("id") > 0)
    query = plan.query()
    said = query.assume((col("id") == 1) & (col("id") == 2))
    feed(query, ROWS)
    assert str(said) == "#1 assumed: nothing"
    assert len(rows(query, plan)) == 2


def test_feedback_after_the_end_is_too_late() -> None:
    plan = stream(id="int").where(col("id") > 0)
    query = plan.query()
    feed(query, ROWS)
    query.assume(Pattern(id=1))
    assert counted(query)["where"]["too late"] == 1
    assert query.feedback() == ["#1 assumed: id = 1 (over: punctuation covers it)"]
    assert len(rows(query, plan)) == 2


def test_ends_that_may_still_change_are_not_spoken_of() -> None:
    plan = stream(known=ANY, id="int").where(col("id") > 0)
    query = plan.query()
    query.assume(Pattern(RE=lt(5)))
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2->9 | 1 | -")
    assert counted(query)["where"]["ends may change"] == 1
    assert rows(query, plan) == [(1, 9, 1)]


def test_a_flood_of_feedback_is_not_taken_beyond_a_bound() -> None:
    plan = stream(id="int", v="int").where(col("id") > 0)
    query = plan.query()
    for n in range(MAX_PATTERNS + 5):
        query.cell("out").feedback.listen().agreement.standing["output:out#0"].append(Pattern(id=n, v=n))
    query.assume(Pattern(id=ge(0)))
    assert counted(query)["where"] == {"too many": 1, "guard state": 0, "suppressed": 0}
    feed(query, " LE RE | id v |\n 1 2 | 1 5 | +\n-- definite: * --")
    assert rows(query, plan) == [(1, 2, 1, 5)]


def test_many_words_about_one_column_cost_one_range() -> None:
    query = stream(id="int").where(col("id") >= 0).query()
    for n in range(200):
        query.assume(Pattern(id=n))
    assert counted(query)["where"]["guard state"] == 1


def test_what_was_said_of_an_output_that_is_gone_is_listed_as_over_and_can_be_withdrawn() -> None:
    readings = stream(id="int").where(col("id") > 0)
    before = Query({"map": readings.select(k=col("id")).node, "out": readings.node})
    before.assume(Pattern(k=1), output="map")
    before.desire(Pattern(k=2), output="map")
    after = Query({"out": readings.node})
    after.restore({name: data for name, data in before.snapshot().items() if data is not None})
    over = "(over: there is no output 'map' any more)"
    assert after.feedback() == [f"#1 assumed: k = 1 {over}", f"#2 desired: k = 2 {over}"]
    feed(after, ROWS)
    assert len(rows(after, readings)) == 2
    after.withdraw(1)
    after.withdraw(2)
    assert after.feedback() == []
