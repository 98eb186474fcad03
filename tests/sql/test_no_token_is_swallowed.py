"""Every word of a query is in its tree: without it, or with another beside it, there is another, or an error.

That what is in the tree is read is held by test_nothing_is_passed_over.py; here is what sqlglot may drop on
the way there. Tokens, and brackets with what is in them, are taken out; words of other dialects are put in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random

import duckdb
import pytest
from depth import DEPTH, examples, seed_of
from query_corpus import ARR, COLLECTED, QUERIES, T, U, streams
from sqlglot import exp

import caesura as cz
from caesura.expr.sql_read import UNSET
from caesura.sql.strict import LENGTH
from caesura.sql.text import QueryDialect, read_query

TEXTS = list(dict.fromkeys([*QUERIES, *(one.text for one in COLLECTED)]))
WORDS = """FOR UPDATE|TABLESAMPLE (10 PERCENT)|TABLESAMPLE BERNOULLI (10)|/*+ BROADCAST(t) */|WITH TIES
NULLS FIRST|NULLS LAST|ESCAPE '!'|COLLATE x|COLLATE "C"|IGNORE NULLS|RESPECT NULLS|ONLY|FINAL
LATERAL|NATURAL|GLOBAL|ANY|DISTINCT|ALL|AS|INNER|OUTER|CROSS|LEFT|ASC|DESC|(3)|(10, 2)|OFFSET 1
OFFSET 1 ROWS|FETCH FIRST 1 ROW ONLY|LIMIT 1|FORMAT 'x'|WITH ORDINALITY|AT TIME ZONE 'UTC'
NOT NULL|UNSIGNED|PRECEDING|EXCLUDE CURRENT ROW|EXCLUDE TIES|WITHIN GROUP (ORDER BY k)
FILTER (WHERE k > 1)|OVER ()|USING (k)|ON k = 1|WHERE k = 1|SETTINGS a = 1|FORMAT JSON
PARTITION (k)|FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01'|TIMESTAMP AS OF 1|VERSION AS OF 1
WITH ROLLUP|WITH TOTALS|WITH (NOLOCK)|SAMPLE 0.1|PREWHERE k = 1|SEMI|ANTI|ASOF|SYMMETRIC
ASYMMETRIC|RECURSIVE|MATERIALIZED|NOT MATERIALIZED|STRAIGHT_JOIN|SQL_NO_CACHE|HIGH_PRIORITY
TOP 1|INTO x|SORT BY k|CLUSTER BY k|DISTRIBUTE BY k|PIVOT (sum(v) FOR k IN (1))
UNPIVOT (a FOR b IN (k))|WINDOW w AS (ORDER BY k)|QUALIFY TRUE|BY NAME|CORRESPONDING
SEARCH DEPTH FIRST BY k SET o|CYCLE k SET c USING p|SAFE|NO|IF|FORCE INDEX (a)|USE INDEX (a)
INDEXED BY a|NOT INDEXED|CONNECT BY k = 1|START WITH k = 1|:a|::int|::|.|-|~|,|ROW|ROWS|RANGE
UNIQUE|BINARY|OF t|PRIOR|CHARACTER SET utf8|ARRAY|VARYING|PRECISION|WITH TIME ZONE
WITHOUT TIME ZONE|WITH LOCAL TIME ZONE|DEFAULT 1|COMMENT 'x'|STORED|LOCK IN SHARE MODE
OPTION (RECOMPILE)|EXCEPT (k)|REPLACE (1 AS k)|TABLE|VALUES|UNBOUNDED|VIEW|HASH|MERGE|LOOP
LOCAL|REMOTE|{}|@x|ORDER BY k|GROUP BY k|HAVING TRUE|PARTITION BY k|MEASURES k AS x|SKIP LOCKED
NOWAIT|WAIT 1|PERCENT|PER MATCH|TO SECOND|$1|?|#x|_utf8|N|x|1|'y'|NULL|TRUE|STRICT|JSON
IN ('a')|ON OVERFLOW ERROR|AFTER MATCH SKIP PAST LAST ROW|ONE ROW PER MATCH|WITHIN 5|EMIT FINAL
ERROR ON ERROR|DIRECTED|APPLY|MULTISET|ON EMPTY NULL|RETURNING INT|KEEP k|CHECK (k)|AND|OR
BETWEEN 1 AND 2|ALLOW FILTERING|DEFERRABLE|TEMPORARY|EXISTS"""
INSERTED = [word for line in WORDS.split("\n") for word in line.split("|")]
SAME = {
    "AS": "a name may stand without it",
    "TABLE": "what TUMBLE and HOP take is a table with or without it",
    "ALL": "what is so where nothing is said",
    "ASC": "what is so where nothing is said",
    "NULLS FIRST": "where nulls stand in Spark's ascending order",
    "NULLS LAST": "where nulls stand in Spark's descending order",
    "ON OVERFLOW ERROR": "a list of texts has no bound here",
}
"""Words that change nothing, and why."""
LENIENT = {
    "THEN": "CASE WHEN a 1 END has one reading",
    "BETWEEN": "ROWS 2 PRECEDING AND CURRENT ROW has one reading",
    "AND": "BETWEEN 1 5 has one reading",
    "WHERE": "FILTER (k > 1) has one reading, and DuckDB takes it",
    "IS": "v NOT NULL has one reading, and DuckDB takes it",
    ":": "STRUCT<a INT> is as SQL writes it",
}
"""Words without which sqlglot reads a query all the same, as it is meant."""


def sign(node: object) -> object:
    """All that is set of a tree; sqlglot's own comparison takes False for nothing."""
    if isinstance(node, list):
        return tuple(sign(one) for one in node)
    if not isinstance(node, exp.Expr):
        return (type(node), node)
    told = {"length": node.meta.get(LENGTH)}
    if isinstance(node, exp.MatchRecognize):
        told |= {name: repr(node.meta.get(name)) for name in ("rows", "skip", "target", "within", "subsets")}
        told["pattern"] = repr([word.text for word in node.meta.get("pattern") or ()])
    args = [(n, v) for n, v in node.args.items() if v is not None and v != []]
    args = [(n, v) for n, v in args if v is not False or (type(node), n) not in UNSET]
    return (type(node), tuple(told.items()), tuple((n, sign(v)) for n, v in sorted(args)))


def read(text: str) -> object:
    """What a text is read as; None where it is refused."""
    try:
        found = read_query(text)
    except cz.CaesuraError:
        return None
    return sign(found.tree), found.emit


read_before = cache(read)


@cache
def spans(text: str) -> list[tuple[int, int]]:
    """Where the tokens of a text stand, and the brackets with all that is in them."""
    found, opened = [], []
    for token in QueryDialect().tokenize(text):
        found.append((token.start, token.end + 1))
        if token.text in ("(", "["):
            opened.append(token.start)
        if token.text in (")", "]"):
            found.append((opened.pop(), token.end + 1))
    return found


def answer(text: str) -> str:
    """What DuckDB says of a query over the three tables."""
    base = duckdb.connect()
    for name, table in (("t", T), ("u", U), ("arr", ARR)):
        base.register(name, table)
    try:
        return repr(sorted(base.execute(text).fetchall(), key=repr))
    except duckdb.Error as error:
        return f"DuckDB: {error}"


def swallowed(text: str, begin: int, end: int, word: str) -> str:
    """What is dropped of a query with another word in it, or without one; empty where nothing is."""
    other = f"{text[:begin]} {word} {text[end:]}"
    taken = (word or text[begin:end]).upper()
    if taken in SAME or (not word and taken in LENIENT) or read(other) != read_before(text):
        return ""
    if answer(text) == (said := answer(other)) and not said.startswith("DuckDB"):
        return ""
    return f"{text[:begin]} >>{taken}<< {text[end:]}"


Case = tuple[str, int, int, str]


def searched(cases: Callable[[str], list[Case]], *, short: int, each: int) -> list[str]:
    """What is dropped, of some cases of some queries; in a soak of some or all (0) of each query."""
    random = Random(seed_of("swallowed"))
    texts = TEXTS if DEPTH > 1 else random.choices(TEXTS, k=short)
    missed = []
    for text in texts:
        some = cases(text)
        if DEPTH == 1 or each:
            some = random.sample(some, min(len(some), examples(each, short=4)))
        missed += [told for case in some if (told := swallowed(*case))]
    return missed


def test_a_token_that_is_taken_out_is_missed() -> None:
    missed = searched(lambda text: [(text, *span, "") for span in spans(text)], short=50, each=0)
    assert not missed, "\n".join(missed)


def test_a_word_of_another_dialect_is_read_or_refused() -> None:
    def put_in(text: str) -> list[Case]:
        return [(text, end, end, word) for _, end in spans(text) for word in INSERTED]

    missed = searched(put_in, short=60, each=60)
    assert not missed, "\n".join(missed)


PLACED = re.compile(r"line \d+, column \d+: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT k, FROM t", "no SQL at 'FROM': expected something behind ','"),
        ("SELECT k FROM t GROUP BY k,, v", "no SQL at 'v': expected something in front of ','"),
        ("SELECT k FROM t, WHERE k = 1", "no SQL at 'WHERE': expected a table behind ','"),
        ("SELECT t.k FROM t JOIN u ON WHERE t.k = 1", "expected a condition behind ON"),
        ("SELECT k FROM t AS", "expected a name behind AS"),
        ("SELECT AS k FROM t", "AS stands behind no value"),
        ("SELECT k FROM t NATURAL UNION SELECT k FROM u", "no SQL at 'NATURAL'"),
        ("SELECT x.a FROM (SELECT k FROM t) AS x(a@b)", "no SQL at '@'"),
        ("SELECT k FROM t WHERE k = 1 AND OR (k = 2)", "no SQL at 'OR'"),
        ("SELECT k FROM .t", "expected the name of a table"),
        ("SELECT k FROM t LIMIT 2 ONLY", "expected the end of LIMIT"),
        ("SELECT k FROM t LIMIT , 2", "LIMIT has nothing in front of ','"),
        ("SELECT max_by(s, v AS m FROM t", "nothing closes this '('"),
        ("SELECT k FROM t)", "this ')' closes no bracket"),
        ("SELECT k FROM t /*+ OPTIONS('scan.startup.mode' = 'latest') */", "a hint is not known here"),
        ("SELECT /*+ BROADCAST(t) */ k FROM t", "a hint is not known here"),
        ("SELECT sum(TABLE v) AS s FROM t", "no SQL at 'v'"),
        ("SELECT sum(v) OVER (PARTITION BY ORDER BY ts) AS s FROM t", "expected what PARTITION BY goes by"),
        ("SELECT k FROM t ORDER BY", "no SQL at 'ORDER BY'"),
        ("SELECT k FROM t GROUP BY", "expected what GROUP BY goes by"),
        ("SELECT ts FROM t UNION ALL SELECT ts FROM t WITH PACE ON ts", "expected a column and a length"),
        ("SELECT substring(s FROM FOR 2) AS x FROM t", "FROM has nothing behind it"),
        ("SELECT initcap() AS x FROM t", "INITCAP takes 1 argument, and not 0"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(B.v) AS v PATTERN (A B+) "
            "DEFINE B AS B.v > A.v) m(k, v)",
            "'m' names 2 columns, and has 1",
        ),
    ],
)
def test_what_was_once_swallowed_is_refused(text: str, problem: str) -> None:
    with pytest.raises(cz.CaesuraError) as raised:
        cz.sql(text, **streams())
    assert PLACED.match(raised.value.problem) and problem in raised.value.problem


def test_a_length_of_a_text_cuts_it_in_flink_and_is_refused_there() -> None:
    text = "SELECT CAST('abcd' AS VARCHAR(3)) AS x FROM t LIMIT 1"
    with pytest.raises(cz.CaesuraError, match="line 1, column 23: a text of a length cuts what is longer"):
        cz.sql(text, dialect="flink", **streams())
    found = cz.sql(text, **streams()).run().table()["x"].to_pylist()
    assert set(found) == {"abcd"}  # as Spark's cast does
