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
from caesura.feedback.responder import Responder, Switches
from caesura.plan import Node, Operator
from caesura.plan.explain import Given, carried
from caesura.punctuation import INFINITY, Intent, Promises, Punctuation

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
    branches: list[str] = field(default_factory=list)
    """The names of its taps, as consumers."""
    responder: Responder | None = None
    """Feedback at the step, from the first message on."""
    switches: Switches = field(default_factory=Switches)

    @property
    def blocked(self) -> bool:
        return any(edge.full for edge in self.outputs)

    @property
    def has_control(self) -> bool:
        return any(edge.up for edge in self.outputs)

    def hear(self) -> None:
        """Takes the messages from below, and passes on what the operator sends further up."""
        for number, edge in enumerate(self.outputs):
            while edge.up:
                self.upward(edge.up.popleft(), f"edge {number}")

    def upward(self, message: Punctuation, branch: str = "") -> None:
        """Takes a message from one consumer."""
        if message.intent is Intent.ASSUMED and self.node.feedback() is not None:
            self.operator.counters.extra["control"] = self.operator.counters.extra.get("control", 0) + 1
            self.listen().hear(branch, message)
            self.respond()
            return
        for port, further in self.guarded(self.operator.control, message):
            self.inputs[port].up.append(further)
        self.speak()

    def listen(self) -> Responder:
        """The step's answer to feedback, made when it is first needed."""
        if self.responder is None:
            given = Promises()
            if self.outputs and self.outputs[0].target is not None:
                given = self.outputs[0].target.operator.promises[self.outputs[0].port].copy()
            told = self.operator.counters.told_out
            if told is not None:
                given.add(told.pattern)
            branches = [*(f"edge {n}" for n in range(len(self.outputs))), *self.branches]
            kinds = kinds_of(self)
            self.responder = Responder(
                self.node, self.operator, branches, kinds, given=given, switches=self.switches
            )
        return self.responder

    def respond(self) -> None:
        """Lets out what the answer to feedback holds ready: items down, messages up."""
        assert self.responder is not None
        out, self.responder.out = self.responder.out, []
        up, self.responder.up = self.responder.up, []
        self.send(out)
        for port, message in up:
            if port < len(self.inputs):
                self.inputs[port].up.append(message)

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
        if self.responder is not None and not isinstance(item, Page):
            self.settle()

    def settle(self) -> None:
        """Lets go of feedback that punctuation has overtaken."""
        if self.responder is not None:
            self.responder.settle()
            self.respond()

    def receive(self, port: int, item: Item) -> Iterable[Item]:
        counters = self.operator.counters
        if isinstance(item, Page):
            counters.pages_in += 1
            counters.rows_in += len(item)
            if self.responder is not None:
                item = self.responder.admit(port, item)
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
        if self.responder is not None:
            items = self.responder.release(items)
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


def kinds_of(cell: Cell) -> tuple[Given, ...]:
    """The kinds of punctuation that come on each input of a cell's step, then those that leave it."""
    known: dict[str, Given] = {}

    def given(node: Node) -> Given:
        if node.fingerprint not in known:
            known[node.fingerprint] = carried(node, [given(child) for child in node.inputs])
        return known[node.fingerprint]

    return *(given(child) for child in cell.node.inputs), given(cell.node)


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
