"""Empty sets are sets: a filter that nothing passes, a stream without rows, feedback about nothing.

Whatever is asked of a plan with one is answered as if there were no rows, on every host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from bucket_plans import LEFT, PLANS, RIGHT, A, B, Build, inserts
from depth import DEPTH, examples, seed_of
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from test_raw_batches import HOSTS

import caesura as cz
from caesura import Stream, col, lit
from caesura.contracts import ContractError
from caesura.events import History, parse, violations
from caesura.expr import Expr
from caesura.io import Source
from caesura.plan import walk
from caesura.punctuation import Pattern

EMPTY: dict[str, Callable[[Expr, Any], Expr]] = {
    "another value": lambda c, v: (c == v) & (c != v),
    "no member": lambda c, v: c.isin([]),
    "a void interval": lambda c, v: (c > v) & (c < v),
    "null and not": lambda c, v: c.is_null() & (c == v),
    "false": lambda c, v: lit(False),
    "nothing of two": lambda c, v: c.isin([v]) & ~c.isin([v]),
    "unknown": lambda c, v: (c == v) & lit(None).cast("boolean"),
}
SOME: dict[Any, Any] = {pa.int64(): 1, pa.int32(): 1, pa.float64(): 1.5, pa.string(): "x", pa.bool_(): True}
"""A value of each type that a filter may name."""
NO_COLUMNS = ("false", "unknown")
"""These compare no column with a constant, so they are refused as feedback."""
PLACES = ("left", "right", "both", "behind")
FINITE_A = parse(A.replace("inf->12", "50->12").replace("inf", "50"), LEFT)
FINITE_B = parse(B.replace("inf->10", "50->10").replace("inf", "50"), RIGHT)


def sides(rows: bool = True) -> tuple[Stream, Stream]:
    """Both inputs, or the same without rows."""
    a = inserts("a", LEFT, FINITE_A if rows else [], [2], 5)
    b = inserts("b", RIGHT, FINITE_B if rows else [], [1], 5)
    return Stream(a), Stream(b)


def none_of(stream: Stream, kind: str, at: int) -> Stream:
    """The rows of a stream, none of which passes."""
    named = [(f.name, SOME[f.type]) for f in stream.schema if f.type in SOME]
    if not named:
        return stream.where(lit(False))
    name, value = named[at % len(named)]
    return stream.where(EMPTY[kind](col(name), value))


def emptied(build: Build, kind: str, place: str, at: int = 0) -> tuple[Stream, Stream]:
    """A plan with a filter that nothing passes, and a plan that reads no rows there."""
    (a, b), (no_a, no_b) = sides(), sides(rows=False)
    if place == "behind":
        made = build(a, b)
        return none_of(made, kind, at), made.where(lit(False))
    left, right = place in ("left", "both"), place in ("right", "both")
    plan = build(none_of(a, kind, at) if left else a, none_of(b, kind, at) if right else b)
    return plan, build(no_a if left else a, no_b if right else b)


def ask(stream: Stream) -> None:
    """All that may be asked of a plan that does not run."""
    for output in ("changes", "final", "marked"):
        str(stream.check(output))  # type: ignore[arg-type]
    for what in ("plan", "spark", "mermaid", "html"):
        stream.explain(what)  # type: ignore[arg-type]
    rates = {s.name: (3, 5, 5) for s in walk(stream.node) if isinstance(s, Source)}
    with suppress(ContractError):  # not every plan has bounds
        stream.bounds(rates, lifetimes={name: 50 for name in rates if name})
    stream._repr_html_()
    for name in stream.columns:
        stream.explain("feedback", pattern=Pattern.of({name: []}))


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PLANS)
def test_whatever_is_asked_of_a_plan_behind_which_nothing_passes_is_answered(name: str) -> None:
    kinds, places = list(EMPTY), list(PLACES)
    if DEPTH == 1:
        kinds, places = [kinds[len(name) % len(kinds)]], [places[len(name) % len(places)]]
    for kind in kinds:
        for place in places:
            ask(emptied(PLANS[name], kind, place, at=len(name) + len(kind))[0])


@pytest.mark.slow
@seed(seed_of("empty sets"))
@settings(max_examples=examples(300, short=25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(PLANS)),
    st.sampled_from(sorted(EMPTY)),
    st.sampled_from(PLACES),
    st.sampled_from(("changes", "final", "marked")),
    st.sampled_from(sorted(HOSTS)),
    st.integers(0, 2),
)
def test_a_filter_that_nothing_passes_is_a_stream_without_rows(
    name: str, kind: str, place: str, mode: Any, host: str, at: int
) -> None:
    if name.startswith("output"):
        mode = "changes"
    plan, wanted = emptied(PLANS[name], kind, place, at)
    items, _ = HOSTS[host](plan, mode)
    assert violations(items) == []
    assert History.of(items, plan.schema) == wanted.run().history


@pytest.mark.slow
@seed(seed_of("feedback about nothing"))
@settings(max_examples=examples(200, short=12), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(PLANS)), st.sampled_from(("assume", "desire", "demand")), st.data())
def test_feedback_about_no_rows_changes_nothing(name: str, intent: str, data: st.DataObject) -> None:
    plan = PLANS[name](*sides())
    if not plan.columns:
        return
    column = data.draw(st.sampled_from(plan.columns))
    query = plan.query()
    for _ in range(data.draw(st.integers(0, 4))):
        query.step()
    t = plan.schema.field(column).type
    forms: list[Any] = [Pattern.of({column: []})]
    if t in SOME:
        forms += [none(col(column), SOME[t]) for kind, none in EMPTY.items() if kind not in NO_COLUMNS]
    getattr(query, intent)(data.draw(st.sampled_from(forms)))
    query.run()
    assert History.of(query.take("out"), plan.schema) == plan.run().history


def test_a_filter_of_two_values_at_once_is_checked_and_cut() -> None:
    clicks = cz.from_rows([{"ts": 1, "k": 1}], time="ts", punctuate=cz.delay(2))
    none = clicks.where((col("k") == 1) & (col("k") == 2))
    assert none.check().safe
    assert len(none.run(threads=2).history) == 0
