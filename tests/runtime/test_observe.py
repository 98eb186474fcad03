"""What `observe` counts is the aggregate over the history: paging, corrections and threads never show."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura.errors import PlanError
from caesura.events import Page
from caesura.events.history import History
from caesura.ops.input import Input
from caesura.ops.observe import Observe
from caesura.plan import Properties
from caesura.plan.tally import Tally
from caesura.runtime.metrics.families import QueryMetrics
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.status import log_epoch
from caesura.runtime.query.query import Query

SCHEMA = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("d", pa.decimal128(20, 2))])
NUMBERS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
CENTS = st.one_of(st.none(), st.integers(-(10**19), 10**19))
QUANTITIES = {
    "rows": cz.count(),
    "known": cz.count("n"),
    "whole": cz.sum("n"),
    "exact": cz.sum("x"),
    "mean": cz.avg("x"),
    "money": cz.sum("d"),
}


def _node(name: str = "seen", quantities: Any = QUANTITIES, **known: bool) -> Observe:
    source = Input(label="in", payload=SCHEMA, known=Properties(**known))
    return Observe(inputs=(source,), aggregates=tuple(quantities.items()), name=name)


def _row(number: int | None, x: Any, cents: Any) -> dict[str, Any]:
    money = None if cents is None else Decimal(cents).scaleb(-2, Context(prec=40))
    return {"n": number, "x": x, "d": money}


@st.composite
def deliveries(draw: st.DrawFn) -> list[Page]:
    """Rows of which some are taken back, and some have their ends moved, in pages of any size."""
    pages: list[Page] = []
    for number in range(draw(st.integers(0, 6))):
        rows = [_row(draw(NUMBERS), draw(FLOATS), draw(CENTS)) for _ in range(draw(st.integers(1, 4)))]
        batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
        le, re = [number] * len(rows), [number + 10] * len(rows)
        pages.append(Page.of(batch, le=le, re=re))
        if draw(st.booleans()):
            ends = [draw(st.sampled_from([number, number + 4, number + 20])) for _ in rows]
            pages.append(Page.of(batch, le=le, re=re, re_new=ends))
    return pages


def _recomputed(pages: list[Page]) -> dict[str, Any]:
    """From the rows of the history, one by one, in fractions."""
    rows = _history(pages)
    floats = [Fraction(row["x"]) for row in rows if row["x"] is not None]
    whole = [row["n"] for row in rows if row["n"] is not None]
    money = [Fraction(row["d"]) for row in rows if row["d"] is not None]
    total = sum(floats, Fraction())
    return {
        "rows": len(rows),
        "known": len(whole),
        "whole": sum(whole) if whole else None,
        "exact": _rounded(total) if floats else None,
        "mean": _rounded(total) / len(floats) if floats else None,
        "money": _rounded(sum(money, Fraction())) if money else None,
    }


def _history(pages: list[Page]) -> list[dict[str, Any]]:
    live: list[dict[str, Any]] = []
    for page in pages:
        for at, row in enumerate(page.payload.to_pylist()):
            new = None if page.re_new is None else int(page.re_new[at])
            if new is None:
                live.append(row)
            elif new == int(page.le[at]):
                live.remove(row)
    return live


def _rounded(total: Fraction) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@pytest.mark.slow
@given(deliveries())
def test_what_is_observed_is_the_aggregate_over_the_history(pages: list[Page]) -> None:
    query = Query({"out": _node()})
    for page in pages:
        query.feed("in", page)
    query.run()
    assert query.status().observed["seen"] == _recomputed(pages)
    assert History.of(query.take("out"), SCHEMA) == History.of(pages, SCHEMA)


@pytest.mark.slow
@given(deliveries(), st.integers(0, 12))
def test_a_query_that_goes_on_counts_on(pages: list[Page], cut: int) -> None:
    first, rest = Query({"out": _node()}), pages[cut:]
    for page in pages[:cut]:
        first.feed("in", page)
    first.run()
    second = Query({"out": _node()})
    second.restore({name: data for name, data in first.snapshot().items() if data is not None})
    for page in rest:
        second.feed("in", page)
    second.run()
    assert second.status().observed["seen"] == _recomputed(pages)


@pytest.mark.slow
@given(deliveries(), st.integers(0, 12))
def test_buckets_together_observe_what_one_does(pages: list[Page], cut: int) -> None:
    apart = [_tallies(pages[:cut]), _tallies(pages[cut:])]
    both = {name: apart[0][name].plus(apart[1][name]).value for name in QUANTITIES}
    assert both == _recomputed(pages)


def _tallies(pages: list[Page]) -> dict[str, Tally]:
    operator = _node().operator()
    for page in pages:
        list(operator.page(0, page))
    return operator.measure().observed


def test_values_that_are_no_numbers_show_in_a_sum() -> None:
    rows = [{"ts": 1, "x": math.inf}, {"ts": 2, "x": 1.0}]
    stream = cz.from_rows(rows, time="ts").observe("seen", all=cz.sum("x"))
    assert stream.run().observed == {"seen": {"all": math.inf}}
    both = cz.from_rows([*rows, {"ts": 3, "x": -math.inf}], time="ts").observe("seen", all=cz.sum("x"))
    assert math.isnan(both.run().observed["seen"]["all"] or 0)


def test_threads_observe_what_one_thread_does() -> None:
    rows = [{"ts": t, "id": t % 5, "x": 0.1 * t} for t in range(500)]
    stream = cz.from_rows(rows, time="ts", punctuate=cz.delay(3)).observe(
        "seen", cz.sum("x").alias("total"), top=cz.max("x"), n=cz.count(where="id = 3")
    )
    plan = stream.group_by("id").tumbling(10).agg(n=cz.count()).observe("windows", rows=cz.sum("n"))
    one, two = plan.run(), plan.run(threads=2)
    assert two.observed == one.observed
    assert one.observed["windows"] == {"rows": 500} and one.observed["seen"]["n"] == 100


def test_filters_behind_it_stay_behind_it() -> None:
    rows = cz.from_rows([{"ts": t, "v": t} for t in range(9)], time="ts")
    assert rows.observe("seen", n=cz.count()).where("v > 6").run().observed == {"seen": {"n": 9}}


def test_what_is_observed_is_a_metric() -> None:
    query = cz.from_rows([{"ts": 1, "v": 4}], time="ts").observe("seen", v=cz.sum("v")).query()
    query.run()
    text = QueryMetrics(lambda: Figures("q", query.status())).text().decode()
    assert 'caesura_observed{observation="seen",query="q",what="v"} 4.0' in text


def test_two_observations_of_one_name_are_refused() -> None:
    rows = cz.from_rows([{"ts": 1, "v": 4}], time="ts")
    twice = rows.observe("seen", n=cz.count()).where("v > 1").observe("seen", n=cz.count())
    with pytest.raises(PlanError, match="two observations are called 'seen'"):
        twice.run()


def test_the_greatest_of_rows_that_may_be_taken_back_is_refused() -> None:
    with pytest.raises(PlanError, match="rows here may be taken back"):
        _node(quantities={"top": cz.max("n")})
    assert _node(quantities={"top": cz.max("n")}, insert_only=True).describe() == "top = max(n)"


def test_the_log_names_query_epoch_and_step(caplog: pytest.LogCaptureFixture) -> None:
    query = cz.from_rows([{"ts": 1, "v": 4}], time="ts").where("v > 1").query()
    query.run()
    with caplog.at_level("DEBUG", "caesura.epochs"):
        log_epoch(query.status(), 3, 0.5, "speeds")
    (told,) = [vars(record) for record in caplog.records if hasattr(record, "step")]
    assert (told["query"], told["epoch"], told["step"]) == ("speeds", 3, "where")
    assert (told["rows_in"], told["rows_out"]) == (1, 1)
    caplog.clear()
    with caplog.at_level("INFO", "caesura.epochs"):
        log_epoch(query.status(), 3, 0.5, "speeds")
    assert len(caplog.records) == 1


def test_an_epoch_that_is_saved_names_its_steps_too(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    stream = cz.from_rows([{"ts": 1, "v": 4}], time="ts").where("v > 1")
    with caplog.at_level("DEBUG", "caesura"), stream.query(checkpoint=tmp_path) as query:
        query.run()
    told = [vars(record) for record in caplog.records if hasattr(record, "step")]
    assert told and {one["step"] for one in told} == {"where"}
    assert all("query" in one and "epoch" in one for one in told)
