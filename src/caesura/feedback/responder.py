"""A step's answer to feedback: the step says its rule, the guards and the messages are handled here.

What all consumers of a step assume is looked up in the step's rules: rows are stopped at its inputs or its
output, state is let go, and what can be said exactly over an input is sent on. Everything is counted.

Law: what leaves lies between what would leave without feedback and that without the rows it covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import Chunks
from caesura.feedback.agreement import ConsumerAgreement as ConsumerAgreement
from caesura.feedback.agreement import still_ahead
from caesura.feedback.guard import (
    Guard,
    before,
    drop_overtaken,
    from_promise,
    overtaken,
    reach_of,
    to_promise,
)
from caesura.feedback.messages import STANDING, WHY, WITHDRAWN, assumed
from caesura.plan import FeedbackRule, Node, Operator, Up
from caesura.plan.feedback import RE, Kinds, as_definite, could_go
from caesura.punctuation import INFINITY, MIN_TIME, NOTHING, TIME, Intent, Pattern, Promises, Punctuation

SENT = "sent up"
MOST = 4096
"""So many patterns a step listens to; what comes beyond is not taken."""
UNFILED = 64
"""So much of what was given is kept as it came."""


class Responder:
    """Feedback at one running step."""

    def __init__(
        self,
        node: Node,
        operator: Operator,
        branches: Iterable[str],
        kinds: tuple[Kinds, ...],
        *,
        given: Promises,
    ) -> None:
        self.node, self.operator, self.switches = node, operator, node.switches
        self.rules = node.feedback() or ()
        self.kinds = kinds
        """Per input, then of the output: the kinds of punctuation that come there."""
        self.heard = ConsumerAgreement(branches)
        self._given = given
        self._unfiled: list[Pattern] = []
        """The last of what was given, until somebody asks for it."""
        sources = list(node.inputs)
        self.inputs = [Guard(c.schema, c.properties) for c in sources]
        self.blind = [Guard(c.schema, c.properties, blind=True) for c in sources]
        self.output = Guard(node.schema, node.properties)
        self.closing = Guard(node.schema, node.properties)
        """What stays suppressed after a withdrawal, until punctuation closes it."""
        self.unbounded: list[Pattern] = []
        """Of that, what was withdrawn before it was known how late the losses end."""
        bags = [guard.bag for guard in (*self.inputs, self.output, self.closing)]
        self._bags = [bag for bag in bags if bag is not None]
        ports = max(1, len(sources))  # a step that reads has one way up, out of the plan
        self.sent = [Promises() for _ in range(ports)]
        self.said: list[list[Pattern]] = [[] for _ in range(ports)]
        """Standing patterns sent on, so that they can be withdrawn."""
        self.pending: list[tuple[Pattern, bool]] = []
        """Results that cannot be given up yet, because what was sent of them must be corrected."""
        self.crossed = Promises()
        """Results that were given up because their values had crossed a bound."""
        self.purged = MIN_TIME
        """The latest end of results given up."""
        self.lost = MIN_TIME
        """The latest end of rows that steps above have lost, told before a withdrawal."""
        self.out: list[Item] = []
        self.up: list[Up] = []
        self.saved = b""
        self._why = ""
        """The reason for what is being answered."""
        self._reach: tuple[int, set[str]] | None = None
        """The earliest end of what is kept of patterns, and the columns that they name."""

    @property
    def given(self) -> Promises:
        """The definite punctuation that has left the step."""
        self._file()
        return self._given

    def _file(self) -> None:
        for pattern in self._unfiled:
            self._given.add(pattern)
        self._unfiled.clear()

    def _give(self, pattern: Pattern) -> None:
        """Notes what leaves; mostly one that follows soon says as much, and it need not be filed."""
        bound = pattern.time_bound if pattern.attributes == (TIME,) else None
        if bound is not None:
            self._given.advance(bound)
            ends = [(kept[TIME].last, kept) for kept in self._unfiled]
            self._unfiled = [kept for end, kept in ends if end is None or end >= bound]
            return
        for at in range(len(self._unfiled) - 1, max(-1, len(self._unfiled) - 3), -1):
            if pattern.covers(self._unfiled[at]):
                self._unfiled[at] = pattern
                return
        self._unfiled.append(pattern)
        if len(self._unfiled) > UNFILED:
            self._file()

    # What consumers say.

    def hear(self, branch: str, message: Punctuation) -> None:
        """Takes a message from one consumer; `out` and `up` hold what follows."""
        pattern, standing = message.pattern, bool(message.noted(STANDING))
        if message.noted(WITHDRAWN):
            self._withdraw(branch, pattern)
            return
        if pattern.is_empty:
            self._count("empty")
            return
        if overtaken(self.given, to_promise(pattern)):
            self._count("too late")
            return
        if RE in pattern and not self.node.properties.fixed_ends:
            self._count("ends may change")
            return
        if self.heard.full(MOST):
            self._count("too many")
            return
        self._reach = None
        shared = self.heard.add(branch, pattern, standing, message.noted(WHY) or "")
        if not shared:
            self._count("waiting for other consumers" if len(self.heard.branches) > 1 else "said before")
        for each in shared:
            self._answer(each, standing)

    def _answer(self, pattern: Pattern, standing: bool) -> None:
        """Does what the first rule that fits allows."""
        self._why = self.heard.why_of(pattern)
        for rule in self.rules:
            told = rule.up(pattern)
            if told is None:
                continue
            if rule.means == "groups":
                if self._groups(rule, pattern, told, standing):
                    return
                continue
            self._rows(rule, pattern, told, standing)
            return
        self._mount(self.output, -1, pattern, standing, "output")
        self._watch(pattern)
        if not self.node.inputs:
            self._send(0, pattern, standing)

    def _watch(self, pattern: Pattern) -> None:
        """Looks out for results that match for good, where values only grow or only shrink."""
        for rule in self.rules:
            tail = rule.for_good(pattern) if rule.bounds and self.switches.exploit else None
            if tail is not None and tail not in self.operator.watched:
                self.operator.watched.append(tail)
                self._count("watched")

    def cross(self) -> None:
        """Gives up the results that have crossed a bound for good, with those of their groups before."""
        found, self.operator.crossed = map(to_promise, self.operator.crossed), []
        fresh = [promise.without_time() for promise in found if self.crossed.add(promise)]
        if not fresh:
            return
        self._reach = None
        self._count("crossed", len(fresh))
        known = [(promise.without_time(), promise[TIME]) for promise in self.crossed.patterns()]
        for group in dict.fromkeys(fresh):
            times = NOTHING
            for some, starts in known:
                times = times.union(starts) if some.covers(group) else times
            self._answer(from_promise(group.replace(TIME, times)), False)

    def _retry(self, pattern: Pattern, standing: bool) -> None:
        self._why = self.heard.why_of(pattern)
        for rule in self.rules:
            told = rule.up(pattern) if rule.means == "groups" else None
            if told is not None and self._groups(rule, pattern, told, standing, again=True):
                return

    def _rows(
        self, rule: FeedbackRule, pattern: Pattern, told: tuple[Pattern | None, ...], standing: bool
    ) -> None:
        if rule.means == "rows" and rule.guard == "output":
            self._mount(self.output, -1, pattern, standing, "output")
        else:
            for port, each in enumerate(told):
                if each is not None:
                    self._side(rule, port, each, standing)
            if rule.means == "sides" and not rule.purges:
                self._mount(self.output, -1, pattern, standing, "output")
        for port, each in enumerate(told):
            if each is not None:
                self._send(port, each, standing)

    def _side(self, rule: FeedbackRule, port: int, pattern: Pattern, standing: bool) -> None:
        self._mount(self.inputs[port], port, pattern, standing, "input")
        if self.switches.exploit and rule.purges:
            self._count("purged rows", self.operator.let_go(port, pattern))

    def _groups(
        self,
        rule: FeedbackRule,
        pattern: Pattern,
        told: tuple[Pattern | None, ...],
        standing: bool,
        *,
        again: bool = False,
    ) -> bool:
        """Gives results up whole, with the output guarded; False if that must wait."""
        if not self.switches.exploit or not self._mount(self.output, -1, pattern, standing, "output"):
            return False  # without the guard nothing may be left out above
        gone = self.operator.give_up(pattern)
        if gone is None:
            if (pattern, standing) not in self.pending:
                self.pending.append((pattern, standing))
                self._count("waiting to give up", 0 if again else 1)
            return False
        self.out += gone.items
        self.purged = max(self.purged, gone.until)
        self._count("purged rows", gone.rows)
        for port, each in enumerate(told):
            if each is not None:
                self._mount(self.blind[port], port, each, standing, "input")
                self._send(port, each, standing)
        return True

    def _mount(self, guard: Guard, port: int, pattern: Pattern, standing: bool, place: str) -> bool:
        """Puts a guard up, unless it is switched off, empty, covered, or could never go."""
        if not self.switches.exploit or pattern.is_empty:
            return False
        promises = self.given if port < 0 else self.operator.promises[port]
        if promises.covers(to_promise(pattern)):
            self._count("covered already")
            return False
        if not standing and not could_go(pattern, self.kinds[port]):
            self._count("could never go")
            return False
        self._reach = None
        if guard.mount(pattern, self._why):
            self._count(f"guards at the {place}")
        return True

    def _send(self, port: int, pattern: Pattern, standing: bool) -> None:
        """Sends a pattern on, unless it could save nothing: all of it was said, or cannot come."""
        if not self.switches.propagate or pattern.is_empty:
            return
        promises = self.operator.promises[port] if self.node.inputs else self.given
        if overtaken(promises, to_promise(pattern)):
            self._count("not worth sending")
            return
        once = not standing and len(self.heard.branches) == 1  # it was news when it was heard
        if not once and not self.sent[port].add(to_promise(pattern)):
            self._count("said before")
            return
        if standing:
            self.said[port].append(pattern)
        self._count(SENT)
        self.up.append((port, assumed(pattern, standing=standing, why=self._why)))

    # Withdrawal.

    def _withdraw(self, branch: str, pattern: Pattern) -> None:
        """Assumes only what is left; results that have lost something stay suppressed until closed."""
        if pattern not in self.heard.standing[branch]:
            self._count("not standing")
            return
        left = self.heard.withdraw(branch, pattern)
        groups = [r for r in self.rules if r.means == "groups"]
        if any(rule.up(pattern) is not None for rule in groups):
            self._suppress(pattern, groups[0])
        said = [list(some) for some in self.said]
        for guard in (*self.inputs, *self.blind, self.output):
            guard.replace([])
        self.operator.watched.clear()
        self.pending, self.said = [], [[] for _ in self.said]
        self.sent = [Promises() for _ in self.sent]
        self._reach = None
        silenced, self.up = self.up, []
        for each in left:
            self._answer(each, True)
        for own in self.crossed.patterns():
            self._answer(from_promise(own), False)
        again = self.up
        self.up = silenced
        for port, some in enumerate(said):
            kept = [m.pattern for p, m in again if p == port]
            for old in some:
                if old not in kept:
                    self.up.append((port, assumed(old, standing=True, withdrawn=True)))
            self.up += [(p, m) for p, m in again if p == port and m.pattern not in some]
        self._count("withdrawn")

    def start_over(self) -> None:
        """Takes back all that was assumed: consumers are there that have not said so."""
        groups = [r for r in self.rules if r.means == "groups"]
        for pattern in self.output.patterns if groups else ():
            if any(rule.up(pattern) is not None for rule in groups):
                self._suppress(pattern, groups[0])
        for guard in (*self.inputs, *self.blind, self.output):
            guard.replace([])
        self.heard = ConsumerAgreement(self.heard.branches)
        self.operator.watched.clear()
        self.pending, self.crossed, self.up = [], Promises(), []
        self.said, self.sent = [[] for _ in self.said], [Promises() for _ in self.sent]
        self._reach = None
        self._count("started over")

    def _suppress(self, pattern: Pattern, rule: FeedbackRule) -> None:
        until = self.lost_in
        for port in rule.ports:
            if port is not None:
                until = max(until, port.lifetimes.affected(until)) if until > MIN_TIME else until
        until = max(until, self.purged)
        if until == MIN_TIME:
            return  # nothing was lost
        if until == INFINITY:
            self.unbounded.append(pattern)
        pattern = before(pattern, until)
        if not pattern.is_empty and not self.given.covers(as_definite(pattern)):
            self.closing.mount(pattern)
            self._reach = None

    def narrow(self) -> None:
        """Keeps back less of what was withdrawn, now that it is known how late the losses end."""
        waiting, self.unbounded = self.unbounded, []
        kept = self.closing.patterns
        for pattern in waiting:
            others = [p for p in kept if not pattern.covers(p)]
            if len(others) < len(kept):
                self.closing.replace(others)
                self._suppress(pattern, next(r for r in self.rules if r.means == "groups"))
                kept = self.closing.patterns
        self._reach = None

    @property
    def lost_in(self) -> int:
        """The latest end of input rows that were stopped here, or lost above."""
        return max([self.lost, *(g.until for g in (*self.inputs, *self.blind))])

    @property
    def lost_out(self) -> int:
        """The latest end of output that is missing on account of feedback."""
        until = self.lost_in
        if until > MIN_TIME:
            ways = [p.lifetimes for rule in self.rules for p in rule.ports if p is not None]
            until = max([way.lost(until) for way in ways] or [until])
        return max(until, self.output.until, self.closing.until, self.purged)

    # Items.

    def admit(self, port: int, page: Page, above: Responder | None = None) -> Page:
        """The rows of a page that reach the step; what the step above keeps back is not looked for again."""
        if port >= len(self.inputs):
            return page
        if self.blind[port].active:
            page = self.blind[port].stop(page)
        guard = self.inputs[port]
        if above is not None and above.output.active and guard.implied_by(above.output):
            return page
        return guard.stop(page)

    def release(self, items: Iterable[Item]) -> list[Item]:
        """The items that leave."""
        kept: list[Item] = []
        for item in items:
            if isinstance(item, Page):
                item = self.closing.stop(self.output.stop(item))
            elif item.intent is Intent.DEFINITE:
                self._give(item.pattern)
            kept.append(item)
        return kept

    def _idle(self, said: Pattern) -> bool:
        """Whether a punctuation can change nothing here: it is about other columns, or earlier times."""
        if self.pending or any(bag.rows.live for bag in self._bags):
            return False
        if self._reach is None:
            kept = [self.crossed, *self.sent, *self.heard.firm.values()]
            kept += [guard.held for guard in self.guards.values()]
            self._reach = reach_of([*self.heard.upheld(), *(p for some in kept for p in some.patterns())])
        first, names = self._reach
        others = [name for name, _ in said.items() if name != TIME]
        if others:
            return not names.issuperset(others)
        bound = said.time_bound
        return bound is not None and bound <= first and bound < INFINITY

    def settle(self, said: Pattern | None = None) -> None:
        """Lets guards go that punctuation covers, and tries again what had to wait."""
        if said is not None and self._idle(said):
            return
        self._reach = None
        gone = 0
        for port, promises in enumerate(self.operator.promises[: len(self.inputs)]):
            gone += self.inputs[port].settle(promises) + self.blind[port].settle(promises)
        for port, sent in enumerate(self.sent):
            promises = self.operator.promises[port] if self.inputs else self.given
            drop_overtaken(sent, promises)
            self.said[port] = still_ahead(self.said[port], promises) if self.said[port] else []
        gone += self.output.settle(self.given) + self.closing.settle(self.given)
        self.heard.settle(self.given)
        if self.crossed.size:
            drop_overtaken(self.crossed, self.given)
        if gone:
            self._count("guards gone", gone)
        if self.pending:
            waiting, self.pending = self.pending, []
            for pattern, standing in waiting:
                self._retry(pattern, standing)

    def _count(self, what: str, by: int = 1) -> None:
        if by:
            told = self.operator.counters.feedback
            told[what] = told.get(what, 0) + by

    def measure(self) -> None:
        """Writes what the guards hold and have stopped into the step's counters."""
        told = self.operator.counters.feedback
        stopped = {
            "stopped at the input": sum(g.hits for g in (*self.inputs, *self.blind)),
            "stopped at the output": self.output.hits + self.closing.hits,
        }
        told.update({place: n for place, n in stopped.items() if n})
        told["guard state"] = self.state
        told["suppressed"] = len(self.closing.patterns)

    @property
    def state(self) -> int:
        """Patterns and rows that the guards hold."""
        return sum(guard.size for guard in self.guards.values())

    @property
    def guards(self) -> dict[str, Guard]:
        named = {f"input {i}": g for i, g in enumerate(self.inputs)}
        named |= {f"blind {i}": g for i, g in enumerate(self.blind)}
        return {**named, "output": self.output, "closing": self.closing}

    def stopped(self) -> Iterator[tuple[Node, pa.Table]]:
        """The rows stopped for a reason that is known since the last call, with the step they are of."""
        for port, child in enumerate(self.node.inputs):
            for guard in (self.blind[port], self.inputs[port]):
                if (rows := guard.taken(child.time)) is not None:
                    yield child, rows
        if (rows := self.output.taken(self.node.time)) is not None:
            yield self.node, rows

    # State.

    def meta(self) -> dict[str, Any]:
        return {
            "heard": self.heard.to_json(),
            "given": self.given.to_json(),
            "guards": {name: g.to_json() for name, g in self.guards.items()},
            "sent": [p.to_json() for p in self.sent],
            "said": [[p.to_json() for p in some] for some in self.said],
            "pending": [[p.to_json(), standing] for p, standing in self.pending],
            "crossed": self.crossed.to_json(),
            "watched": [p.to_json() for p in self.operator.watched],
            "purged": self.purged,
            "unbounded": [p.to_json() for p in self.unbounded],
            "lost": self.lost,
            "counted": self.operator.counters.feedback,
        }

    def rows(self) -> Chunks:
        """The rows that the guards keep."""
        return {f"{name}/{n}": data for name, g in self.guards.items() for n, data in g.snapshot().items()}

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, bytes]) -> None:
        self.heard.remember(meta["heard"])
        self._given = Promises.from_json(meta["given"], tidy=True)
        self._unfiled.clear()
        for name, guard in self.guards.items():
            mine = {n[len(name) + 1 :]: d for n, d in chunks.items() if n.startswith(name + "/")}
            guard.restore(meta["guards"][name], mine)
        self.sent = [Promises.from_json(p) for p in meta["sent"]]
        self.said = [[Pattern.from_json(p) for p in some] for some in meta["said"]]
        self.pending = [(Pattern.from_json(p), standing) for p, standing in meta["pending"]]
        self.crossed = Promises.from_json(meta["crossed"])
        self.operator.watched = [Pattern.from_json(p) for p in meta["watched"]]
        self.purged, self.lost = meta["purged"], meta["lost"]
        self.unbounded = [Pattern.from_json(p) for p in meta["unbounded"]]
        self.operator.counters.feedback = dict(meta["counted"])
