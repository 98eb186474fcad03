"""Evaluation equals a slow, obvious, row-by-row reading of SQL, on random batches with nulls and NaN."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caesura.expr import (
    Expr,
    RowError,
    col,
    compile_predicate,
    evaluate,
    lit,
    predicate_mask,
    sql,
    type_of,
    when,
)

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("j", pa.int64()),
        ("k", pa.int8()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("f", pa.float32()),
        ("p", pa.bool_()),
        ("q", pa.bool_()),
        ("s", pa.string()),
        ("t", pa.string()),
    ]
)

WHOLE = {"i": 32, "j": 64, "k": 8}
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -2.5, 3.0, float("nan"), float("inf"), float("-inf")])


def _cells(name: str) -> st.SearchStrategy[Any]:
    if name in WHOLE:
        edge = 2 ** (WHOLE[name] - 1)
        return st.one_of(st.integers(-4, 4), st.sampled_from([-edge, edge - 1]))
    if name in "xyf":
        return NUMBERS
    return st.booleans() if name in "pq" else st.sampled_from(["", "a", "ab", "b", "é"])


ROWS = st.lists(st.fixed_dictionaries({n: st.none() | _cells(n) for n in SCHEMA.names}), max_size=6)


# The oracle: nested tuples, read one row at a time. It shares nothing with the code under test.


def rank(v: Any) -> Any:
    return (1, 0.0) if isinstance(v, float) and math.isnan(v) else (0, v)


def order(a: Any, b: Any) -> int | None:
    if a is None or b is None:
        return None
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
        return (a > b) - (a < b)
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    a, b = rank(a), rank(b)
    return (a > b) - (a < b)


class Refused(Exception):  # noqa: N818 - not an error: what the row means
    """The row has no value."""


def held(v: int, bits: int) -> int:
    if not -(2 ** (bits - 1)) <= v < 2 ** (bits - 1):
        raise Refused
    return v


def width(tree: Any) -> int:
    if tree[0] == "col":
        return WHOLE[tree[1]]
    return 32 if tree[0] == "lit" else max(width(t) for t in tree[1:])


def arithmetic(op: str, tree: Any, row: dict[str, Any]) -> Any:
    a, b = slow(tree[1], row), slow(tree[2], row)
    if a is None or b is None:
        return None
    if op in "/%" and b == 0:
        return None
    if op == "/":
        return float(a) / float(b)
    if isinstance(a, int) and isinstance(b, int):
        whole = {"+": a + b, "-": a - b, "*": a * b}.get(op)
        return held(whole, width(tree)) if whole is not None else abs(a) % abs(b) * (-1 if a < 0 else 1)
    return floats(op, float(a), float(b))


def floats(op: str, a: float, b: float) -> float:
    if op == "%":
        return float("nan") if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)
    return {"+": a + b, "-": a - b, "*": a * b}[op]


def attempted(tree: Any, row: dict[str, Any]) -> Any:
    try:
        return slow(tree, row)
    except Refused:
        return Refused


def kleene(op: str, a: Any, b: Any) -> Any:
    decisive = op == "or"
    if a is decisive or b is decisive:
        return decisive
    if Refused in (a, b):
        raise Refused
    return None if a is None or b is None else (not decisive)


COMPARE = {
    "=": lambda c: c == 0,
    "<>": lambda c: c != 0,
    "<": lambda c: c < 0,
    "<=": lambda c: c <= 0,
    ">": lambda c: c > 0,
    ">=": lambda c: c >= 0,
}


def member(value: Any, values: list[Any]) -> Any:
    if value is None:
        return None if values else False
    if any(order(value, v) == 0 for v in values if v is not None):
        return True
    return None if None in values else False


def slow(tree: Any, row: dict[str, Any]) -> Any:
    op, *args = tree
    if op == "col":
        return row[args[0]]
    if op == "lit":
        return args[0]
    if op in ("+", "-", "*", "/", "%"):
        return arithmetic(op, tree, row)
    if op == "in":
        return member(slow(args[0], row), args[1])
    if op in ("and", "or"):
        return kleene(op, *(attempted(a, row) for a in args))
    if op == "case":
        return slow(args[1] if slow(args[0], row) is True else args[2], row)
    if op == "coalesce":
        return next((v for a in args if (v := slow(a, row)) is not None), None)
    values = [slow(a, row) for a in args]
    if op in COMPARE:
        found = order(*values)
        return None if found is None else COMPARE[op](found)
    if op == "not":
        return None if values[0] is None else not values[0]
    if op == "isnull":
        return values[0] is None
    if op == "<=>":
        return order(*values) == 0 if None not in values else values[0] is values[1]
    assert op in ("greatest", "least")
    there = sorted((v for v in values if v is not None), key=rank)
    return (there[-1] if op == "greatest" else there[0]) if there else None


BUILD = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
    "isnull": lambda a: a.is_null(),
    "<=>": lambda a, b: a.eq_null_safe(b),
    "coalesce": lambda *a: a[0].coalesce(*a[1:]),
    "greatest": lambda *a: a[0].greatest(*a[1:]),
    "least": lambda *a: a[0].least(*a[1:]),
    "case": lambda c, a, b: when(c, a).otherwise(b),
    "col": col,
    "lit": lit,
}


def build(tree: Any) -> Expr:
    op, *args = tree
    if op in ("col", "lit"):
        return BUILD[op](args[0])
    if op == "in":
        return build(args[0]).isin(args[1])
    return BUILD[op](*(build(a) for a in args))


def _grow(leaves: st.SearchStrategy[Any], ops: list[str]) -> st.SearchStrategy[Any]:
    def bigger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.tuples(st.sampled_from(ops), inner, inner)

    return st.recursive(leaves, bigger, max_leaves=4)


def columns(names: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([("col", n) for n in names])


def literals(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just("lit"), values)


EDGES = st.integers(-3, 3) | st.sampled_from([-(2**31), 2**31 - 1])
INTS = _grow(columns("ijk") | literals(EDGES), ["+", "-", "*", "%"])
REALS = _grow(columns("xyij") | literals(NUMBERS), ["+", "-", "*", "/", "%"])
PLAIN_REALS = columns("xyf") | literals(NUMBERS)
TEXTS = columns("st") | literals(st.sampled_from(["", "a", "é"]))


def _tests(operands: st.SearchStrategy[Any], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.sampled_from([*COMPARE, "<=>"]), operands, operands),
        st.tuples(st.just("isnull"), operands),
        st.tuples(st.just("in"), operands, st.lists(st.none() | values, max_size=3)),
    )


CONDITIONS = st.recursive(
    st.one_of(
        columns("pq"),
        _tests(INTS, st.integers(-3, 3)),
        _tests(PLAIN_REALS | columns("ij"), NUMBERS),
        _tests(TEXTS, st.sampled_from(["", "a"])),
    ),
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=4,
)
CHOICES = st.one_of(
    st.tuples(st.sampled_from(["coalesce", "greatest", "least"]), PLAIN_REALS, PLAIN_REALS),
    st.tuples(st.sampled_from(["coalesce", "greatest", "least"]), TEXTS, TEXTS),
    st.tuples(st.just("case"), CONDITIONS, INTS, INTS),
)


def agrees(tree: Any, rows: list[dict[str, Any]]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    expr = build(tree)
    wanted = [attempted(tree, row) for row in batch.to_pylist()]
    refused = [at for at, v in enumerate(wanted) if v is Refused]
    if refused:
        with pytest.raises(RowError) as error:
            evaluate(expr, batch)
        assert error.value.rows.tolist() == refused
        wanted = [v for v in wanted if v is not Refused]
        batch = batch.filter(pa.array([at not in refused for at in range(batch.num_rows)]))
    got = evaluate(expr, batch)
    assert got.type == type_of(expr, SCHEMA)
    got.validate(full=True)
    assert [alike(v) for v in got.to_pylist()] == [alike(v) for v in wanted], sql(expr)


def alike(v: Any) -> Any:
    if isinstance(v, bool) or v is None or isinstance(v, str):
        return v
    return "NaN" if math.isnan(v) else v + 0


@settings(max_examples=100, deadline=None)
@given(INTS, ROWS)
def test_integer_arithmetic_is_refused_and_divides_like_the_rowwise_reading(tree: Any, rows: Any) -> None:
    agrees(tree, rows)


@settings(max_examples=100, deadline=None)
@given(REALS.filter(lambda t: t[0] in "+-*/%"), ROWS)
def test_mixed_arithmetic_equals_the_rowwise_reading(tree: Any, rows: Any) -> None:
    agrees(tree, rows)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(CONDITIONS, ROWS)
def test_conditions_equal_the_rowwise_reading(tree: Any, rows: Any) -> None:
    agrees(tree, rows)


@settings(max_examples=100, deadline=None)
@given(CHOICES, ROWS)
def test_choices_equal_the_rowwise_reading(tree: Any, rows: Any) -> None:
    agrees(tree, rows)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(CONDITIONS, ROWS)
def test_a_compiled_predicate_is_the_mask_of_its_column(tree: Any, rows: Any) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    expr = build(tree)
    refused = [attempted(tree, row) is Refused for row in batch.to_pylist()]
    if any(refused):
        with pytest.raises(RowError) as error:
            compile_predicate(expr, SCHEMA)(batch)
        assert error.value.rows.tolist() == [at for at, gone in enumerate(refused) if gone]
        batch = batch.filter(pa.array([not gone for gone in refused]))
    mask = compile_predicate(expr, SCHEMA)(batch)
    assert mask.dtype == bool
    assert mask.tolist() == predicate_mask(evaluate(expr, batch)).tolist()
