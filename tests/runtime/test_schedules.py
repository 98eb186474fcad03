"""A schedule changes memory and latency, never a history; a full edge pushes back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pytest
from bucket_plans import LEFT, RIGHT, A, B, sources
from runtime_steps import numbers, page

import caesura as cz
from caesura import Stream, col
from caesura.errors import PlanError
from caesura.events import History, parse
from caesura.ops.input import Input
from caesura.ops.where import Where
from caesura.plan import Node
from caesura.punctuation import cti
from caesura.runtime import BottomUp, LongestQueue, Proportional, Query, RoundRobin, Schedule, Shuffled
from caesura.runtime.graph.cell import Cell
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


SCHEDULES = [LongestQueue(), RoundRobin(), Proportional(), *(Shuffled(seed) for seed in range(6))]


@pytest.mark.thin(2)
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


@pytest.mark.parametrize("name", ["bottom-up", "round robin", "longest queue", "proportional"])
def test_a_schedule_goes_by_its_name(name: str) -> None:
    a, b = sources()
    met = Stream(a).join(Stream(b), on="id")
    assert met.run(schedule=name).history == met.run().history  # type: ignore[arg-type]


def served(schedule: Schedule, waiting: dict[str, int]) -> str:
    """Which queues a schedule takes from, one letter for each item, until they are empty."""
    edges = {
        n: Edge(9, target=Cell.__new__(Cell), items=deque([cti(i) for i in range(c)]))
        for n, c in waiting.items()
    }
    names, out = {edge: name for name, edge in edges.items()}, ""
    while ready := [edge for edge in edges.values() if edge.items]:
        chosen = schedule.pick(ready)
        chosen.items.popleft()
        out += names[chosen]
    return out


def test_round_robin_serves_each_queue_in_turn_and_proportional_as_long_as_it_is() -> None:
    waiting = {"a": 3, "b": 1, "c": 2}
    assert served(RoundRobin(), waiting) == "abcaca"
    assert served(Proportional(), waiting) == "aaabcc"
    assert served(LongestQueue(), waiting).startswith("a")


def test_an_unknown_schedule_names_those_that_exist() -> None:
    with pytest.raises(PlanError, match="there is no schedule 'fair'"):
        cz.from_rows([{"t": 1}], time="t").run(schedule="fair")  # type: ignore[arg-type]


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
