"""Comparisons between columns are decided by ourselves; an ambiguous rate comes with one that is not."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura import Expr, col, lit, qre
from caesura.errors import PlanError
from caesura.expr import evaluate
from caesura.qre.checking.differences import satisfying
from caesura.testing.paper_data import disordered, nexmark, patients, yahoo

NAMES = ("a", "b", "c")
COMPARED = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")


def true_rows(literals: list[Expr], schema: pa.Schema, values: list[Any]) -> list[tuple[Any, ...]]:
    """All rows of some values for which every literal is true."""
    rows = list(itertools.product(*([*values, None] if schema.field(n).nullable else values for n in NAMES)))
    table = pa.RecordBatch.from_arrays(
        [pa.array([r[i] for r in rows], schema.field(n).type) for i, n in enumerate(NAMES)], schema=schema
    )
    masks = [evaluate(literal, table).to_pylist() for literal in literals]
    return [row for row, *truths in zip(rows, *masks, strict=True) if all(t is True for t in truths)]


@st.composite
def conditions(draw: st.DrawFn, whole: bool) -> Expr:
    left, right = (col(draw(st.sampled_from(NAMES))) for _ in range(2))
    by = draw(st.integers(-2, 2)) if whole else 0
    other: Any = draw(st.sampled_from((right + by if by else right, lit(draw(st.integers(-1, 2))))))
    made = getattr(left, draw(st.sampled_from(COMPARED)))(other)
    if draw(st.integers(0, 3)) == 0:
        made = made | getattr(right, draw(st.sampled_from(COMPARED)))(left)
    return ~made if draw(st.booleans()) else made


@pytest.mark.parametrize("type", [pa.int64(), pa.float64()])
@given(data=st.data())
def test_what_is_decided_is_what_trying_rows_finds(type: pa.DataType, data: st.DataObject) -> None:
    whole = type == pa.int64()
    schema = pa.schema([pa.field(n, type, data.draw(st.booleans())) for n in NAMES])
    literals = data.draw(st.lists(conditions(whole), min_size=1, max_size=4))
    verdict = satisfying(literals, schema)
    tried = true_rows(literals, schema, list(range(-5, 6)) if whole else [n / 2 for n in range(-8, 9)])
    if isinstance(verdict, dict):
        own = pa.RecordBatch.from_arrays([pa.array([verdict[n]], type) for n in NAMES], schema=schema)
        assert all(evaluate(literal, own).to_pylist() == [True] for literal in literals)
    else:
        assert verdict is False and not tried


def test_a_type_check_compares_columns_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    of = qre.items(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    up, down = (qre.atom(test, 1, items=of) for test in (col("a") < col("b"), col("b") < col("a")))
    assert qre.or_(up, down) is not None
    with pytest.raises(PlanError, match="two parts of this or_ match the same stream"):
        qre.or_(up, qre.atom(col("a") <= col("b") + 1, 1, items=of))


def test_a_witness_of_ambiguity_comes_with_a_rate_that_is_not() -> None:
    of = qre.items(pa.schema([pa.field("k", pa.int64(), False)]))
    a, b = col("k") == 1, col("k") == 2
    ab = qre.iter(qre.atom(a | b, col("k"), items=of), qre.sum())
    with pytest.raises(PlanError) as refused:
        qre.split(ab, qre.atom(b, col("k"), items=of), ab, op=col("_0"))
    rate = "[(k = 1 OR k = 2) AND NOT k = 2]* [k = 2] [k = 1 OR k = 2]*"
    assert refused.value.remedy.endswith(f"The same streams match, each in one way, with the rate {rate}.")
    assert refused.value.witness == [{"k": 2}, {"k": 2}]


def test_the_data_of_the_papers_are_the_same_for_the_same_seed() -> None:
    for make in (nexmark, yahoo, patients):
        one, two = make(500, seed=4), make(500, seed=4)
        assert one.batch.equals(two.batch) and (one.time == two.time).all()
        assert not make(500, seed=5).batch.equals(one.batch)
        late = disordered(one, 0.2, reach=20)
        assert sorted(late.time.tolist()) == one.time.tolist() != late.time.tolist()
        assert len(cz.from_arrow(one.table(), time="time").run().history) == 500
