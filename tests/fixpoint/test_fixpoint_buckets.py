"""Loops in several buckets: any cut into epochs and any number of buckets give the history of one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fixpoint_law_cases import legs, nearest, parity, paths, reached
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura.events import History
from caesura.fixpoint.node import Progress
from caesura.plan import Node
from caesura.runtime.cluster import Cluster
from caesura.runtime.running import run
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
from bucket_plans import scripted  # noqa: E402

EXAMPLES = int(os.environ.get("CAESURA_FIXPOINT_EXAMPLES", "3"))
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


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_a_loop_gives_the_same_history_in_any_number_of_buckets(name: str, buckets: int) -> None:
    build, specs = PLANS[name]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        sources = []
        for number, spec in enumerate(specs):
            _, items = data.draw(streams(spec, kinds=("time",), closed=False))
            sources.append(scripted(f"s{number}", spec.schema, items, [0], [2, 1], 40))
        node: Node = build(*sources, _way(data))  # type: ignore[operator]
        cluster = Cluster({"out": node}, buckets)
        cluster.run(every=data.draw(st.integers(1, 3)))
        assert History.of(cluster.items["out"], node.schema) == run(node).history

    holds()


def _way(data: st.DataObject) -> Progress:
    return data.draw(st.sampled_from(("hybrid", "high_water")))
