"""A step's place on a loop: which ports the loop enters by, and how a guess passes through.

A guess is a speculative punctuation `time < t` that circulates. A step lowers it to what the step's
other inputs have promised and to what its own `carry` rule leaves of it, and passes it on once it has
come by every port that the loop enters by. A guess that lodges is not lowered: it waits until the
other inputs have promised as much.

Law (S1): if what came in is true, what goes out is true; and it is never behind a definite
punctuation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Promises, Punctuation

Carry = Callable[[int, Pattern], Pattern | None]


@dataclass
class Ring:
    """One step on one loop."""

    loop: str
    step: str
    """The step's label: how the loop's operator calls what comes from here."""
    inside: tuple[int, ...]
    """The ports that the loop enters by."""
    outside: tuple[int, ...]
    """The other ports: what they promise is external progress."""
    carry: Carry
    came: dict[str, dict[int, int]] = field(default_factory=dict)
    """The guesses that have not come by every port yet, each by port."""
    lodged: Punctuation | None = None
    bounds: dict[int, dict[str, int]] = field(default_factory=dict)
    """Guesses of outer loops that came by outside ports: what an inner guess may count on."""

    def guess(self, port: int, item: Punctuation, promises: Sequence[Promises]) -> list[Punctuation]:
        """Takes a guess of this loop; gives it on when it has come by every port."""
        came = self.came.setdefault(_name(item), {})
        came[port] = bound(item)
        if len(came) < len(self.inside):
            return []
        lowest = min(came.values())
        del self.came[_name(item)]
        passing = Punctuation(Pattern.before(lowest), item.intent, item.note)
        if item.noted("lodge") and self.external(item, promises) < lowest:
            self.lodged = passing
            return []
        return [self._lowered(passing, promises)]

    def release(self, promises: Sequence[Promises]) -> list[Punctuation]:
        """A lodged guess, if by now it holds outside."""
        if self.lodged is None or self.external(self.lodged, promises) < bound(self.lodged):
            return []
        passing, self.lodged = self.lodged, None
        return [self._lowered(passing, promises)]

    def _lowered(self, item: Punctuation, promises: Sequence[Promises]) -> Punctuation:
        least = min(bound(item), self.external(item, promises))
        carried = [self.carry(port, Pattern.before(least)) for port in self.inside]
        bounds = [MIN_TIME if c is None or c.time_bound is None else c.time_bound for c in carried]
        return Punctuation(Pattern.before(min([least, *bounds])), item.intent, item.note)

    def external(self, item: Punctuation, promises: Sequence[Promises]) -> int:
        """How far the inputs from outside the loop have come; a nested guess counts on the outer one."""
        outer = item.noted("for")
        least = INFINITY
        for port in self.outside:
            known = promises[port].cti
            if outer is not None:
                known = max(known, self.bounds.get(port, {}).get(outer, MIN_TIME))
            least = min(least, known)
        return least

    def progress(self, port: int, promises: Sequence[Promises]) -> Punctuation:
        """How far an input from outside has come, for the loop's operator."""
        note = (("loop", self.loop), ("at", f"{self.step}:{port}"))
        return Punctuation(Pattern.before(promises[port].cti), Intent.PROGRESS, note)

    def outer(self, port: int, item: Punctuation) -> Punctuation:
        """Takes an outer loop's guess at an outside port; tells this loop's operator of it."""
        loop = item.noted("loop")
        self.bounds.setdefault(port, {})[loop] = bound(item)
        note = (("loop", self.loop), ("at", f"{self.step}:{port}"), ("outer", loop), *_kept(item))
        return Punctuation(item.pattern, Intent.PROGRESS, note)

    def to_json(self) -> dict[str, Any]:
        """What must survive a restart."""
        return {
            "came": {name: {str(p): t for p, t in came.items()} for name, came in self.came.items()},
            "lodged": None if self.lodged is None else self.lodged.to_json(),
            "bounds": {str(port): bounds for port, bounds in self.bounds.items()},
        }

    def remember(self, data: Mapping[str, Any]) -> None:
        """Takes back what `to_json` gave."""
        self.came = {name: {int(p): t for p, t in came.items()} for name, came in data["came"].items()}
        self.lodged = None if data["lodged"] is None else Punctuation.from_json(data["lodged"])
        self.bounds = {int(port): bounds for port, bounds in data["bounds"].items()}


def bound(item: Punctuation) -> int:
    """The t of a punctuation `time < t`."""
    t = item.pattern.time_bound
    return MIN_TIME if t is None else t


def _name(item: Punctuation) -> str:
    """Which guess this is; a wave's marker is another than the guess that may travel with it."""
    return f"{item.noted('guess')}/{item.noted('wave')}"


def _kept(item: Punctuation) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in item.note if name in ("guess", "lodge"))
