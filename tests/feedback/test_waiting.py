"""What operators say waits for the next page; what punctuation has overtaken by then goes no further."""

from __future__ import annotations

import pytest
from feedback_streams import counted, feed, stream
from hypothesis import given, settings
from hypothesis import strategies as st

from caesura import Pattern, Stream, col
from caesura.events import parse
from caesura.punctuation import Promises, Punctuation, lt
from caesura.runtime import BottomUp, LongestQueue, Schedule, Shuffled

OVERTAKEN = "overtaken while it waited"
ROW = " LE RE | id |\n 1 2 | 7 | +"


def chain(*, steps: int = 3) -> Stream:
    """Steps in front of one that says of every row that no more like it are wanted."""
    plan = stream(id="int")
    for number in range(steps):
        plan = plan.shift(number + 1).where(col("id") > number)
    return plan.instrument(every=1, columns=("id",))


def test_a_message_that_punctuation_overtakes_is_heard_nowhere() -> None:
    query = chain().query()
    feed(query, ROW + "\n-- 5 --")
    assert query.upstream_feedback("a") == []
    assert [told for told in counted(query).values() if told] == [{OVERTAKEN: 1}]


def test_a_message_that_still_matters_climbs_before_the_next_page() -> None:
    query = chain().query()
    feed(query, ROW + "\n-- 1 --")
    assert query.cell_of("a").responder is None  # nobody has asked yet
    feed(query, ROW)
    assert query.counters()["where"].rows_in == 1
    assert counted(query)["input"]["stopped at the output"] == 1


SCHEDULES = [BottomUp(), LongestQueue(), *(Shuffled(seed) for seed in range(6))]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.name)
def test_every_step_above_has_heard_before_any_of_them_takes_a_page(schedule: Schedule) -> None:
    query = chain(steps=2).query(schedule=schedule)
    for item in parse(ROW, stream(id="int").schema) * 5:
        query.feed("a", item)
    heard = 0
    while query.step():
        above = [c for c in query.graph.cells if c.label != "instrument"]
        before = sum(c.operator.counters.pages_in for c in query.graph.cells)
        if query.graph.mailbox.waiting:
            query.step()
            if sum(c.operator.counters.pages_in for c in query.graph.cells) > before:
                assert all(c.responder is not None for c in above)
                heard += 1
    assert heard


def test_who_wants_to_know_is_told_what_waits() -> None:
    query = chain().query()
    feed(query, ROW)
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE = 1, id = 7"]


def test_what_a_consumer_says_never_waits() -> None:
    query = stream(id="int").where(col("id") > 0).query()
    query.assume(Pattern(LE=lt(10)))
    assert counted(query)["where"]["sent up"] == 1


def test_steps_that_only_hand_a_message_on_are_passed_at_once() -> None:
    plan = stream(id="int")
    for number in range(3):
        plan = plan.where(col("id") > number).feedback(exploit=False)
    query = plan.instrument(every=1, columns=("id",)).query()
    feed(query, ROW)
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE = 1, id = 7"]
    relays = [cell for cell in query.graph.cells if cell.label.startswith("where")]
    assert [cell.responder for cell in relays] == [None] * 3
    told = counted(query)
    assert [told[cell.label] for cell in relays] == [{"sent up": 1}] * 3


def test_a_step_that_begins_to_act_is_no_longer_passed() -> None:
    plan = stream(id="int").where(col("id") > 0).where(col("id") > 1).feedback(exploit=False)
    query = plan.instrument(every=1, columns=("id",)).query()
    relay = next(cell for cell in query.graph.cells if cell.label == "where-2")
    for start in range(3):
        if start == 1:
            relay.feedback.listen()  # somebody else has sent it feedback
        feed(query, f" LE RE | id |\n {start} 9 | 7 | +")
    assert relay.feedback.relays == []
    assert counted(query)["where-2"]["sent up"] == 3
    assert [str(p) for p in query.cell_of("a").responder.guards.output.patterns] == ["LE in [0..2], id = 7"]  # type: ignore[union-attr]


def test_a_step_that_neither_acts_nor_sends_on_says_so() -> None:
    plan = stream(id="int").where(col("id") > 0).feedback(exploit=False, propagate=False)
    query = plan.instrument(every=1, columns=("id",)).query()
    speaker = query.cell("out").operator
    speaker.feedback_for = pytest.fail  # type: ignore[method-assign]  # what nobody acts on is not made
    for _ in range(2):
        feed(query, ROW)
    assert query.upstream_feedback("a") == []
    assert counted(query)["where"] == {"not sent on": 2}


def test_what_the_step_above_keeps_back_is_not_looked_for_again() -> None:
    query = stream(id="int").where(col("id") > 0).query()
    query.assume(Pattern(id=7))
    guard = query.cell("out").responder.guards.inputs[0]  # type: ignore[union-attr]
    assert guard.active and guard.implied_by(query.cell_of("a").responder.guards.output)  # type: ignore[union-attr]
    query.assume(Pattern(id=9))
    query.cell_of("a").responder.guards.output.replace([Pattern(id=7)])  # type: ignore[union-attr]
    assert not guard.implied_by(query.cell_of("a").responder.guards.output)  # type: ignore[union-attr]


def test_times_that_have_passed_leave_a_guard_before_the_rest_of_it() -> None:
    query = stream(id="int").where(col("id") > 0).instrument(every=1, columns=("id",)).query()
    for t in range(0, 400, 2):
        feed(query, f" LE RE | id |\n {t} {t + 1} | 7 | +\n-- {max(0, t - 10)} --")
    held = query.cell_of("a").responder.guards.output.held.patterns()  # type: ignore[union-attr]
    assert all(len(pattern["time"].cuts) < 40 for pattern in held) and held


said_by_steps = st.builds(
    lambda t, id_, kind: {"time": Pattern(time=lt(t)), "id": Pattern(id=lt(id_))}.get(
        kind, Pattern(id=id_, time=lt(t))
    ),
    st.integers(0, 9),
    st.integers(0, 3),
    st.sampled_from(["time", "id", "both"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(said_by_steps, max_size=90), said_by_steps)
def test_what_was_given_is_the_same_whether_it_is_filed_at_once_or_when_asked_for(
    said: list[Pattern], asked: Pattern
) -> None:
    query = stream(id="int").query()
    query.assume(Pattern(id=7))
    responder = query.cell_of("a").responder
    assert responder is not None
    responder.release([Punctuation(pattern) for pattern in said])
    assert responder.given.covers(asked) == Promises(said).covers(asked)
    assert responder.given.cti == Promises(said).cti
