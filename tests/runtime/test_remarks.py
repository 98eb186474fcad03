"""No result is quietly empty: what was late, refused or waits is told behind its rows, and who gave none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from bucket_plans import PLANS
from depth import examples, seed_of
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from test_empty_sets import EMPTY, PLACES, emptied

import caesura as cz
from caesura import Stream, col
from caesura.runtime.query.result import Result

AHEAD = [{"ts": t, "k": t % 3} for t in [*range(41), 1000, *range(41, 59)]]


def clicks(name: str = "clicks", **more: Any) -> Stream:
    return cz.from_rows(AHEAD, time="ts", punctuate=cz.delay(2, **more), name=name)


def views(result: Result) -> list[str]:
    return [str(result), result._repr_html_().replace("&#x27;", "'")]


@pytest.mark.parametrize(
    "run",
    [
        Stream.run,
        lambda stream: stream.run(threads=2),
        lambda stream: stream.preview(100),
        lambda stream: stream.run(output="final"),
    ],
    ids=["run", "threads", "preview", "final"],
)
def test_a_row_far_ahead_is_told_by_what_it_makes_late(run: Callable[[Stream], Result]) -> None:
    for view in views(run(clicks())):
        assert "18 of 60 rows of 'clicks' came too late (result.late['clicks'])." in view


@pytest.mark.slow
@seed(seed_of("remarks"))
@settings(max_examples=examples(200, short=15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(PLANS)),
    st.sampled_from(sorted(EMPTY)),
    st.sampled_from(PLACES),
    st.sampled_from(("changes", "final")),
    st.sampled_from((1, 2)),
)
def test_an_empty_result_of_rows_says_which_step_gave_none(
    name: str, kind: str, place: str, mode: Any, threads: int
) -> None:
    plan, _ = emptied(PLANS[name], kind, place)
    result = plan.run(output="changes" if name.startswith("output") else mode, threads=threads)
    read = any(c.rows_out for c in result.counters.values())
    quiet = read and len(result.history) == 0 and not any(map(len, pages_of(result)))
    assert any(line.startswith("No row came out: ") for line in result.remarks) is quiet
    for source, table in result.late.items():
        assert any(f"'{source}'" in line for line in result.remarks) is (table.num_rows > 0)


def pages_of(result: Result) -> list[Any]:
    return [item for item in result.items if hasattr(item, "le")]


def test_points_that_are_joined_with_points_are_told_by_check_and_result() -> None:
    rows = [{"ts": t, "k": t % 3, "b": t} for t in range(100, 160)]
    bids = cz.from_rows(rows, time="ts", punctuate=cz.delay(2), name="bids")
    met = clicks().join(bids, on="k")
    said = "pairs rows of the very same time only, because both sides are points"
    assert said in str(met.check()) and met.check().safe
    for view in views(met.run()):
        assert said in view
    for other in (
        clicks().join(bids, on="k", within=(-9, 9)),
        clicks().join(bids, on="k", within=(0, 0)),
        clicks().join(bids.set_duration(5), on="k"),
        clicks().join(clicks().with_columns(b=col("k")), on="k"),
    ):
        assert said not in str(other.check())


def test_a_filter_that_is_never_true_is_told_by_check() -> None:
    never, some = clicks().where("k = 1 and k = 2"), clicks().where("k = 1 or k = 2")
    assert "passes no row, because 'k = 1 AND k = 2' is never true" in str(never.check())
    assert "passes no row" not in str(some.check())


def test_rows_that_wait_to_be_final_for_ever_are_told() -> None:
    open_ = clicks(closes=False).set_duration(5000).tumbling(10_000).agg(n=cz.count())
    assert "holds 1 row" in str(open_.run(output="final"))
    waits = clicks(closes=False).latest("k")
    assert "may still change, and wait to be final" in str(waits.run(output="final"))


def test_what_cannot_be_read_and_promises_that_do_not_count_are_told_apart() -> None:
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    rows = [{"ts": 5, "k": 1}, {"ts": None, "k": 2}, cz.cti(9), cz.cti(4), {"ts": 3, "k": 3}]
    result = cz.from_rows(rows, schema, time="ts", name="a").run()
    assert result.remarks == [
        "1 of 3 rows of 'a' came too late (result.late['a']).",
        "1 of 3 rows of 'a' were refused: has no time (result.late['a']).",
        "1 punctuation of 'a' did not count: "
        "punctuation 'time < 4' goes back behind 'time < 9' (result.late['a']).",
    ]


def test_a_result_without_anything_to_say_says_nothing() -> None:
    assert cz.from_rows([{"ts": 1, "k": 2}], time="ts").run().remarks == []


def test_keys_whose_types_cannot_be_equal_are_refused() -> None:
    words = cz.from_rows([{"ts": 1, "k": "1", "w": 1}], time="ts")
    with pytest.raises(cz.PlanError, match="the key 'k' is int64 on the left and 'k' is string on the right"):
        clicks().join(words, on="k")
