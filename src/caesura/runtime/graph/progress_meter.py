"""How closely punctuation follows a stream, and how long it is silent: lag and liveliness (section 5.2.1).

Real progress at a moment is the least start of all events to come; explicit progress is what punctuation
says. The lag is their distance, averaged over system time; liveliness is the longest time between two
outputs. What real progress was is known later: stretches of system time wait with the least start that came
since, and are counted when punctuation has passed it, so that little is remembered.

>>> from caesura.events import parse
>>> times = iter(range(100))
>>> seen = ProgressMeter(clock=lambda: float(next(times)))
>>> for item in parse(" LE RE | id |\\n 4 5 | 1 | +\\n-- 3 --\\n 6 7 | 1 | +\\n-- 9 --"):
...     seen.append(item)
>>> print(seen)
lag 3 over 1 of 3 s; at most 1 s between outputs
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from caesura.events import Item, Page
from caesura.punctuation import INFINITY, MIN_TIME, Intent


@dataclass
class Stretch:
    """A stretch of system time: how long, what punctuation said then, and the least start since."""

    seconds: float
    explicit: int
    real: int = INFINITY


@dataclass
class ProgressMeter:
    """Takes the items that leave an output, one by one, as they leave."""

    clock: Callable[[], float] = field(default_factory=lambda: time.perf_counter)
    silence: float = 0.0
    """Liveliness: the longest time between two outputs, in seconds."""
    events: int = 0
    punctuations: int = 0
    explicit: int = MIN_TIME
    _began: float | None = None
    _last: float | None = None
    _stretches: list[Stretch] = field(default_factory=list)
    _counted: float = 0.0
    _total: float = 0.0

    def append(self, item: Item) -> None:
        """Takes an item that leaves.

        Parameters
        ----------
        item
            A page or a punctuation.

        Examples
        --------
        >>> import caesura as cz
        >>> meter = cz.ProgressMeter()
        >>> for item in cz.from_rows([{"ts": 1, "id": 7}], time="ts").run().items:
        ...     meter.append(item)
        >>> meter.silence >= 0
        True
        """
        now = self.clock()
        if self._last is None:
            self._began = now
        else:
            self.silence = max(self.silence, now - self._last)
            self._stretches.append(Stretch(now - self._last, self.explicit))
        self._last = now
        if isinstance(item, Page):
            if len(item):
                self.events += len(item)
                self._came(int(item.sync.min()))
        elif item.intent is Intent.DEFINITE:
            self.punctuations += 1
            bound = item.pattern.time_bound
            if bound is not None and not item.pattern.without_time().attributes and bound < INFINITY:
                self.explicit = max(self.explicit, bound)
                self._settle()

    def _came(self, least: int) -> None:
        """An event came: before it, real progress was no further."""
        for stretch in reversed(self._stretches):
            if stretch.real <= least:
                break
            stretch.real = least

    def _settle(self) -> None:
        """Counts the stretches of which punctuation says that nothing earlier can come."""
        waiting = []
        for stretch in self._stretches:
            if stretch.real > self.explicit:
                waiting.append(stretch)
            elif stretch.explicit > MIN_TIME:
                self._counted += stretch.seconds
                self._total += stretch.seconds * (stretch.real - stretch.explicit)
        self._stretches = waiting

    @property
    def seconds(self) -> float:
        """Of how much system time the lag is known."""
        return self._counted + sum(stretch.seconds for stretch in self._known)

    @property
    def _known(self) -> list[Stretch]:
        return [s for s in self._stretches if s.real < INFINITY and s.explicit > MIN_TIME]

    @property
    def lag(self) -> float | None:
        """The mean distance of explicit from real progress, in ticks; None until some of it is known."""
        total = self._total + sum(s.seconds * (s.real - s.explicit) for s in self._known)
        return total / self.seconds if self.seconds > 0.0 else None

    def __str__(self) -> str:
        whole = 0.0 if self._began is None or self._last is None else self._last - self._began
        lag = "" if self.lag is None else f"lag {self.lag:.3g} over {self.seconds:.3g} of {whole:.3g} s"
        return f"{lag or 'no lag known'}; at most {self.silence:.3g} s between outputs"
