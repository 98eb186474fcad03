"""Windows that slide over panes: looked at twice however long they are, and right after a restart."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import History, Item, Page
from caesura.ops.aggregate import panes
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE, LEAVE, slide_extremes
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import MIN_TIME, Pattern, Punctuation, cti
from caesura.runtime import Query

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])
POINTS = Properties(insert_only=True, points=True, max_duration=1)


@pytest.fixture(autouse=True, params=[1, panes.PLACED], ids=["placed", "one by one"])
def points_are_placed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "PLACED", request.param)


class Counting:
    """An array that counts how often it is read."""

    def __init__(self, values: Any) -> None:
        self.values, self.reads = np.array(values, np.int64), 0

    def __getitem__(self, place: int) -> int:
        self.reads += 1
        return int(self.values[place])


@pytest.mark.parametrize("size", [4, 64, 512])
def test_a_sliding_extreme_reads_each_pane_a_fixed_number_of_times(size: int) -> None:
    count, chance = 1500, Random(size)
    words = [chance.randint(0, 9) for _ in range(count)]
    kind, row = [], []
    for last in range(count):
        if last >= size:
            kind.append(LEAVE), row.append(last - size)
        kind.append(ENTER), row.append(last)
        kind.append(GIVE), row.append(max(0, last - size + 1))
    best, out = Counting(words), np.zeros(count, np.int64)
    zeros = np.zeros(len(kind), np.int64)
    none = np.iinfo(np.int64).max
    slide_extremes.twin(
        np.array(kind), zeros, np.array(row), best, np.ones(count, np.int64), np.arange(count),  # type: ignore[arg-type]
        np.arange(count) - 1, True, int(none), np.zeros(count, np.int64), np.array([none]),
        np.array([-1]), np.array([MIN_TIME]), out,
    )  # fmt: skip
    assert out.tolist() == [min(words[max(0, i - size + 1) : i + 1]) for i in range(count)]
    assert best.reads <= 6 * count


def drawn(seed: int) -> list[Item]:
    """Points of groups that come, go silent and come back, under a CTI that follows."""
    chance, items = Random(seed), list[Item]()
    for t in range(0, 120, 4):
        ids = [chance.choice((t // 20, t // 20, 7)) for _ in range(3)]
        starts = sorted(t + chance.randint(0, 5) for _ in ids)
        values = [chance.choice((0.1, 1e300, 1e-300, float("inf"), float("nan"), 3.0, None)) for _ in ids]
        batch = pa.record_batch([pa.array(ids), pa.array(values, pa.float64())], schema=SCHEMA)
        items += [Page.of(batch, le=starts, re=[s + 1 for s in starts]), cti(t)]
    return [*items, Punctuation(Pattern())]


def plan() -> Any:
    source = Input(label="a", payload=SCHEMA, known=POINTS)
    own = {"n": cz.count(), "s": cz.sum("v"), "low": cz.min("v"), "high": cz.max("v"), "m": cz.avg("v")}
    return cz.Stream(source).group_by("id").hopping(10, every=4, offset=1).agg(**own).node


@pytest.mark.thin(2)
@pytest.mark.parametrize("seed", range(4))
def test_panes_go_on_after_a_restart_among_groups_that_died(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caesura.events.rows.SMALL", 0)
    node, items = plan(), drawn(seed)
    eager = Query({"out": node}, speculate="arrival")
    query, kept, out = Query({"out": node}, speculate="watermark"), dict[str, bytes](), list[Item]()
    for place, item in enumerate(items):
        for one in (eager, query):
            one.feed("a", item)
            one.run()
        out += query.take("out")
        if place % 7 == seed:
            chunks = {**kept, **query.snapshot()}
            kept = {name: data for name, data in chunks.items() if data is not None}
            query = Query({"out": node}, speculate="watermark")
            query.restore(kept)
    assert repr(History.of(out, node.schema)) == repr(History.of(eager.take("out"), node.schema))
    assert query.state_rows == 0


def test_groups_that_are_numbered_anew_are_told_apart_by_their_keys() -> None:
    keys = [*range(40), *range(100, 140), *range(3, 43)]
    rows = [{"ts": 50 * (i // 40) + i % 5, "k": key, "v": 0.5 * key} for i, key in enumerate(keys)]
    stream = cz.from_rows(rows, time="ts", punctuate=cz.delay(5), batch_size=20)
    means = stream.group_by("k").hopping(10, every=5).agg(v=cz.avg("v"), n=cz.count())
    found = means.run(output="final").table().to_pylist()
    assert len(found) == 2 * len(rows)
    assert all(row["v"] == 0.5 * row["k"] and row["n"] == 1 for row in found)
