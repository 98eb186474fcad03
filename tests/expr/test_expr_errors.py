"""Wrong expressions are refused when the plan is built, in words that say what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from caesura.errors import ExprError
from caesura.expr import Expr, col, compile_predicate, evaluate, lit, start, type_of, when

SCHEMA = pa.schema(
    [
        ("speed", pa.float64()),
        ("segment", pa.int32()),
        ("plate", pa.string()),
        ("ts", pa.timestamp("us")),
        ("at", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
    ]
)
GOLDEN = Path(__file__).parent / "golden_messages.txt"

WRONG: list[Callable[[], object]] = [
    lambda: type_of(col("sped") > 3, SCHEMA),
    lambda: type_of(col("plate") + 1, SCHEMA),
    lambda: type_of(~col("segment"), SCHEMA),
    lambda: type_of(col("plate") == 7, SCHEMA),
    lambda: type_of((col("speed") > 1) & col("segment"), SCHEMA),
    lambda: type_of(col("ts") + 30, SCHEMA),
    lambda: type_of(col("segment").lower(), SCHEMA),
    lambda: type_of(col("at").field("lng"), SCHEMA),
    lambda: type_of(col("at") > 1, SCHEMA),
    lambda: type_of(col("plate").rlike("(["), SCHEMA),
    lambda: type_of(when(col("speed"), 1), SCHEMA),
    lambda: type_of(when(col("speed") > 1, "a").otherwise(2), SCHEMA),
    lambda: type_of(col("segment").isin(["a"]), SCHEMA),
    lambda: type_of(col("at").cast("int"), SCHEMA),
    lambda: type_of(start().plus_time("30s"), SCHEMA),
    lambda: type_of(col("ts").date_trunc("hours"), SCHEMA),
    lambda: compile_predicate(col("segment") + 1, SCHEMA),
    lambda: evaluate(start(), pa.record_batch({"a": [1]})),
    lambda: bool(col("speed") > 1),
    lambda: col("a").cast("integr"),
    lambda: col("a").plus_time("30 parsecs"),
    lambda: col("a").isin("abc"),
    lambda: col("a").startswith(col("b")),
    lambda: lit([1, 2]),
]


def message(attempt: Callable[[], object]) -> str:
    with pytest.raises(ExprError) as caught:
        attempt()
    return str(caught.value)


def test_each_wrong_expression_has_its_own_kept_message() -> None:
    got = "\n\n".join(message(attempt) for attempt in WRONG) + "\n"
    assert got == GOLDEN.read_text()


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
