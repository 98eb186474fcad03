"""How many events between two tokens: as few as the query can bear.

The cumulative latency of a claim is the time a token takes through the plan plus the distance to the next
one. Between two tokens n events are worked off in ``n * event + token`` seconds. With events coming at
a rate r the least n is the best that builds no backlog, among those where tokens cost at most a share:

    n >= token / (share * event)          tokens cost at most the share
    n >= token / (slack / r - event)      the work is done before the next section is complete

Both costs are estimated while it runs, by least squares over sections of two lengths, the old ones
forgotten; so a section is now and then an eighth as long.

>>> pace = Pace(every=100)
>>> for k in range(80):
...     pace.section(pace.every, busy=pace.every * 1e-6 + 1e-4, rate=None)
>>> 3000 < pace.base < 3500
True
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEAST, MOST = 16, 1 << 17
"""The most is two batches of a source: a token between batches cuts no page, so it costs next to nothing."""
WARM = 2
"""So many sections are not counted: code is compiled and memory is got in them."""
OUTLIER = 4.0
"""A section that took so many times what it should have counts for no more."""
IDLE = 0.8
"""Where work takes less than this share of the time between two tokens, the source sets the rate."""


@dataclass
class Pace:
    """Tunes the period from what sections took."""

    every: int = 1024
    share: float = 0.03
    slack: float = 0.85
    """How much of the time between two tokens the work of a section may take."""
    forget: float = 0.95
    _sums: list[float] = field(default_factory=lambda: [0.0] * 5)
    """Of (1, n, n^2, s, n s), weighted."""
    _turn: int = 0
    base: int = 1024
    _open: dict[int, tuple[int, float]] = field(default_factory=dict)
    _last: tuple[int, float] | None = None
    _work: float = 0.0

    def __post_init__(self) -> None:
        self.base = self.every

    def put(self, number: int, events: int, now: float) -> None:
        """A token enters at a time of the clock, behind so many events in all."""
        self._open.setdefault(number, (events, now))

    def out(self, number: int, now: float, work: float) -> None:
        """The token of a round has left every output; ``work`` is what the process has worked so far."""
        events, entered = self._open.pop(number, (0, now))
        if self._last is not None and events > self._last[0]:
            fresh, gap = events - self._last[0], entered - self._last[1]
            busy = work - self._work
            waits = gap > 0 and busy < IDLE * gap
            rate = fresh / gap if waits else None
            backlog = (now - entered - busy) / gap if waits else 0.0
            self.section(fresh, busy=busy, rate=rate, backlog=backlog)
        self._last, self._work = (events, entered), work

    def section(self, events: int, *, busy: float, rate: float | None, backlog: float = 0.0) -> None:
        """A section of so many events took so many seconds of work; events come at a rate (None: at will).

        ``backlog`` is how many sections wait in front of this query; any at all makes it back off.
        """
        self._turn += 1
        if self._turn <= WARM:
            return
        n, s = float(events), float(busy)
        known = self.costs()
        if known is not None and backlog <= 1.0:
            s = min(s, OUTLIER * (known[0] * n + known[1]))
        for place, value in enumerate((1.0, n, n * n, s, n * s)):
            self._sums[place] = self._sums[place] * self.forget + value
        if backlog > 1.0:
            self.base = min(MOST, self.base * 2)
        else:
            self.base = self._best(rate)
        self.every = max(LEAST, self.base // 8) if self._turn % 8 == 0 else self.base

    def _best(self, rate: float | None) -> int:
        known = self.costs()
        if known is None:
            return self.base
        event, per_token = known
        if event <= 0.0:
            return min(MOST, self.base * 2)
        wanted = per_token / (self.share * event)
        if rate is not None:
            spare = self.slack / rate - event
            wanted = max(wanted, per_token / spare) if spare > 0 else MOST
        near = min(max(wanted, self.base / 2), self.base * 2)
        return int(min(MOST, max(LEAST, near)))

    def costs(self) -> tuple[float, float] | None:
        """Seconds per event and per token, as estimated; None until sections of two lengths have come."""
        w, n, nn, s, ns = self._sums
        spread = w * nn - n * n
        if spread <= 1e-3 * w * nn:
            return None
        event = (w * ns - n * s) / spread
        return max(event, 0.0), max((s - event * n) / w, 0.0)
