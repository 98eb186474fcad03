"""A step's answer to feedback: the step says its rule, the guards and the messages are handled here.

What all consumers of a step assume is looked up in the step's rules: rows are stopped at its inputs or its
output, state is let go, and what can be said exactly over an input is sent on. Everything is counted.

Law: what leaves lies between what would leave without feedback and that without the rows it covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caesura.events.chunks import SavedJson
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.agreement import ConsumerAgreement
from caesura.feedback.given import GivenPunctuation
from caesura.feedback.guard import Guard, drop_overtaken, from_promise, overtaken, reach_of, to_promise
from caesura.feedback.messages import STANDING, WHY, WITHDRAWN, assumed
from caesura.feedback.sent_feedback import SentFeedback, changed
from caesura.feedback.step_guards import StepGuards
from caesura.feedback.suppression import Suppression
from caesura.plan import Node, Operator, Up
from caesura.plan.feedback import RE, FeedbackAction, Kinds, actions, could_go
from caesura.punctuation import INFINITY, NOTHING, TIME, Intent, Pattern, Promises, Punctuation

SENT = "sent up"
META = "feedback/meta"
"""The chunk of what a step holds of feedback besides rows."""
MAX_PATTERNS = 4096
"""So many patterns a step listens to; what comes beyond is not taken."""


@dataclass
class Reply:
    """What follows from feedback at once: items that leave the step, messages to the steps above."""

    items: list[Item] = field(default_factory=list)
    messages: list[Up] = field(default_factory=list)


class Responder:
    """Feedback at one running step."""

    def __init__(
        self,
        node: Node,
        operator: Operator,
        consumers: Iterable[str],
        kinds: tuple[Kinds, ...],
        *,
        given: Promises,
    ) -> None:
        self.node, self.operator, self.switches = node, operator, node.switches
        self.rules = node.feedback() or ()
        self.kinds = kinds
        """Per input, then of the output: the kinds of punctuation that come there."""
        self.agreement = ConsumerAgreement(consumers)
        self._given = GivenPunctuation(given)
        self.guards = StepGuards(node)
        self.suppression = Suppression(self.guards, self.rules)
        self.sent = SentFeedback(node, operator)
        self.pending: list[tuple[Pattern, bool]] = []
        """Results that cannot be given up yet, because what was sent of them must be corrected."""
        self.crossed = Promises()
        """Results that were given up because their values had crossed a bound."""
        self.saved = SavedJson(META)
        self._why = ""
        """The reason for what is being answered."""
        self._reach: tuple[int, set[str]] | None = None
        """The earliest end of what is held of patterns, and the columns that they name."""

    @property
    def given(self) -> Promises:
        """The definite punctuation that has left the step."""
        return self._given.promises

    # Messages of consumers.

    def take(self, consumer: str, message: Punctuation) -> Reply:
        """Takes a message from one consumer."""
        pattern, standing = message.pattern, bool(message.noted(STANDING))
        if message.noted(WITHDRAWN):
            return self._withdraw(consumer, pattern)
        refused = self._refused(pattern)
        if refused:
            self._count(refused)
            return Reply()
        self._reach = None
        reply = Reply()
        shared = self.agreement.add(consumer, pattern, standing, message.noted(WHY) or "")
        if not shared:
            alone = len(self.agreement.consumers) == 1
            self._count("known already" if alone else "waiting for other consumers")
        for each in shared:
            self._answer(each, standing, reply)
        return reply

    def _refused(self, pattern: Pattern) -> str:
        """Why a pattern is not taken; empty where it is."""
        if pattern.is_empty:
            return "empty"
        if overtaken(self.given, to_promise(pattern)):
            return "too late"
        if RE in pattern and not self.node.properties.fixed_ends:
            return "ends may change"
        return "too many" if self.agreement.full(MAX_PATTERNS) else ""

    def _answer(self, pattern: Pattern, standing: bool, reply: Reply) -> None:
        """Does what the first rule that fits allows."""
        self._why = self.agreement.why_of(pattern)
        for action in actions(self.rules, pattern):
            if action.gives_up:
                if self._give_up(action, standing, reply):
                    return
                continue
            self._stop(action, standing)
            for port, each in action.upstream:
                self._send(port, each, standing, reply)
            if action.rule is not None:
                return
        self._watch(pattern)
        if not self.node.inputs:
            self._send(0, pattern, standing, reply)

    def _stop(self, action: FeedbackAction, standing: bool) -> None:
        """Stops rows at the inputs, at the output, or both."""
        for port, each in action.upstream if action.at_inputs else ():
            guard = self.guards.inputs[port]
            mounted = self._mount(guard, port, each, standing, "input")
            guard.required |= mounted and action.joint
            if action.purges and self.switches.exploit:
                gone = self.operator.let_go(port, each)
                guard.until = max(guard.until, gone.until)
                self._count("purged rows", gone.rows)
        if action.at_output:
            mounted = self._mount(self.guards.output, -1, action.pattern, standing, "output")
            self.guards.output.required |= mounted and action.joint

    def _give_up(self, action: FeedbackAction, standing: bool, reply: Reply, *, again: bool = False) -> bool:
        """Gives results up whole, with the output guarded; False if that must wait."""
        pattern = action.pattern
        if not self.switches.exploit or not self._mount(self.guards.output, -1, pattern, standing, "output"):
            return False  # without the guard nothing may be left out above
        self.guards.output.required = True
        given_up = self.operator.give_up(pattern)
        if given_up is None:
            if (pattern, standing) not in self.pending:
                self.pending.append((pattern, standing))
                self._count("waiting to give up", 0 if again else 1)
            return False
        reply.items += given_up.items
        self.suppression.given_up.add(to_promise(pattern))
        for guard in self.guards.blind:
            guard.until = max(guard.until, given_up.until)
        self._count("purged rows", given_up.rows)
        for port, each in action.upstream:
            self._mount(self.guards.blind[port], port, each, standing, "input")
            self._send(port, each, standing, reply)
        return True

    def _watch(self, pattern: Pattern) -> None:
        """Looks out for results that match for good, where values only grow or only shrink."""
        for rule in self.rules:
            tail = rule.for_good(pattern) if rule.bounds and self.switches.exploit else None
            if tail is not None and tail not in self.operator.watched:
                self.operator.watched.append(tail)
                self._count("watched")

    def cross(self) -> Reply:
        """Gives up the results that have crossed a bound for good, with those of their groups before."""
        found, self.operator.crossed = map(to_promise, self.operator.crossed), []
        fresh = [promise.without_time() for promise in found if self.crossed.add(promise)]
        reply = Reply()
        if not fresh:
            return reply
        self._reach = None
        self._count("crossed", len(fresh))
        known = [(promise.without_time(), promise[TIME]) for promise in self.crossed.patterns()]
        for group in dict.fromkeys(fresh):
            times = NOTHING
            for some, starts in known:
                times = times.union(starts) if some.covers(group) else times
            self._answer(from_promise(group.replace(TIME, times)), False, reply)
        return reply

    def _retry(self, pattern: Pattern, standing: bool, reply: Reply) -> None:
        self._why = self.agreement.why_of(pattern)
        for action in actions(self.rules, pattern):
            if action.gives_up and self._give_up(action, standing, reply, again=True):
                return

    def _mount(self, guard: Guard, port: int, pattern: Pattern, standing: bool, place: str) -> bool:
        """Puts a guard up, unless it is switched off, empty, covered, or could never go."""
        if not self.switches.exploit or pattern.is_empty:
            return False
        promises = self.given if port < 0 else self.operator.promises[port]
        if promises.covers(to_promise(pattern)):
            self._count("covered already")
            return False
        if not standing and not could_go(pattern, self.kinds[port]):
            self._count("could never be removed")
            return False
        self._reach = None
        if guard.mount(pattern, self._why):
            self._count(f"guards at the {place}")
        return True

    def _send(self, port: int, pattern: Pattern, standing: bool, reply: Reply) -> None:
        """Sends a pattern on, unless it could save nothing: all of it was sent, or cannot come."""
        if not self.switches.propagate or pattern.is_empty:
            return
        if overtaken(self.sent.known(port, self.given), to_promise(pattern)):
            self._count("not worth sending")
            return
        once = not standing and len(self.agreement.consumers) == 1  # it was news when it was taken
        if not once and not self.sent.patterns[port].add(to_promise(pattern)):
            self._count("known already")
            return
        if standing:
            self.sent.standing[port].append(pattern)
        self._count(SENT)
        reply.messages.append((port, assumed(pattern, standing=standing, why=self._why)))

    # Withdrawal.

    def _withdraw(self, consumer: str, pattern: Pattern) -> Reply:
        """Assumes only what remains; results that have lost something stay suppressed until closed."""
        if pattern not in self.agreement.standing[consumer]:
            self._count("not standing")
            return Reply()
        remaining = self.agreement.withdraw(consumer, pattern)
        self.suppression.suppress(pattern, self.given)
        before = [list(some) for some in self.sent.standing]
        self._forget()
        again = Reply()
        for each in remaining:
            self._answer(each, True, again)
        for own in self.crossed.patterns():
            self._answer(from_promise(own), False, again)
        self._count("withdrawn")
        return Reply(again.items, changed(before, again.messages))

    def start_over(self) -> None:
        """Takes back all that was assumed: consumers are there that have not agreed."""
        for pattern in self.guards.output.patterns:
            self.suppression.suppress(pattern, self.given)
        self._forget()
        self.agreement = ConsumerAgreement(self.agreement.consumers)
        self.crossed = Promises()
        self._count("started over")

    def _forget(self) -> None:
        """Begins anew with what is assumed; rows that were stopped stay known."""
        self.guards.clear()
        self.suppression.given_up = Promises()
        self.operator.watched.clear()
        self.pending = []
        self.sent.clear()
        self._reach = None

    def watch(self) -> None:
        """A withdrawal comes: follows the rows that were stopped until none of them can end later."""
        self.guards.watch(self.operator.promises, self.given)

    def narrow(self) -> None:
        """Keeps back less of what was withdrawn, now that it is known how late the losses end."""
        self.suppression.narrow(self.given)
        self._reach = None

    # Items.

    def admit(self, port: int, page: Page, above: Responder | None = None) -> Page:
        """The rows of a page that reach the step."""
        return self.guards.admit(port, page, None if above is None else above.guards)

    def release(self, items: Iterable[Item]) -> list[Item]:
        """The items that leave."""
        released: list[Item] = []
        for item in items:
            if isinstance(item, Page):
                item = self.guards.release(item)
            elif item.intent is Intent.DEFINITE:
                self._given.add(item.pattern)
            released.append(item)
        return released

    def can_rest(self, above: Responder | None) -> bool:
        """Whether no guard pays as yet, and none is needed: then items may pass without being looked at."""
        if self.pending or self.operator.watched or self.guards.holds_rows:
            return False
        return self.guards.can_rest(None if above is None else above.guards)

    def heard(self, given: Promises) -> None:
        """Takes note of what was given while items passed without being looked at."""
        for pattern in given.patterns():
            self._given.add(pattern)
        self._reach = None

    def wake(self) -> None:
        """Has the guards look at the next page."""
        self.guards.wake()

    def _unaffected(self, came: Pattern) -> bool:
        """Whether a punctuation can change nothing here: it is about other columns, or earlier times."""
        if self.pending or self.guards.holds_rows or self.guards.moving:
            return False
        first, names = self._reached()
        others = [name for name, _ in came.items() if name != TIME]
        if others:
            return not names.issuperset(others)
        bound = came.time_bound
        return bound is not None and bound <= first and bound < INFINITY

    def _untouched(self) -> bool:
        """Whether all punctuation so far, which is about time alone, is about earlier times."""
        if self.pending or self.guards.holds_rows or self.guards.moving:
            return False
        known = [self.given, *self.operator.promises]
        if any(promises.size for promises in known):
            return False
        latest = max(promises.cti for promises in known)
        return latest < INFINITY and latest <= self._reached()[0]

    def _reached(self) -> tuple[int, set[str]]:
        """From when on anything that stands here can go, and the columns that it names."""
        if self._reach is None:
            held = [self.crossed, *self.sent.patterns, *self.agreement.firm.values()]
            patterns = [*self.agreement.upheld(), *(p for some in held for p in some.patterns())]
            self._reach = reach_of([*patterns, *self.guards.held()])
        return self._reach

    def settle(self, came: Pattern | None = None) -> Reply | None:
        """Lets guards go that punctuation covers, and tries again what had to wait."""
        if self._untouched() if came is None else self._unaffected(came):
            return None
        self._reach = None
        self.sent.settle(self.given)
        dropped = self.guards.settle(self.operator.promises, self.given)
        self.agreement.settle(self.given)
        if self.crossed.size:
            drop_overtaken(self.crossed, self.given)
        if self.suppression.given_up.size:
            drop_overtaken(self.suppression.given_up, self.given)
        self._count("guards removed", dropped)
        if not self.pending:
            return None
        reply = Reply()
        waiting, self.pending = self.pending, []
        for pattern, standing in waiting:
            self._retry(pattern, standing, reply)
        return reply

    def _count(self, what: str, by: int = 1) -> None:
        self.operator.counters.count_feedback(what, by)

    def measure(self) -> None:
        """Writes what the guards hold and have stopped into the step's counters."""
        self.operator.counters.feedback.update(self.guards.counts())

    @property
    def state(self) -> int:
        """Patterns and rows that the guards hold."""
        return self.guards.size

    # State.

    def meta(self) -> dict[str, Any]:
        return {
            "agreement": self.agreement.to_json(),
            "given": self.given.to_json(),
            "guards": self.guards.to_json(),
            "sent": [p.to_json() for p in self.sent.patterns],
            "standing": [[p.to_json() for p in some] for some in self.sent.standing],
            "pending": [[p.to_json(), standing] for p, standing in self.pending],
            "crossed": self.crossed.to_json(),
            "watched": [p.to_json() for p in self.operator.watched],
            "unbounded": [p.to_json() for p in self.suppression.unbounded],
            "lost": self.suppression.lost,
            "moving": self.suppression.moving,
            "given up": self.suppression.given_up.to_json(),
            "counted": self.operator.counters.feedback,
        }

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, bytes]) -> None:
        self._reach = None
        self.agreement.remember(meta["agreement"])
        self._given = GivenPunctuation(Promises.from_json(meta["given"], tidy=True))
        self.guards.restore(meta["guards"], chunks)
        self.sent.patterns = [Promises.from_json(p) for p in meta["sent"]]
        self.sent.standing = [[Pattern.from_json(p) for p in some] for some in meta["standing"]]
        self.pending = [(Pattern.from_json(p), standing) for p, standing in meta["pending"]]
        self.crossed = Promises.from_json(meta["crossed"])
        self.operator.watched = [Pattern.from_json(p) for p in meta["watched"]]
        self.suppression.lost, self.suppression.moving = meta["lost"], meta.get("moving", False)
        for guard in self.guards.blind:
            guard.until = max(guard.until, meta.get("purged", guard.until))  # older checkpoints
        self.suppression.given_up = Promises.from_json(meta.get("given up", Promises().to_json()))
        self.suppression.unbounded = [Pattern.from_json(p) for p in meta["unbounded"]]
        self.operator.counters.feedback = dict(meta["counted"])
