"""Wrong expressions are refused when the plan is built, in words that say what to write."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from caesura.errors import ExprError
from caesura.expr import Expr, col, type_of

SCHEMA = pa.schema(
    [
        ("speed", pa.float64()),
        ("segment", pa.int32()),
        ("plate", pa.string()),
        ("ts", pa.timestamp("us")),
        ("at", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
    ]
)


def message(attempt: Callable[[], object]) -> str:
    with pytest.raises(ExprError) as caught:
        attempt()
    return str(caught.value)


def test_python_and_is_refused_before_it_drops_a_condition() -> None:
    with pytest.raises(ExprError, match="Use & for and"):
        _ = (col("a") > 1) and (col("b") > 2)


def test_a_chained_comparison_is_refused_too() -> None:
    with pytest.raises(ExprError):
        _ = 1 < col("a") < 5


def test_a_batch_of_another_type_than_planned_is_refused() -> None:
    from caesura.expr import compile_expr

    run = compile_expr(col("a") + 1, pa.schema([("a", pa.int32())]))
    with pytest.raises(ExprError, match="planned as int and came as string"):
        run(pa.record_batch({"a": ["x"]}))


def test_a_column_that_is_there_twice_is_refused() -> None:
    schema = pa.schema([("a", pa.int32()), ("a", pa.int64())])
    with pytest.raises(ExprError, match="is there 2 times"):
        type_of(col("a"), schema)


def test_every_message_names_the_expression_it_is_about() -> None:
    wrong: Expr = (col("speed") * 2 > 1) & (col("plate") - 1 > 0)
    assert "plate - 1" in message(lambda: type_of(wrong, SCHEMA))
