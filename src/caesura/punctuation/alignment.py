"""Several origins feed one place; a promise holds there once every live origin has given it.

For time that is the minimum over the origins. Promises on other attributes are intersected, and wait as
counted state until the last origin has given them.

>>> aligned = Alignment(["a", "b"])
>>> aligned.add("a", Pattern.before(20)), aligned.add("b", Pattern.before(10))
((), (Pattern(time < 10),))
>>> aligned.leave("b")
(Pattern(time < 20),)

Once all origins have promised everything, the furthest time that any of them has named comes first: what
never ends is given up to it, and it must not depend on who closed last.

>>> aligned = Alignment(["a", "b"])
>>> closing = [("a", Pattern.before(20)), ("a", Pattern()), ("b", Pattern.before(10)), ("b", Pattern())]
>>> [aligned.add(*said) for said in closing]
[(), (), (Pattern(time < 10),), (Pattern(time < 20), Pattern(*))]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from caesura.errors import PatternError, closest
from caesura.punctuation import kinds
from caesura.punctuation.pattern import Pattern
from caesura.punctuation.promises import Promises
from caesura.punctuation.time import INFINITY, MIN_TIME, TIME


class Alignment:
    """Promises per live origin, and those that all of them share."""

    def __init__(self, origins: Iterable[Hashable] = ()) -> None:
        self.held = Promises(tidy=True)
        self._given: dict[Hashable, Promises] = {origin: Promises() for origin in origins}
        self._furthest = MIN_TIME
        """The last time before all time that any origin has promised."""

    def __repr__(self) -> str:
        return f"Alignment(origins={list(self._given)}, held={self.held})"

    @property
    def origins(self) -> tuple[Hashable, ...]:
        """The live origins, in the order in which they joined."""
        return tuple(self._given)

    @property
    def pending(self) -> int:
        """How many promises of single origins do not hold yet."""
        ahead = sum(given.cti > self.held.cti for given in self._given.values())
        return ahead + sum(given.size for given in self._given.values())

    def given(self, origin: Hashable) -> Promises:
        """What one live origin has promised, besides what holds anyway."""
        if origin not in self._given:
            raise PatternError(
                f"no origin '{origin}' is live.", remedy=closest(str(origin), map(str, self._given))
            )
        return self._given[origin]

    def add(self, origin: Hashable, pattern: Pattern) -> tuple[Pattern, ...]:
        """Take an origin's promise; gives the promises that hold for all from now on.

        A pattern comes whole even where part of it held before: `time < 20`, not `10 <= time < 20`.
        """
        before = self.held.cti
        fresh = self._add(origin, pattern)
        cti = self.given(origin).cti
        if cti < INFINITY:
            self._furthest = max(self._furthest, cti)
        return self._closing(before, fresh)

    def _add(self, origin: Hashable, pattern: Pattern) -> tuple[Pattern, ...]:
        given = self.given(origin)
        timely = pattern.attributes in ((), (TIME,)) and pattern.time_bound is not None
        if not timely and self.held.covers(pattern):
            return ()
        if not given.add(self.held.rest_of(pattern)):
            return ()
        if timely and self._time_only():
            return self._hold_time()
        pieces = [pattern]
        for other, promised in self._given.items():
            if other != origin:
                pieces = _shared(pieces, promised.patterns())
        return self._hold(pieces)

    def join(self, origin: Hashable) -> None:
        """From now on a promise must come from this origin too; what holds already stays."""
        self._given.setdefault(origin, Promises())

    def leave(self, origin: Hashable) -> tuple[Pattern, ...]:
        """An origin is gone for good; gives the promises that held back for it alone.

        When no origin is left, nothing new holds: another may still join.
        """
        self._given.pop(origin, None)
        if not self._given:
            return ()
        before = self.held.cti
        if self._time_only():
            return self._closing(before, self._hold_time())
        first, *others = self._given.values()
        pieces = list(first.patterns())
        for given in others:
            pieces = _shared(pieces, given.patterns())
        return self._closing(before, self._hold(pieces))

    def to_json(self) -> dict[str, Any]:
        """The alignment as JSON-able data; origins are strings, numbers or tuples of them."""
        given = [[kinds.to_json(origin), promises.to_json()] for origin, promises in self._given.items()]
        return {"held": self.held.to_json(), "given": given, "furthest": self._furthest}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Alignment:
        """The alignment that `to_json` wrote."""
        alignment = Alignment()
        alignment.held = Promises.from_json(data["held"], tidy=True)
        for origin, promises in data["given"]:
            alignment._given[kinds.from_json(origin)] = Promises.from_json(promises)
        alignment._furthest = data["furthest"]
        return alignment

    def _time_only(self) -> bool:
        return not any(given.size for given in self._given.values())

    def _hold_time(self) -> tuple[Pattern, ...]:
        t = min(given.cti for given in self._given.values())
        return (Pattern.before(t),) if self.held.advance(t) else ()

    def _closing(self, before: int, fresh: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
        """What holds now; where that is everything, the furthest time that was named comes first."""
        if self.held.cti < INFINITY or before == INFINITY or self._furthest <= before:
            return fresh
        return (Pattern.before(self._furthest), *fresh)

    def _hold(self, pieces: list[Pattern]) -> tuple[Pattern, ...]:
        fresh = tuple(piece for piece in Promises(pieces).patterns() if self.held.add(piece))
        if fresh:
            for given in self._given.values():
                given.drop_covered(self.held)
        return fresh


def _shared(pieces: list[Pattern], patterns: tuple[Pattern, ...]) -> list[Pattern]:
    both = (piece.intersect(pattern) for piece in pieces for pattern in patterns)
    return list(Promises(piece for piece in both if piece is not None).patterns())
