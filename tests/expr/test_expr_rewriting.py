"""Trees are compared, read and rewritten by structure."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from caesura.expr import (
    Expr,
    as_column,
    as_expr,
    attributes,
    children,
    col,
    conjuncts,
    end,
    evaluate,
    has_call,
    is_column,
    lit,
    name_of,
    reads_time,
    rename,
    same,
    shifted_column,
    start,
    substitute,
    udf,
    when,
    with_children,
)

A, B = col("a"), col("b")
CASE = when(A > 1, B).when(B.is_null(), 0).otherwise(A.cast("int"))


def test_equal_trees_have_equal_keys_and_unequal_ones_do_not() -> None:
    assert same(CASE, when(A > 1, B).when(B.is_null(), 0).otherwise(A.cast("int")))
    assert len({(A + 1).key, (col("a") + 1).key, (A + 2).key}) == 2


@pytest.mark.parametrize("value", [1, True, 1.0, Decimal(1), "1"])
def test_constants_of_different_types_are_different(value: object) -> None:
    twins = [v for v in (1, True, 1.0, Decimal(1), "1") if same(lit(v), lit(value))]
    assert len(twins) == 1


def test_nan_is_the_same_constant_as_nan() -> None:
    assert same(lit(float("nan")), lit(float("nan")))
    assert not same(lit(0.0), lit(-0.0))


def test_the_columns_read_are_those_anywhere_in_the_tree() -> None:
    assert attributes(CASE) == {"a", "b"}
    assert attributes(start() + 1) == frozenset()
    assert reads_time(when(end() < A, 1)) and not reads_time(CASE)


def test_rebuilding_a_node_from_its_children_gives_the_same_node() -> None:
    double = udf(lambda v: v * 2, returns="int")
    for expr in (CASE, A.isin([1]), A.field("x"), A.alias("n"), double(A), A.like("x"), lit(1), start()):
        assert same(expr, with_children(expr, children(expr)))


def test_substitution_replaces_columns_and_the_lifetimes_ends() -> None:
    got = substitute(A + start(), {"a": B * 2}, start=col("le"))
    assert same(got, B * 2 + col("le"))
    assert same(rename(CASE, {"a": "b", "b": "a"}), rename(rename(CASE, {"a": "z"}), {"b": "a", "z": "b"}))


def test_conjuncts_flatten_nested_ands_only() -> None:
    assert [str(c) for c in conjuncts((A & B) & (A | B))] == ["a", "b", "a OR b"]


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (A, ("a", 0)),
        (A + 5, ("a", 5)),
        (5 + A, ("a", 5)),
        ((A - 5).alias("x"), ("a", -5)),
        (5 - A, None),
        (A - 1.5, ("a", -1.5)),
        (A + lit("x"), None),
        (A + True, None),
        (A * 2, None),
        (A + B, None),
    ],
)
def test_a_shifted_column_is_a_column_and_a_number(expr: Expr, wanted: tuple[str, float] | None) -> None:
    assert shifted_column(expr) == wanted


def test_names_of_outputs() -> None:
    assert (name_of(A), name_of((A + 1).alias("x")), name_of(A + 1)) == ("a", "x", "a + 1")
    assert (is_column(A.alias("x")), is_column(A + 1)) == ("a", None)


def test_text_is_a_column_where_a_column_is_meant_and_a_constant_elsewhere() -> None:
    assert same(as_column("a"), A)
    assert same(as_expr("a"), lit("a"))


def test_expressions_survive_pickling() -> None:
    assert same(pickle.loads(pickle.dumps(CASE)), CASE)
    batch = pa.record_batch({"a": [1, 5], "b": [2, 3]})
    assert evaluate(pickle.loads(pickle.dumps(CASE)), batch).to_pylist() == [1, 3]


def test_calls_are_seen_anywhere() -> None:
    assert has_call(udf(abs, returns="int")(A) > 1) and not has_call(CASE)
