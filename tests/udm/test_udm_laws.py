"""Modules of every kind obey the laws over windows, clipped and stamped in every way that is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from cluster import Cluster
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from udm_law_cases import ALLOWED, BUCKETS, CASES, EVERY
from udm_modules import MODULES, Merging

import caesura as cz
from caesura.events import History
from caesura.ops.windows import Windows
from caesura.ops.windows.frames import Grid
from caesura.plan import Node
from caesura.testing.case import EACH_KIND, ENDS_OF_TIME, LawCase
from caesura.testing.laws import check_laws

EXAMPLES = examples(3, short=2)


@pytest.mark.thin(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_law_holds_with_modules(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from(case.kinds()))
    def holds(data: st.DataObject, kinds: tuple[str, ...]) -> None:
        check_laws(case, data, kinds=kinds)  # type: ignore[arg-type]

    holds()


@pytest.mark.parametrize("origin", ENDS_OF_TIME, ids=["end", "beginning"])
def test_every_law_holds_with_modules_at_the_ends_of_time(origin: int) -> None:
    small = [case for case in CASES if not case.name.lower().startswith("weigh")]  # others leave 64 bits

    @settings(max_examples=3 * EXAMPLES, deadline=None, print_blob=True)
    @given(st.data(), st.sampled_from(small), st.sampled_from(EACH_KIND))
    def holds(data: st.DataObject, case: LawCase, kinds: tuple[str, ...]) -> None:
        check_laws(case.about(origin), data, kinds=kinds)  # type: ignore[arg-type]

    holds()


def test_the_sample_meets_every_module_and_every_policy() -> None:
    words = {word for case in CASES for word in case.name.split("-")}
    assert words >= {*MODULES, "none", "left", "right", "full", "aligned", "unchanged", "clipped"}
    assert len(ALLOWED) < len(EVERY)


def readings(count: int = 120) -> cz.Stream:
    """Interval events of 7 keys, some late, from a source with punctuation."""
    random = np.random.default_rng(5)
    ts = np.arange(count) + random.integers(0, 4, count)
    rows = [
        {"ts": int(t), "until": int(t + d), "id": int(k), "v": int(v)}
        for t, d, k, v in zip(
            ts, random.integers(1, 9, count), random.integers(0, 7, count), random.integers(-3, 9, count),
            strict=True,
        )
    ]  # fmt: skip
    return cz.from_rows(rows, time="ts", end="until", punctuate=cz.delay(8), batch_size=20)


def over(source: Node, case: LawCase) -> Windows:
    """A case's step on another source."""
    plan = case.plan()
    assert isinstance(plan, Windows)
    return Windows(
        inputs=(source,), group=plan.group, frame=plan.frame, outputs=plan.outputs, apply=plan.apply,
        clip=plan.clip, stamp=plan.stamp,
    )  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES[::3], ids=str)
def test_any_number_of_buckets_gives_the_same_history(case: LawCase) -> None:
    node = over(readings().node, case)
    alone = cz.Stream(node).run().history
    cluster = Cluster({"out": node}, BUCKETS[case.name])
    cluster.run(every=2)
    assert History.of(cluster.items["out"], node.schema) == alone


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "frame", [Grid(6, 6), Grid(9, 4, 1), Grid(3, 7)], ids=["tumbling", "hopping", "gaps"]
)
@pytest.mark.parametrize("buckets", [2, 5])
@pytest.mark.parametrize("group", [(), ("id",)], ids=["all", "skewed"])
def test_a_mergeable_module_works_in_every_bucket_first(
    frame: Grid, buckets: int, group: tuple[str, ...]
) -> None:
    outputs = (("sum", Merging("v")), ("again", Merging(cz.col("v") + 1)))
    node = Windows(inputs=(readings().node,), frame=frame, outputs=outputs, group=group, skewed=bool(group))
    cluster = Cluster({"out": node}, buckets)
    assert ["in each bucket" in n.describe() for s in cluster.stages.stages for n in s.nodes if
            isinstance(n, Windows)] == [True, False]  # fmt: skip
    cluster.run(every=2)
    assert History.of(cluster.items["out"], node.schema) == cz.Stream(node).run().history
