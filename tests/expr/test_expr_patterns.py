"""A predicate's pattern matches exactly the rows for which the predicate is true."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caesura.expr import Expr, col, evaluate, lit, pattern_of, predicate_mask

NAN = float("nan")
A, X, S, P = col("a"), col("x"), col("s"), col("p")
BATCH = pa.record_batch(
    {
        "a": pa.array([*range(-3, 8), None]),
        "x": pa.array([NAN, -0.0, 0.0, 1.0, 1.5, 3.0, 4.0, None, -5.0, 5.0, float("inf"), 2.0]),
        "s": pa.array(["", "a", "b", None, "c", "aa", "z", "y", "x", "w", "v", "u"]),
        "p": pa.array([True, False, None] * 4),
    }
)
SIMPLE: list[Expr] = [
    *(A > 3, A >= 3, A < 3, A <= 3, A == 3, A != 3, lit(3) < A, lit(3) >= A, A > None, A > 2.5),
    *(A.eq_null_safe(3), A.eq_null_safe(None), A.between(1, 4), A.between(4, 1), A.between(None, 4)),
    *(A.isin([1, 3]), A.isin([1, None]), A.isin([]), A.is_null(), A.is_not_null(), (A < 0) | (A > 4)),
    *(X > 1, X >= 1.5, X < 3, X == NAN, X != NAN, X == 0, X <= NAN, X > NAN),
    *(X.isin([NAN, 0.0]), X.between(1, 4), X.eq_null_safe(1)),
    *(S == "a", S > "b", S.isin(["a", "b", None]), S.is_null(), P, ~P, P.eq_null_safe(False), lit(True)),
]
PREDICATES = st.lists(
    st.sampled_from(SIMPLE).flatmap(lambda e: st.sampled_from([e, ~e] if str(e) != "TRUE" else [e])),
    min_size=1,
    max_size=3,
)


@settings(max_examples=200, deadline=None)
@given(PREDICATES)
def test_the_pattern_matches_exactly_the_rows_the_predicate_is_true_for(parts: list[Expr]) -> None:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    pattern = pattern_of(whole, BATCH.schema)
    assert pattern is not None, str(whole)
    assert pattern.matches(BATCH).tolist() == predicate_mask(evaluate(whole, BATCH)).tolist(), str(whole)


@pytest.mark.parametrize("expr", [*SIMPLE, *(~e for e in SIMPLE if str(e) != "TRUE")], ids=str)
def test_a_single_predicate_needs_no_schema(expr: Expr) -> None:
    pattern = pattern_of(expr)
    assert pattern is not None
    assert pattern.matches(BATCH).tolist() == predicate_mask(evaluate(expr, BATCH)).tolist()


@pytest.mark.parametrize(
    "expr",
    [
        A > X,
        A + 1 > 3,
        (A > 3) | (X > 3),
        ~((A > 3) & (X > 3)),
        A.cast("string") == "3",
        S.like("a_"),
        A > 1e18,
        col("time") > 3,
    ],
    ids=str,
)
def test_other_predicates_have_no_pattern(expr: Expr) -> None:
    assert pattern_of(expr) is None


def test_a_contradiction_is_a_pattern_nothing_matches() -> None:
    pattern = pattern_of((A > 3) & (A < 2))
    assert pattern is not None and pattern.is_empty


def test_timestamps_are_compared_as_datetimes() -> None:
    ts = pa.record_batch({"ts": pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), None])})
    expr: Any = col("ts") > dt.datetime(2024, 1, 1)
    pattern = pattern_of(expr, ts.schema)
    assert pattern is not None
    assert pattern.matches(ts).tolist() == [False, True, False]
