"""The period between tokens tunes itself: near the swept optimum, and it backs off on a backlog."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from caesura.consistency.pace import Pace


@dataclass
class Simulated:
    """A query on a clock of its own: so much work per event and per token; events come at a rate."""

    event: float
    token: float
    rate: float
    now: float = 0.0
    busy_until: float = 0.0
    late: float = 0.0

    def section(self, events: int) -> tuple[float, float, float]:
        """(work, latency of its token, distance from the one before) of a section of so many events."""
        distance = events / self.rate
        self.now += distance
        work = events * self.event + self.token
        self.busy_until = max(self.busy_until, self.now) + work
        return work, self.busy_until - self.now, distance


def cumulative(query: Simulated, every: int, seconds: float) -> float:
    """The mean cumulative latency at a fixed period; what builds a backlog grows without end."""
    total, count, end = 0.0, 0, query.now + seconds
    while query.now < end:
        _, latency, distance = query.section(every)
        total, count = total + latency + distance, count + 1
    return total / count


def swept(event: float, token: float, rate: float) -> tuple[int, float]:
    """The period of least cumulative latency among those that cost at most 3 %."""
    periods = [int(16 * 1.15**k) for k in range(90)]
    cheap = [n for n in periods if token / (n * event) <= 0.0301]
    found = {n: cumulative(Simulated(event, token, rate), n, 4000 * max(n / rate, 1e-3)) for n in cheap[:25]}
    best = min(found, key=lambda n: found[n])
    return best, found[best]


def tuned(query: Simulated, pace: Pace, sections: int) -> None:
    for _ in range(sections):
        work, latency, distance = query.section(pace.every)
        pace.section(pace.every, busy=work, rate=query.rate, backlog=(latency - work) / distance)


COSTS = [(1e-6, 2e-4), (5e-6, 2e-4), (2e-5, 1e-3)]


@pytest.mark.parametrize(("event", "token"), COSTS)
def test_the_tuner_ends_near_the_swept_optimum_after_the_rate_doubles(event: float, token: float) -> None:
    rate = 0.2 / event
    query, pace = Simulated(event, token, rate), Pace()
    tuned(query, pace, 60)
    query.rate = 2 * rate
    tuned(query, pace, 60)
    best, least = swept(event, token, 2 * rate)
    got = cumulative(Simulated(event, token, 2 * rate), pace.base, 4000 * pace.base / rate)
    assert got <= 1.2 * least, (pace.base, best)
    assert pace.base * event * 0.0301 * 1.2 >= token


def test_a_backlog_makes_it_back_off() -> None:
    query, pace = Simulated(1e-6, 2e-4, 9.5e5), Pace(every=64)
    before = pace.every
    tuned(query, pace, 80)
    assert pace.base > 8 * before
    query.section(pace.base)
    _, _, distance = query.section(pace.base)
    assert pace.base * 1e-6 + 2e-4 < distance, "the work of a section fits between two tokens"


def test_a_free_running_source_pays_at_most_the_share() -> None:
    pace = Pace(every=100)
    for _ in range(60):
        pace.section(pace.every, busy=pace.every * 2e-6 + 3e-4, rate=None)
    assert pace.base * 2e-6 * 0.03 * 1.1 >= 3e-4
    assert pace.base <= 1.3 * 3e-4 / (0.03 * 2e-6)
