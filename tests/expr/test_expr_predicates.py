"""A predicate's mask is true where the condition is, on the fast paths as on the general one."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from caesura.expr import Expr, col, compile_predicate, end, evaluate, lit, predicate_mask, start

NAN = float("nan")
WHOLE = pa.record_batch(
    {
        "x": pa.array([NAN, 1.0, -0.0, 2.0]),
        "f": pa.array([NAN, 0.1, -0.0, 2.0], pa.float32()),
        "k": pa.array([-128, 127, 0, 3], pa.int8()),
        "ts": pa.array([dt.datetime(2024, 1, day) for day in (1, 2, 3, 4)]),
        "p": pa.array([True, None, False, True]),
    }
)
DAY = dt.datetime(2024, 1, 2)
CONDITIONS: list[Expr] = [
    test
    for name, bound in [
        ("x", 1),
        ("x", 0.0),
        ("x", NAN),
        ("f", 0.1),
        ("k", 3),
        ("k", 1000),
        ("k", 2.5),
        ("ts", DAY),
    ]
    for test in (
        col(name) > bound,
        col(name) >= bound,
        col(name) < bound,
        col(name) <= bound,
        col(name) == bound,
        col(name) != bound,
        lit(bound) > col(name),
        lit(bound) <= col(name),
    )
]


@pytest.mark.parametrize("expr", CONDITIONS, ids=str)
def test_the_fast_path_says_what_the_column_says(expr: Expr) -> None:
    for batch in (WHOLE, WHOLE.slice(1, 2), WHOLE.slice(0, 0)):
        mask = compile_predicate(expr, batch.schema)(batch)
        assert mask.dtype == bool
        assert mask.tolist() == [bool(v) for v in evaluate(expr, batch).to_pylist()]


def test_nan_is_above_every_bound_on_the_fast_path() -> None:
    assert compile_predicate(col("x") > 1e300, WHOLE.schema)(WHOLE).tolist() == [True, False, False, False]


def test_a_float_column_is_compared_with_the_bound_as_written() -> None:
    # 0.1 as a float is above 0.1 as a double.
    assert compile_predicate(col("f") == 0.1, WHOLE.schema)(WHOLE).tolist() == [False] * 4


def test_lifetimes_are_compared_as_ticks() -> None:
    le = np.arange(4, dtype=np.int64)
    inside = compile_predicate((start() >= 1) & (end() < 13), WHOLE.schema)
    assert inside(WHOLE, le, le + 10).tolist() == [False, True, True, False]


def test_a_null_condition_keeps_no_row() -> None:
    assert compile_predicate(col("p") & None, WHOLE.schema)(WHOLE).tolist() == [False] * 4
    assert compile_predicate(col("p"), WHOLE.schema)(WHOLE).tolist() == [True, False, False, True]


def test_a_mask_of_a_slice_starts_at_the_slice() -> None:
    condition = pa.array([True, None, False, True] * 5)
    assert predicate_mask(condition.slice(3, 10)).tolist() == [
        bool(v) for v in condition.slice(3, 10).to_pylist()
    ]
