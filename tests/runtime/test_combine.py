"""Aggregates over all rows are taken in every bucket first, where that is exact."""

from __future__ import annotations

from bucket_plans import sources

import caesura as cz
from caesura import Stream, col
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
