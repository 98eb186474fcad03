"""Whatever is written, a query has an answer or an error of ours: with its place, and a remedy in SQL.

Queries are drawn from the corpus, and tokens of them are dropped, doubled, swapped, written in the other
case, or replaced by values and clauses that stand there seldom.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from random import Random

import pytest
from depth import examples, seed_of
from query_corpus import ALL, Query, streams

import caesura as cz
from caesura.sql.remedies import PYTHON

ODD = """NULL|0|-1|1e500|99999999999999999999999999999999999999999999|'x'|''|1.5|TRUE|*|()|(SELECT 1)|1_000
(SELECT max(w) FROM u)|INTERVAL '1' MONTH|INTERVAL '1' DAY|INTERVAL '99999999999' DAY|t.*|ARRAY(1)|k|count(*)
sum(v)|row_number() OVER (ORDER BY v)|CASE WHEN TRUE THEN 1 END|x'0'|DATE '2024-01-01'|9223372036854775808
'2024'|[1]|{}|?|:a|@x|$1|DISTINCT|ALL|NOT|BETWEEN|OVER ()|AS x|IS NULL|LIMIT 1|FILTER (WHERE TRUE)|FROM t
WITHIN GROUP (ORDER BY v)|ORDER BY k|k DESC NULLS LAST|,|--|/*|`|'|mode()|count(k, v)|count(DISTINCT k, v)
approx_count_distinct(NULL)|percentile_approx(v, NULL)|stddev_pop(v)|DATE '9999-12-31' + INTERVAL 1 MONTH
UNION ALL SELECT 1|GROUP BY k|HAVING TRUE|DATE '2024-99-99'|lag(v, k)|CAST(NULL AS TIME)|0x1F|1L|1.5BD"""
PARTS = [part for line in ODD.split("\n") for part in line.split("|")]
TOKENS = re.compile(r"'[^']*'|\w+|\s+|[^\w\s]")
PLACED = re.compile(r"line \d+, column \d+: ")


def mutated(random: Random, query: Query) -> str:
    """A query with one to three tokens changed."""
    tokens = TOKENS.findall(query.text)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        at, other = (random.choice([n for n, t in enumerate(tokens) if not t.isspace()]) for _ in "12")
        match random.randrange(7):
            case 0:
                tokens[at] = " "
            case 1:
                tokens.insert(at, f" {tokens[at]} ")
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = tokens[at].swapcase()
            case 4:
                tokens.insert(at + 1, f" , {random.choice(PARTS)} ")
            case _:
                tokens[at] = f" {random.choice(PARTS)} "
    return "".join(tokens)


def wrong_with(text: str, dialect: str, given: dict[str, cz.Stream]) -> str:
    """What is wrong with what is said of a query; empty where nothing is."""
    try:
        made = cz.sql(text, dialect=dialect, **given)  # type: ignore[arg-type]
    except cz.CaesuraError as error:
        if error.__cause__ is not None or "fault of ours" in str(error):
            return f"from within: {error.__cause__!r}"
        if not PLACED.match(error.problem):
            return f"no place: {error.problem}"
        remedy = re.sub(r"in Python give it, cz\.sql\(text, .*=\.\.\.\)", "", error.remedy)
        return f"no SQL: {error.remedy}" if PYTHON.search(remedy) else ""
    try:
        made.run()
    except cz.CaesuraError as error:
        if "fault of ours" in str(error) or "does not understand" in error.problem:
            return f"from within: {error.__cause__!r}"
    return ""


@pytest.mark.parametrize("dialect", ["spark", "flink"])
def test_a_query_of_any_text_has_an_answer_or_an_error_with_its_place(dialect: str) -> None:
    random = Random(seed_of("mutated", dialect))
    wrong = []
    for query in random.choices(ALL, k=examples(400, short=45)):
        text = mutated(random, query)
        if told := wrong_with(text, dialect, query.streams()):
            wrong.append(f"{text}\n    {told}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT round(12345678901234567890123456789012345678901, -7) AS x FROM t", "41 digits"),
        ("SELECT 1e500 AS x FROM t", "beyond all doubles"),
        ("SELECT count(DISTINCT k, v) AS n FROM t", "COUNT(DISTINCT ...) is of one value"),
        ("SELECT mode() AS m FROM t", "MODE takes 1 argument, and not 0"),
        ("SELECT percentile_approx(v, NULL) AS m FROM t", "takes behind its value is a number"),
        ("SELECT sum((SELECT max(w) FROM u)) AS s FROM t", "SUM is of a query, which is no value of a row"),
        ("SELECT k, stddev_pop(v) AS s FROM t GROUP BY k", "there is no function 'stddev_pop'"),
        ("SELECT stddev_pop(v) AS s FROM t", "there is no function 'stddev_pop'"),
        ("SELECT count(*) AS n FROM t WHERE sum(v) > 1", "'sum' is of many rows"),
        ("SELECT k FROM t LIMIT 1.5", "LIMIT takes a number of rows"),
        ("SELECT lag(v, k) OVER (ORDER BY ts) AS n FROM t", "'k' is no number of rows"),
        ("SELECT DATE '9999-12-31' + INTERVAL 1 MONTH AS d FROM t", "beyond all dates"),
        ("SELECT TIMESTAMP '2024-01-01' + INTERVAL '9999999999' DAY AS d FROM t", "longer than all times"),
        ("SELECT TIMESTAMP '2024-01-01' + INTERVAL '1' M AS d FROM t", "M may be minutes or months"),
        ("SELECT TIMESTAMP '2024-01-01' + INTERVAL '1M' AS d FROM t", "M may be minutes or months"),
        ("SELECT count(*) AS n FROM t GROUP BY window(ts, '1 month')", "no fixed length"),
        ("SELECT 'a FROM t", "this is no SQL"),
        ("SELECT 1; SELECT 2", "no query, or more than one"),
        (f"SELECT {'(' * 400}1{')' * 400} AS n", "nested too deeply"),
        (f"SELECT {' + '.join('k' * 900)} AS n FROM t", "nested too deeply"),
        ("SELECT a FROM t x(a, b, c, d, e, f, g)", "'x' names 7 columns, and has 4"),
        ("SELECT listagg(DISTINCT , '-') AS s FROM t", "expected what is listed"),
        ("SELECT floor() AS x FROM t", "FLOOR takes 1 argument, and not 0"),
        ("", "no query, or more than one"),
    ],
)
def test_what_once_crashed_or_misled_is_told_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(cz.CaesuraError) as raised:
        cz.sql(text, **streams())
    assert PLACED.match(raised.value.problem) and problem in raised.value.problem
    assert not PYTHON.search(raised.value.remedy)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("count(k, v)", 3),
        ("approx_count_distinct(NULL)", 0),
        ("count(DISTINCT NULL)", 0),
        ("round(12345678901234567890123456789012345678, -38)", 0),
        ("max(NULL)", None),
        ("CAST(0.9 AS INT)", 0),
        ("TRY_CAST(-0.99 AS BIGINT)", 0),
        ("ceil(1.5)", 2),
        ("floor(-0.5)", -1),
    ],
)
def test_what_is_the_same_for_all_rows_has_a_value(value: str, wanted: object) -> None:
    rows = {name: cz.table(made.run().table().drop_columns(["LE", "RE"])) for name, made in streams().items()}
    [row] = cz.sql(f"SELECT {value} AS x FROM t LIMIT 1", **rows).run().table().to_pylist()
    assert row["x"] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM t ORDER BY NULL LIMIT 1",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(B.v, 9223372036854775808) "
        "AS v PATTERN (A B+) DEFINE B AS B.v > A.v)",
    ],
)
def test_what_once_crashed_as_it_ran_has_an_answer(text: str) -> None:
    assert cz.sql(text, **streams()).run().table().num_rows > 0


LENGTHS = [
    "INTERVAL 90 MINUTES",
    "INTERVAL '90' MINUTE",
    "INTERVAL '1 hour 30 minutes'",
    "INTERVAL 1 HOUR 30 MINUTES",
    "INTERVAL '1.5' HOURS",
    "INTERVAL '1:30' HOUR TO MINUTE",
    "INTERVAL '5400 seconds'",
]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_length_of_time_is_written_as_in_spark_and_as_in_sql(length: str) -> None:
    day = "TIMESTAMP '2024-01-01 00:00:00'"
    for value in (f"{day} + {length}", f"{length} + {day}"):
        text = f"SELECT CAST({value} AS STRING) AS x FROM t"
        [row] = cz.sql(text, t=cz.table([{"k": 1}])).run().table().to_pylist()
        assert row["x"] == "2024-01-01 01:30:00"


@pytest.mark.parametrize("length", [*LENGTHS, "'90 minutes'", "'1 hour 30 minutes'"])
def test_a_length_of_a_window_is_written_as_in_spark_and_as_in_sql(length: str) -> None:
    timed = cz.from_rows([{"ts": datetime(2024, 1, 1), "k": 1}], time="ts")
    text = f"SELECT TUMBLE_END(ts, {length}) AS e FROM t GROUP BY TUMBLE(ts, {length})"
    [row] = cz.sql(text, t=timed).run().table().to_pylist()
    assert row["RE"] - row["LE"] == timedelta(minutes=90)
