"""A guard that costs more than it saves is left out; one that results depend on never is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from feedback_streams import ANY, counted, stream

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.events import History, Page
from caesura.feedback.step_guards import StepGuards
from caesura.feedback.worth import LONGEST_REST, SELDOM, TRIAL, Saving, Worth
from caesura.punctuation import INFINITY, cti, definite, ge
from caesura.runtime import Query

PAGES = 100


def page(number: int, rows: int) -> Page:
    """Points of some tick; their ids count up from 0."""
    at = np.full(rows, number)
    return Page.of(pa.record_batch({"id": np.arange(rows)}), le=at, re=at + 1)


def told(plan: Stream, pattern: Pattern | None, rows: int = 450) -> Query:
    """A query that got many pages, under feedback that counts until it is withdrawn."""
    query = plan.query(speculate="watermark")
    if pattern is not None:
        query.assume(pattern)
    for number in range(PAGES):
        query.feed("a", page(number, rows))
        query.feed("a", cti(number))
    query.feed("a", cti(INFINITY))
    query.run()
    return query


def test_a_guard_that_stops_little_looks_seldom() -> None:
    plan = stream(id="int").where(col("id") >= 0)
    stopped = counted(told(plan, Pattern(id=7)))["input"]["stopped at the output"]
    assert TRIAL < stopped <= TRIAL + 1 + PAGES // SELDOM


def fed(query: Query, begin: int, ids: list[int], pages: int) -> list[int]:
    """How many rows leave for each of some pages."""
    left = []
    for number in range(begin, begin + pages):
        at = np.full(len(ids), number)
        query.feed("a", Page.of(pa.record_batch({"id": pa.array(ids)}), le=at, re=at + 1))
        query.run()
        left.append(sum(len(i) for i in query.take("out") if isinstance(i, Page)))
    return left


def test_guards_that_never_pay_rest_ever_longer_and_are_back_when_they_do() -> None:
    query = stream(id="int").where(col("id") >= 0).query(speculate="watermark")
    query.assume(Pattern(id=7))
    quiet = fed(query, 0, [1, 2, 7, 3], 2000)
    assert TRIAL < quiet.count(3) <= TRIAL + 10
    busy = fed(query, 2000, [7] * 2000, LONGEST_REST + 50)
    assert busy[-50:] == [0] * 50


def test_a_guard_that_spares_a_window_most_of_its_rows_looks_always() -> None:
    plan = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    query = told(plan, Pattern(id=ge(5)), rows=2000)
    assert counted(query)["input"]["stopped at the output"] == PAGES * 1995
    whole = History.of(told(plan, None, rows=2000).take("out"), plan.schema)
    found = History.of(query.take("out"), plan.schema)
    assert len(found) == 5 * PAGES // 10
    assert not found.bag - whole.bag


def test_a_page_that_vanishes_spares_all_steps_below() -> None:
    plan = stream(id="int").where(col("id") >= 0).select("id", twice=col("id") * 2)
    assert counted(told(plan, Pattern(id=ge(0)), rows=3))["input"]["stopped at the output"] == PAGES * 3


def test_a_guard_rests_though_rows_may_be_taken_back_but_not_while_it_keeps_some() -> None:
    plan = stream("a", ANY, id="int").where(col("id") >= 0)
    idle, keeping = (plan.query(speculate="watermark") for _ in range(2))
    idle.assume(Pattern(id=1000))
    keeping.assume(Pattern(id=7))
    assert fed(idle, 0, [1, 7], PAGES) == [2] * PAGES
    assert idle.cell("out").responder is not None
    assert idle.cell("out").awake is None
    assert fed(keeping, 0, [1, 7], PAGES) == [1] * PAGES


def test_the_same_run_decides_alike() -> None:
    plan = stream(id="int").where(col("id") >= 0)
    first, second = (told(plan, Pattern(id=ge(400))).take("out") for _ in range(2))
    assert [len(i) for i in first if isinstance(i, Page)] == [len(i) for i in second if isinstance(i, Page)]


def test_a_guard_pays_again_when_more_is_stopped() -> None:
    account = Worth(Saving(row=200, page=50_000))
    for _ in range(TRIAL):
        account.looked(450, 1)
    assert not account.pays
    looks = 0
    while not account.pays:
        if account.looks():
            account.looked(450, 450)
            looks += 1
    assert looks < 20


def test_guards_that_rest_sleep_through_punctuation_that_is_not_the_end() -> None:
    plan = stream(id="int").where(col("id") >= 0)
    query = plan.query(speculate="watermark")
    query.assume(Pattern(id=7))
    fed(query, 0, [1, 2, 7, 3], TRIAL + 2)
    for item, wakes in ((definite(id=9), False), (cti(TRIAL), False), (definite(), True)):
        query.feed("a", item)
        query.run()
        assert (query.cell("out").awake is not None) == wakes


def test_punctuation_on_time_does_not_look_at_feedback_on_other_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    settle = StepGuards.settle

    def noted(self: StepGuards, *given: Any) -> int:
        looked.append(1)
        return settle(self, *given)

    monkeypatch.setattr(StepGuards, "settle", noted)
    rows = [{"ts": t, "seg": t % 3} for t in range(200)]
    query = cz.from_rows(rows, time="ts", punctuate=cz.delay(0), batch_size=2).where(col("seg") >= 0).query()
    query.assume(col("seg") == 1)
    query.run()
    assert 0 < len(looked) < 12
