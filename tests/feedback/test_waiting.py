"""What operators say waits for the next page; what punctuation has overtaken by then goes no further."""

from __future__ import annotations

import pytest
from feedback_streams import counted, feed, stream

from caesura import Pattern, Stream, col
from caesura.events import parse
from caesura.punctuation import lt
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
    assert query.heard("a") == []
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
        if any(c.has_control for c in above):
            query.step()
            if sum(c.operator.counters.pages_in for c in query.graph.cells) > before:
                assert all(c.responder is not None for c in above)
                heard += 1
    assert heard


def test_who_wants_to_know_is_told_what_waits() -> None:
    query = chain().query()
    feed(query, ROW)
    assert [str(m.pattern) for m in query.heard("a")] == ["LE = 1, id = 7"]


def test_what_a_consumer_says_never_waits() -> None:
    query = stream(id="int").where(col("id") > 0).query()
    query.assume(Pattern(LE=lt(10)))
    assert counted(query)["where"]["sent up"] == 1
