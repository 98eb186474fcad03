"""Rows that steps refuse are told once, on one thread and on several; those of shared tables too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster
from depth import examples, seed_of
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col

ROWS = [{"ts": t, "k": t % 3, "v": float(t)} for t in range(40)]


def source(first: int = 0) -> Stream:
    return cz.from_rows(ROWS[first:], time="ts", punctuate=cz.delay(2))


def refusing(stream: Stream, name: str = "z") -> Stream:
    number = cz.when(col("k") == 1, cz.lit("none")).otherwise(cz.lit("3")).cast("bigint")
    return stream.with_columns(**{name: number}).on_bad("late")


STEPS: dict[str, Callable[[Stream], Stream]] = {
    "refusing": refusing,
    "tumbling": lambda s: s.tumbling(10).agg(k=cz.max("k"), v=cz.avg("v")),
    "by key": lambda s: s.group_by("k").tumbling(10).agg(v=cz.max("v")),
    "hopping": lambda s: s.hopping(10, every=5).agg(k=cz.max("k"), v=cz.sum("v")),
    "totals": lambda s: s.totals(k=cz.max("k"), v=cz.max("v")),
    "shift": lambda s: s.shift(2),
    "join": lambda s: s.join(refusing(source(1), "y").select("k", "y"), on="k", within=(-2, 2)),
    "where": lambda s: s.where("v > 3"),
    "union": lambda s: s.select("k", "v").union(s.select("k", "v").shift(1)),
}


@seed(seed_of("late on threads"))
@settings(max_examples=examples(300, short=12), deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4))
def test_as_many_rows_are_refused_on_threads_as_on_one(steps: list[str]) -> None:
    if steps.count("join") > 1 or steps.count("refusing") > 1:
        return  # two columns of one name
    if "refusing" in steps and {"tumbling", "hopping", "totals"} & {*steps[: steps.index("refusing")]}:
        return  # it refuses results for now, and how many there are of them depends on the paging
    stream = source()
    for name in steps:
        stream = STEPS[name](stream)
    counts = [
        sorted(table.num_rows for table in stream.run(threads=n).late.values() if table.num_rows)
        for n in (1, 2)
    ]
    assert sum(counts[0]) == sum(counts[1]), steps


SHARED: dict[str, Callable[[Stream], Stream]] = {
    "lasting": lambda s: s.set_duration(5),
    "filtered": lambda s: s.where("v > 3"),
    "by key": lambda s: s.group_by("k").totals(v=cz.max("v")),
    "of all": lambda s: s.totals(v=cz.max("v"), k=cz.max("k")),
    "alive": lambda s: s.group_by("k").alive().agg(v=cz.max("v")),
    "tumbling": lambda s: s.tumbling(10).agg(v=cz.max("v"), k=cz.max("k")),
}
JOINS: list[dict[str, Any]] = [{}, {"within": (-2, 2)}, {"how": "left"}, {"how": "left", "within": (-2, 2)}]
FEW = [{"ts": t, "k": t % 3, "v": float(t)} for t in range(9)]


@seed(seed_of("late of shared steps"))
@settings(max_examples=examples(300, short=8), deadline=None)
@given(
    st.sampled_from(["points", "forever", "table"]),
    st.lists(st.sampled_from(sorted(SHARED)), min_size=1, max_size=3),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(JOINS),
    st.sampled_from(["run", "buckets"]),
)
def test_rows_that_a_step_refuses_are_told_once_whoever_reads_it(
    kind: str, steps: list[str], joined: int, first: bool, how: dict[str, Any], host: str
) -> None:
    points = cz.from_rows(FEW, time="ts", punctuate=cz.delay(2))
    start = {"points": points, "forever": points.forever(), "table": cz.table(FEW)}[kind]
    made = [refusing(start)]
    for name in steps:
        made.append(SHARED[name](made[-1]))
    one, other = made[-1], made[min(joined, len(made) - 2)]
    left, right = (one, other) if first else (other, one)
    try:
        stream = left.join(right.select("k", w=col("v")), on="k", **how)
    except cz.PlanError:
        return  # no rows of it can be alive at once
    told = in_buckets(stream) if host == "buckets" else rows_of(stream.run(threads=2).late)
    assert told == rows_of(stream.run().late) > 0


def rows_of(late: Mapping[str, pa.Table]) -> int:
    return sum(table.num_rows for table in late.values())


def in_buckets(stream: Stream) -> int:
    cluster = Cluster({"out": stream.node}, 3)
    cluster.run()
    return sum(batch.num_rows for batches in cluster.late.values() for batch in batches)


@pytest.mark.parametrize("option", ["on_error", "on_bad"])
def test_an_option_of_another_call_is_not_a_column(option: str) -> None:
    for step in (source().select, source().with_columns):
        with pytest.raises(cz.PlanError, match=f"{option}= is no option of"):
            step(w=col("v"), **{option: "late"})
    assert source().select(on_bad=cz.lit("late")).columns == ["on_bad"]
