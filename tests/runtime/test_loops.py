"""A graph with a cycle runs, and stops when nothing circulates any more."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from runtime_steps import IDS, Step, numbers, page

from caesura.errors import StreamError
from caesura.events import History, Item, Page
from caesura.ops.union import Union
from caesura.plan import Operator
from caesura.punctuation import Pattern
from caesura.runtime import BottomUp, LongestQueue, Schedule, Shuffled
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.graph import Graph


class Halve(Operator):
    """Each number above 1 goes around again, halved."""

    def page(self, port: int, page_: Page) -> Iterable[Item]:
        halves = [row[3][0] // 2 for row in page_.rows() if row[3][0] > 1]
        return [page(*halves)] if halves else []

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return []


def loop(capacity: int) -> tuple[Graph, Cell, list[Item]]:
    """merge -> halve -> back to merge; the tap sees everything that circulates."""
    graph, out = Graph(capacity), []
    inside = numbers("inside")
    merge = Union(inputs=(numbers("outside"), inside))
    first = graph.add(merge, merge.operator(), "merge")
    second = graph.add(Step(inputs=(inside,), made=Halve), Halve(), "halve")
    graph.open(first, 0)
    graph.connect(first, second, 0)
    graph.connect(second, first, 1, back=True)
    first.taps.append(out)
    return graph, first, out


def drain(graph: Graph, schedule: Schedule) -> None:
    while ready := graph.ready():
        edge = schedule.pick(ready)
        assert edge.target is not None
        edge.target.work(edge.port)


@pytest.mark.parametrize("schedule", [BottomUp(), LongestQueue(), Shuffled(3)], ids=lambda s: s.name)
@pytest.mark.parametrize("capacity", [1, 8])
def test_a_loop_of_two_operators_circulates_and_drains(schedule: Schedule, capacity: int) -> None:
    graph, first, out = loop(capacity)
    for number in (8, 5, 100):
        first.inputs[0].push(page(number))
    drain(graph, schedule)
    halved = [8, 4, 2, 1, 5, 2, 1, 100, 50, 25, 12, 6, 3, 1]
    assert sorted(r[2][0] for r in History.of(out, IDS).rows()) == sorted(halved)
    assert all(not edge.items for edge in graph.edges)


def test_the_edge_that_closes_a_loop_never_pushes_back() -> None:
    graph, first, _ = loop(1)
    back = first.inputs[1]
    for number in (1, 1, 1):
        back.push(page(number))
    assert not back.full
    assert len(graph.ready()) == 1


def test_a_port_takes_one_edge() -> None:
    graph, first, _ = loop(1)
    with pytest.raises(StreamError, match="has an input already"):
        graph.open(first, 0)
