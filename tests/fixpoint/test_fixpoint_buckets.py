"""Loops in several buckets: any cut into epochs and any number of buckets give the history of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from cluster import Cluster
from depth import DEPTH, examples
from fixpoint_law_cases import legs, nearest, parity, paths, reached
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.api import Stream
from caesura.events import History, Item, Page, parse, violations
from caesura.fixpoint.build import placed
from caesura.fixpoint.node import PROGRESS, Fixpoint
from caesura.io import Source
from caesura.ops.input import Input
from caesura.plan import Node, Raw, walk
from caesura.plan.cut import EVERYWHERE, cut
from caesura.plan.loops import spread_of, whole_loops
from caesura.punctuation import Pattern
from caesura.runtime.query.result import run
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
from bucket_plans import scripted

EXAMPLES = examples(2)
NODES = InputSpec({"node": "key"}, max_rows=3)
LINKS = InputSpec({"a": "key", "b": "key"}, max_rows=6)
ROADS = InputSpec({"a": "key", "b": "key", "w": "int"}, max_rows=6)
PLANS = {
    "paths": (paths, (NODES, LINKS)),
    "reached": (reached, (NODES, LINKS)),
    "nearest": (nearest, (NODES, ROADS)),
    "parity": (parity, (NODES, LINKS)),
    "legs": (legs, (NODES, LINKS, LINKS)),
}


def crossing(node: Node, *, across: bool = True) -> Node:
    """The same plan with its outermost loop in all buckets."""
    loop = next(n for n in reversed(list(walk(node))) if isinstance(n, Fixpoint))
    return placed(node, loop, replace(loop, across=across))


def inside(node: Node) -> Node:
    """The same plan with its outermost loop in one bucket."""
    return crossing(node, across=False)


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("buckets", [1, 3] if DEPTH == 1 else [1, 2, 5])
@pytest.mark.parametrize("lies", ["in one", "in all"])
def test_a_loop_gives_the_same_history_in_any_number_of_buckets(name: str, buckets: int, lies: str) -> None:
    build, specs = PLANS[name]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        sources = []
        for number, spec in enumerate(specs):
            _, items = data.draw(streams(spec, kinds=("time",), closed=False))
            cuts, lag = data.draw(st.sampled_from(([2, 1], [1], [5]))), data.draw(st.sampled_from((3, 40)))
            sources.append(scripted(f"s{number}", spec.schema, items, [0], cuts, lag))
        node: Node = build(*sources, data.draw(st.sampled_from(PROGRESS)))  # type: ignore[operator]
        node = crossing(node) if lies == "in all" else node
        every, rests = data.draw(st.integers(1, 3)), data.draw(st.booleans())
        _check(node, buckets, every, rests=rests, restarts=data.draw(st.booleans()))

    holds()


def _check(node: Node, buckets: int, every: int, *, rests: bool = True, restarts: bool = False) -> None:
    """At rest, and in the end, the whole history is there, and nothing contradicts a promise."""
    for items, seen in _spread(node, buckets, every, rests=rests, restarts=restarts):
        assert History.of(items, node.schema) == seen
        assert violations(items) == []
    assert History.of(items, node.schema) == run(node).history
    last = [item for item in items if not isinstance(item, Page)][-1]
    assert last.pattern == Pattern()


def _spread(
    node: Node, buckets: int, every: int, *, rests: bool, restarts: bool
) -> Iterator[tuple[list[Item], History]]:
    """The plan in buckets; whenever it comes to rest, what came out, and the history in one bucket.

    It rests after every epoch with input, or only when all input is in; perhaps every epoch is taken by
    a fresh cluster that goes on from the last.
    """
    cluster, kept, out = Cluster({"out": node}, buckets), dict[str, bytes](), list[Item]()
    alone = Cluster({"out": inside(node)}, 1)
    reading = list(_batches(alone, every))
    for batch, closes in [*((batch, False) for batch in reading), ([], True)]:
        alone.epoch(batch, closes=closes)
        assert not alone.returning
        cluster.epoch(batch, closes=closes)
        while True:
            out += cluster.items["out"]
            cluster.items["out"] = []
            if restarts:
                saved = cluster.snapshot()
                kept = {n: d for n, d in (kept | saved).items() if d is not None}
                cluster = Cluster({"out": node}, buckets)
                cluster.restore(kept)
            if not cluster.returning or not (rests or closes or batch is reading[-1]):
                break
            cluster.epoch([])
        if not cluster.returning:
            yield out, History.of(alone.items["out"], node.schema)


def _batches(cluster: Cluster, every: int) -> Iterator[list[tuple[Source, Raw]]]:
    """What the sources give, so many batches of each at a time."""
    readers = [(s, s.read({})) for s in cluster.stages.sources if isinstance(s, Source)]
    while readers:
        taken = [(reader, [(reader[0], raw) for raw in islice(reader[1], every)]) for reader in readers]
        readers = [reader for reader, some in taken if len(some) == every]
        yield [pair for _, some in taken for pair in some]


SEEDS = """
 LE  RE     | node |
  0  inf    | 2    | +
 -2  7      | null | +
  4  16     | 1    | +
  4  16->9  | 1    | -
  0  inf->6 | 2    | -
 20  22     | 2    | +
"""
WAYS = " LE RE | a b w |\n 10 22 | 1 0 3 | +\n 18 29 | 1 1 7 | +"


def test_the_seed_of_a_bucket_counts_as_far_as_it_had_come_when_the_guess_left() -> None:
    """A seed that is retracted while the other input is far ahead was once promised too early."""
    nodes = scripted("s0", NODES.schema, parse(SEEDS, NODES.schema), [0], [2, 1], 3)
    roads = scripted("s1", ROADS.schema, parse(WAYS, ROADS.schema), [0], [5], 3)
    node = crossing(nearest(nodes, roads, "high_water"))
    _check(node, 2, 2)


def test_every_hop_of_a_ring_crosses_and_all_of_it_is_reached() -> None:
    """A ring whose neighbours lie in different buckets: one epoch per hop, and definite in the end."""
    rows = [{"ts": 1, "a": n, "b": n + 1} for n in range(12)]
    links = cz.from_rows(rows, time="ts").set_duration(50).distinct()
    seed = cz.from_rows([{"ts": 1, "node": 0}], time="ts").set_duration(50)

    def hop(r: cz.Stream) -> cz.Stream:
        return r.join(links, on={"node": "a"}).select(node=col("b")).distinct()

    loop = cz.fixpoint(seed, hop, buckets="all")
    cluster = Cluster({"out": loop.node}, 3)
    cluster.run()
    assert cluster._epochs > 12
    assert len(History.of(cluster.items["out"], loop.schema)) == 13
    assert sum(f.query.state_rows for stage in cluster.fragments for f in stage) == 0


def test_a_loop_that_carries_a_column_stays_inside_the_buckets_of_it() -> None:
    """Paths carry where they began: rows lie by that, and every bucket has a copy of the links."""
    inputs = [scripted(n, s.schema, [], [0], [1], 3) for n, s in (("a", NODES), ("b", LINKS))]
    stages = cut({"out": paths(inputs[0], inputs[1], "hybrid")}, 3)
    assert {e.keys for e in stages.stages[-1].arrivals} == {("src",), EVERYWHERE}
    assert not stages.backward
    alone = cut({"out": reached(inputs[0], inputs[1], "hybrid")}, 3)  # nothing is carried: in one bucket
    assert {e.keys for e in alone.stages[-1].arrivals} == {()}


def test_a_loop_whose_join_is_not_on_its_own_columns_runs_in_one_bucket() -> None:
    made = paths(Input(label="a", payload=NODES.schema), Input(label="b", payload=LINKS.schema), "hybrid")
    assert spread_of(made, whole_loops(walk(made))[made.fingerprint], set()) == ("node",)
    seed = Stream(Input(label="s", payload=LINKS.schema))
    ticks = Stream(Input(label="t", payload=LINKS.schema))

    def next_one(r: Stream) -> Stream:
        ahead = r.select(wanted=col("a") + 1, b=col("b"))
        met = ahead.join(ticks.rename(seq="a", more="b"), on={"wanted": "seq"})
        return met.select(a=col("wanted"), b=col("more"))

    shifted = cz.fixpoint(seed, next_one).node
    assert spread_of(shifted, whole_loops(walk(shifted))[shifted.fingerprint], set()) is None
