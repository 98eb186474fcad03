"""What tokens of a running query take: the latency of a token, the distance to the next, and their sum.

The cumulative latency is the longest that an event waits, from entering to the first claim that covers it
(section 6.2): it enters just behind a token, waits for the next one to be put in, and for that to leave.

>>> times = iter([0.0, 1.0, 4.0, 5.0])
>>> watch = TokenWatch(lambda: next(times))
>>> watch.put(1); watch.out(1, rows=100); watch.put(2); watch.out(2, rows=500)
>>> print(watch.figures(400))
a token every 400 events: 1 s through the plan, 4 s apart, 5 s from an event to its claim
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

RECENT = 64
"""Over how many of the last tokens figures are taken."""


@dataclass(frozen=True)
class TokenFigures:
    """Tokens of a query as they are now, in seconds; None until there were enough."""

    period: int | None
    """How many events lie between two tokens of a source; None where the clock or times t decide."""
    token_latency: float | None
    """From where a token is put in until it has left every output: the mean of the last ones."""
    max_token_latency: float | None
    distance: float | None
    """Between two tokens that leave: the mean of the last ones."""
    rate: float | None
    """Events per second between them."""

    @property
    def cumulative_latency(self) -> float | None:
        """How long an event waits at most for the claim that covers it."""
        if self.token_latency is None or self.distance is None:
            return None
        return self.token_latency + self.distance

    def __str__(self) -> str:
        every = "tokens" if self.period is None else f"a token every {self.period} events"
        if self.token_latency is None or self.distance is None:
            return f"{every}: none has left yet"
        return (
            f"{every}: {self.token_latency:.3g} s through the plan, {self.distance:.3g} s apart, "
            f"{self.token_latency + self.distance:.3g} s from an event to its claim"
        )


class TokenWatch:
    """Notes on the clock when tokens are put in and when they have left."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or (lambda: time.perf_counter())
        self._inside: dict[int, float] = {}
        self._taken: deque[float] = deque(maxlen=RECENT)
        self._outs: deque[tuple[float, int]] = deque(maxlen=RECENT)

    def put(self, number: int) -> None:
        """A source puts in a token; that of the first source counts."""
        if number not in self._inside:
            self._inside[number] = self._clock()

    def out(self, number: int, rows: int) -> None:
        """A token has left every output, with so many events entered so far."""
        now = self._clock()
        if number in self._inside:
            self._taken.append(now - self._inside.pop(number))
        self._outs.append((now, rows))

    def figures(self, period: int | None) -> TokenFigures:
        """The figures of the last tokens."""
        taken, outs = self._taken, self._outs
        span = outs[-1][0] - outs[0][0] if len(outs) > 1 else 0.0
        return TokenFigures(
            period,
            sum(taken) / len(taken) if taken else None,
            max(taken, default=None),
            span / (len(outs) - 1) if len(outs) > 1 else None,
            (outs[-1][1] - outs[0][1]) / span if span > 0.0 else None,
        )
