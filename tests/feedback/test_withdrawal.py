"""After a withdrawal what lost something stays suppressed until it closes; only later results come back."""

from __future__ import annotations

import pytest
from feedback_streams import ANY, counted, feed, rows, stream

import caesura as cz
from caesura import Pattern, col
from caesura.plan import Properties
from caesura.plan.feedback import Switches


def test_a_row_wise_step_lets_rows_through_at_once() -> None:
    plan = stream(id="int").where(col("id") > 0)
    query = plan.query()
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 1 2 | 1 | +")
    query.withdraw(said)
    feed(query, " LE RE | id |\n 3 4 | 1 | +")
    assert rows(query, plan) == [(3, 4, 1)]


def test_a_window_that_lost_rows_stays_suppressed_and_the_next_one_comes_back() -> None:
    plan = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query()
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +")
    query.withdraw(said)
    feed(query, " LE RE | id |\n 3 4 | 1 | +\n 12 13 | 1 | +")
    assert rows(query, plan) == [(0, 10, 2, 1), (10, 20, 1, 1)]
    assert query.feedback() == ["still suppressed at 'tumbling': LE < 2, id = 1"]
    feed(query, " LE RE | id |\n-- 10 --")
    assert query.feedback() == []


def test_windows_that_steps_above_lost_rows_of_stay_suppressed_too() -> None:
    plan = stream(id="int").where(col("id") > 0).shift(10).group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query()
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 11 12 | 1 | +")
    assert counted(query)["input"]["stopped at the output"] == 1
    query.withdraw(said)
    feed(query, " LE RE | id |\n 13 14 | 1 | +\n 33 34 | 1 | +\n-- definite: * --")
    assert rows(query, plan) == [(40, 50, 1, 1)]


def test_a_group_over_all_time_stays_suppressed_until_its_key_is_closed() -> None:
    plan = stream(id="int").group_by("id").totals(n=cz.count())
    query = plan.query()
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 1 2 | 1 | +")
    query.withdraw(said)
    feed(query, " LE RE | id |\n 3 4 | 1 | +")
    assert query.feedback() == ["still suppressed at 'totals': id = 1"]
    feed(query, " LE RE | id |\n-- definite: id = 1 --")
    assert (query.feedback(), rows(query, plan)) == ([], [])


def test_a_row_that_was_shown_to_nobody_is_not_retracted_after_a_withdrawal() -> None:
    points = Properties(points=True, max_duration=1)
    plan = stream(known=points, id="int")
    query = plan.query(output="final")
    feed(query, " LE RE | id |\n 1 2 | 1 | +")
    said = query.assume(Pattern(id=1))
    query.demand(Pattern(id=1))
    query.withdraw(said)
    feed(query, " LE RE | id |\n 1 2 | 1 | -\n-- definite: * --")
    assert rows(query, plan) == []


def test_of_two_utterances_one_is_withdrawn_and_the_other_stands() -> None:
    plan = stream(id="int").where(col("id") > 0)
    query = plan.query()
    first, _ = query.assume(Pattern(id=1)), query.assume(Pattern(id=2))
    query.withdraw(first)
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +")
    assert rows(query, plan) == [(1, 2, 1)]
    assert query.feedback() == ["#2 assumed: id = 2"]


def test_what_was_said_survives_a_restart() -> None:
    plan = stream(id="int").where(col("id") > 0)
    query, again = plan.query(), plan.query()
    query.assume(Pattern(id=1))
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    feed(again, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +")
    assert rows(again, plan) == [(1, 2, 2)]
    again.withdraw(1)
    feed(again, " LE RE | id |\n 3 4 | 1 | +")
    assert rows(again, plan) == [(3, 4, 1)]


def test_what_is_said_too_late_is_too_late_after_a_restart_as_well() -> None:
    plan = stream(id="int").where(col("id") > 0)
    query, again = plan.query(), plan.query()
    feed(query, " LE RE | id |\n-- * --")
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    again.assume(Pattern(id=1))
    assert counted(again)["where"]["too late"] == 1
    assert not counted(again)["where"]["guard state"]


def test_a_retract_of_a_row_that_was_stopped_and_is_remembered_by_nobody_does_no_harm() -> None:
    plan = stream(known=ANY, id="int", v="int").group_by("id").top(2, by="v")
    query = plan.query()
    source = next(cell for cell in query.graph.cells if not cell.node.inputs)
    source.feedback.listen().switches = Switches(exploit=False)  # it stops nothing, and keeps nothing of it
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id v |\n 0 2 | 1 5 | +\n 0 2 | 2 5 | +")
    query.withdraw(said)
    feed(query, " LE RE | id v |\n 0 2->1 | 1 5 | -\n 1 2 | 1 4 | +\n-- 3 --\n 5 6 | 1 3 | +")
    assert rows(query, plan) == [(0, 2, 2, 5), (5, 6, 1, 3)]


PLANS = {
    "over": (lambda s: s.group_by("id").over(rows=2).agg(x=cz.sum("v")), [(5, 6)], []),
    "session": (lambda s: s.group_by("id").session(10).agg(x=cz.count()), [(12, 13)], [(40, 41)]),
    "alive": (lambda s: s.group_by("id").alive().agg(x=cz.count()), [(2, 9)], [(20, 21)]),
    "hopping": (lambda s: s.group_by("id").hopping(10, every=2).agg(x=cz.count()), [(5, 6)], [(40, 41)]),
    "endless": (lambda s: s.forever().group_by("id").tumbling(10).agg(x=cz.count()), [(25, 26)], []),
}
"""A plan; rows whose results what was given up could have changed, and rows of which it could not."""


@pytest.mark.parametrize("name", PLANS)
def test_what_a_group_that_was_given_up_could_have_changed_stays_away(name: str) -> None:
    build, near, far = PLANS[name]
    plan = build(stream(known=ANY, id="int", v="int"))
    query, undisturbed = plan.query(), plan.query()
    for each in (query, undisturbed):
        feed(each, " LE RE | id v |\n 1 2 | 1 5 | +")
    query.withdraw(query.assume(Pattern(id=1)))
    soon, later = ("".join(f" {le} {re} | 1 7 | +\n" for le, re in some) for some in (near, far))
    for each in (query, undisturbed):
        feed(each, f" LE RE | id v |\n{soon}-- 20 --\n{later}-- definite: * --")
    found, wanted = set(rows(query, plan)), set(rows(undisturbed, plan))
    assert found <= wanted
    assert {row[0] > 13 for row in found} == ({True} if far else set())


def test_what_the_right_side_of_a_difference_gave_up_is_not_made_up() -> None:
    left, right = (stream(label, known=ANY, id="int") for label in "ab")
    plan = left.difference(right)
    query = plan.query()
    feed(query, " LE RE | id |\n 2 4 | 1 | +", "b")
    query.withdraw(query.assume(Pattern(id=1)))
    feed(query, " LE RE | id |\n 2 4 | 1 | -\n-- definite: * --", "b")
    feed(query, " LE RE | id |\n-- definite: * --", "a")
    assert rows(query, plan) == []


LASTING = {
    "windows": lambda s: s.group_by("id").hopping(10, every=10).agg(n=cz.count()),
    "changes": lambda s: s.group_by("id").snapshot().agg(n=cz.count()),
    "a step between": lambda s: s.where(col("id") > 0).shift(1).group_by("id").snapshot().agg(n=cz.count()),
    "alive": lambda s: s.where(col("id") > 0).group_by("id").alive().agg(n=cz.count()),
}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("name", LASTING)
def test_a_row_that_was_stopped_and_lasts_longer_after_the_withdrawal_is_missed_in_no_result(
    name: str, early: bool, restarts: bool
) -> None:
    plan = LASTING[name](stream(known=ANY, id="int"))
    query, undisturbed = plan.query(), plan.query()
    said = query.assume(Pattern(id=1))
    lost, longer = " LE RE | id |\n 1 9 | 1 | +", " LE RE | id |\n 1 9->35 | 1 | -"
    known, last = (
        " LE RE | id |\n 21 24 | 1 | +",
        " LE RE | id |\n-- 40 --\n 51 52 | 1 | +\n-- definite: * --",
    )
    for each in (query, undisturbed):
        feed(each, lost)
    query.withdraw(said)
    if restarts:
        saved, query = query.snapshot(), plan.query()
        query.restore({chunk: data for chunk, data in saved.items() if data is not None})
    for each in (query, undisturbed):
        for text in (longer, known, last) if early else (known, longer, last):
            feed(each, text)
    found, wanted = rows(query, plan), rows(undisturbed, plan)
    assert set(found) <= set(wanted)
    assert found == [row for row in wanted if row[0] >= 40]  # type: ignore[operator]


def test_a_join_that_has_given_rows_up_takes_back_no_pair_that_was_not_shown() -> None:
    left, right = stream(known=ANY, id="int", n="int"), stream("b", known=ANY, id="int", s="str")
    plan = left.join(right, on="id", how="right")
    query = plan.query()
    feed(query, " LE RE | id n |\n 0 2 | 1 5 | +")
    query.withdraw(query.assume(Pattern(id=1)))
    feed(query, " LE RE | id s |\n 0 2 | 1 x | +", "b")
    feed(query, " LE RE | id n |\n 0 2->1 | 1 5 | -")
    feed(query, " LE RE | id s |\n 0 2->1 | 1 x | -\n-- definite: * --", "b")
    feed(query, " LE RE | id n |\n-- definite: * --")
    assert rows(query, plan) == []


def test_rows_that_a_join_let_go_of_are_missed_in_no_result() -> None:
    """Rows of insert-only sides are let go of at once, though they end late."""
    known = Properties(insert_only=True)
    left, right = (stream(label, known=known, id="int") for label in "ab")
    plan = left.join(right, on="id").group_by("id").hopping(10, every=10).agg(n=cz.count())
    query = plan.query()
    feed(query, " LE RE | id |\n 1 90 | 1 | +")
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 2 4 | 2 | +")
    query.withdraw(said)
    feed(query, " LE RE | id |\n 50 60 | 1 | +\n 94 96 | 1 | +\n-- definite: * --")
    feed(query, " LE RE | id |\n 55 56 | 1 | +\n 95 97 | 1 | +\n-- definite: * --", "b")
    assert rows(query, plan) == [(90, 100, 1, 1)]


def test_a_correction_of_a_row_that_was_given_up_leaves_no_state_behind() -> None:
    plan = stream(known=ANY, id="int").group_by("id").totals(n=cz.count())
    query = plan.query()
    feed(query, " LE RE | id |\n 0 1 | 1 | +")
    said = query.assume(Pattern(id=1))
    query.withdraw(said)
    feed(query, " LE RE | id |\n 0 1->2 | 1 | -\n-- definite: * --")
    assert query.counters()["totals"].state_rows == 0


def test_what_stays_suppressed_is_let_go_by_punctuation_after_a_restart_too() -> None:
    plan = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query()
    said = query.assume(Pattern(id=1))
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +")
    query.withdraw(said)
    again = plan.query()
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    assert again.feedback() == ["still suppressed at 'tumbling': LE < 2, id = 1"]
    feed(again, " LE RE | id |\n-- 10 --\n 12 13 | 1 | +")
    assert again.feedback() == []
