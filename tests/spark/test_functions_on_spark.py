"""Functions answer as Spark's own do, on drawn values with nulls, empty texts and many scripts."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura.errors import CaesuraError, ExprError
from caesura.expr import Expr, RowError, as_expr, col, evaluate, lit, same, sql, when
from caesura.expr import functions as f

ROWS = 300
WORDS = [
    "",
    " ",
    "a",
    "ab-12",
    "Hello World",
    "àÉ ñandú",
    "日本語 text",
    "😀a😀",
    "  pad ",
    "a,b,,c",
    "$1",
    "x\\y",
]
NUMERALS = ["12", "-7", "3.50", "1e3", "007", "0", "9999999"]
STAMPS = ["2024-02-29 23:59:59", "1970-01-01 00:00:00", "1969-12-31 01:02:03", "2000-06-15 12:30:00"]
JSON = [
    '{"a": {"b": [1, {"c": "x"}]}, "d": null, "é": true}',
    '{"a": 1.50, "a": 2, "f": 1e3, "g": 123456789.125, "n": -0, "t": "q\\"\\u00e9"}',
    '{"a": {"b": []}, "l": [1,2,[3]], "odd name": "x", "e": {}}',
    '[10, 20, {"a": "z"}]',
    '"text"',
    "17",
    "{",
    "",
    "null",
    '{"a": "b"} trailing',
    '{"a": [',
]
S, D, T, K, X, J, N = (col(c) for c in ("s", "d", "t", "i", "x", "j", "n"))
PATTERNS = (
    "yyyy-MM-dd",
    "d/M/yy H:m:s",
    "EEE, dd MMM yyyy hh:mm:ss a",
    "EEEE MMMM D",
    "HH 'o''clock' SSS",
    "QQQ q k K",
)
EXPRESSIONS: list[Expr] = [
    S.regexp_extract("([a-z]+)-([0-9]+)", 2),
    S.regexp_extract("([a-z]+)-([0-9]+)", 0),
    S.regexp_extract("(x)?a", 1),
    S.regexp_replace("[a-z]+", "<$0>"),
    S.regexp_replace("(a)(b)?", "$1\\$"),
    S.replace("😀", "").regexp_replace("a*", "-"),  # Java also finds a place within 😀
    S.rlike("^[a-z]"),
    S.regexp_count("a"),
    S.like("%a_%"),
    S.ilike("H%O%"),
    S.lpad(5, "<>"),
    S.rpad(7, "é"),
    S.lpad(3, ""),
    S.lpad(0),
    S.rpad(-2, "x"),
    f.concat_ws("-", "s", "i", "n"),
    f.concat_ws("", "s"),
    f.concat_ws("|", "n", "d"),
    S.instr("a"),
    S.instr(""),
    S.instr("語"),
    S.locate("a", 2),
    S.locate("a", 0),
    S.locate("", 3),
    S.initcap(),
    S.repeat(3),
    S.repeat(-1),
    S.reverse(),
    S.translate("abé日", "xy"),
    S.trim(),
    S.trim("a "),
    S.ltrim("H "),
    S.rtrim("d12"),
    S.left(2),
    S.left(-1),
    S.right(2),
    S.right(0),
    S.octet_length(),
    S.ascii(),
    S.md5(),
    S.sha1(),
    S.sha2(256),
    S.sha2(512),
    S.sha2(0),
    S.crc32(),
    S.split_part(",", 2),
    S.split_part("a", -1),
    S.substring(2, 3),
    S.replace("a", "bb"),
    *(
        J.json(p)
        for p in ("$", "$.a", "$.a.b[1].c", "$.a.b", "$.l[2]", "$['odd name']", "$[1]", "$[2].a", "$.f")
    ),
    *(J.json(p) for p in ("$.g", "$.n", "$.t", "$.d", "$.e", "$.é")),
    *(T.date_format(p) for p in PATTERNS),
    D.date_format("yyyy/MM/dd HH:mm"),
    N.try_cast("double"),
    T.unix_timestamp(),
    D.unix_timestamp(),
    f.from_unixtime("i"),
    f.from_unixtime("i", "HH:mm dd.MM.yyyy"),
    *(f.trunc("d", unit) for unit in ("year", "quarter", "month", "week")),
    *(T.date_trunc(unit) for unit in ("year", "mon", "dd", "hour", "week", "quarter", "second")),
    T.quarter(),
    D.day_of_year(),
    T.week_of_year(),
    D.weekday(),
    D.day_of_week(),
    D.date_add(K % 1000),
    D.date_sub(3),
    D.date_diff(T),
    D.add_months(K % 50),
    D.last_day(),
    col("st").to_timestamp("yyyy-MM-dd HH:mm:ss"),
    col("st").to_date("yyyy-MM-dd HH:mm:ss"),
    col("st").unix_timestamp("yyyy-MM-dd HH:mm:ss"),
    col("us").to_timestamp("MM/dd/yyyy hh:mm a"),
    S.try_to_timestamp("yyyy-MM-dd"),
    N.try_to_timestamp("HHmm"),
    K.bround(-1),
    X.bround(1),
    X.bround(),
    col("m").bround(1),
    col("m").round(1),
    X.isnan(),
    f.nanvl("x", lit(0.0)),
    f.nvl2("s", "i", lit(0)),
    f.pmod("i", lit(7)),
    f.nullif("i", lit(1)),
    f.nvl("s", lit("none")),
    f.greatest("i", "x"),
    f.least("i", "x"),
    K.abs().log10().round(9),
    f.equal_null("s", lit("a")),
]


def drawn() -> pa.RecordBatch:
    draw = random.Random(7)

    def some(values: list[Any]) -> list[Any]:
        return [draw.choice(values) if draw.random() > 0.1 else None for _ in range(ROWS)]

    letters = [draw.choice("abAB é,-日1 😀") for _ in range(60)]
    texts = [*WORDS, *("".join(draw.choices(letters, k=draw.randrange(9))) for _ in range(60))]
    days = [dt.date(1969, 1, 30) + dt.timedelta(days=draw.randrange(30000)) for _ in range(80)]
    stamps = [
        dt.datetime(1960, 1, 1) + dt.timedelta(microseconds=draw.randrange(3 * 10**15)) for _ in range(80)
    ]
    return pa.record_batch(
        {
            "s": pa.array(some(texts), pa.string()),
            "d": pa.array(some(days), pa.date32()),
            "t": pa.array(some(stamps), pa.timestamp("us")),
            "i": pa.array(some([*range(-300, 300), 10**9]), pa.int32()),
            "x": pa.array(some([k / 8 for k in range(-40, 40)] + [float("nan"), float("inf"), -0.0])),
            "j": pa.array(some(JSON), pa.string()),
            "n": pa.array(some([*NUMERALS, "2359", "2460", "x"]), pa.string()),
            "st": pa.array(some(STAMPS), pa.string()),
            "us": pa.array(
                some(["02/29/2024 12:00 AM", "12/31/1999 11:59 pm", "01/01/2001 01:00 Am"]), pa.string()
            ),
            "m": pa.array(some([Decimal(k) / 100 for k in range(-50, 50)]), pa.decimal128(6, 2)),
        }
    )


def plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return "NaN" if value != value else value


def test_functions_answer_as_sparks_do(spark: Any) -> None:
    batch = drawn()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.createDataFrame(pa.Table.from_batches([batch]))
    names = [f"c{i}" for i in range(len(EXPRESSIONS))]
    theirs = frame.selectExpr(
        *(f"{sql(e)} AS {n}" for e, n in zip(EXPRESSIONS, names, strict=True))
    ).toArrow()
    wrong = []
    for name, expr in zip(names, EXPRESSIONS, strict=True):
        ours = [plain(v) for v in evaluate(expr, batch).to_pylist()]
        wanted = [plain(v) for v in theirs.column(name).to_pylist()]
        bad = [(w, o, r) for w, o, r in zip(wanted, ours, batch.to_pylist(), strict=True) if w != o]
        wrong += [f"{expr}: Spark {w!r}, here {o!r}, of {r}" for w, o, r in bad[:3]]
    assert wrong == [], "\n".join(wrong)
    refused = [S.to_timestamp("yyyy-MM-dd"), S.to_date("yyyy")]
    for expr in refused:
        with pytest.raises(RowError):
            evaluate(expr, batch)
        with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|CANNOT_PARSE_TIMESTAMP"):
            frame.selectExpr(sql(expr)).collect()


def test_columns_of_pyspark_are_taken_where_they_mean_the_same(spark: Any) -> None:
    from pyspark.sql import functions as theirs

    a, s = theirs.col("a"), theirs.col("s")
    pairs = [
        ((a + 1) * 2 > 3, (col("a") + 1) * 2 > 3),
        ((a > 1) & ~s.isNull() | (s == "it's"), (col("a") > 1) & ~S.is_null() | (S == "it's")),
        (s.like("a%"), S.like("a%")),
        (theirs.lower("s").alias("low"), S.lower().alias("low")),
        (theirs.when(a > 1, "x").otherwise("y"), when(col("a") > 1, "x").otherwise("y")),
        (a.cast("bigint"), col("a").cast("bigint")),
        (a.isin(1, 2), col("a").isin(1, 2)),
        (theirs.col("`odd name`") % 2, col("odd name") % 2),
        (theirs.col("st.a"), col("st").field("a")),
        (theirs.expr("a + 1"), col("a") + 1),
        (theirs.regexp_extract("s", "(a)", 1), S.regexp_extract("(a)", 1)),
        (theirs.concat_ws("-", "s", "t"), f.concat_ws("-", "s", "t")),
    ]
    for given, wanted in pairs:
        assert same(as_expr(given), wanted), (str(given), as_expr(given))
    for given, problem in (
        (theirs.sum("a"), "a call of 'sum'"),
        (a.desc(), "SortOrder"),
        (theirs.rand(), "rand"),
    ):
        with pytest.raises(ExprError, match=problem):
            as_expr(given)
    rows = cz.from_rows([{"t": 1, "a": 2, "s": "x"}, {"t": 2, "a": 0, "s": "y"}], time="t")
    kept = rows.where(a > 1).select(s, b=a + 1).run().table()
    assert kept.select(["s", "b"]).to_pylist() == [{"s": "x", "b": 3}]


def test_what_a_users_function_raises_in_a_worker_is_told_as_its_failure(spark: Any) -> None:
    rows = cz.from_rows([{"ts": n, "v": n} for n in range(9)], time="ts")

    def fails(kind: type[BaseException]) -> Any:
        def failing(v: int) -> int:
            raise kind("odd")

        return cz.udf(failing)

    for kind in (StopIteration, GeneratorExit):
        with pytest.raises(CaesuraError) as caught:
            rows.select(w=fails(kind)("v")).run_batch(spark)
        told = str(caught.value)
        assert f"function 'failing' failed on (v = 0): {kind.__name__}: odd" in told, told
        assert Path(__file__).name in told and "fault of ours" not in told, told
