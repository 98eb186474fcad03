"""What goes backwards across stages and buckets arrives in the next epoch, once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from backward_steps import IDS, Hearing, halvings, loop
from bucket_plans import Scripted
from cluster import Cluster

from caesura.events import History
from caesura.io import Source, delay
from caesura.io.ingress.shape import Shape
from caesura.plan import Node, Raw


def numbers(*pages: tuple[int, ...]) -> Source:
    """A source that gives each tuple as one batch."""
    schema = pa.schema([("ts", pa.int64()), ("id", pa.int64())])
    raws, at = [], 0
    for some in pages:
        batch = pa.RecordBatch.from_pylist([{"ts": 1, "id": n} for n in some], schema)
        raws.append(Raw(0, at, batch))
        at += len(some)
    reader = Scripted("numbers", schema, tuple(raws), 1)
    return Source(reader=reader, shape=Shape.of(time="ts"), policy=delay(0), name="numbers")


def seen(cluster: Cluster, node: Node) -> list[int]:
    return sorted(row[2][0] for row in History.of(cluster.items["out"], node.schema).rows())


@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_a_cycle_across_buckets_circulates_and_drains(buckets: int) -> None:
    source = numbers((8, 5, 100), (77, 3, 640))
    node, stages = loop(source)
    cluster = Cluster({"out": node}, buckets, stages=stages)
    cluster.run()
    assert seen(cluster, node) == halvings([8, 5, 100, 77, 3, 640])
    assert cluster.returning == []


def test_a_restored_cluster_goes_on_with_what_was_on_its_way_back() -> None:
    source = numbers((8, 5, 100))
    node, stages = loop(source)
    first, second = (Cluster({"out": node}, 2, stages=stages) for _ in range(2))
    [raw] = source.read({})
    first.epoch([(source, raw)])
    first.epoch([])
    assert first.returning
    second.restore({n: d for n, d in first.snapshot().items() if d is not None})
    second.drain()
    whole = [*first.items["out"], *second.items["out"]]
    assert sorted(r[2][0] for r in History.of(whole, IDS).rows()) == halvings([8, 5, 100])


def test_what_one_bucket_assumes_holds_only_when_all_have_said_it() -> None:
    source = numbers((2000,), (3000,), (4000,), *((5000 + n,) for n in range(30)))
    node, stages = loop(source)
    cluster = Cluster({"out": node}, 2, stages=stages)
    raws = list(source.read({}))
    cluster.epoch([(source, raws[0])])
    assert [m for f in cluster.fragments[0] for m in _assumed(f)] == []
    cluster.epoch([])
    assert [m for f in cluster.fragments[0] for m in _assumed(f)] == []  # one bucket has spoken
    for raw in raws[1:]:
        cluster.epoch([(source, raw)])
    cluster.drain()
    assert [_assumed(f) for f in cluster.fragments[0]] == [["id >= 1001"]] * 2
    assert len([n for n in seen(cluster, node) if n > 4000]) < 30


def _assumed(fragment: object) -> list[str]:
    cells = fragment.query.graph.cells  # type: ignore[attr-defined]
    found = next(c.operator for c in cells if isinstance(c.operator, Hearing))
    return [str(p).removeprefix("Pattern(").removesuffix(")") for p in found.assumed]
