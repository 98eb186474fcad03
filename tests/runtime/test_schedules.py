"""A schedule changes memory and latency, never a history; a full edge pushes back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from bucket_plans import LEFT, RIGHT, A, B, sources
from runtime_steps import numbers, page

import caesura as cz
from caesura import Stream, col
from caesura.events import History, parse
from caesura.ops.input import Input
from caesura.ops.where import Where
from caesura.plan import Node
from caesura.runtime import BottomUp, LongestQueue, Query, Schedule, Shuffled
from caesura.runtime.graph.edge import Edge


def plan() -> Node:
    """A join, of which one way is counted, and another filtered, and both meet again."""
    a = Stream(Input(label="a", payload=LEFT))
    b = Stream(Input(label="b", payload=RIGHT))
    met = a.join(b, on="id", how="left").select("id", "s")
    return met.union(met.where(col("id") > 1)).distinct().node


def ran(schedule: Schedule, capacity: int) -> History:
    query = Query({"out": plan()}, schedule=schedule, capacity=capacity)
    for label, text, schema in (("a", A, LEFT), ("b", B, RIGHT)):
        for item in parse(text, schema):
            for row in range(len(item)):
                query.feed(label, item.slice(row, 1))
    query.run()
    return History.of(query.take("out"), query.outputs["out"].schema)


SCHEDULES = [LongestQueue(), *(Shuffled(seed) for seed in range(6))]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.name)
@pytest.mark.parametrize("capacity", [1, 8])
def test_every_schedule_gives_the_same_history(schedule: Schedule, capacity: int) -> None:
    wanted = ran(BottomUp(), 8)
    assert len(wanted) > 3
    assert ran(schedule, capacity) == wanted


def test_sources_read_under_any_schedule_give_the_same_history() -> None:
    histories = []
    for schedule in (BottomUp(), *SCHEDULES):
        a, b = sources()
        met = Stream(a).join(Stream(b), on="id", how="full").tumbling(5).agg(n=cz.count())
        histories.append(met.run(schedule=schedule).history)
    assert all(history == histories[0] for history in histories)


class TopDown:
    """The cell nearest to the input first: the worst for memory."""

    name = "top-down"

    def pick(self, ready: Sequence[Edge]) -> Edge:
        return min(ready, key=lambda edge: edge.target.depth if edge.target is not None else 0)


def test_an_edge_holds_a_bounded_number_of_pages_and_pushes_back() -> None:
    node: Node = numbers()
    for _ in range(3):
        node = Where(inputs=(node,), predicate=col("id") >= len(node.inputs))
    query = Query({"out": node}, schedule=TopDown(), capacity=2)
    for number in range(20):
        query.feed("numbers", page(number + 1))
    inner = [edge for edge in query.graph.edges if edge.target is not None and edge.target.depth > 0]
    most = 0
    while query.step():
        most = max(most, *(len(edge.items) for edge in inner))
    assert most == 2
    assert len(query.take("out")) == 20
