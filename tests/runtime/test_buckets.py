"""Any number of buckets, any cut into epochs: the same history and the same late rows as one query."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from bucket_plans import PLANS, Build, inserts, scripted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura import Stream
from caesura.events import History, Item, violations
from caesura.io import Source
from caesura.plan import Node, Raw
from caesura.plan.prune import prune
from caesura.runtime import Query
from caesura.runtime.cluster import Cluster
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

EXAMPLES = int(os.environ.get("CAESURA_BUCKET_EXAMPLES", "8"))
LEFT = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=7)
RIGHT = InputSpec({"id": "key", "s": "name"}, key="id", max_rows=7)
LOOKED_UP = "join with a table"
"""Its late rows show the lifetimes that the lookup gave them, and retracts are matched behind it."""
FILTERED = {"where and select", "a diamond"}
"""Plans whose first step drops rows before the gate judges them; their late rows are fewer."""


@pytest.fixture(autouse=True, scope="module")
def _small_packets() -> Iterator[None]:
    """Packets of a row or two, so that what a chunk says travels in many, and courses of two rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("caesura.runtime.packet.MOST_BYTES", 100)
        patch.setattr("caesura.io.course.ROWS", 2)
        yield


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)
lanes = st.lists(st.integers(0, 1), min_size=1, max_size=3)


@st.composite
def sources(draw: st.DrawFn, name: str, spec: InputSpec) -> Source:
    """A source of random rows in random lanes and batches, some late."""
    _, items = draw(streams(spec, kinds=("time",), closed=False))
    lag = draw(st.sampled_from((2, 6, 40)))
    future = draw(st.sampled_from((None, 1, 5)))
    if draw(st.booleans()):
        return inserts(name, spec.schema, items, draw(sizes), lag, future)
    return scripted(name, spec.schema, items, draw(lanes), draw(sizes), lag, future)


def alone(node: Node, pace: Any) -> tuple[list[Item], Counter[Any]]:
    query = Query(prune({"out": node}), speculate=pace)
    query.run()
    late = [row for table in query.late().values() for row in table.to_pylist()]
    return query.take("out"), Counter(map(_told, late))


def spread(
    node: Node, buckets: int, given: Sequence[Source], epochs: Sequence[int], pace: Any
) -> tuple[list[Item], Counter[Any]]:
    """The plan in buckets; each epoch takes so many batches of each source."""
    cluster = Cluster({"out": node}, buckets, speculate=pace)
    known = {s.fingerprint for s in cluster.stages.sources}
    waiting = [(s, list(s.read({}))) for s in given if s.fingerprint in known]
    turn = 0
    while True:
        size = epochs[turn % len(epochs)]
        batch: list[tuple[Source, Raw]] = [(s, raw) for s, raws in waiting for raw in raws[:size]]
        waiting = [(s, raws[size:]) for s, raws in waiting]
        turn += 1
        last = not any(raws for _, raws in waiting)
        cluster.epoch(batch, closes=last)
        if last:
            break
    late = [row for batches in cluster.late.values() for b in batches for row in b.to_pylist()]
    return cluster.items["out"], Counter(map(_told, late))


def _told(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("reason", "lane", "kind", "LE", "RE", "RE_new"))


@pytest.mark.parametrize("name", PLANS)
def test_buckets_and_epochs_do_not_show(name: str) -> None:
    build: Build = PLANS[name]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        sources("a", LEFT),
        sources("b", RIGHT),
        st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any),
        st.sampled_from(("arrival", "watermark")),
    )
    def agrees(a: Source, b: Source, epochs: list[int], pace: str) -> None:
        node = build(Stream(a), Stream(b)).node
        items, late = alone(node, pace)
        wanted = History.of(items, node.schema)
        for buckets in (1, 2, 5):
            got, told = spread(node, buckets, [a, b], epochs, pace)
            assert violations(got) == []
            assert History.of(got, node.schema) == wanted
            if name != LOOKED_UP:
                assert told <= late if name in FILTERED else told == late

    agrees()
