"""The SQL text run by DuckDB gives what evaluation gives, where the two dialects agree."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from caesura.expr import Expr, col, evaluate, lit, sql, when
from caesura.expr import functions as f

BATCH = pa.record_batch(
    {
        "i": pa.array([1, -7, None, 0, 250], pa.int32()),
        "j": pa.array([3, 2, 5, None, -4], pa.int64()),
        "x": pa.array([1.5, -2.25, None, 0.0, 1e9]),
        "p": pa.array([True, False, None, True, False]),
        "s": pa.array(["Hello", "  pad ", None, "", "a/b/c"]),
        "odd name": pa.array(["it's", "x", "y", None, "z"]),
        "d": pa.array(
            [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None, dt.date(2000, 1, 1), dt.date(2023, 6, 4)]
        ),
        "ts": pa.array(
            [
                dt.datetime(2024, 2, 29, 13, 45, 59, 250000),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
                None,
                dt.datetime(2000, 1, 1),
                dt.datetime(2023, 6, 4, 7),
            ],
            pa.timestamp("us"),
        ),
        "m": pa.array(
            [Decimal("1.25"), Decimal("-3.10"), None, Decimal("0.00"), Decimal("99.99")], pa.decimal128(6, 2)
        ),
        "st": pa.array([{"a": 1}, {"a": None}, None, {"a": 4}, {"a": 5}], pa.struct([("a", pa.int32())])),
    }
)
NOON = dt.datetime(2023, 1, 1, 12, 0, 0, 500000)

EXPRESSIONS: list[Expr] = [
    col("i") + col("j") * 2 - 1,
    (col("i") + col("j")) * (col("i") - col("j")),
    col("i") - (col("j") - 3),
    (-col("i")).__neg__(),
    -lit(-3) * col("i"),
    col("i") % col("j"),
    col("i") / col("j"),
    (col("i") > 0) & ((col("j") > 2) | ~col("p")),
    ~((col("i") > 0) & col("p")),
    (col("i") == 1) == col("p"),
    (col("i") > 0) | (col("j") > 0) & col("p"),
    (col("i") + 1).is_null() | (col("x") > 1).is_not_null(),
    col("i").isin([1, 250, None]),
    ~col("s").isin(["", "Hello"]),
    col("i").between(0, col("j") + 100) & (col("x") < 2.0),
    when(col("i") > 0, "pos").when(col("i") < 0, "neg").otherwise("zero"),
    when(col("p"), col("i")),
    col("odd name") == "it's",
    col("odd name").coalesce(col("s"), "none"),
    f.greatest("i", "j", 0),
    f.least("x", 1.0),
    col("i").nullif(1),
    col("s").if_null("?").lower().concat("-", col("odd name").if_null("").upper()),
    col("s").length() + col("s").trim().length(),
    f.concat(col("s").if_null("").ltrim(), lit("|"), col("s").if_null("").rtrim(), lit("|")),
    col("s").substring(2, 3),
    col("s").contains("l") | col("s").startswith("a") | col("s").endswith(" "),
    col("s").like("%l_"),
    col("s").replace("/", "--"),
    col("s").split_part("/", 2),
    col("s").split_part("/", -1),
    col("x").abs() + col("i").abs(),
    col("x").round(1),
    col("x").abs().sqrt() + (col("x") / 1e9).exp() + col("j").abs().ln(),
    col("j").power(2),
    col("ts").year() * 10000 + col("ts").month() * 100 + col("ts").day(),
    col("ts").hour() * 3600 + col("ts").minute() * 60 + col("ts").second(),
    col("d").year(),
    col("ts").date_trunc("month"),
    col("ts").date_trunc("hour") == col("ts"),
    col("ts").date_trunc("week"),
    col("ts").plus_time("90s"),
    col("ts").minus_time("2d"),
    col("ts") > NOON,
    (col("d") == dt.date(2024, 2, 29)) | (col("d") < col("ts")),
    col("m") + col("m"),
    col("m") * col("m"),
    col("m") > Decimal("1.00"),
    col("m") > col("i"),
    col("x").cast("string"),
    col("i").cast("double") + col("p").cast("int"),
    col("i").cast("boolean"),
    col("s").try_cast("int"),
    col("ts").cast("date"),
    col("d").cast("timestamp"),
    col("ts").cast("string"),
    col("st").field("a") + 1,
    lit(2**40) + col("i"),
    lit(3, "bigint") * col("i"),
    col("x") == lit(math.nan),
    col("x") < lit(math.inf),
    lit(None).is_null() & col("p"),
]

DIALECT = {
    "`": '"',
    "startswith": "starts_with",
    "endswith": "ends_with",
}


def by_duckdb(expr: Expr) -> list[Any]:
    query = sql(expr)
    for spark, duck in DIALECT.items():
        query = query.replace(spark, duck)
    events = pa.Table.from_batches([BATCH])  # noqa: F841 - DuckDB finds it by name
    return [row[0] for row in duckdb.sql(f"SELECT {query} FROM events").fetchall()]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_duckdb_reads_the_sql_as_evaluation_reads_the_tree(expr: Expr) -> None:
    wanted, got = by_duckdb(expr), evaluate(expr, BATCH).to_pylist()
    for a, b in zip(got, wanted, strict=True):
        if isinstance(a, float) and b is not None:
            assert math.isclose(a, float(b), rel_tol=1e-12), (sql(expr), got, wanted)
        else:
            assert a == b, (sql(expr), got, wanted)
