"""After a withdrawal: results that have lost rows to feedback stay suppressed until punctuation closes them.

Law: a result that any lost row could have changed is kept back; one that starts later comes.
"""

from __future__ import annotations

from collections.abc import Sequence

from caesura.feedback.guard import before, to_promise
from caesura.feedback.step_guards import StepGuards
from caesura.plan import FeedbackRule
from caesura.plan.feedback import as_definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, Promises


class Suppression:
    """How late the rows end that a step has lost, and what it keeps back because of that."""

    def __init__(self, guards: StepGuards, rules: Sequence[FeedbackRule]) -> None:
        self._guards, self._rules = guards, rules
        self.lost = MIN_TIME
        """The latest end of rows that steps above have lost, noted before a withdrawal."""
        self.moving = False
        """Whether those may yet end later."""
        self.given_up = Promises()
        """Results that were given up, of which nothing is shown any more."""
        self.unbounded: list[Pattern] = []
        """What was withdrawn before it was known how late the losses end."""

    @property
    def _gone(self) -> int:
        """The latest end of input rows that were stopped here, lost above, or given up with their group."""
        return max(self.lost, self._guards.lost_until)

    @property
    def lost_out(self) -> int:
        """The latest end of output that is missing on account of feedback."""
        until = self._gone
        if until > MIN_TIME:
            lifetimes = [p.lifetimes for rule in self._rules for p in rule.ports if p is not None]
            until = max([each.lost(until) for each in lifetimes] or [until])
        return max(until, self._guards.output.until, self._guards.closing.until)

    def suppress(self, pattern: Pattern, given: Promises) -> None:
        """Keeps back what lost something of results that were given up whole and match."""
        self._suppress(pattern, given, unshown=self.given_up.covers(to_promise(pattern)))

    def _suppress(self, pattern: Pattern, given: Promises, *, unshown: bool) -> None:
        groups = [rule for rule in self._rules if rule.means == "groups"]
        if not any(rule.up(pattern) is not None for rule in groups):
            return
        until = self._affected(groups[0])
        if until == MIN_TIME:
            return  # nothing was lost
        if until == INFINITY:
            self.unbounded.append(pattern)
        pattern = before(pattern, until)
        if not pattern.is_empty and not given.covers(as_definite(pattern)):
            self._guards.closing.mount(pattern)
            if unshown:
                self._guards.unshown.mount(pattern)

    def _affected(self, rule: FeedbackRule) -> int:
        """The time before which a result starts that a lost row could have changed."""
        until = INFINITY if self.moving or self._guards.moving else self._gone
        for port in rule.ports:
            if port is not None and until > MIN_TIME:
                until = max(until, port.lifetimes.affected(until))
        return until

    def narrow(self, given: Promises) -> None:
        """Keeps back less of what was withdrawn, now that it is known how late the losses end."""
        waiting, self.unbounded = self.unbounded, []
        closing = self._guards.closing
        held = closing.patterns
        for pattern in waiting:
            others = [p for p in held if not pattern.covers(p)]
            if len(others) < len(held):
                unshown = self._guards.unshown
                known = unshown.held.covers(to_promise(pattern))
                closing.replace(others)
                unshown.replace([p for p in unshown.patterns if not pattern.covers(p)])
                self._suppress(pattern, given, unshown=known)
                held = closing.patterns
