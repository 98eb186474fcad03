"""Cells joined by edges: items queue downwards, control messages upwards, one cell works at a time.

Law: whatever order the schedule picks, the history that comes out is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from caesura.errors import CaesuraError, StreamError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.plan import Node, Operator
from caesura.punctuation import INFINITY, Intent, Punctuation

T = TypeVar("T")


@dataclass(eq=False)
class Edge:
    """A queue of items to a cell's port, and a queue of messages back up."""

    capacity: int
    target: Cell | None = None
    port: int = 0
    back: bool = False
    """Whether the edge closes a cycle; then it never pushes back."""
    items: deque[Item] = field(default_factory=deque)
    up: deque[Punctuation] = field(default_factory=deque)
    merged: int = 0

    def push(self, item: Item) -> None:
        """Queues an item; a definite punctuation replaces the one before it that it covers."""
        if self.items and mergeable(self.items[-1], item):
            self.items.pop()
            self.merged += 1
        self.items.append(item)

    @property
    def full(self) -> bool:
        return not self.back and len(self.items) >= self.capacity


def mergeable(before: Item, after: Item) -> bool:
    """Whether a punctuation need not act because the next one says it all.

    The end of a stream never swallows the last time before it: windows over events without end are
    given up to that time.
    """
    if isinstance(before, Page) or isinstance(after, Page):
        return False
    if before.intent is not Intent.DEFINITE or after.intent is not Intent.DEFINITE:
        return False
    if after.pattern.time_bound == INFINITY != before.pattern.time_bound:
        return False
    return after.pattern.covers(before.pattern)


class Tap(Protocol):
    """Whoever takes what leaves a cell."""

    def append(self, item: Item, /) -> None: ...


@dataclass(eq=False)
class Cell:
    """A step at work, with its edges."""

    node: Node
    operator: Operator
    label: str
    inputs: list[Edge] = field(default_factory=list)
    outputs: list[Edge] = field(default_factory=list)
    depth: int = 0
    taps: list[Tap] = field(default_factory=list)

    @property
    def blocked(self) -> bool:
        return any(edge.full for edge in self.outputs)

    @property
    def has_control(self) -> bool:
        return any(edge.up for edge in self.outputs)

    def hear(self) -> None:
        """Takes the messages from below, and passes on what the operator sends further up."""
        for edge in self.outputs:
            while edge.up:
                self.upward(edge.up.popleft())

    def upward(self, message: Punctuation) -> None:
        for port, further in self.guarded(self.operator.control, message):
            self.inputs[port].up.append(further)
        self.speak()

    def speak(self) -> None:
        """Puts the operator's own messages on the edges that lead to it."""
        for port, message in self.operator.up:
            self.inputs[port].up.append(message)
        self.operator.up.clear()

    def work(self, port: int) -> None:
        """Takes one item: control first, so that a message reaches the operator before the next page."""
        self.hear()
        item = self.inputs[port].items.popleft()
        self.send(self.receive(port, item))
        self.speak()

    def receive(self, port: int, item: Item) -> Iterable[Item]:
        counters = self.operator.counters
        if isinstance(item, Page):
            counters.pages_in += 1
            counters.rows_in += len(item)
            return self.guarded(self.operator.page, port, item)
        counters.told_in = item
        return self.guarded(self.operator.punctuation, port, item)

    def guarded(self, call: Callable[..., Iterable[T]], *args: object) -> list[T]:
        """Calls the operator; an error that it raises names the step and the user's line."""
        try:
            return list(call(*args))
        except CaesuraError as error:
            raise error.at(self.node.step, self.node.place) from error.__cause__
        except Exception as error:
            error.add_note(f"in step '{self.node.step}' ({self.node.place})")
            raise

    def send(self, items: Iterable[Item]) -> None:
        """Puts items on every edge out and into every tap."""
        counters = self.operator.counters
        for item in items:
            if isinstance(item, Page):
                if len(item) == 0:
                    continue
                counters.rows_out += len(item)
            else:
                counters.told_out = item
            for edge in self.outputs:
                edge.push(item)
            for tap in self.taps:
                tap.append(item)


class Graph:
    """Cells and edges; loops are allowed, and stop when nothing circulates any more."""

    def __init__(self, capacity: int = 8) -> None:
        self.capacity = capacity
        self.cells: list[Cell] = []
        self.edges: list[Edge] = []

    def add(self, node: Node, operator: Operator, label: str) -> Cell:
        cell = Cell(node, operator, label)
        self.cells.append(cell)
        return cell

    def connect(self, source: Cell, target: Cell, port: int, *, back: bool = False) -> Edge:
        """An edge from a cell to another's port; ``back`` marks the one that closes a cycle."""
        edge = self.open(target, port, back=back)
        source.outputs.append(edge)
        if not back:
            target.depth = max(target.depth, source.depth + 1)
        return edge

    def open(self, target: Cell, port: int, *, back: bool = False) -> Edge:
        """An edge into a cell's port that is fed from outside."""
        if port < len(target.inputs):
            raise StreamError(
                f"port {port} of '{target.label}' has an input already.",
                remedy="Union the two streams first.",
            )
        edge = Edge(self.capacity, target, port, back)
        target.inputs.append(edge)
        self.edges.append(edge)
        return edge

    def ready(self) -> list[Edge]:
        """Edges whose next item can be taken now."""
        return [e for e in self.edges if e.items and e.target is not None and not e.target.blocked]
