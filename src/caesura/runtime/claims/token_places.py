"""Where sources put tokens: by a count of events or the clock, by what tokens cost, or at times t."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from caesura.consistency import Synchronised, Tokens
from caesura.consistency.token_period import MAX_PERIOD, TokenPeriod
from caesura.errors import StreamError
from caesura.plan import here, ticks
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.claims.tuner import Tuner
from caesura.runtime.graph.emitter import Emitter

if TYPE_CHECKING:
    from caesura.runtime.claims.tokens import TokenClaims

FIRST = 4096
"""The period that tuning to a latency begins with."""
SLICE = 4096
"""How many rows a source gives at most before its CTI is looked at, where claims are at times."""


class TokenPlaces:
    """When a source puts in a token; here never."""

    in_batches = False
    """Whether a token may stand inside a batch."""

    @property
    def every(self) -> int | None:
        """The period in events; that of a tuner is of a group of sources together."""
        return None

    @property
    def present(self) -> int | None:
        """The period that is shown: a tuner's, without what it tries out."""
        return self.every

    def __init__(self, sources: TokenClaims) -> None:
        self.sources = sources
        self.times: list[int] = []
        """The times t that the sources have agreed on."""

    def room(self, emitter: Emitter) -> int | None:
        """How many events a source may give before its next token is due; None for any number."""
        return None

    def cuts(self, first: int, rows: int) -> list[int]:
        """Where tokens stand inside a batch of so many rows, the first of them here."""
        return []

    def counted_with(self, emitter: Emitter) -> Iterable[Emitter]:
        """The sources that a source's events are counted for."""
        return (emitter,)

    def turn(self, emitter: Emitter) -> None:
        """A source is read."""

    def due(self, emitter: Emitter) -> bool:
        """Whether a source puts in a token now, behind what it has given."""
        return False

    def promised(self) -> None:
        """A punctuation has entered."""

    def quiet(self) -> bool:
        """Nothing is queued; whether tokens were put in because of that."""
        return False

    def out(self, number: int) -> None:
        """A token has left every output."""

    def finish(self) -> None:
        """All sources are at their end: the last tokens."""
        self.sources.round()


def token_places(mode: Tokens | Synchronised, sources: TokenClaims) -> TokenPlaces:
    """The places that a mode asks for."""
    if isinstance(mode, Synchronised):
        return AtTimes(sources, mode)
    if not mode.tuned:
        return AtCounts(sources, mode.every, mode.period)
    return AtCost(sources, mode) if mode.latency is None else AtLatency(sources, mode.latency, mode.first)


class AtCounts(TokenPlaces):
    """A token behind so many events of a source, or so many microseconds after the last."""

    in_batches = True

    def __init__(self, sources: TokenClaims, every: int | None, period: int | None) -> None:
        super().__init__(sources)
        self._every, self._period = every, period
        self._last = time.perf_counter()

    @property
    def every(self) -> int | None:
        return self._every

    @property
    def period(self) -> int | None:
        """The period on the clock, in microseconds."""
        return self._period

    def room(self, emitter: Emitter) -> int | None:
        return None if self.every is None else max(1, self.every - emitter.since)

    def cuts(self, first: int, rows: int) -> list[int]:
        return list(range(first, rows, self.every or rows))

    def due(self, emitter: Emitter) -> bool:
        counted = self.every is not None and emitter.since >= self.every
        return self._now_if(counted or self._elapsed(self.period))

    def _elapsed(self, period: int | None) -> bool:
        return period is not None and (time.perf_counter() - self._last) * 1e6 >= period

    def _now_if(self, due: bool) -> bool:
        """The clock counts from a token that is due."""
        if due:
            self._last = time.perf_counter()
        return due

    def quiet(self) -> bool:
        if self._now_if(self._elapsed(self.period) and self.sources.ahead):
            self.sources.round()
            return True
        return False


class AtCost(AtCounts):
    """A token as often as a tuner finds worth what tokens cost; it counts the events of all sources."""

    def __init__(self, sources: TokenClaims, mode: Tokens) -> None:
        super().__init__(sources, None, None)
        self._parts = len({sources.group[e.label] for e in sources.roots}) or 1
        pace = TokenPeriod(MAX_PERIOD if mode.first is None else mode.first, share=mode.cost)
        self.tuner = Tuner(lambda: list(sources.emitters.values()), self._parts, pace)

    @property
    def every(self) -> int:
        return self.tuner.every

    @property
    def present(self) -> int:
        return max(1, self.tuner.pace.base // self._parts)

    def cuts(self, first: int, rows: int) -> list[int]:
        return [] if self.tuner.batch(rows) else super().cuts(first, rows)

    def counted_with(self, emitter: Emitter) -> Iterable[Emitter]:
        return self.sources.together(emitter)

    def turn(self, emitter: Emitter) -> None:
        self.tuner.turn(emitter)

    def due(self, emitter: Emitter) -> bool:
        waits = any(e.since for e in self.sources.emitters.values())
        due = emitter.since >= self.every or (waits and self._elapsed(self.tuner.patience))
        return self._now_if(due and not self.tuner.defers(emitter))

    def quiet(self) -> bool:
        emitter = self.tuner.quiet(self.sources.rounds)
        if emitter is None:
            return False
        self._now_if(True)
        self.sources.put_first(emitter)
        return True

    def out(self, number: int) -> None:
        self.tuner.out(number, self.sources.rounds)


class AtLatency(AtCounts):
    """Tokens as rare as they may be while events wait no longer than a goal for the claim that covers them.

    What is left of the goal after a token's own latency is the distance between two: on the clock, and as the
    number of events that come in it at the present rate, for tokens inside batches.
    """

    def __init__(self, sources: TokenClaims, goal: int, first: int | None) -> None:
        super().__init__(sources, first or FIRST, None)
        self._goal = goal

    @property
    def every(self) -> int | None:
        rate = self.sources.watch.figures(None).rate
        return self._every if rate is None else int(min(MAX_PERIOD, max(1, rate * self.period / 1e6)))

    @property
    def period(self) -> int:
        taken = self.sources.watch.figures(None).max_token_latency or 0.0
        return max(self._goal // 10, self._goal - int(1e6 * taken))

    def counted_with(self, emitter: Emitter) -> Iterable[Emitter]:
        return self.sources.together(emitter)


class AtTimes(TokenPlaces):
    """A token where a source's CTI passes the next multiple of a period of stream time."""

    def __init__(self, sources: TokenClaims, mode: Synchronised) -> None:
        super().__init__(sources)
        self.mode = mode

    def room(self, emitter: Emitter) -> int | None:
        return SLICE

    def promised(self) -> None:
        for emitter in self.sources.roots:
            every = self._ticks(emitter)
            while (t := self._next(emitter, every)) is not None and emitter.promises.cti >= t:
                self.sources.put(emitter, t)

    def _next(self, emitter: Emitter, every: int) -> int | None:
        """The time of a source's next token: one agreed on, or the last that it has passed."""
        if emitter.tokens < len(self.times):
            return self.times[emitter.tokens]
        last = self._grid(emitter.promises.cti, every)
        if last is None or (self.times and last <= self.times[-1]):
            return None
        self.times.append(last)
        return last

    def _ticks(self, emitter: Emitter) -> int:
        nodes = [c.node for c in ([emitter.cell] if emitter.cell is not None else self.sources.graph.cells)]
        every = ticks(self.mode.every, nodes[0].time, "period of synchronised claims")
        if every <= 0:
            raise StreamError(
                f"a synchronised claim every {self.mode.every} is none.", remedy="Give a period above 0."
            ).at("claims", here())
        return every

    def _grid(self, cti: int, every: int) -> int | None:
        """The last multiple of the period up to a time; the end of time is none until all are there."""
        if cti == MIN_TIME:
            return None
        if cti == INFINITY:
            return INFINITY if all(e.promises.cti == INFINITY for e in self.sources.roots) else None
        return cti // every * every

    def finish(self) -> None:
        self.promised()
