"""The control channel: what a consumer says reaches the operators above it before their next page."""

from __future__ import annotations

import pytest
from runtime_steps import Listener, Speaker, Step, assumed, numbers, page

from caesura.punctuation import Pattern
from caesura.runtime import BottomUp, LongestQueue, Query, Schedule, Shuffled


def pipeline(log: list[str]) -> Step:
    """numbers -> a listener -> a speaker."""
    listener = Step(inputs=(numbers(),), made=lambda: Listener(log))
    return Step(inputs=(listener,), made=lambda: Speaker(log))


def test_a_message_from_a_consumer_reaches_its_operator_before_the_next_page() -> None:
    log: list[str] = []
    query = Query({"out": Step(inputs=(numbers(),), made=lambda: Listener(log))})
    for item in (page(1), page(2)):
        query.feed("numbers", item)
    while not query.take("out"):
        query.step()
    query.ports.send("out", assumed(Pattern(id=2)))
    query.run()
    assert log == ["page [1]", "assumed: id = 2", "page [2]"]


SCHEDULES = [BottomUp(), LongestQueue(), *(Shuffled(seed) for seed in range(8))]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.name)
def test_a_message_from_an_operator_comes_before_the_next_page_under_any_schedule(schedule: Schedule) -> None:
    log: list[str] = []
    query = Query({"out": pipeline(log)}, schedule=schedule)
    for number in range(6):
        query.feed("numbers", page(number))
    query.run()
    for place, line in enumerate(log):
        if line.startswith("says "):
            assert log[place + 1] == f"assumed: id = {line.removeprefix('says ')}"
    assert sum(line.startswith("assumed") for line in log) == 6


def test_a_message_climbs_as_far_as_each_operator_passes_it_on() -> None:
    top: list[str] = []
    low: list[str] = []
    above = Step(inputs=(numbers(),), made=lambda: Listener(top))
    query = Query({"out": Step(inputs=(above,), made=lambda: Listener(low))})
    query.ports.send("out", assumed(Pattern(id=4)))
    query.run()
    assert top == low == ["assumed: id = 4"]
    assert query.counters()["input"].extra == {"control": 1}
