"""The SQL text has the quotes, parentheses and exact constants that make it mean the same tree."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from caesura.expr import Expr, col, end, lit, sql, start, udf, when

A, B, C = col("a"), col("b"), col("c")
STAMP = dt.datetime(2024, 1, 1, 12, 0, 0, 500000)


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (A - (B - C), "a - (b - c)"),
        (A - B - C, "a - b - c"),
        ((A + B) * C, "(a + b) * c"),
        (A / (B * C), "a / (b * c)"),
        (-(A + 1), "-(a + 1)"),
        (A - -3, "a - -3"),
        (A & (B | C), "a AND (b OR c)"),
        (A & B | C, "a AND b OR c"),
        (~(A & B), "NOT (a AND b)"),
        (~A & B, "NOT a AND b"),
        ((A == 1) == (B == 2), "(a = 1) = (b = 2)"),
        ((A > 1).is_null(), "(a > 1) IS NULL"),
        (~A.is_null(), "NOT a IS NULL"),
        (A.eq_null_safe(None), "a <=> NULL"),
        (A.isin(["x", "it's"]), "a IN ('x', 'it''s')"),
        (A.isin([]), "FALSE"),
        (A.between(1, B + 1), "a BETWEEN 1 AND b + 1"),
        (A.like("50\\%"), "a LIKE '50\\\\%'"),
        (col("order") == col("a b`c"), "`order` = `a b``c`"),
        (A.field("x y"), "a.`x y`"),
        (A.cast("decimal(10,2)"), "CAST(a AS DECIMAL(10,2))"),
        ((A + 1).alias("odd name"), "a + 1 AS `odd name`"),
        (when(A, 1).when(B, 2).otherwise(3), "CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END"),
        (A.date_trunc("hour"), "date_trunc('HOUR', a)"),
        (A.plus_time("90s"), "a + INTERVAL '90' SECOND"),
        (A.minus_time("48h"), "a - INTERVAL '2' DAY"),
        (A.plus_time("250ms"), "a + INTERVAL '0.25' SECOND"),
        (end() - start(), "end() - start()"),
        (udf(max, returns="int", name="my_max")(A, 1), "my_max(a, 1)"),
        (lit(1.5), "1.5E0"),
        (lit(1e300), "1e+300"),
        (lit(math.nan), "CAST('NaN' AS DOUBLE)"),
        (lit(5, "bigint"), "CAST(5 AS BIGINT)"),
        (lit(2**40), "1099511627776"),
        (lit(True) & lit(None), "TRUE AND NULL"),
        (lit(Decimal("1.50")), "1.50"),
        (lit(Decimal("150")), "CAST('150' AS DECIMAL(3,0))"),
        (lit(b"\x0a\xff"), "X'0AFF'"),
        (lit(dt.date(2024, 1, 2)), "DATE '2024-01-02'"),
        (lit(STAMP), "TIMESTAMP '2024-01-01 12:00:00.5'"),
        (lit(STAMP.replace(tzinfo=dt.UTC)), "TIMESTAMP '2024-01-01 12:00:00.5+00:00'"),
    ],
)
def test_sql_is_quoted_and_parenthesised_as_the_tree_needs(expr: Expr, wanted: str) -> None:
    assert sql(expr) == wanted


def test_str_leaves_out_what_only_types_need() -> None:
    assert str((col("x") > 1.5) & (col("y") == lit(5, "bigint"))) == "x > 1.5 AND y = 5"
    assert repr(col("x") + 1) == "Expr(x + 1)"
