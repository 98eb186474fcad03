"""Rows that steps refuse are told once, on one thread and on several; those of shared tables too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
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


@pytest.mark.parametrize("option", ["on_error", "on_bad"])
def test_an_option_of_another_call_is_not_a_column(option: str) -> None:
    for step in (source().select, source().with_columns):
        with pytest.raises(cz.PlanError, match=f"{option}= is no option of"):
            step(w=col("v"), **{option: "late"})
    assert source().select(on_bad=cz.lit("late")).columns == ["on_bad"]
