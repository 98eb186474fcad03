"""When to guess, how far, and what a guess that came back proves: the strategies of section 3.5 and 5.3.

All times are CTIs: `t` speaks of everything strictly before t. A guess that comes back as s, while no
event before e has come since it left, proves min(s, e).

- high_water guesses one tick past the latest event, and the guess lodges on its way;
- probing guesses that all is done, and the steps on the loop lower the guess; any activity makes it
  guess again;
- hybrid guesses as probing does, but only when the inputs from outside have come further, or when
  events came while it guessed;
- staged guesses as hybrid does, and input waits outside until the loop is empty.

>>> state = Guessing("hybrid", ["links"])
>>> state.external("links", 5); state.wants()
9223372036854775807
>>> state.launch(state.wants())
>>> state.saw(3, 3)
>>> state.returned(5), state.wants() is not None
(3, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from caesura.fixpoint.node import Progress
from caesura.punctuation import INFINITY, MIN_TIME


@dataclass
class _State:
    """What must survive a restart."""

    entries: dict[str, int] = field(default_factory=dict)
    """How far each input from outside has come."""
    circulating: int | None = None
    """The time of the guess on its way; None when there is none."""
    guessed: int = MIN_TIME
    """The time of the last guess that left."""
    number: int = 0
    given: int = MIN_TIME
    """The last definite time."""
    earliest: int = INFINITY
    """The earliest event since the guess left."""
    high: int = MIN_TIME
    """The latest event of all."""
    furthest: int = MIN_TIME
    """The last time before all time that any input has promised."""
    launched_at: int = MIN_TIME
    """How far the inputs had come, all together, when the last guess left."""
    unconfirmed: bool = False
    """Whether events came before the time that the last guess came back with."""
    lowered: bool = False
    """Whether the last guess came back with less than it left with."""
    active: bool = False
    """Whether anything came since the last guess left."""


class Guessing:
    """One loop's guesses: at most one is on its way."""

    def __init__(self, progress: Progress, entries: Iterable[str]) -> None:
        self.progress = progress
        self.state = _State(dict.fromkeys(entries, MIN_TIME))

    @property
    def lodges(self) -> bool:
        return self.progress == "high_water"

    @property
    def outside(self) -> int:
        """How far all inputs from outside have come."""
        return min(self.state.entries.values(), default=MIN_TIME)

    @property
    def behind(self) -> str:
        """The input from outside that is furthest behind."""
        entries = self.state.entries
        return min(entries, key=lambda name: entries[name]) if entries else ""

    def external(self, entry: str, t: int) -> None:
        """An input from outside has come to t."""
        state = self.state
        state.entries[entry] = max(state.entries.get(entry, MIN_TIME), t)
        state.active = True
        if t < INFINITY:
            state.furthest = max(state.furthest, t)

    def saw(self, earliest: int, latest: int) -> None:
        """Events of the loop came."""
        state = self.state
        state.earliest = min(state.earliest, earliest)
        state.high = max(state.high, latest)
        state.active = True

    def wants(self) -> int | None:
        """The time to guess now; None when there is nothing to learn."""
        state = self.state
        if state.circulating is not None or state.given == INFINITY:
            return None
        if self.progress == "high_water":
            return self._high_water()
        news = self.outside > state.launched_at or state.unconfirmed
        if self.progress == "probing":
            news = news or state.active
        return INFINITY if news else None

    def _high_water(self) -> int | None:
        """One tick past the latest event, the same guess again where events came before it."""
        state = self.state
        if self.outside == INFINITY:
            return INFINITY
        if state.unconfirmed:
            return state.guessed
        if state.lowered and self.outside <= state.launched_at:
            return None
        return state.high + 1 if state.high > MIN_TIME and state.high >= state.given else None

    def launch(self, t: int) -> None:
        """A guess leaves."""
        state = self.state
        state.circulating, state.guessed, state.earliest = t, t, INFINITY
        state.launched_at, state.unconfirmed, state.active = self.outside, False, False

    def returned(self, t: int) -> int | None:
        """A guess came back; the new definite time, if it proves one."""
        state = self.state
        state.circulating = None
        state.unconfirmed, state.lowered = state.earliest < t, t < state.guessed
        proved = min(t, state.earliest)
        if self.progress == "high_water" and state.unconfirmed:
            return None
        if proved <= state.given:
            return None
        state.given = proved
        return proved

    def to_json(self) -> dict[str, Any]:
        return asdict(self.state)

    def remember(self, data: Mapping[str, Any]) -> None:
        self.state = _State(**data)
