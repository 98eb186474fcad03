"""What one look at a query shows that its status alone does not: rates, and what grows from look to look."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.status import SourceStatus, Status, StepStatus

FRESH = 0.25
"""Seconds for which all pages share one look."""
RATE_OVER = 2.0
"""Seconds over which a rate is taken."""


class Trend:
    """Whether a number only ever grows, over the last minute.

    >>> grows, sways = Trend(), Trend()
    >>> for second in range(0, 70, 10):
    ...     grows.add(second, 100 + second); sways.add(second, 100 + second % 20)
    >>> grows.rising, sways.rising
    (True, False)
    """

    OVER = 60.0
    LEAST_LOOKS = 4
    SHARE = 1.2

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, at: float, value: int) -> None:
        """The number at a moment; closer looks than a tenth of the time count as one."""
        if self._seen and at - self._seen[-1][0] < self.OVER / 10:
            return
        self._seen.append((at, value))
        while at - self._seen[0][0] > self.OVER:
            self._seen.popleft()

    @property
    def rising(self) -> bool:
        """Whether it has grown by a fifth and never shrunk, over enough looks to tell."""
        values = [value for _, value in self._seen]
        if len(values) < self.LEAST_LOOKS or values[-1] < max(1, values[0]) * self.SHARE:
            return False
        return all(a <= b for a, b in pairwise(values))


@dataclass(frozen=True)
class Look:
    """A query at a moment, with what was learnt from earlier looks."""

    figures: Figures
    rates: dict[str, float] = field(default_factory=dict)
    """Rows that each step gave and each source read, a second."""
    growing: frozenset[str] = frozenset()
    """Steps whose state only grows."""
    falling_behind: frozenset[str] = frozenset()
    """Steps whose promises fall further and further behind."""

    @property
    def status(self) -> Status:
        return self.figures.status

    def step(self, label: str) -> StepStatus | None:
        """How a step stands, where it is counted."""
        return self.status.steps.get(label)

    def source(self, label: str) -> SourceStatus | None:
        """How a source stands."""
        return self.status.sources.get(label)


class Looks:
    """Looks at a query when a page asks; pages that ask at once share a look."""

    def __init__(self, read: Callable[[], Figures], now: Callable[[], float] = time.monotonic) -> None:
        self._read, self._now = read, now
        self._lock = threading.Lock()
        self._last: Look | None = None
        self._at = float("-inf")
        self._counted: deque[tuple[float, dict[str, int]]] = deque()
        self._state: dict[str, Trend] = {}
        self._lag: dict[str, Trend] = {}

    def take(self) -> Look:
        """The query now."""
        with self._lock:
            if self._last is None or self._now() - self._at >= FRESH:
                self._last = self._made(self._read())
                self._at = self._now()
            return self._last

    def _made(self, figures: Figures) -> Look:
        status, now = figures.status, self._now()
        counts = {name: step.rows_out for name, step in status.steps.items()}
        counts |= {name: source.rows for name, source in status.sources.items()}
        self._counted.append((now, counts))
        while len(self._counted) > 2 and now - self._counted[1][0] >= RATE_OVER:
            self._counted.popleft()
        for name, step in status.steps.items():
            self._state.setdefault(name, Trend()).add(now, step.state_rows)
            self._lag.setdefault(name, Trend()).add(now, status.lag(name) or 0)
        return Look(
            figures,
            self._rates(now, counts),
            frozenset(name for name, trend in self._state.items() if trend.rising),
            frozenset(name for name, trend in self._lag.items() if trend.rising),
        )

    def _rates(self, now: float, counts: dict[str, int]) -> dict[str, float]:
        then, before = self._counted[0]
        seconds = now - then
        if seconds <= 0:
            return {}
        return {name: max(0, n - before.get(name, 0)) / seconds for name, n in counts.items()}
