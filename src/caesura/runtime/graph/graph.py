"""Cells joined by edges: items queue downwards, control messages upwards, one cell works at a time.

Law: whatever order the schedule picks, the history that comes out is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from caesura.consistency.token import Marks, is_token, pieces
from caesura.errors import CaesuraError, StreamError, failure
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.messages import WITHDRAWN, can_wait
from caesura.feedback.responder import ConsumerAgreement, Responder
from caesura.plan import FeedbackRule, Node, Operator
from caesura.plan.explain import Given, carried
from caesura.plan.feedback import RE, as_definite
from caesura.plan.operator import OVERTAKEN
from caesura.punctuation import Intent, Pattern, Promises, Punctuation
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.relay import Relay

T = TypeVar("T")


class Tap(Protocol):
    """Whoever takes what leaves a cell."""

    def append(self, item: Item, /) -> None: ...


class Watch(Protocol):
    """Whoever makes claims about what leaves: it sees tokens pass, and what each item became."""

    def token(self, cell: Cell, tokens: list[Punctuation], /) -> Punctuation: ...
    def derived(self, cell: Cell, item: Item, items: list[Item], /) -> list[Item]: ...


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
    around: Edge | None = None
    """The edge that leads back around the loop that ends here."""
    branches: list[str] = field(default_factory=list)
    """The names of its taps, as consumers."""
    responder: Responder | None = None
    """Feedback at the step, from the first message on."""
    agreed: dict[str, ConsumerAgreement] = field(default_factory=dict)
    """By output, what its readers have said, where the step answers in its own way."""
    desired: list[Pattern] = field(default_factory=list)
    wished: bytes = b""
    """What is desired, as it was last saved."""
    demanded: list[Pattern] = field(default_factory=list)
    """What is wanted now; the query sees to it from the sources down."""
    called: bool = False
    """Whether a message may wait on an edge that leaves here."""
    spoke: bool = False
    """Whether a message was put on an edge that leads here, or is pending; the query sees to it."""
    watch: Watch | None = None
    _relayed: frozenset[str] | None = None
    """What `_hands_on` said; a cached property would make every other attribute slower to reach."""
    ways: list[Relay] = field(default_factory=list)
    """The ways of messages that pass here."""
    _way: Relay | None = None
    """Where the operator's own words are heard."""
    carries: bool = field(init=False)
    """Whether tokens may pass as row positions of a page."""

    speaks: bool = field(init=False)
    """Whether the operator has messages of its own to look for."""

    def __post_init__(self) -> None:
        self.carries, self.speaks = self.node.row_wise, self.operator.speaks

    @property
    def blocked(self) -> bool:
        return any(edge.full for edge in self.outputs)

    @property
    def has_control(self) -> bool:
        """Whether a message waits to be heard here."""
        return any(
            e.up or (e.target is not None and e.target.operator.pending_feedback) for e in self.outputs
        )

    def relays(self, names: tuple[str, ...]) -> bool:
        """Whether a message on these attributes changes nothing here: not acted on, and the same above."""
        if self.responder is not None or not names:
            return False
        if self._relayed is None:
            self._relayed = self._hands_on()
        return self._relayed.issuperset(names)

    def _hands_on(self) -> frozenset[str]:
        """The attributes whose patterns this step only hands on, as they are; none where it does more."""
        rules = self.node.feedback() or ()
        alone = len(self._consumers()) == 1 == len(self.inputs) and len(rules) == 1
        if self.node.switches.exploit or not alone or rules[0].means != "rows" or rules[0].ports[0] is None:
            return frozenset()
        return rules[0].ports[0].same - {RE}

    def hear(self) -> None:
        """Takes the messages from below, and passes on what the operator sends further up."""
        self.called = False
        for number, edge in enumerate(self.outputs):
            while edge.up:
                message = edge.up.popleft()
                if edge.overtook(message):
                    told = self.operator.counters.feedback
                    told[OVERTAKEN] = told.get(OVERTAKEN, 0) + 1
                    continue
                if can_wait(message) and self.relays(message.pattern.attributes):
                    self._relay(edge, message)
                else:
                    self.upward(message, f"edge {number}")

    def _relay(self, edge: Edge, message: Punctuation) -> None:
        """Hands a message up, at once past all steps that do nothing else with it."""
        way = Relay(edge, message.pattern.attributes)
        way.taken = 1
        if way.end is not None:
            way.end.say(message)
        way.leave()

    def upward(self, message: Punctuation, branch: str = "") -> None:
        """Takes a message from one consumer."""
        rules = self.node.feedback() if self.responder is None else self.responder.rules
        if rules is not None and message.intent in (Intent.DESIRED, Intent.DEMANDED):
            self._wish(message, rules)
            return
        if message.intent is Intent.ASSUMED and rules is not None:
            self.operator.counters.extra["control"] = self.operator.counters.extra.get("control", 0) + 1
            self.listen().hear(branch, message)
            self.respond()
            return
        for each in self._agreed(message, branch):
            for port, further in self.guarded(self.operator.control, each):
                self.tell(port, further)
        self.speak()

    def _wish(self, message: Punctuation, rules: tuple[FeedbackRule, ...]) -> None:
        """Notes what is wanted first, or now, and tells it to all inputs, widely where need be."""
        gone = bool(message.noted(WITHDRAWN))
        if message.intent is Intent.DEMANDED:
            self.demanded.append(message.pattern)
        else:
            _note(self.desired, message.pattern, gone=gone)
            self.operator.prefer(list(self.desired))
        ports: list[Pattern | None] = [None] * len(self.inputs)
        if not self.node.inputs and self.inputs:
            ports = [message.pattern]
        for rule in rules:
            for port, way in enumerate(rule.ports):
                if way is not None and ports[port] is None:
                    ports[port] = way.wide(message.pattern)
        for port, pattern in enumerate(ports):
            if pattern is None and message.intent is Intent.DEMANDED:
                pattern = Pattern()
            if pattern is None:
                continue
            if message.intent is Intent.DESIRED:
                _note(self.inputs[port].desired, pattern, gone=gone)
            self.tell(port, replace(message, pattern=pattern))

    def _agreed(self, message: Punctuation, branch: str) -> list[Punctuation]:
        """What all readers of an output assume, for a step that answers in its own way; a wish is a wish."""
        output = branch.rpartition("#")[0]
        readers = [b for b in self.branches if b.rpartition("#")[0] == output]
        if message.intent is not Intent.ASSUMED or len(readers) < 2:
            return [message]
        agreed = self.agreed.setdefault(output, ConsumerAgreement(readers))
        return [replace(message, pattern=p) for p in agreed.add(branch, message.pattern, False)]

    def _consumers(self) -> list[str]:
        return [*(f"edge {n}" for n in range(len(self.outputs))), *self.branches]

    def listen(self) -> Responder:
        """The step's answer to feedback, made when it is first needed."""
        if self.responder is None:
            for edge in self.inputs:
                edge.part()
            for way in list(self.ways):
                way.leave()
            given = Promises(tidy=True)
            if self.outputs and self.outputs[0].target is not None:
                given = self.outputs[0].target.operator.promises[self.outputs[0].port].copy()
            told = self.operator.counters.told_out
            if told is not None:
                given.add(told.pattern)
            kinds = kinds_of(self)
            self.responder = Responder(self.node, self.operator, self._consumers(), kinds, given=given)
        return self.responder

    def respond(self) -> None:
        """Lets out what the answer to feedback holds ready: items down, messages up."""
        assert self.responder is not None
        out, self.responder.out = self.responder.out, []
        up, self.responder.up = self.responder.up, []
        self.send(out)
        for port, message in up:
            if port < len(self.inputs):
                self.tell(port, message)

    def speak(self) -> None:
        """Puts the operator's own messages on the edges that lead to it."""
        if not self.speaks:
            return
        for port, message in self.operator.up:
            self.tell(port, message)
        self.operator.up.clear()
        if self.around is not None and self.operator.around:
            for item in self.operator.around:
                self.around.push(item)
            self.operator.around.clear()

    def tell(self, port: int, message: Punctuation) -> None:
        """Puts a message on the edge that leads to a port."""
        self.inputs[port].say(message)
        self.spoke = True

    def unheard(self) -> bool:
        """Whether no step above acts on the pending feedback; then it is counted, and dropped at once."""
        way = self._way
        if way is None or way.broken:
            way = self._way = Relay(self.inputs[0], self.operator.topics)
        if way.end is not None:
            return False
        way.taken += len(self.operator.pending_feedback)
        self.operator.pending_feedback.clear()
        return True

    def send_pending(self) -> bool:
        """Sends the pending feedback of the operator up; gives whether a step is to hear it.

        What punctuation has overtaken goes no further, and steps that only hand it on are passed before
        it is put into words.
        """
        operator, way, heard = self.operator, self._way, False
        cti = operator.promises[0].cti
        for page in operator.pending_feedback:
            starts = page.le
            if starts.item(-1) < cti and starts.item(starts.argmax()) < cti:  # a third of what max() takes
                told = operator.counters.feedback
                told[OVERTAKEN] = told.get(OVERTAKEN, 0) + 1
                continue
            if way is None or way.broken:
                way = self._way = Relay(self.inputs[0], operator.topics)
            way.taken += 1
            if way.end is not None:
                for message in operator.feedback_for(page):
                    way.end.say(message)
                heard = True
        operator.pending_feedback.clear()
        return heard

    def work(self, port: int) -> None:
        """Takes one item: control first, so that a message reaches the operator before the next page."""
        edge = self.inputs[port]
        if self.called and isinstance(edge.items[0], Page):
            self.hear()
        if self.responder is None and self.watch is None and not edge.desired:
            self.send(self.receive(port, edge.items.popleft()))
        else:
            self._heedful(port, edge)
        if self.speaks:
            if self.operator.pending_feedback:
                self.spoke = True
            if self.operator.up or self.operator.around:
                self.speak()

    def _heedful(self, port: int, edge: Edge) -> None:
        """Takes one item where feedback or claims are to be thought of."""
        if self.watch is not None and is_token(edge.items[0]):
            tokens = [e.items.popleft() for e in self.inputs if not e.back]
            self.flush()
            self.send([self.watch.token(self, [t for t in tokens if is_token(t)])])
            return
        if edge.desired and self.watch is None:
            edge.promote()
        item = edge.items.popleft()
        items = self.receive(port, item)
        self.send(items if self.watch is None else self.watch.derived(self, item, items))
        if self.responder is not None or edge.desired:
            self._follow(edge, item)

    def flush(self) -> bool:
        """Sends what waits here and needs no further input; whether there was any."""
        if not self.operator.pending:
            return False
        self.send(self.guarded(self.operator.flush))
        return True

    def _follow(self, edge: Edge, item: Item) -> None:
        """What an item means for feedback: punctuation ends it, a page may make results cross a bound."""
        if edge.desired and not isinstance(item, Page):
            known = self.operator.promises[edge.port]
            edge.desired[:] = [p for p in edge.desired if not known.covers(as_definite(p))]
        if self.responder is None:
            return
        if not isinstance(item, Page):
            self.settle(item.pattern)
        elif self.operator.crossed:
            self.responder.cross()
            self.respond()

    def measure(self) -> None:
        """Writes what was counted of feedback into the counters of the steps."""
        if self._way is not None:
            self._way.count()
        if self.responder is not None:
            self.responder.measure()

    def settle(self, said: Pattern | None = None) -> None:
        """Lets go of feedback that punctuation has overtaken."""
        if self.responder is not None:
            self.responder.settle(said)
            if self.responder.out or self.responder.up:
                self.respond()

    def receive(self, port: int, item: Item) -> list[Item]:
        counters = self.operator.counters
        if isinstance(item, Page):
            counters.pages_in += 1
            counters.rows_in += len(item)
            if isinstance(item.tags, Marks):
                return self.carry(port, item, item.tags)
            if self.responder is not None:
                above = self.inputs[port].source
                item = self.responder.admit(port, item, None if above is None else above.responder)
            return self.guarded(self.operator.page, port, item)
        counters.told_in = item
        return self.guarded(self.operator.punctuation, port, item)

    def carry(self, port: int, page: Page, marks: Marks) -> list[Item]:
        """A page with tokens in it through a step that keeps nothing; cut if the step loses them."""
        if self.carries:
            items = self.guarded(self.operator.page, port, page)
            kept = [i.tags.tokens for i in items if isinstance(i, Page) and isinstance(i.tags, Marks)]
            if kept == [marks.tokens]:
                return items
            self.carries = False
        out: list[Item] = []
        for piece in pieces(page):
            out += self.guarded(self.operator.page, port, piece) if isinstance(piece, Page) else [piece]
        return out

    def guarded(self, call: Callable[..., Iterable[T]], *args: object) -> list[T]:
        """Calls the operator; an error that it raises names the step and the user's line."""
        try:
            return list(call(*args))
        except CaesuraError as error:
            raise error.at(self.node.step, self.node.place) from error.__cause__
        except Exception as error:
            raise failure(error).at(self.node.step, self.node.place) from error

    def send(self, items: Iterable[Item]) -> None:
        """Puts items on every edge out and into every tap."""
        counters = self.operator.counters
        if self.responder is not None:
            items = self.responder.release(items)
        for item in items:
            if isinstance(item, Page):
                marked = isinstance(item.tags, Marks)
                if len(item) == 0 and not marked:
                    continue
                counters.rows_out += len(item)
            else:
                marked = False
                counters.told_out = item
            for edge in self.outputs:
                edge.push(item)
            for tap in self.taps:
                for part in pieces(item) if marked and isinstance(item, Page) else (item,):
                    tap.append(part)


def _note(patterns: list[Pattern], pattern: Pattern, *, gone: bool) -> None:
    if not gone and pattern not in patterns:
        patterns.append(pattern)
    elif gone and pattern in patterns:
        patterns.remove(pattern)


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
        self._by_depth: list[Edge] = []
        self._bottom_up: list[Cell] = []
        self.aligns = False
        """Whether tokens flow, and steps wait for them."""

    def add(self, node: Node, operator: Operator, label: str) -> Cell:
        cell = Cell(node, operator, label)
        self.cells.append(cell)
        return cell

    def connect(self, source: Cell, target: Cell, port: int, *, back: bool = False) -> Edge:
        """An edge from a cell to another's port; ``back`` marks the one that closes a cycle."""
        edge = self.open(target, port, back=back)
        edge.source, edge.patient = source, source.node.feedback() is not None
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

    @property
    def bottom_up(self) -> list[Cell]:
        """The cells, nearest to the outputs first."""
        if len(self._bottom_up) != len(self.cells):
            self._bottom_up = sorted(self.cells, key=lambda c: -c.depth)
        return self._bottom_up

    @property
    def urgent(self) -> bool:
        """Whether a message waits anywhere that must be heard at once."""
        return any(edge.urgent for edge in self.edges)

    def ready(self) -> list[Edge]:
        """Edges whose next item can be taken now."""
        return [edge for edge in self.edges if edge.items and self._free(edge)]

    def deepest(self) -> Edge | None:
        """Of the edges whose next item can be taken now, the one nearest to the outputs."""
        if len(self._by_depth) != len(self.edges):
            self._by_depth = sorted(self.edges, key=lambda e: -1 if e.target is None else -e.target.depth)
        for edge in self._by_depth:
            if edge.items and self._free(edge):
                return edge
        return None

    def _free(self, edge: Edge) -> bool:
        """Whether nothing keeps an edge's next item back."""
        if edge.target is None or edge.target.blocked:
            return False
        if self.aligns and edge.waits:
            return False
        return not edge.behind or not any(other.items for other in edge.behind)
