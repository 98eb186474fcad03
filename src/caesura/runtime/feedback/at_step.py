"""Feedback at one running step: what its consumers send down to it, and what it sends further up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from caesura.events.chunks import SavedJson
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.agreement import ConsumerAgreement
from caesura.feedback.guard import covered
from caesura.feedback.messages import WITHDRAWN, can_wait
from caesura.feedback.responder import Reply, Responder
from caesura.feedback.worth import LONGEST_REST, OUTPUT_ROW, PLAIN_ROW, SELDOM, STATE_ROW, STEP_PAGE, Saving
from caesura.plan import FeedbackRule, Node
from caesura.plan.feedback import RE, as_definite
from caesura.plan.operator import OVERTAKEN
from caesura.punctuation import Intent, Pattern, Promises, Punctuation
from caesura.runtime.feedback.mailbox import Mailbox
from caesura.runtime.feedback.relay import Relay

if TYPE_CHECKING:
    from caesura.plan.explain import PunctuationKinds
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.graph.edge import Edge

CONTROL = "control"
"""The counter of messages that a step was given."""


class StepFeedback:
    """Takes the messages for one step, and is the outbox of its operator."""

    def __init__(self, cell: Cell, mailbox: Mailbox) -> None:
        self.cell, self.mailbox = cell, mailbox
        self.branches: list[str] = []
        """The names of the cell's taps, as consumers."""
        self.agreed: dict[str, ConsumerAgreement] = {}
        """By output, what its readers assume, where the step answers in its own way."""
        self.desired: list[Pattern] = []
        self.saved_priorities = SavedJson("priorities")
        self.relays: list[Relay] = []
        """The relays that pass here."""
        self._pause = SELDOM
        """For how many pages they rest next."""
        self._unchanged: frozenset[str] | None = None
        self._relay: Relay | None = None
        """The relay of what the operator itself sends."""

    @property
    def consumers(self) -> list[str]:
        return [*(f"edge {n}" for n in range(len(self.cell.outputs))), *self.branches]

    # Messages of the operator.

    def send(self, port: int, message: Punctuation) -> None:
        """Sends a message to the step behind an input."""
        self.mailbox.post(self.cell.inputs[port], message)

    def defer(self, page: Page) -> None:
        """Sends `feedback_for` a page before the next is taken; what no step acts on is counted only."""
        relay = self._own_relay()
        if relay.end is None:
            relay.passed += 1
        else:
            self.mailbox.defer(self.cell, page)

    def send_for(self, pages: Iterable[Page]) -> None:
        """Sends the operator's feedback for pages, except where punctuation has overtaken it."""
        operator = self.cell.operator
        cti = operator.promises[0].cti
        for page in pages:
            starts = page.le
            if starts.item(-1) < cti and starts.item(starts.argmax()) < cti:  # a third of what max() takes
                operator.counters.count_feedback(OVERTAKEN)
                continue
            relay = self._own_relay()
            relay.passed += 1
            if relay.end is not None:
                for message in operator.feedback_for(page):
                    self.mailbox.post(relay.end, message)

    def _own_relay(self) -> Relay:
        if self._relay is None or self._relay.broken:
            self._relay = Relay(self.cell.inputs[0], self.cell.operator.topics)
        return self._relay

    def only_relays(self, names: tuple[str, ...]) -> bool:
        """Whether a message on these attributes changes nothing here: not acted on, and the same above."""
        if self.cell.responder is not None or not names:
            return False
        if self._unchanged is None:
            self._unchanged = self._unchanged_attributes()
        return self._unchanged.issuperset(names)

    def _unchanged_attributes(self) -> frozenset[str]:
        """The attributes whose patterns this step only passes on, as they are; none where it does more."""
        node = self.cell.node
        rules = node.feedback() or ()
        alone = len(self.consumers) == 1 == len(self.cell.inputs) and len(rules) == 1
        if node.switches.exploit or not alone or rules[0].means != "rows" or rules[0].ports[0] is None:
            return frozenset()
        return rules[0].ports[0].same - {RE}

    # Messages of the consumers.

    def deliver(self, edge: Edge, consumer: str, messages: Iterable[Punctuation]) -> None:
        """Takes the messages that have waited at an edge; what punctuation has overtaken ends here."""
        for message in messages:
            if _overtaken(edge, message):
                self.cell.operator.counters.count_feedback(OVERTAKEN)
            elif can_wait(message) and self.only_relays(message.pattern.attributes):
                self._pass_on(edge, message)
            else:
                self.take(message, consumer)

    def _pass_on(self, edge: Edge, message: Punctuation) -> None:
        """Sends a message up, at once past all steps that do nothing else with it."""
        relay = Relay(edge, message.pattern.attributes)
        relay.passed = 1
        if relay.end is not None:
            self.mailbox.post(relay.end, message)
        relay.close()

    def take(self, message: Punctuation, consumer: str = "") -> None:
        """Takes a message from one consumer."""
        cell = self.cell
        rules = cell.node.feedback() if cell.responder is None else cell.responder.rules
        if rules is not None and message.intent in (Intent.DESIRED, Intent.DEMANDED):
            self._prioritise(message, rules)
        elif rules is not None and message.intent is Intent.ASSUMED:
            extra = cell.operator.counters.extra
            extra[CONTROL] = extra.get(CONTROL, 0) + 1
            self.respond(self.listen().take(consumer, message))
        else:
            for each in self._agreed(message, consumer):
                for port, further in cell.guarded(cell.operator.control, each):
                    self.send(port, further)

    def _prioritise(self, message: Punctuation, rules: Sequence[FeedbackRule]) -> None:
        """Notes what is wanted first, or now, and sends it to all inputs, widely where need be."""
        withdrawn = bool(message.noted(WITHDRAWN))
        if message.intent is Intent.DEMANDED:
            self.mailbox.demand(self.cell, message.pattern)
        else:
            _note(self.desired, message.pattern, withdrawn=withdrawn)
            self.cell.operator.prefer(list(self.desired))
        for port, pattern in enumerate(self._wide(message.pattern, rules)):
            if pattern is None and message.intent is Intent.DEMANDED:
                pattern = Pattern()
            if pattern is None:
                continue
            if message.intent is Intent.DESIRED:
                _note(self.cell.inputs[port].desired, pattern, withdrawn=withdrawn)
            self.send(port, replace(message, pattern=pattern))

    def _wide(self, pattern: Pattern, rules: Sequence[FeedbackRule]) -> list[Pattern | None]:
        """Per input a pattern that no row escapes which one that matches is made of; None for everything."""
        inputs = len(self.cell.inputs)
        if not self.cell.node.inputs and inputs:
            return [pattern]
        found: list[Pattern | None] = [None] * inputs
        for rule in rules:
            for port, translation in enumerate(rule.ports):
                if translation is not None and found[port] is None:
                    found[port] = translation.wide(pattern)
        return found

    def _agreed(self, message: Punctuation, consumer: str) -> list[Punctuation]:
        """What all readers of an output assume, for a step that answers in its own way; an order needs no
        agreement."""
        output = consumer.rpartition("#")[0]
        readers = [b for b in self.branches if b.rpartition("#")[0] == output]
        if message.intent is not Intent.ASSUMED or len(readers) < 2:
            return [message]
        agreed = self.agreed.setdefault(output, ConsumerAgreement(readers))
        return [replace(message, pattern=p) for p in agreed.add(consumer, message.pattern, False)]

    # The step's own answer.

    def listen(self) -> Responder:
        """The step's answer to feedback, made when it is first needed."""
        cell = self.cell
        if cell.responder is None:
            for edge in cell.inputs:
                edge.part()
            for relay in list(self.relays):
                relay.close()
            kinds, given = _kinds_at(cell.node), self._given()
            cell.responder = Responder(cell.node, cell.operator, self.consumers, kinds, given=given)
            below, own = saving_below(cell), step_saving(cell)
            cell.responder.guards.weigh(Saving(*map(sum, zip(own, below, strict=True))), below)
        self.wake()
        return cell.responder

    def _given(self) -> Promises:
        """The definite punctuation that has left the step, as far as it is known below."""
        cell, given = self.cell, Promises(tidy=True)
        if cell.outputs and cell.outputs[0].target is not None:
            given = cell.outputs[0].target.operator.promises[cell.outputs[0].port].copy()
        last = cell.operator.counters.punctuation_out
        if last is not None:
            given.add(last.pattern)
        return given

    def wake(self) -> None:
        """Lets the guards look again, and what punctuation has overtaken meanwhile go."""
        cell = self.cell
        if cell.awake is None and cell.responder is not None:
            self._catch_up()
            cell.awake = cell.responder
            cell.awake.wake()

    def _catch_up(self) -> None:
        """Where the guards rest: lets go of what punctuation has overtaken meanwhile."""
        if self.cell.awake is None and self.cell.responder is not None:
            self.cell.responder.heard(self._given())
            self.settle()

    def respond(self, reply: Reply) -> None:
        """Lets out what the answer to feedback is: items down, messages up."""
        self.cell.send(reply.items)
        for port, message in reply.messages:
            if port < len(self.cell.inputs):
                self.send(port, message)

    def follow(self, edge: Edge, item: Item) -> None:
        """What an item means for feedback: punctuation ends it, a page may make results cross a bound."""
        cell = self.cell
        if edge.desired and not isinstance(item, Page):
            known = cell.operator.promises[edge.port]
            edge.desired[:] = [p for p in edge.desired if not known.covers(as_definite(p))]
        if cell.responder is None:
            return
        if not isinstance(item, Page):
            self.settle(item.pattern)
        elif cell.operator.crossed:
            self.respond(cell.responder.cross())
        elif cell.watch is None and cell.responder.can_rest(edge.source.responder if edge.source else None):
            cell.awake, cell.rest = None, self._pause
            self._pause = min(2 * self._pause, LONGEST_REST)
        else:
            self._pause = SELDOM

    def settle(self, came: Pattern | None = None) -> None:
        """Lets go of feedback that punctuation has overtaken."""
        responder = self.cell.responder
        if responder is None:
            return
        followed = responder.guards.moving
        reply = responder.settle(came)
        if reply is not None:
            self.respond(reply)
        if followed and not responder.guards.moving:
            self.mailbox.settled()

    def measure(self) -> None:
        """Writes what was counted of feedback into the counters of the steps."""
        if self._relay is not None:
            self._relay.count()
        if self.cell.responder is not None:
            self._catch_up()
            self.cell.responder.measure()


def step_saving(cell: Cell) -> Saving:
    """What a row, and a page, costs one step."""
    plain = all(rule.means == "rows" for rule in cell.node.feedback() or ())
    return Saving(PLAIN_ROW if plain else STATE_ROW, STEP_PAGE)


def saving_below(cell: Cell, known: dict[Cell, Saving] | None = None) -> Saving:
    """What a row, and a page, that leaves a step costs all steps below it, and whoever takes the output."""
    known = {} if known is None else known
    if cell not in known:
        row, page = float(OUTPUT_ROW * len(cell.taps)), 0.0
        for edge in cell.outputs:
            if edge.target is not None and not edge.back:
                own, below = step_saving(edge.target), saving_below(edge.target, known)
                row, page = row + own.row + below.row, page + own.page + below.page
        known[cell] = Saving(row, page)
    return known[cell]


def _overtaken(edge: Edge, message: Punctuation) -> bool:
    """Whether punctuation has come by that covers what a message from below speaks of."""
    if not edge.patient or edge.target is None or not can_wait(message):
        return False
    return covered(edge.target.operator.promises[edge.port], message.pattern)


def _note(patterns: list[Pattern], pattern: Pattern, *, withdrawn: bool) -> None:
    if not withdrawn and pattern not in patterns:
        patterns.append(pattern)
    elif withdrawn and pattern in patterns:
        patterns.remove(pattern)


def _kinds_at(step: Node) -> tuple[PunctuationKinds, ...]:
    """The kinds of punctuation that come on each input of a step, then those that leave it."""
    from caesura.plan.explain import carried

    known: dict[str, PunctuationKinds] = {}

    def given(node: Node) -> PunctuationKinds:
        if node.fingerprint not in known:
            known[node.fingerprint] = carried(node, [given(child) for child in node.inputs])
        return known[node.fingerprint]

    return *(given(child) for child in step.inputs), given(step)
