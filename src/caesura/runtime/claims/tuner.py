"""Measures what tokens cost while a query runs, so that `TokenPeriod` can choose their period.

A query is quiet when nothing is queued. What was worked between two quiet moments belongs to the batches that
were read in between; no clock is asked for a part of a page. A token between batches waits for the
next quiet moment and passes alone, so that its own cost is seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from caesura.consistency.token_period import MAX_PERIOD, TokenPeriod
from caesura.runtime.graph.emitter import Emitter

IDLE = 0.8
"""Where work takes less than this share of the time, the source sets the rate."""
DEEP = 8
"""With so many tokens inside a query that is fed by hand, events come faster than they are worked off."""


@dataclass
class Moment:
    """Where a query stood, on the clock and in work of its thread."""

    now: float = field(default_factory=lambda: time.perf_counter())
    work: float = field(default_factory=lambda: time.thread_time())
    thread: int = field(default_factory=threading.get_ident)
    rows: int = 0
    rounds: int = 0


class Tuner:
    """Watches the stretches of a query that puts in tokens."""

    def __init__(self, emitters: Callable[[], list[Emitter]], parts: int, pace: TokenPeriod) -> None:
        self.pace = pace
        self._emitters = emitters
        self._parts = parts
        """Between how many sources a period is divided."""
        self._begun = Moment()
        self._alone: Moment | None = None
        self._waiting: Emitter | None = None
        self._turned: set[str] = set()

    @property
    def every(self) -> int:
        """The period of one source."""
        return max(1, self.pace.every // self._parts)

    @property
    def patience(self) -> int:
        """Microseconds after which a token comes however few events there were."""
        return int(1e6 * self.pace.patience)

    def batch(self, rows: int) -> bool:
        """Whether a batch of so many rows enters whole, without tokens inside."""
        self.pace.grain = max(self.pace.grain, rows)
        return self.pace.whole

    def defers(self, emitter: Emitter) -> bool:
        """Whether a token between batches waits until the query is quiet."""
        if not self.pace.whole or emitter.cell is None:
            return False
        self._waiting = emitter
        return True

    def quiet(self, rounds: int) -> Emitter | None:
        """Nothing is queued: gives the source whose token was waiting for that."""
        if self._alone is not None:
            self._timed(self._alone)
            self._alone = None
        if self._waiting is not None:
            put, self._waiting, self._alone = self._waiting, None, Moment()
            return put
        emitters = self._emitters()
        rows = sum(e.rows for e in emitters)
        if rounds > self._begun.rounds and rows > self._begun.rows:
            read = {e.label for e in emitters if e.cell is None or e.closed} | self._turned
            if len(read) >= len(emitters) or rows - self._begun.rows > 2 * MAX_PERIOD:
                self._stretch(rows, rounds)
        return None

    def turn(self, emitter: Emitter) -> None:
        """A source is read."""
        self._turned.add(emitter.label)

    def out(self, number: int, rounds: int) -> None:
        """A token has left every output; many behind it are a backlog where nobody waits for quiet."""
        emitters = self._emitters()
        if rounds - number >= DEEP and number > self._begun.rounds and all(e.cell is None for e in emitters):
            self._stretch(sum(e.rows for e in emitters), rounds, backlog=rounds - number)

    def _timed(self, since: Moment) -> None:
        if since.thread == threading.get_ident():
            self.pace.alone(time.thread_time() - since.work)

    def _stretch(self, rows: int, rounds: int, backlog: float = 0.0) -> None:
        """Tells the pace what a stretch took; work of another thread cannot be told apart."""
        begun, self._begun = self._begun, Moment(rows=rows, rounds=rounds)
        self._turned.clear()
        busy, gap = self._begun.work - begun.work, self._begun.now - begun.now
        if begun.thread != self._begun.thread:
            return
        fresh = rows - begun.rows
        rate = fresh / gap if 0.0 < busy < IDLE * gap else None
        self.pace.section(fresh, busy=busy, rate=rate, tokens=rounds - begun.rounds, backlog=backlog)
