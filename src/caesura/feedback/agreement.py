"""What the consumers of a step have said: a step leaves out only what all of them assume.

>>> agreement = ConsumerAgreement(["x", "y"])
>>> agreement.add("x", Pattern(id=4), True), agreement.add("y", Pattern(id=4), True)
([], [Pattern(id = 4)])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from caesura.feedback.guard import drop_overtaken, drop_reasons, from_promise, overtaken, to_promise
from caesura.plan.feedback import LE
from caesura.punctuation import TIME, Alignment, Pattern, Promises, Values


def still_ahead(standing: list[Pattern], given: Promises) -> list[Pattern]:
    """The patterns that punctuation does not cover; what is over need not be withdrawn any more."""
    lasts = [(pattern, pattern[LE].last) for pattern in standing]
    ahead = [pattern for pattern, last in lasts if last is None or last >= given.cti]
    if not given.size:
        return ahead
    return [pattern for pattern in ahead if not overtaken(given, to_promise(pattern))]


def _stretches(times: Values) -> int:
    return max(1, len(times.cuts) // 2)


class ConsumerAgreement:
    """What each consumer of a step assumes, and what all of them together do."""

    def __init__(self, consumers: Iterable[str]) -> None:
        self.consumers = list(consumers)
        self.firm: dict[str, Promises] = {b: Promises() for b in self.consumers}
        self.standing: dict[str, list[Pattern]] = {b: [] for b in self.consumers}
        self.why: dict[str, Promises] = {}
        """What is ignored for a reason that is noted on the rows, by reason."""
        self._all = Alignment(self.consumers)
        self._at_most = 0
        """So many firm patterns there are, or fewer: what came since they were counted is added."""
        self._stale = False
        """Whether `_all` lacks patterns of a single consumer, which are looked up in `firm`."""

    def full(self, limit: int) -> bool:
        """Whether there are so many patterns, each stretch of time of a pattern counted by itself."""
        standing = sum(map(len, self.standing.values()))
        if self._at_most + standing >= limit:
            self._at_most = self._counted()
        return self._at_most + standing >= limit

    def _counted(self) -> int:
        return sum(_stretches(p[TIME]) for held in self.firm.values() for p in held.others())

    def why_of(self, pattern: Pattern) -> str:
        """The reason why rows are ignored, of whoever gave one for all of them."""
        promise = to_promise(pattern) if self.why else pattern
        return next((why for why, held in self.why.items() if held.covers(promise)), "")

    def add(self, consumer: str, pattern: Pattern, standing: bool, why: str = "") -> list[Pattern]:
        """Takes what a consumer assumes; gives what all assume from now on."""
        self._at_most += 0 if standing else _stretches(pattern[LE])
        if why:
            self.why.setdefault(why, Promises()).add(to_promise(pattern))
        if not standing and len(self.consumers) == 1 and not self.standing[consumer]:
            self._stale = True
            return [pattern] if self.firm[consumer].add(to_promise(pattern)) else []
        if self._stale:
            self.rebuilt()
        if standing:
            self.standing[consumer].append(pattern)
        else:
            self.firm[consumer].add(to_promise(pattern))
        return [from_promise(p) for p in self._all.add(consumer, to_promise(pattern))]

    def withdraw(self, consumer: str, pattern: Pattern) -> list[Pattern]:
        """Takes a standing pattern back; gives all that is assumed then."""
        if pattern in self.standing[consumer]:
            self.standing[consumer].remove(pattern)
        return self.rebuilt()

    def rebuilt(self) -> list[Pattern]:
        """What all consumers together assume, from what each does."""
        self._all, self._stale = Alignment(self.consumers), False
        shared: list[Pattern] = []
        for consumer in self.consumers:
            for pattern in (*self.firm[consumer].patterns(), *self.upheld(consumer)):
                shared += self._all.add(consumer, pattern)
        return [from_promise(p) for p in shared]

    def upheld(self, *consumers: str) -> list[Pattern]:
        """The standing patterns of all consumers or some, with `time` for LE."""
        return [to_promise(p) for consumer in consumers or self.consumers for p in self.standing[consumer]]

    def settle(self, given: Promises) -> None:
        """Forgets what punctuation covers."""
        for consumer, firm in self.firm.items():
            drop_overtaken(firm, given)
            if self.standing[consumer]:
                self.standing[consumer] = still_ahead(self.standing[consumer], given)
        drop_reasons(self.why, given)
        if self._all.held.size:
            cti = self._all.held.cti
            drop_overtaken(self._all.held, given)
            self._all.held.cti = cti

    def to_json(self) -> dict[str, Any]:
        return {
            "firm": {b: p.to_json() for b, p in self.firm.items()},
            "standing": {b: [p.to_json() for p in some] for b, some in self.standing.items()},
            "why": {why: held.to_json() for why, held in self.why.items()},
        }

    def remember(self, data: Mapping[str, Any]) -> None:
        self.why = {why: Promises.from_json(held) for why, held in data.get("why", {}).items()}
        for consumer in self.consumers:
            if consumer in data["firm"]:
                self.firm[consumer] = Promises.from_json(data["firm"][consumer])
                self.standing[consumer] = [Pattern.from_json(p) for p in data["standing"][consumer]]
        self._at_most = self._counted()
        self.rebuilt()
