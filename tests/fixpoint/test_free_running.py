"""Sources are read while a loop works: fairly, within bounds, and with the history of a staged loop."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from fixpoint_law_cases import LINKS, NODES, ROADS, nearest, pairs, parity, paths, reached
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Page
from caesura.fixpoint.node import PROGRESS
from caesura.io import Offsets, Reader
from caesura.io.ingress.shape import Shape
from caesura.io.sources.source import Source
from caesura.plan import NOTHING_NOW, Raw, SourceBatch
from caesura.runtime import BottomUp, LongestQueue, Query, RoundRobin, Schedule, Shuffled
from caesura.testing.strategies import streams

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
from bucket_plans import scripted

PLANS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "paths": (paths, (NODES, LINKS)),
    "reached": (reached, (NODES, LINKS)),
    "pairs": (pairs, (LINKS,)),
    "nearest": (nearest, (NODES, ROADS)),
    "parity": (parity, (NODES, LINKS)),
}


@pytest.mark.parametrize("name", PLANS)
@settings(max_examples=examples(12, short=6), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_loop_that_takes_input_while_it_works_has_the_history_of_a_staged_one(
    name: str, data: st.DataObject
) -> None:
    build, specs = PLANS[name]
    sources = []
    for number, spec in enumerate(specs):
        _, items = data.draw(streams(spec, kinds=("time",), closed=False))
        lag = data.draw(st.sampled_from((3, 40)))
        sources.append(scripted(f"s{number}", spec.schema, items, [0], [1, 2], lag))
    schedule = data.draw(st.sampled_from([BottomUp, LongestQueue, RoundRobin, lambda: Shuffled(7)]))
    staged = _history(build(*sources, "staged"), BottomUp())
    progress = data.draw(st.sampled_from([p for p in PROGRESS if p != "staged"]))
    assert _history(build(*sources, progress), schedule()) == staged


def _history(node: Any, schedule: Schedule) -> History:
    query = Query({"out": node}, schedule=schedule)
    query.run()
    return History.of(query.take("out"), node.schema)


@dataclass
class Counted(Reader):
    """Gives links of a chain one by one, and counts how often it is asked."""

    key: str
    rows: list[dict[str, int]]
    gaps: int = 0
    """So often it has nothing before each row."""
    poll_seconds: float = 0.0
    asked: list[int] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:  # type: ignore[override]
        return pa.schema([(name, pa.int64()) for name in self.rows[0]])

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        for at, row in enumerate(self.rows):
            for _ in range(self.gaps):
                self.asked.append(at)
                yield NOTHING_NOW
            yield Raw(0, at, pa.RecordBatch.from_pylist([row], self.schema))

    def latest(self) -> Mapping[int, int] | None:  # type: ignore[override]
        return None

    def describe(self) -> str:
        return self.key


def _source(reader: Reader) -> Stream:
    return Stream(Source(reader=reader, shape=Shape.of(time="t"), policy=cz.delay(0), name=reader.key))


def chase(ticks: Counted, progress: Any, *, hops: int = 40) -> Stream:
    """Every tick walks a chain, a hop a round."""
    walk = _source(ticks).set_duration(1000)
    return cz.fixpoint(
        walk.select("n", hop=col("n") * 0),
        lambda r: r.where(col("hop") < hops).select("n", hop=col("hop") + 1),
        progress=progress,
    )


def ticks(count: int, **how: Any) -> Counted:
    return Counted("ticks", [{"t": n, "n": n} for n in range(count)], **how)


def _begun(query: Query) -> list[int]:
    """How many ticks have begun their walk, at each row that leaves."""
    begun: set[int] = set()
    seen: list[int] = []
    while query.step():
        for item in query.take("out"):
            if isinstance(item, Page):
                begun |= set(item.payload.column("n").to_pylist())
                seen.append(len(begun))
    return seen


def test_a_tick_begins_before_the_one_before_it_has_arrived() -> None:
    free = Query({"out": chase(ticks(3), "hybrid").node})
    assert _begun(free)[:8] == [1, 2, 2, 3, 3, 3, 3, 3]
    staged = Query({"out": chase(ticks(3), "staged").node})
    assert _begun(staged)[:41] == [1] * 41, "a staged loop takes the second when the first is at rest"


@pytest.mark.parametrize("capacity", [1, 2, 8])
def test_what_is_in_flight_is_bounded_however_much_could_be_read(capacity: int) -> None:
    query = Query({"out": chase(ticks(60), "hybrid").node}, capacity=capacity)
    [back] = [edge for edge in query.graph.edges if edge.back]
    most = 0
    while query.step():
        most = max(most, len(back.items))
    assert most <= capacity + 3, (
        "what was there, and a page, a promise and a guess of the batch that was read"
    )
    assert len(History.of(query.take("out"), query.outputs["out"].schema)) == 60 * 41


def test_a_loop_has_a_round_for_each_batch_that_is_read() -> None:
    query = Query({"out": chase(ticks(60), "hybrid").node}, capacity=1000)
    [reader] = query.runner._readers
    [back] = [edge for edge in query.graph.edges if edge.back]
    assert back.target is not None
    reads, turns = 0, []
    while query.step():
        if reader.turns > reads:
            turns.append(back.target.operator.counters.pages_in)
            reads = reader.turns
    rounds = [b - a for a, b in pairwise(turns[2:])]
    assert min(rounds[:20]) >= 1, "never two batches without a round between them"


def test_pages_that_wait_to_go_around_go_as_one() -> None:
    rounds = []
    for progress in ("hybrid", "staged"):
        query = Query({"out": chase(ticks(6), progress).node})
        query.run()
        rounds.append(query.parts.loops[0].head.operator.counters.extra["rounds"])
    assert rounds[1] == 6 * 40
    assert rounds[0] < rounds[1] / 2


def test_sources_that_have_nothing_are_not_asked_in_every_round() -> None:
    eager, lazy = ticks(2, gaps=5), ticks(2, gaps=5, poll_seconds=3600.0)
    for reader in (eager, lazy):
        query = Query({"out": chase(reader, "hybrid").node})
        query.runner.waiter.wait = lambda readers: None  # type: ignore[assignment, method-assign]
        while query.step() and reader.asked.count(1) < 5:
            pass
        rows = sum(len(item) for item in query.take("out") if isinstance(item, Page))
        assert rows < 20 if reader is eager else rows == 41, "an hour has not passed: it is asked at rest"


@pytest.mark.slow
def test_input_waits_while_a_loop_takes_rows_back() -> None:
    """Each batch deletes a link: did they come between the waves, nothing would ever be added."""
    chain = [{"t": 0, "e": 1000, "x": 1000, "a": n, "b": n + 1} for n in range(30)]
    cuts = [{"t": 0, "e": 1000, "x": 5 + n, "a": n, "b": n + 1} for n in range(29, 0, -1)]
    schema = pa.schema([("kind", pa.string()), *((n, pa.int64()) for n in "texab")])
    rows = [{"kind": "+", **row} for row in chain] + [{"kind": "-", **row} for row in cuts]
    batches = [pa.RecordBatch.from_pylist(rows[:30], schema)]
    batches += [pa.RecordBatch.from_pylist([row], schema) for row in rows[30:]]
    links = cz.from_arrow(
        pa.RecordBatchReader.from_batches(schema, batches), time="t", end="e", kind="kind", new_end="x"
    )
    seed = cz.from_rows([{"t": 0, "node": 0}], time="t").set_duration(1000)

    def hop(r: Stream) -> Stream:
        return r.join(links, on={"node": "a"}).select(node=col("b"))

    query = Query({"out": cz.fixpoint(seed, hop, keep="distinct").node})
    head = query.parts.loops[0].head.operator
    [reader] = [r for r in query.runner._readers if "a" in r.node.schema.names]
    before, during = reader.turns, 0
    while True:
        busy = head.retracting  # type: ignore[attr-defined]
        if not query.step():
            break
        during += busy and reader.turns > before
        before = reader.turns
    assert during == 0
