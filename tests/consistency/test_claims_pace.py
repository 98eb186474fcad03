"""The period between tokens tunes itself: near the swept optimum, and it backs off on a backlog."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median

import pyarrow as pa
import pytest

import caesura as cz
from caesura.consistency import Mode
from caesura.consistency.token_period import MAX_PERIOD, TokenPeriod
from caesura.events import Item, Page
from caesura.runtime.graph.cell import Cell
from caesura.runtime.query.query import Query


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


def tuned(query: Simulated, pace: TokenPeriod, sections: int) -> None:
    for _ in range(sections):
        work, latency, distance = query.section(pace.every)
        pace.section(pace.every, busy=work, rate=query.rate, backlog=(latency - work) / distance)


COSTS = [(1e-6, 2e-4), (5e-6, 2e-4), (2e-5, 1e-3)]


@pytest.mark.parametrize(("event", "token"), COSTS)
def test_the_tuner_ends_near_the_swept_optimum_after_the_rate_doubles(event: float, token: float) -> None:
    rate = 0.2 / event
    query, pace = Simulated(event, token, rate), TokenPeriod()
    tuned(query, pace, 60)
    query.rate = 2 * rate
    tuned(query, pace, 60)
    best, least = swept(event, token, 2 * rate)
    got = cumulative(Simulated(event, token, 2 * rate), pace.base, 4000 * pace.base / rate)
    assert got <= 1.2 * least, (pace.base, best)
    assert pace.base * event * 0.0301 * 1.2 >= token


def test_a_backlog_makes_it_back_off() -> None:
    query, pace = Simulated(1e-6, 2e-4, 9.5e5), TokenPeriod(every=64)
    before = pace.every
    tuned(query, pace, 80)
    assert pace.base > 8 * before
    query.section(pace.base)
    _, _, distance = query.section(pace.base)
    assert pace.base * 1e-6 + 2e-4 < distance, "the work of a section fits between two tokens"


def test_a_free_running_source_pays_at_most_the_share() -> None:
    pace = TokenPeriod(every=100)
    for _ in range(60):
        pace.section(pace.every, busy=pace.every * 2e-6 + 3e-4, rate=None)
    assert pace.base * 2e-6 * 0.03 * 1.1 >= 3e-4
    assert pace.base <= 1.3 * 3e-4 / (0.03 * 2e-6)


def noisy(seed: int, event: float, token: float, sections: int = 200) -> TokenPeriod:
    """Tuned by work that is off by a fifth, and once in twenty times by up to six times."""
    rng, pace = random.Random(seed), TokenPeriod()
    for _ in range(sections):
        off = rng.lognormvariate(0.0, 0.2) * (rng.uniform(1.5, 6.0) if rng.random() < 0.05 else 1.0)
        pace.section(pace.every, busy=off * (pace.every * event + token), rate=None)
    return pace


@pytest.mark.parametrize(("event", "token"), COSTS)
def test_noise_makes_tokens_rarer_rather_than_dear(event: float, token: float) -> None:
    floor = token / (0.03 * event)
    found = [noisy(seed, event, token).base / floor for seed in range(60)]
    assert min(found) > 0.4, sorted(found)[:5]
    assert sorted(found)[3] > 0.75
    assert 1.0 < median(found) < 1.6
    assert sorted(found)[56] < 4.0


def test_it_starts_with_rare_tokens_and_waits_for_what_it_has_measured() -> None:
    pace, seen = TokenPeriod(), []
    for _ in range(5):
        seen.append(pace.every)
        pace.section(pace.every, busy=pace.every * 1e-6 + 2e-4, rate=None)
    assert pace.base == MAX_PERIOD
    assert min(seen) >= MAX_PERIOD // 8


@pytest.mark.parametrize(("inside", "between", "wanted"), [(4e-3, 1e-4, 8192), (1e-4, 1e-5, 3703)])
def test_tokens_stand_between_batches_where_inside_they_are_too_dear(
    inside: float, between: float, wanted: int
) -> None:
    pace = TokenPeriod(grain=8192)
    for _ in range(120):
        events = max(pace.every, 8192)
        tokens = events // pace.every
        if pace.whole:
            pace.alone(between)
        busy = events * 1e-6 + tokens * (between if pace.whole else inside)
        pace.section(events, busy=busy, rate=None, tokens=tokens)
    assert pace.base == pytest.approx(wanted, rel=0.02)


# -- in a running query, on a simulated clock -----------------------------------------------------------


class Clock:
    """Work is what a step is said to cost: so much per page, per row and per token."""

    def __init__(self, page: float, row: float, patch: pytest.MonkeyPatch) -> None:
        self.work, receive, sent = 0.0, Cell.receive, Cell.send
        clock = self

        def timed(cell: Cell, port: int, item: Item) -> list[Item]:
            clock.work += page + row * len(item) if isinstance(item, Page) else 0.0
            return receive(cell, port, item)

        def told(cell: Cell, items: list[Item]) -> None:
            clock.work += 1e-6
            sent(cell, items)

        patch.setattr(Cell, "receive", timed)
        patch.setattr(Cell, "send", told)
        patch.setattr("caesura.runtime.claims.tuner.time.thread_time", lambda: clock.work)
        patch.setattr("caesura.runtime.claims.tuner.time.perf_counter", lambda: clock.work)

    def of(self, claims: Mode | None, rows: int) -> tuple[float, Query]:
        """What a run took."""
        t = pa.table({"t": range(rows), "id": [i % 97 for i in range(rows)]})
        made = [cz.from_arrow(t, time="t", punctuate=cz.delay(0), batch_size=1024, name=n) for n in "ab"]
        a, b = (stream.set_duration(1) for stream in made)
        query = a.join(b.select("id", other=cz.col("id")), on="id").query(claims=claims)
        begun = self.work
        query.run()
        return self.work - begun, query


@pytest.mark.parametrize(("page", "row"), [(1e-4, 1e-5), (3e-4, 1e-5), (1e-2, 1e-5)])
def test_a_running_query_settles_where_tokens_are_cheap(
    page: float, row: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(page, row, monkeypatch)
    alone, _ = clock.of(None, 8192)
    costs = {n: clock.of(cz.tokens(every=n), 8192)[0] / alone - 1.0 for n in (128, 256, 512, 1024)}
    _, query = clock.of(cz.tokens(), 60_000)
    found = query.claiming.places.tuner.pace.base  # type: ignore[union-attr]
    cheap = [n for n, cost in costs.items() if cost <= 0.03]
    assert cheap[0] / 2 <= found <= 2 * cheap[0], (found, costs)
    assert clock.of(cz.tokens(every=found), 8192)[0] <= 1.035 * alone
