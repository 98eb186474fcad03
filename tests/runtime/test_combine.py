"""Aggregates over all rows are taken in every bucket first, where that is exact."""

from __future__ import annotations

import numpy as np
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
from caesura.events import History, Page
from caesura.events.identity import Secret
from caesura.plan.cut import EVENTS, Stages, cut
from caesura.plan.prune import prune
from caesura.runtime.buckets.stage0 import route


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


def test_a_skewed_key_lies_in_all_buckets_until_its_shares_meet_by_key() -> None:
    by_key = source().group_by("id").tumbling(10)
    made = stages(by_key.agg(n=cz.count(), s=cz.sum("v"), skewed=True))
    assert shares(made) == [1]
    assert [(e.target_stage, e.keys) for s in made.stages for e in s.arrivals] == [(1, EVENTS), (2, ("id",))]
    alike = [by_key.agg(n=cz.count(), skewed=skewed) for skewed in (False, True)]
    assert alike[0].node.fingerprint == alike[1].node.fingerprint
    assert shares(stages(alike[1], buckets=1)) == []


def test_rows_of_one_key_are_spread_and_a_retract_follows_its_insert() -> None:
    made = stages(source().select("id").group_by("id").tumbling(10).agg(n=cz.count(), skewed=True), 4)
    (exchange,) = made.stages[1].arrivals
    starts = np.arange(1000)
    page = Page(starts, starts + 5, pa.record_batch({"id": np.zeros(1000, np.int64)}))
    parts = route(page, exchange, 4, Secret(b"0123456789abcdef"))
    assert all(part is not None and 200 < len(part) < 300 for part in parts)
    retracts = Page(starts, starts + 5, page.payload, starts)
    for part, taken in zip(parts, route(retracts, exchange, 4, Secret(b"0123456789abcdef")), strict=True):
        assert part is not None and taken is not None and part.le.tolist() == taken.le.tolist()


def test_a_share_has_a_name_that_no_key_has() -> None:
    stream = source().select(**{"mean sum": col("id"), "v": col("id")})
    split = stream.group_by("mean sum").tumbling(10).agg(mean=cz.avg("v"), skewed=True)
    assert shares(stages(split)) == [1]
    assert stages(split).outputs["out"].schema.names == ["mean sum", "mean"]


DOUBLES = st.sampled_from([1e308, -1e308, 5e-324, 0.1, -0.1, 3.0, 2.0**40, 1e-20, -0.0, None]) | st.floats()
KEYED = {
    "totals": lambda s: s.totals,
    "tumbling": lambda s: s.tumbling(8).agg,
    "hopping": lambda s: s.hopping(8, every=4).agg,
}


@pytest.mark.slow
@pytest.mark.parametrize("how", KEYED)
def test_shares_of_floats_make_the_sums_of_one_bucket_to_the_last_bit(how: str) -> None:
    @settings(max_examples=examples(25, short=8), deadline=None)
    @given(st.lists(st.tuples(DOUBLES, st.integers(0, 2)), min_size=1, max_size=16), st.integers(2, 5))
    def holds(rows: list[tuple[float | None, int]], buckets: int) -> None:
        values = [{"ts": t, "id": 0 if k else 1, "v": v} for t, (v, k) in enumerate(rows)]
        table = pa.Table.from_pylist(values, pa.schema([(n, pa.int64()) for n in ("ts", "id")] + [FLOAT]))
        given = cz.from_arrow(table, time="ts", punctuate=cz.delay(1), batch_size=3).group_by("id")
        aggregates = {"s": cz.sum("v"), "m": cz.avg("v"), "d": cz.stddev("v"), "c": cz.corr("v", "id")}
        stream = KEYED[how](given)(**aggregates, skewed=True)
        assert answer(stream, buckets) == answer(stream, 1)

    holds()


FLOAT = ("v", pa.float64())
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
