"""Aggregates over all rows are taken in every bucket first, where that is exact."""

from __future__ import annotations

import pyarrow as pa
import pytest
from bucket_plans import sources
from cluster import Cluster
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError
from caesura.events import History
from caesura.plan.cut import Stages, cut
from caesura.plan.prune import prune


def stages(stream: Stream, buckets: int = 2) -> Stages:
    return cut(prune({"out": stream.node}), buckets)


def shares(made: Stages) -> list[int]:
    """The stages in which buckets have shares of a result."""
    return [s.number for s in made.stages for n in s.nodes if getattr(n, "scattered", False)]


def source() -> Stream:
    return Stream(sources()[0])


def test_a_count_over_all_is_taken_in_each_bucket_and_then_in_one() -> None:
    made = stages(source().tumbling(10).agg(n=cz.count(), mean=cz.avg("id")))
    assert shares(made) == [1]
    gathered = [e for s in made.stages for e in s.arrivals if e.keys == ()]
    assert [(e.source_stage, e.target_stage) for e in gathered] == [(1, 2)]


def test_a_share_behind_a_keyed_step_needs_no_stage_of_its_own() -> None:
    made = stages(source().group_by("id").tumbling(5).agg(n=cz.count()).tumbling(10).agg(k=cz.sum("n")))
    assert shares(made) == [1]
    assert len(made.stages) == 3


def test_nothing_is_shared_in_one_bucket_nor_where_rows_have_met() -> None:
    once = source().tumbling(10).agg(n=cz.count())
    assert shares(stages(once, buckets=1)) == []
    assert shares(stages(once.where(col("n") > 1).tumbling(20).agg(k=cz.sum("n")))) == [1]


def test_sums_of_floats_and_groups_stay_whole() -> None:
    assert shares(stages(source().tumbling(10).agg(n=cz.count(), s=cz.sum("v")))) == []
    assert shares(stages(source().group_by("id").tumbling(10).agg(n=cz.count()))) == []
    assert shares(stages(source().tumbling(10).agg(s=cz.stddev("id")))) == []


OVER_ALL = {
    "totals": lambda s: s.totals(x=cz.sum("v"), m=cz.avg("v"), n=cz.count()),
    "tumbling": lambda s: s.tumbling(8).agg(x=cz.sum("v"), m=cz.avg("v"), n=cz.count()),
    "hopping": lambda s: s.hopping(8, every=4).agg(x=cz.sum("v"), m=cz.avg("v"), n=cz.count()),
}
LARGE = st.sampled_from([2**63 - 1, -(2**63), 2**62, 2**62 - 1, -(2**62), -1, 1, 0])


def answer(stream: Stream, buckets: int) -> History | str:
    """What comes in so many buckets; or that a sum was refused."""
    cluster = Cluster({"out": stream.node}, buckets, speculate="watermark")
    try:
        cluster.run()
    except StreamError as refusal:
        return str("64 bits" in str(refusal) or "9223372036854775807" in str(refusal))
    return History.of(cluster.items["out"], stream.node.schema)


@pytest.mark.parametrize("how", OVER_ALL)
def test_a_share_may_be_beyond_64_bits_where_the_sum_is_not(how: str) -> None:
    @settings(max_examples=examples(15), deadline=None)
    @given(st.lists(LARGE, min_size=1, max_size=10), st.booleans())
    def holds(numbers: list[int], apart: bool) -> None:
        times = [3 * t if apart else 0 for t in range(len(numbers))]
        table = pa.table({"ts": times, "v": pa.array(numbers, pa.int64())})
        made = OVER_ALL[how](cz.from_arrow(table, time="ts", punctuate=cz.delay(1), batch_size=2))
        stream = made.where(col("n") > 0)
        assert answer(stream, 3) == answer(stream, 1)

    holds()
