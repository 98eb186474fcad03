"""Joins and unions remember no more at the end of a long stream than at its beginning, in all buckets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream, col
from caesura.events.identity import Secret
from caesura.feedback import responder
from caesura.io import Reader, Source
from caesura.io.ingress.shape import Shape
from caesura.ops.join import thrifty
from caesura.plan import Raw

LONG = os.environ.get("CAESURA_CONTRACT_TICKS")
TICKS = 5 * int(LONG or "7")
WAYS = [(buckets, gives) for buckets in (1, 3) for gives in ("time", "id", "time id", "time id/id")]
"""Buckets, and what punctuation the streams give: both the same, or each its own."""
FEW_WAYS = [(1, "id"), (3, "time id"), (1, "time id/id")]
SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
FIRST = 10_000


class Endless(Reader):
    """A reader of two rows and some punctuation for each tick; some ticks have no rows."""

    lanes, punctuates, schema = 1, False, SCHEMA

    def __init__(self, key: str, gives: str, ticks: int) -> None:
        self.key, self.gives, self.ticks = key, gives, ticks

    def read(self, offsets: Any) -> Iterator[Raw]:
        at = 0
        for tick in range(FIRST, FIRST + self.ticks):
            busy = tick % (3 if self.key == "a" else 4) > 0
            rows = [{"ts": 2 * tick, "id": tick, "v": n} for n in (1, 5)] if busy else []
            marks = {"time": f"time < {2 * tick + 1}", "id": f"id = {tick}"}
            told = [{"ts": 2 * tick, "p": marks[name]} for name in self.gives.split()]
            batch = pa.RecordBatch.from_pylist([*rows, *told], SCHEMA)
            yield Raw(0, at, batch)
            at += batch.num_rows

    def describe(self) -> str:
        return self.key


def source(key: str, gives: str) -> Stream:
    reader, shape = Endless(key, gives, TICKS), Shape.of(time="ts")
    return Stream(Source(reader=reader, shape=shape, policy=cz.in_data("p"), name=key))


def named(s: Stream) -> Stream:
    return s.select("id", w=col("v"))


def windows(s: Stream) -> Stream:
    return s.group_by("id").tumbling(3).agg(v=cz.count())


PLANS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "thrifty": lambda a, b: a.join(named(b), "id", thrifty=True),
    "thrifty with itself": lambda a, b: a.join(named(a), "id", thrifty=True),
    "thrifty where another hears nothing": lambda a, b: (
        a.join(named(b), "id", thrifty=True).select("id", "v").union(a.where(col("v") > 3).select("id", "v"))
    ),
    "thrifty of windows": lambda a, b: windows(a).join(named(windows(a)), "id", thrifty=True),
    "thrifty of spans": lambda a, b: a.set_duration(3).join(named(a.set_duration(2)), "id", thrifty=True),
    "impatient": lambda a, b: a.join(named(b), "id", impatient=True),
    "impatient with itself": lambda a, b: a.join(named(a), "id", impatient=True),
    "plain": lambda a, b: a.join(named(b), "id"),
    "union": lambda a, b: (lambda u: u.join(named(u), "id", thrifty=True))(a.union(b)),
}


def sizes(plan: Stream, buckets: int) -> list[int]:
    """How many bytes a checkpoint has after each tick, without what it counts."""
    cluster = Cluster({"out": plan.node}, buckets, secret=Secret(bytes(Secret.SIZE)))
    reading = [(s, s.read({})) for s in cluster.stages.sources]
    saved: dict[str, int] = {}
    found = []
    for _ in range(TICKS):
        cluster.epoch([(s, next(raws)) for s, raws in reading])  # type: ignore[misc]
        cluster.items["out"].clear()
        saved |= {name: 0 if data is None else len(data) for name, data in cluster.snapshot().items()}
        found.append(sum(saved.values()))
    return found


@pytest.fixture(autouse=True)
def little_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bounded by a number: let it be reached."""
    monkeypatch.setattr(thrifty, "STANDING_LIMIT", 2)
    monkeypatch.setattr(thrifty, "STRETCHES_LIMIT", 4)
    monkeypatch.setattr(responder, "MAX_PATTERNS", 4)


@pytest.mark.thin(4)
@pytest.mark.parametrize(("buckets", "gives"), WAYS if LONG else FEW_WAYS)
@pytest.mark.parametrize("plan", PLANS)
def test_what_steps_remember_of_a_long_stream_does_not_pile_up(plan: str, buckets: int, gives: str) -> None:
    of_a, _, of_b = gives.partition("/")
    held = sizes(PLANS[plan](source("a", of_a), source("b", of_b or of_a)), buckets)
    third = len(held) // 3
    assert max(held[2 * third :]) <= max(held[third : 2 * third]) + 60 * buckets, held
