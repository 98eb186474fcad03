"""Lag and liveliness by their definition; automata that test more of an item than fits a letter."""

from __future__ import annotations

import random

import pytest

import caesura as cz
from caesura import Stream, col
from caesura.events import Item, parse
from caesura.punctuation import INFINITY, MIN_TIME, Punctuation
from caesura.runtime.graph.progress_meter import ProgressMeter


def by_definition(items: list[tuple[float, int, bool]]) -> float | None:
    """Figure 5, from all that came: (system time, application time, whether it is punctuation)."""
    total = seconds = 0.0
    explicit = MIN_TIME
    for n in range(1, len(items)):
        before, now = items[n - 1], items[n]
        explicit = max(explicit, before[1]) if before[2] else explicit
        real = min((t for _, t, mark in items[n:] if not mark), default=INFINITY)
        if real < INFINITY and explicit > MIN_TIME:
            total += (now[0] - before[0]) * (real - explicit)
            seconds += now[0] - before[0]
    return total / seconds if seconds else None


@pytest.mark.parametrize("seed", range(20))
def test_lag_is_the_mean_distance_of_explicit_from_real_progress(seed: int) -> None:
    rng = random.Random(seed)
    now, promised, clock = 0.0, 0, [0.0]
    meter = ProgressMeter(clock=lambda: clock[0])
    items: list[tuple[float, int, bool]] = []
    silence = 0.0
    for n in range(60):
        gap = rng.choice((0.5, 1.0, 4.0))
        now, clock[0] = now + gap, now + gap
        silence = max(silence, gap) if n else silence
        mark = rng.random() < 0.3
        t = rng.randint(promised, promised + 12)
        promised = t if mark else promised
        items.append((now, t, mark))
        text = f" LE RE | id |\n-- {t} --" if mark else f" LE RE | id |\n {t} {t + 1} | 7 | +"
        for item in parse(text):
            meter.append(item)
        assert meter.lag == pytest.approx(by_definition(items))
    assert meter.silence == silence


def hops(rows: list[tuple[int, int, int]]) -> Stream:
    edges = cz.from_rows([{"t": t, "a": a, "b": b} for t, a, b in rows], time="t", batch_size=1).forever()
    return cz.fixpoint(
        edges.select("a", "b"),
        lambda reached: (
            reached.join(edges.select(b=col("a"), c=col("b")), on="b").select("a", b=col("c")).distinct()
        ),
    )


def test_a_loop_of_which_nothing_is_definite_yet_is_behind() -> None:
    query = hops([(1, 1, 2), (9, 2, 3), (14, 3, 4)]).query()
    most = 0
    while query.step():
        lags = [c.extra["lag"] for c in query.counters().values() if "lag" in c.extra]
        most = max(most, *lags)
    assert most >= 13


def test_lag_and_liveliness_of_a_loop_are_read_as_it_runs() -> None:
    rows = [{"t": t, "a": t % 4, "b": (t + 1) % 4} for t in range(30)]
    edges = cz.from_rows(rows, time="t", punctuate=cz.delay(3), batch_size=2).set_duration(6)
    loop = cz.fixpoint(
        edges.select("a", "b"),
        lambda reached: (
            reached.join(edges.select(b=col("a"), c=col("b")), on="b").select("a", b=col("c")).distinct()
        ),
    )
    query = loop.query()
    meter = query.progress_meter()
    query.run()
    items: list[Item] = query.take("out")
    assert meter.punctuations == sum(isinstance(i, Punctuation) for i in items) > 3
    assert meter.lag is not None and meter.lag >= 0 and meter.silence > 0


@pytest.mark.parametrize("tests", [3, 7, 8, 12, 40])
def test_an_automaton_may_test_any_number_of_things_of_an_item(tests: int) -> None:
    rng = random.Random(tests)
    rows = [{"ts": t, "k": rng.randint(0, tests)} for t in range(80)]
    read = cz.from_rows(rows, time="ts")

    def runs(arcs: list[object]) -> Stream:
        made = cz.automaton(arcs, {"n": 0}, within=9, accept={"B": col("n") > 1})  # type: ignore[arg-type]
        return read.match(made)

    each = [
        cz.arc(source, "B" if k % 2 else "A", col("k") == k, n=col("n") + 1)
        for source in ("S", "A", "B")
        for k in range(tests)
    ]
    by_parity = [
        cz.arc(source, target, (col("k") % 2 == odd) & (col("k") < tests), n=col("n") + 1)
        for source in ("S", "A", "B")
        for target, odd in (("A", 0), ("B", 1))
    ]
    got = runs(each).run().history
    assert got == runs(by_parity).run().history and len(got) > 10
