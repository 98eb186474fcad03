"""Types are known from the plan, and evaluation gives exactly them, on empty batches too."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from caesura.expr import Expr, as_type, col, compile_expr, end, evaluate, lit, start, type_of, when
from caesura.expr import functions as f

SCHEMA = pa.schema(
    [
        ("b", pa.int8()),
        ("i", pa.int32()),
        ("j", pa.int64()),
        ("u", pa.uint16()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("p", pa.bool_()),
        ("s", pa.string()),
        ("w", pa.large_string()),
        ("e", pa.dictionary(pa.int8(), pa.string())),
        ("y", pa.binary()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("z", pa.timestamp("ms", tz="Europe/Paris")),
        ("n", pa.null()),
    ]
)
UTC = pa.timestamp("us", tz="UTC")

CASES: list[tuple[Expr, pa.DataType]] = [
    (col("b") + col("b"), pa.int8()),
    (col("b") + 1, pa.int32()),
    (col("i") + col("j"), pa.int64()),
    (col("u") + col("b"), pa.int32()),
    (col("u"), pa.uint16()),
    (col("i") / 2, pa.float64()),
    (col("i") % 2, pa.int32()),
    (col("j") + col("f"), pa.float32()),
    (col("f") * col("x"), pa.float64()),
    (-col("b"), pa.int8()),
    (col("m") + col("m"), pa.decimal128(11, 2)),
    (col("m") * col("m"), pa.decimal128(21, 4)),
    (col("m") / col("m"), pa.decimal128(23, 13)),
    (col("m") % 3, pa.decimal128(3, 2)),
    (col("m") + 1, pa.decimal128(11, 2)),
    (col("m") + col("i"), pa.decimal128(13, 2)),
    (col("m") + col("x"), pa.float64()),
    (col("m").floor(), pa.decimal128(9, 0)),
    (col("m").round(1), pa.decimal128(10, 1)),
    (col("x").floor(), pa.int64()),
    (col("i").ceil(), pa.int64()),
    (col("i").round(-1), pa.int32()),
    (col("f").abs(), pa.float32()),
    (col("i").sign(), pa.float64()),
    (col("e"), pa.dictionary(pa.int8(), pa.string())),
    (col("e").lower(), pa.string()),
    (col("w").concat(col("e"), "x"), pa.string()),
    (col("w") == col("e"), pa.bool_()),
    (col("y").length(), pa.int32()),
    (col("s").split_part(",", 1), pa.string()),
    (col("n") + 1, pa.int32()),
    (col("n") == col("n"), pa.bool_()),
    (col("n") & col("p"), pa.bool_()),
    (col("n").lower(), pa.string()),
    (col("d").hour(), pa.int32()),
    (col("d").date_trunc("month"), pa.timestamp("us")),
    (col("d").plus_time("2d"), pa.date32()),
    (col("d").plus_time("2h"), pa.timestamp("us")),
    (col("z").plus_time("2h"), pa.timestamp("ms", tz="Europe/Paris")),
    (col("z").unix_micros(), pa.int64()),
    (col("z").cast(UTC) == col("z"), pa.bool_()),
    (col("z").day_of_week(), pa.int32()),
    (col("j").timestamp_micros(), pa.timestamp("us")),
    (col("s").to_timestamp(), pa.timestamp("us")),
    (f.coalesce("b", "i", "j"), pa.int64()),
    (f.greatest("d", "ts"), pa.timestamp("us")),
    (when(col("p"), 1).otherwise(2.5), pa.float64()),
    (when(col("p"), None), pa.null()),
    (when(col("p"), None).otherwise("a"), pa.string()),
    (col("b").nullif(3), pa.int8()),
    (col("w").nullif("a"), pa.large_string()),
    (lit(1) + 2, pa.int32()),
    (lit(None), pa.null()),
    (lit(Decimal("1.50")), pa.decimal128(3, 2)),
    (start() + 1, pa.int64()),
    ((end() - start()) > 3, pa.bool_()),
    (col("x").cast("decimal(5,1)"), pa.decimal128(5, 1)),
    (col("s").cast("binary"), pa.binary()),
    (col("i").isin([1, 2.5]), pa.bool_()),
    (col("i").alias("renamed"), pa.int32()),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("expr", "wanted"), CASES, ids=lambda x: str(x))
@pytest.mark.parametrize("rows", [0, 3])
def test_the_planned_type_is_the_type_that_comes_out(expr: Expr, wanted: pa.DataType, rows: int) -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in SCHEMA], schema=SCHEMA)
    ticks = np.arange(rows)
    assert type_of(expr, SCHEMA) == wanted
    out = evaluate(expr, batch, ticks, ticks + 5)
    assert (out.type, len(out)) == (wanted, rows)
    assert isinstance(out, pa.Array)


def test_start_and_end_are_of_the_streams_time_type() -> None:
    time = pa.timestamp("us")
    batch = pa.record_batch({"a": [1, 2]})
    ticks = np.array([0, 1_000_000])
    assert type_of(start(), batch.schema, time=time) == time
    run = compile_expr(end().plus_time("1s").second(), batch.schema, time=time)
    assert run(batch, ticks, ticks + 1_000_000).to_pylist() == [2, 3]


def test_a_slice_of_a_batch_is_read_from_its_own_first_row() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2, None, 4, 5])}).slice(2, 2)
    assert evaluate(col("a") % 3, batch).to_pylist() == [None, 1]


@pytest.mark.parametrize("divisor", [1, 7, -7, 127, -128])
def test_a_remainder_has_the_sign_of_what_is_divided(divisor: int) -> None:
    values = [None, *range(-128, 128)]
    batch = pa.record_batch({"a": pa.array(values, pa.int8())})
    found = evaluate(col("a") % lit(divisor, pa.int8()), batch).to_pylist()
    assert found == [None if a is None else int(math.fmod(a, divisor)) for a in values]


def test_type_names_are_those_of_spark() -> None:
    assert as_type("SMALLINT") == pa.int16()
    assert as_type("decimal(10, 2)") == pa.decimal128(10, 2)
    assert as_type("timestamp_ltz") == UTC
    assert as_type(pa.large_string()) == pa.large_string()
