"""Slow work is done to a budget of rows or of time, per item or per epoch; what waits is state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from feedback_streams import feed, rows, stream
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream
from caesura.errors import PlanError
from caesura.events import History, Page
from caesura.ops.impute import Imputing
from caesura.punctuation import INFINITY, cti
from caesura.runtime import Query

SOME = " LE RE | id v |\n 1 2 | 1 null | +\n 1 2 | 2 null | +\n 1 2 | 3 null | +\n 1 2 | 4 null | +"
ONE = " LE RE | id v |\n 2 3 | 9 9 | +"


def squares(batch: pa.RecordBatch) -> list[int]:
    return [i * i for i in batch.column("id").to_pylist()]


class Clock:
    """Time that passes by so much whenever a batch is filled, per row."""

    def __init__(self, per_row: int) -> None:
        self.now, self.per_row = 0, per_row

    def __call__(self) -> int:
        return self.now

    def fill(self, batch: pa.RecordBatch) -> list[int]:
        self.now += self.per_row * batch.num_rows
        return squares(batch)


def started(plan: Stream, clock: Clock) -> Query:
    """A query of a plan with one impute, by a clock of ours."""
    query = plan.query()
    next(c for c in query.graph.cells if isinstance(c.operator, Imputing)).operator.clock = clock  # type: ignore[attr-defined]
    return query


def imputed(clock: Clock, **options: object) -> Stream:
    return stream(id="int", v="int").impute("v", clock.fill, **options)  # type: ignore[arg-type]


def filled(query: Query, plan: Stream) -> list[object]:
    return [row[2] for row in rows(query, plan) if row[2] != 9]


def test_a_budget_of_time_fills_what_fits() -> None:
    clock = Clock(per_row=1_000_000)
    plan = imputed(clock, budget="2ms")
    query = started(plan, clock)
    feed(query, SOME)
    assert filled(query, plan) == [1, 2]
    feed(query, ONE)
    assert filled(query, plan) == [3, 4]
    assert clock.now == 4_000_000


def test_one_row_is_filled_however_short_the_time() -> None:
    clock = Clock(per_row=10**9)
    plan = imputed(clock, budget=timedelta(milliseconds=1))
    query = started(plan, clock)
    feed(query, SOME)
    assert filled(query, plan) == [1]


def test_a_budget_for_an_epoch_is_spent_once() -> None:
    plan = imputed(Clock(0), budget=2, per="epoch")
    query = plan.query()
    feed(query, SOME + "\n-- 1 --\n 2 3 | 9 9 | +")
    assert filled(query, plan) == [1, 2]
    feed(query, ONE)
    assert filled(query, plan) == [3, 4]


def test_a_time_for_an_epoch_is_spent_once() -> None:
    clock = Clock(per_row=1_000_000)
    plan = imputed(clock, budget="3ms", per="epoch")
    query = started(plan, clock)
    feed(query, SOME + "\n-- 1 --\n 2 3 | 9 9 | +")
    assert filled(query, plan) == [1, 2, 3]


@pytest.mark.parametrize(
    ("budget", "per"), [("0ms", "item"), (0, "item"), (-1, "epoch"), (3, "day"), ("x", "item")]
)
def test_a_budget_that_means_nothing_is_refused(budget: object, per: str) -> None:
    with pytest.raises(PlanError, match="budget"):
        imputed(Clock(0), budget=budget, per=per)


def test_explain_names_the_budget() -> None:
    assert "; 20ms in an epoch" in imputed(Clock(0), budget="20ms", per="epoch").explain()


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    speeds=st.lists(st.integers(1, 5), min_size=2, max_size=2),
    cut=st.integers(0, 5),
    per=st.sampled_from(["item", "epoch"]),
)
def test_a_run_that_is_taken_up_at_another_speed_gives_each_row_once(
    sizes: list[int], speeds: list[int], cut: int, per: str
) -> None:
    clock = Clock(speeds[0] * 1_000_000)
    plan = imputed(clock, budget="4ms", per=per)
    query, items = started(plan, clock), []
    for number, size in enumerate(sizes):
        if number == cut:
            items += query.take("out")
            saved = query.snapshot()
            query.feed("a", page(99, 3))  # this epoch fails: neither its output nor its state is kept
            query.run()
            clock.per_row = speeds[1] * 1_000_000
            query = started(plan, clock)
            query.restore(saved)
        query.feed("a", page(number, size))
        query.feed("a", cti(number + 1))
        query.run()
    query.feed("a", cti(INFINITY))
    query.run()
    found = History.of([*items, *query.take("out")], plan.schema).rows()
    wanted = [(n, n + 1, (i, i * i)) for n, size in enumerate(sizes) for i in range(size)]
    assert sorted(found) == sorted(wanted)


def page(at: int, size: int) -> Page:
    batch = pa.record_batch({"id": pa.array(range(size), pa.int64()), "v": pa.nulls(size, pa.int64())})
    return Page.of(batch, le=[at] * size, re=[at + 1] * size)


@pytest.mark.parametrize(
    ("take", "wanted"),
    [("last", 20), ("first", 40), ("min", 10), ("max", 40), ("sum", 70), ("mean", 70 / 3)],
)
def test_an_archive_with_several_rows_for_a_key_takes_the_value_it_is_told_to(
    take: Any, wanted: float
) -> None:
    table = pa.table({"id": [3, 3, 4, 3], "v": [40.0, 10.0, 7.0, 20.0]})
    archive = cz.Archive(table, ("id",), "v", take=take)
    assert archive(pa.record_batch({"id": [4, 3, 9]})).to_pylist() == [7.0, wanted, None]
