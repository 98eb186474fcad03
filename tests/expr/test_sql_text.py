"""SQL text becomes the same tree as the one that is written in Python, or is refused where it is wrong."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import caesura as cz
from caesura.errors import ExprError
from caesura.expr import Expr, col, compile_all, end, evaluate, lit, same, sql, start, when
from caesura.expr import functions as f
from caesura.expr.delimited import Delimited
from caesura.expr.sql_text import from_text

A, B, S = col("a"), col("b"), col("s")
NOON = dt.datetime(2024, 1, 1, 12, 0, 0, 500000)

PAIRS: list[tuple[str, Expr]] = [
    ("a > 3 AND s LIKE 'a%'", (A > 3) & S.like("a%")),
    ("s NOT LIKE 'a%' OR s NOT ILIKE 'B'", ~S.like("a%") | ~S.ilike("B")),
    ("a BETWEEN 1 AND b + 1 OR NOT s IN ('x', NULL)", A.between(1, B + 1) | ~S.isin(["x", None])),
    ("a IS NOT NULL and b is null", A.is_not_null() & B.is_null()),
    ("a <=> b", A.eq_null_safe(B)),
    ("a IS DISTINCT FROM b", ~A.eq_null_safe(B)),
    ("-a * (b - 2) % 5 / 1.5", -A * (B - 2) % 5 / Decimal("1.5")),
    ("a = -9223372036854775807", A == -9223372036854775807),
    ("a = 1e3", A == 1e3),
    ("a = 10L", col("a") == lit(10, "bigint")),
    ("s = 'it''s' OR s = \"x\"", (S == "it's") | (S == "x")),
    ("CASE WHEN a > 1 THEN 'x' ELSE 'y' END", when(A > 1, "x").otherwise("y")),
    ("CASE a WHEN 1 THEN 'x' END", when(A == 1, "x")),
    ("if(a > 1, b, 0)", when(A > 1, B).otherwise(0)),
    ("CAST(a AS DECIMAL(10,2))", A.cast("decimal(10,2)")),
    ("TRY_CAST(s AS INT)", S.try_cast("int")),
    ("s::date", S.cast("date")),
    ("t > TIMESTAMP '2024-01-01 12:00:00.5'", col("t") > NOON),
    ("t + INTERVAL '90' SECOND - INTERVAL 2 DAYS", col("t").plus_time("90s").minus_time("2d")),
    ("DATE '2024-01-31' + INTERVAL '1' MONTH", lit(dt.date(2024, 2, 29))),
    ("DATE '2024-02-29' - INTERVAL '1' YEAR", lit(dt.date(2023, 2, 28))),
    ("DATE '2024-01-02'", lit(dt.date(2024, 1, 2))),
    ("start() + 1 < end()", start() + 1 < end()),
    ("`odd name`.`x y` = st.a", col("odd name").field("x y") == col("st").field("a")),
    ("s || '-' || upper(s)", S.concat("-").concat(S.upper())),
    ("nvl(s, 'none')", S.if_null("none")),
    ("regexp_extract(s, '([a-z]+)', 1)", S.regexp_extract("([a-z]+)", 1)),
    ("date_format(t, 'yyyy-MM')", col("t").date_format("yyyy-MM")),
    ("date_trunc('HOUR', t)", col("t").date_trunc("hour")),
    ("EXTRACT(year FROM t)", col("t").year()),
    ("trim(BOTH 'x' FROM s)", S.trim("x")),
    ("substring(s, 2, 3) = substr(s FROM 2 FOR 3)", S.substring(2, 3) == S.substring(2, 3)),
    ("position('x' IN s)", S.instr("x")),
    ("concat_ws('-', s, a)", f.concat_ws("-", "s", "a")),
    ("a & 3 | b", A.bit_and(3).bit_or(B)),
    ("a + 1 AS c", (A + 1).alias("c")),
    ("load > 1 AND show = set", (col("load") > 1) & (col("show") == col("set"))),
    ("mod(a, 2) = a % 2", A % 2 == A % 2),
]


@pytest.mark.parametrize(("text", "wanted"), PAIRS, ids=lambda p: str(p))
def test_text_means_the_tree_that_python_would_write(text: str, wanted: Expr) -> None:
    assert sql(from_text(text)) == sql(wanted)
    assert same(from_text(text), wanted)


@pytest.mark.parametrize("expr", [wanted for _, wanted in PAIRS], ids=str)
def test_what_is_printed_is_read_again_as_the_same_tree(expr: Expr) -> None:
    assert same(from_text(sql(expr)), expr)


def test_nulls_are_neither_true_nor_false() -> None:
    batch = pa.record_batch({"a": pa.array([1, None, 5])})
    assert evaluate(from_text("NOT (a > 3)"), batch).to_pylist() == [True, None, False]
    assert evaluate(from_text("a > 3 OR a IS NULL"), batch).to_pylist() == [False, True, True]
    assert evaluate(from_text("a NOT IN (1, NULL)"), batch).to_pylist() == [False, None, None]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a +\n  uper(s)", "line 2, column 3: there is no function 'uper'"),
        ("a >", "line 1, column 3: this is no SQL at '>'"),
        ("'open", "this is no SQL"),
        ("sum(a) > 1", "line 1, column 1: 'sum' is of many rows"),
        ("s LIKE b", "LIKE wants a plain text"),
        ("t + INTERVAL 1 MONTH", "has no fixed length"),
        ("a IN (SELECT 1)", "IN over a query"),
        ("lpad(s, a)", "lpad takes a whole number"),
        ("exists(a, x -> x > 1)", "(Lambda) is not known here"),
        ("CAST(a AS interval)", "no type"),
        ("DROP TABLE x", "is no expression"),
        ("SHOW TABLES", "is no expression"),
        ("SELECT 1", "is no expression"),
        ("", "is no expression"),
    ],
)
def test_what_we_lack_is_refused_by_name_and_place(text: str, problem: str) -> None:
    with pytest.raises(ExprError) as error:
        from_text(text)
    assert problem in error.value.problem


def test_text_stands_wherever_a_predicate_does() -> None:
    rows = cz.from_rows([{"t": n, "id": n, "name": "ab" if n % 2 else "b"} for n in range(6)], time="t")
    kept = rows.where("id > 1 AND name LIKE 'a%'").select("id", cz.expr("id + 1"), twice=cz.expr("id * 2"))
    assert kept.run().table().select(["id", "id + 1", "twice"]).to_pylist() == [
        {"id": 3, "id + 1": 4, "twice": 6},
        {"id": 5, "id + 1": 6, "twice": 10},
    ]
    assert rows.filter("id > 4").run().table().num_rows == 1
    joined = rows.join(rows.select("id", other=col("name")), on="id", where="name = other AND id < 2")
    assert joined.run().table().num_rows == 2


def test_several_parts_of_a_text_are_taken_from_one_split(monkeypatch: pytest.MonkeyPatch) -> None:
    splits, split = [], pc.split_pattern
    monkeypatch.setattr(pc, "split_pattern", lambda *a, **k: splits.append(1) or split(*a, **k))
    found, of = [], Delimited.of
    monkeypatch.setattr(Delimited, "of", lambda *a: found.append(1) or of(*a))
    batch = pa.record_batch({"s": pa.array(["a,b", "c", None])})
    parts = [S.split_part(",", 1), S.split_part(",", 2).upper(), from_text("split(s, ',')[0]"), S.split(",")]
    made = compile_all(parts, batch.schema)(batch)
    assert [m.to_pylist() for m in made[:3]] == [["a", "c", None], ["B", "", None], ["a", "c", None]]
    assert (len(found), len(splits)) == (1, 1)


def test_a_piece_of_a_text_is_that_element_of_its_split() -> None:
    rng = np.random.default_rng(3)
    texts = ["".join(rng.choice(list("a,é"), rng.integers(0, 7))) for _ in range(300)]
    texts = pa.array([None if rng.random() < 0.1 else text for text in texts]).slice(7, 280)
    pieces = pc.split_pattern(texts, ",").to_pylist()
    batch = pa.record_batch({"s": texts})
    for k in range(4):
        wanted = [None if p is None or len(p) <= k else p[k] for p in pieces]
        assert evaluate(f.get(S.split(","), k), batch).to_pylist() == wanted
        empty = [None if p is None else p[-k - 1] if len(p) > k else "" for p in pieces]
        assert evaluate(S.split_part(",", -k - 1), batch).to_pylist() == empty
