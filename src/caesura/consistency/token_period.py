"""How many events between two tokens: as few as the query can bear.

The cumulative latency of a claim is the time a token takes through the plan plus the distance to the next
one. A stretch of n events with k tokens is worked off in ``n * event + k * token`` seconds. With events
coming at a rate r the least period p is the best that builds no backlog, among those where tokens cost at
most a share:

    p >= token / (share * event)          tokens cost at most the share
    p >= token / (slack / r - event)      the work is done before the next section is complete

What a token costs is measured in rows (``token / event``), so that a machine that is slow for a while does
not matter: now and then a stretch has many tokens, enough for their cost to stand out, and is held against
the stretches before and behind it. The search starts from rare tokens and comes down. Noise makes
tokens rarer, not dearer: the period is lowered to what the measurements allow with some certainty, and
raised to what half of them ask for.

A token between two batches of a source cuts no page; it passes alone, and is timed alone. One inside a batch
costs what it is to work on two pages instead of one. Where two in a batch are too dear, the period is whole
batches.

>>> pace = TokenPeriod()
>>> for k in range(80):
...     pace.section(pace.every, busy=pace.every * 1e-6 + 1e-4, rate=None)
>>> 3333 < pace.base < 3800
True
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import sqrt
from statistics import median

MIN_PERIOD, MAX_PERIOD = 16, 1 << 17
WARM = 2
"""So many stretches are not counted: code is compiled and memory is got in them."""
MIN_SAMPLES, MAX_SAMPLES = 5, 21
"""How many measurements a decision needs, and how many are remembered."""
CLOSER = 8
"""How many times as many tokens a probe has at first, and when the period has settled."""
PLAIN, DEAR = 1.2, 1.8
"""A probe has so many tokens that it takes more than the first, and less than the second times as long."""
CALM = 6
"""When settled there is a probe in so many powers of two of stretches."""
PATIENCE = 0.05
"""A token comes after so many seconds of the clock, however few events there were."""


def remembered() -> deque[float]:
    return deque(maxlen=MAX_SAMPLES)


def surely(some: deque[float]) -> float:
    """What the median of a measurement is at most, in five of six cases or so."""
    place = (len(some) - 1) / 2 + sqrt(len(some)) / 2
    return sorted(some)[min(len(some) - 1, round(place))]


@dataclass
class Seen:
    """What one stretch took: tokens and seconds of work per event."""

    tokens: float
    work: float


@dataclass
class TokenPeriod:
    """Tunes the period from what stretches between two quiet moments took."""

    every: int = MAX_PERIOD
    """The period now; that of a probe differs from `base`."""
    share: float = 0.03
    slack: float = 0.85
    """How much of the time between two tokens the work of a section may take."""
    grain: int = 0
    """How many rows come in one batch of a source; 0 where tokens never stand inside of one."""
    base: int = field(init=False)
    _probe_at: int = field(init=False)
    """The period of probes."""
    _turn: int = 0
    _due: int = 1
    """How many stretches until the next probe."""
    _calm: int = 0
    """How many decisions have changed nothing."""
    _before: Seen | None = None
    _probe: Seen | None = None
    _probing: bool = False
    _held: float = 0.0
    """The least period that builds no backlog."""
    _tokens: deque[float] = field(default_factory=remembered)
    """What a token costs, in rows, as measured by probes."""
    _ratios: deque[float] = field(default_factory=remembered)
    """How many times as long probes took."""
    _alone: deque[float] = field(default_factory=remembered)
    """What a token between batches costs, in seconds."""
    _events: deque[float] = field(default_factory=remembered)

    def __post_init__(self) -> None:
        self.base, self._probe_at = self.every, self.every // CLOSER

    @property
    def patience(self) -> float:
        """Seconds after which a token may come whatever was read: it costs at most the share of them."""
        known = self.costs()
        return PATIENCE if known is None else max(PATIENCE, known[1] / self.share)

    @property
    def whole(self) -> bool:
        """Whether tokens stand between batches only."""
        return 0 < self.grain <= self.every

    def alone(self, busy: float) -> None:
        """A token between batches took so many seconds of work."""
        self._alone.append(busy)

    def section(
        self, events: int, *, busy: float, rate: float | None, tokens: int = 1, backlog: float = 0.0
    ) -> None:
        """A stretch with so many events and tokens took so many seconds of work.

        Events come at a rate (None: at will). ``backlog`` is how many times as much waits in front of this
        query; more than a period makes it back off.
        """
        self._turn += 1
        if self._turn > WARM and events > 0 and busy > 0.0:
            self._note(Seen(tokens / events, busy / events))
        if backlog * events > self.base:
            self._move(self.base * 2)
        elif rate is not None:
            self._keep_up(rate)
        self._probing = self._probe is None and self._turn > WARM and self._due <= 0
        self.every = self._probe_at if self._probing else self.base

    def _note(self, seen: Seen) -> None:
        """Base stretches surround a probe; the three give one measurement."""
        if self._probing:
            self._probe = seen
            return
        self._due -= 1
        if self._alone and self.base > self.grain > 0:
            self._events.append(max(seen.work - median(self._alone) * seen.tokens, seen.work / 2))
        before, probe, self._before, self._probe = self._before, self._probe, seen, None
        self._come_down()
        if probe is None or before is None:
            return
        self._due = (1 << min(self._calm, CALM)) - 1
        self._measure(Seen((before.tokens + seen.tokens) / 2, (before.work + seen.work) / 2), probe)

    def _measure(self, around: Seen, probe: Seen) -> None:
        """Solves ``work = event * (1 + rows * tokens)`` for the rows that a token is worth."""
        ratio = probe.work / around.work
        if self.grain and self._alone:
            event = max(around.work - median(self._alone) * around.tokens, 0.5 * around.work)
            rows = (probe.work / event - 1.0) / probe.tokens
        else:
            span = probe.tokens - ratio * around.tokens
            if span <= 0.0 or probe.tokens < 1.5 * around.tokens:
                return  # one as good as the other
            rows = (ratio - 1.0) / span
            event = around.work / (1.0 + max(rows, 0.0) * around.tokens)
        self._events.append(event)
        self._tokens.append(rows)
        self._ratios.append(ratio)
        if len(self._tokens) >= MIN_SAMPLES:
            self._decide()
            self._aim_probes()
        elif len(self._tokens) == MIN_SAMPLES // 2 + 1 and max(self._ratios) < PLAIN:
            self._aim_probes()

    @property
    def _aim(self) -> float:
        """The share that is left to tokens; probes take theirs."""
        return self.share / (1.0 + (CLOSER - 1) / (1 << CALM))

    @property
    def _whole(self) -> float:
        """The least period of whole batches; the one that there is, where too little is known."""
        if min(len(self._alone), len(self._events)) < MIN_SAMPLES:
            return self.base
        return max(self.grain, surely(self._alone) / median(self._events) / self._aim)

    def _come_down(self) -> None:
        """Takes fewer batches where tokens between them are known to be cheap."""
        if self.base > self.grain > 0 and self.base > 1.1 * (least := max(self._whole, self._held)):
            self._move(least)

    def _decide(self) -> None:
        """Takes the least period that tokens inside of batches allow, or else whole batches."""
        seen = (PLAIN - 1.0) * self._probe_at  # a probe tells of no cost below this
        least, safe = median(self._tokens) / self._aim, max(surely(self._tokens), seen) / self._aim
        if self.grain:
            whole = self._whole
            least, safe = (p if p <= self.grain / 2 else whole for p in (least, safe))
        least, safe = max(least, self._held), max(safe, self._held)
        if self.base < least:
            self._move(least)
        elif self.base > safe:
            self._move(safe)
        else:
            self._calm += 1

    def _move(self, to: float) -> None:
        """Takes another period."""
        fresh = int(min(max(MAX_PERIOD, 2 * self.grain), max(MIN_PERIOD, to)))
        if 0 < self.grain < fresh:
            fresh = -(-fresh // self.grain) * self.grain
        if max(fresh, self.base) <= 1.1 * min(fresh, self.base):
            self._calm += 1
        else:
            self._calm, self._before, self._probe, self._due = 0, None, None, 1
        self.base = fresh

    def _aim_probes(self) -> None:
        """Gives probes as many tokens as it takes to see their cost; few when the period has settled."""
        ratio = median(list(self._ratios)[-MIN_SAMPLES:])
        at = self._probe_at
        if self._calm >= CALM:
            at = self.base // CLOSER
        elif ratio < PLAIN:
            at //= 2 if ratio > 1.05 else 4
        elif ratio > DEAR:
            at *= 2
        at = max(1, min(at, self.base // CLOSER))
        if at < self._probe_at / 1.5 and self._calm < CALM:  # fewer tokens told less
            self._calm = 0
            self._tokens.clear()
            self._ratios.clear()
        self._probe_at = at

    def _keep_up(self, rate: float) -> None:
        """Leaves time for the work of a section before the next one is complete."""
        known = self.costs()
        if known is None:
            return
        event, token = known
        spare = self.slack / rate - event
        self._held = token / spare if spare > 0 else MAX_PERIOD
        if self.base < self._held:
            self._move(min(self._held, 2 * self.base))

    def costs(self) -> tuple[float, float] | None:
        """Seconds per event and per token, as estimated; None until they were measured."""
        if not self._tokens or not self._events:
            return None
        event = median(self._events)
        return event, max(0.0, median(self._tokens)) * event
