"""What a late event costs: the windows that it touches, found in logarithmic time. Counted, not timed."""

from __future__ import annotations

from decimal import Decimal
from math import log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import Page
from caesura.events.rows import RowState
from caesura.ops import ordered as index
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.accumulators.multiset import Multiset
from caesura.ops.input import Input
from caesura.ops.ordered import Ordered, SortedRun
from caesura.runtime import Query

LIVE = (10**3, 10**4, 10**5, 10**6)


class Counting:
    """An array that counts how often it is read."""

    reads = 0

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        Counting.reads += 1
        return self.values[place]


def reads_of(run: SortedRun, find: Any, at: int) -> tuple[int, int]:
    """How often a search reads the index, and how many rows it finds."""
    live, one = np.ones(len(run.row), np.bool_), np.zeros(1, np.int64)
    owner, rows = np.zeros(1000, np.int64), np.zeros(1000, np.int64)
    watched: Any = SortedRun(*(Counting(part) for part in run))  # type: ignore[arg-type]
    Counting.reads = 0
    found = find.twin(watched, live, one, np.array([at]), np.array([at + 5]), owner, rows, 1, 0)
    return Counting.reads, found


@pytest.mark.parametrize("live", LIVE)
def test_finding_what_an_event_overlaps_takes_log_n_and_what_is_found(
    live: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.seek, "_run", index.seek.twin)
    le = np.arange(live)
    re = le + 1 + (le * 7919) % 40
    re[:: live // 10] = 10 * live  # a few outlive the rest, so that ends are in no order
    ordered = Ordered()
    ordered.add(np.zeros(live, np.int64), le, le, re)
    for at in (5, live // 3, live - 20):
        reads, found = reads_of(ordered.runs[0], index.find_overlaps, at)
        assert found == ((le <= at + 5) & (re >= at)).sum()
        assert reads <= 12 * log2(live) * (1 + 10) + 12 * found
        reads, found = reads_of(ordered.runs[0], index.find_between, at)
        assert reads <= 4 * log2(live) + 5 * found + 10


@pytest.mark.parametrize("live", LIVE)
def test_the_last_rows_of_a_group_take_log_n_and_what_is_asked_for(
    live: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.seek, "_run", index.seek.twin)
    ordered, every = Ordered(), np.arange(live)
    ordered.add(np.zeros(live, np.int64), every, every)
    watched: Any = SortedRun(*(Counting(part) for part in ordered.runs[0]))  # type: ignore[arg-type]
    owner, rows = np.zeros(9, np.int64), np.zeros(9, np.int64)
    Counting.reads = 0
    one, most, back = np.zeros(1, np.int64), np.array([3]), np.array([-1])
    found = index.find_edges.twin(watched, np.ones(live, np.bool_), one, most, back, owner, rows, 1, 0)
    assert rows[:found].tolist() == [live - 1, live - 2, live - 3]
    assert Counting.reads <= 4 * log2(live) + 40


@pytest.mark.parametrize("live", LIVE[:3])
def test_an_index_that_grew_page_by_page_has_few_runs(live: int) -> None:
    ordered, size = Ordered(), max(1, live // 97)
    for first in range(0, live, size):
        time = np.arange(first, min(first + size, live))
        ordered.add(np.zeros(len(time), np.int64), time, time, time + 1)
    assert len(ordered.runs) <= log2(live) + 1
    assert sum(len(run.row) for run in ordered.runs) == live


@pytest.mark.parametrize("live", LIVE[:3])
@pytest.mark.parametrize("window", ["snapshot", "tumbling", "count"])
def test_a_late_event_computes_the_windows_that_it_touches(live: int, window: str) -> None:
    schema = pa.schema([("v", pa.int64())])
    stream: Any = cz.Stream(Input(label="a", payload=schema))
    over = {
        "snapshot": stream.snapshot,
        "tumbling": lambda: stream.tumbling(10),
        "count": lambda: stream.count_by_start(3),
    }[window]()
    query = Query({"out": over.agg(mid=cz.median("v"), stamp="point_at_end").node})
    le = np.arange(live)
    query.feed("a", Page(le, le + 3, pa.record_batch({"v": le})))
    query.run()
    query.take("out")
    (before,) = (c.extra["windows"] for c in query.counters().values() if "windows" in c.extra)
    at = np.array([live // 2])
    query.feed("a", Page(at, at + 2, pa.record_batch({"v": [7]})))
    query.run()
    (after,) = (c.extra["windows"] for c in query.counters().values() if "windows" in c.extra)
    assert 1 <= after - before <= 6


@pytest.mark.parametrize("kind", ["text", "decimal"])
def test_the_greatest_of_many_texts_or_decimals_are_found_among_few(kind: str) -> None:
    numbers = np.random.default_rng(3).permutation(20_000)
    texts: list[Any] = [f"sensor-{n:09d}" if kind == "text" else Decimal(int(n)) for n in numbers]
    t = pa.string() if kind == "text" else pa.decimal128(38, 2)
    held, slots = Multiset("v", t, timed=False), RowState({})
    for part in np.split(np.arange(20_000), 40):
        held.add(slots, part % 4, np.ones(len(part), np.int64), pa.array([texts[i] for i in part], t))
        found = held.edge(np.arange(4), 3, last=True)
        assert len(found.n) <= 4 * 3 * 8  # of some runs of doubling sizes, three each
    wanted = [sorted(texts[s::4])[-1] for s in range(4)]
    assert picks.last(found, 4).to_pylist() == wanted
