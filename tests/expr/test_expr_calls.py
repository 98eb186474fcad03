"""A user's function runs row by row or on whole columns, and its failures name the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from caesura.errors import ExprError
from caesura.expr import col, evaluate, lit, udf

BATCH = pa.record_batch({"a": pa.array([1, None, 3]), "s": pa.array(["x", "y", "z"])})


def test_a_function_of_values_gets_none_for_null() -> None:
    shout = udf(lambda a, s: f"{s}{a}!", returns="string", name="shout")
    assert evaluate(shout("a", col("s")), BATCH).to_pylist() == ["x1!", "yNone!", "z3!"]


def test_a_vectorised_function_gets_whole_columns() -> None:
    numpy_sum = udf(lambda a, b: np.nan_to_num(a) + b, returns="double", vectorised=True, name="total")
    assert evaluate(numpy_sum("a", lit(2)), BATCH).to_pylist() == [3.0, 2.0, 5.0]
    arrow = udf(lambda a: pc.add(a, 1), returns="bigint", vectorised="arrow", name="more")
    assert evaluate(arrow(col("a")) * 2, BATCH).to_pylist() == [4, None, 8]


def test_a_function_of_nothing_is_called_for_each_row() -> None:
    count = iter(range(10))
    assert evaluate(udf(lambda: next(count), returns="int", name="tick")(), BATCH).to_pylist() == [0, 1, 2]


def test_a_call_on_constants_is_not_folded() -> None:
    seen: list[Any] = []
    evaluate(udf(seen.append, returns="int", name="seen")(lit(7)), BATCH)
    assert seen == [7, 7, 7]


def test_an_empty_batch_gives_an_empty_column() -> None:
    out = evaluate(udf(lambda a: a, returns="int", name="same")("a"), BATCH.slice(0, 0))
    assert (out.type, len(out)) == (pa.int32(), 0)


def test_an_exception_names_the_function_the_row_and_itself() -> None:
    bad = udf(lambda a, s: 1 // (a - 3), returns="int", name="ratio")
    with pytest.raises(ExprError) as caught:
        evaluate(bad("a", "s"), BATCH.take(pa.array([0, 2])))
    assert "function 'ratio' failed on (a = 3, s = 'z'): ZeroDivisionError:" in str(caught.value)


def test_a_result_of_the_wrong_type_names_the_row() -> None:
    with pytest.raises(ExprError, match=r"'word' failed on \(a = 3\): TypeError: returned 'no', not int32"):
        evaluate(udf(lambda a: "no" if a == 3 else a, returns="int", name="word")("a"), BATCH)


def test_a_vectorised_failure_names_the_first_row() -> None:
    with pytest.raises(ExprError, match=r"'f' failed on 3 rows, the first \(s = 'x'\): AttributeError"):
        evaluate(udf(lambda s: s.nope, returns="int", vectorised=True, name="f")("s"), BATCH)


def test_a_vectorised_function_returns_one_value_for_each_row() -> None:
    with pytest.raises(ExprError, match="returned 1 values for 3 rows"):
        evaluate(udf(lambda a: a[:1], returns="double", vectorised=True, name="f")("a"), BATCH)


def test_a_decorated_function_is_typed_by_its_annotations() -> None:
    @udf
    def half(a: float) -> float | None:
        return None if a is None else a / 2

    out = evaluate(half("a"), BATCH)
    assert (out.type, out.to_pylist()) == (pa.float64(), [0.5, None, 1.5])
    assert half.__wrapped__(3.0) == 1.5


def test_a_decorator_with_options_types_what_annotations_cannot() -> None:
    @udf(returns="bigint", vectorised="arrow", name="more")
    def add_one(a):
        return pc.add(a, 1)

    assert str(add_one("a")) == "more(a)"
    assert evaluate(add_one("a"), BATCH).to_pylist() == [2, None, 4]


def test_integers_widen_to_what_a_parameter_is_annotated_with() -> None:
    @udf
    def kind(a: float) -> str:
        return type(a).__name__

    assert evaluate(kind("a"), BATCH).to_pylist() == ["float", "NoneType", "float"]


def test_a_column_of_another_type_than_annotated_is_refused() -> None:
    @udf
    def half(a: float) -> float:
        return a / 2

    with pytest.raises(ExprError, match=r"'half' takes double, but 's' is string"):
        evaluate(half("s"), BATCH)
    assert evaluate(half(col("a").cast("float")), BATCH.slice(0, 1)).to_pylist() == [0.5]


def test_a_function_with_defaults_takes_as_many_columns_as_given() -> None:
    padded = udf(lambda s, n=3: s.ljust(n, "."), returns="string", name="padded")
    assert evaluate(padded("s"), BATCH).to_pylist() == ["x..", "y..", "z.."]
