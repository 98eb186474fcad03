"""Whatever a query sets is read: without it there is another plan, or an error, or the same answer in DuckDB.

Both ways: each argument that the record of what is read has is taken out of queries that set it, and each
that it has not is put into a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from random import Random

import duckdb
import pytest
from depth import DEPTH, seed_of
from query_corpus import ALL, QUERIES, Query, streams
from sqlglot import exp

import caesura as cz
from caesura.expr.sql_read import UNSET, unread
from caesura.sql.clauses import READ, refuse_unread
from caesura.sql.query import meaning
from caesura.sql.text import read_query

SAME = {
    (exp.Div, "safe"): ("of the dialect, always set", "SELECT v / 2 AS q FROM t", ""),
    (exp.Initcap, "expression"): ("of the dialect, always set", "SELECT initcap(s) AS c FROM t", ""),
    (exp.DataType, "nested"): (
        "follows from the type",
        "SELECT CAST(struct(k, v) AS STRUCT<a: INT, b: BIGINT>) AS c FROM t",
        "",
    ),
    (exp.Ordered, "nulls_first"): (
        "where nulls stand anyway",
        "SELECT string_agg(s, '' ORDER BY v DESC) AS l FROM t GROUP BY HOP(ts, 5, 10)",
        "SELECT k FROM t ORDER BY v DESC NULLS FIRST LIMIT 1",
    ),
    (exp.Lateral, "view"): (
        "the word VIEW",
        "SELECT id, tag FROM arr LATERAL VIEW explode(tags) x AS tag",
        "",
    ),
    (exp.Lateral, "outer"): (
        "False where it is not written",
        "SELECT id, tag FROM arr LATERAL VIEW explode(tags) x AS tag",
        "SELECT id, tag FROM arr LATERAL VIEW OUTER explode(tags) x AS tag",
    ),
    (exp.Table, "alias"): (
        "a name that nothing else has",
        "SELECT HOP_END(ts, 5, 10) AS e FROM t AS x GROUP BY HOP(ts, 5, 10)",
        "SELECT x.k FROM t AS x",
    ),
    (exp.TableAlias, "this"): (
        "a name that nothing else has",
        "SELECT id, tag FROM arr LATERAL VIEW OUTER explode(tags) x AS tag",
        "SELECT x.tag FROM arr LATERAL VIEW explode(tags) x AS tag",
    ),
    (exp.Column, "table"): (
        "one table has the column",
        "SELECT t.k FROM t LEFT SEMI JOIN u ON t.k = u.k",
        "SELECT u.w, t.k FROM t LEFT JOIN u ON t.k = u.w",
    ),
    (exp.Table, "version"): (
        "a point meets what is there when it is; of rows that live longer see test_sql.py",
        "SELECT t.ts, u.w FROM t JOIN u FOR SYSTEM_TIME AS OF t.ts ON t.k = u.k",
        "",
    ),
}
"""What may go without another plan, why, a query that shows it, and one in which it may not go."""


NEVER = {(exp.Column, "this"), (exp.Literal, "this")}


def set_arguments(tree: exp.Expr) -> list[tuple[int, str, int]]:
    """What is set of each node: its place in the tree, the argument, and which of several; -1 for all."""
    found = []
    for at, node in enumerate(tree.walk()):
        if isinstance(node, exp.Identifier):
            continue  # it goes with what it is the name of
        for name, value in node.args.items():
            if value is None or value == [] or (value is False and (type(node), name) in UNSET):
                continue
            if (type(node), name) in NEVER or (name == "distinct" and value is False):
                continue  # no text makes a tree without it; ALL is what is so where nothing is said
            found.append((at, name, -1))
            several = len(value) if isinstance(value, list) else 0
            found += [(at, name, n) for n in range(several if several > 1 else 0)]
    return found


def without(tree: exp.Expr, at: int, name: str, which: int) -> exp.Expr:
    made = tree.copy()
    node = list(made.walk())[at]
    value = node.args[name]
    node.set(name, [one for n, one in enumerate(value) if n != which] if which >= 0 else None)
    return made


def plan(tree: exp.Expr, query: Query) -> str:
    """What a query means; an error where it is refused."""
    try:
        made = meaning(tree.copy(), query.text, query.streams(), dialect=query.dialect)
        return f"{made.node.fingerprint} {made.schema}"
    except cz.CaesuraError as error:
        return f"refused: {error.problem}"


@cache
def plan_of(query: Query) -> str:
    return plan(read_query(query.text).tree, query)


def answer(tree: exp.Expr, query: Query) -> str:
    """What DuckDB says."""
    base = duckdb.connect()
    for name, table in query.tables().items():
        base.register(name, table)
    try:
        return repr(sorted(base.execute(tree.sql("duckdb")).fetchall(), key=repr))
    except (duckdb.Error, ValueError) as error:
        return f"DuckDB: {error}"


@cache
def answer_of(query: Query) -> str:
    return answer(read_query(query.text).tree, query)


def passed_over(query: Query, at: int, name: str, which: int) -> str:
    """What is read of nowhere, if it is; empty where it makes a difference."""
    tree = read_query(query.text).tree
    node = list(tree.walk())[at]
    if which >= 0 and getattr(node.args[name][which], "name", "") in ("window_start", "window_end"):
        return ""  # either says that rows are grouped by the window
    shown = f"{type(node).__name__}.{name}{'' if which < 0 else f'[{which}]'} of {query.text}"
    try:
        less = without(tree, at, name, which)
        if plan(less, query) != plan_of(query) or (type(node), name) in SAME:
            return ""
        without_it = answer(less, query)
    except (AttributeError, KeyError, TypeError, IndexError, AssertionError, ValueError, ArithmeticError):
        return ""  # no text makes such a tree, and it is read: that is why it fails
    with_it = answer_of(query)
    return "" if with_it == without_it and not with_it.startswith("DuckDB") else shown


PLACED = re.compile(r"line \d+, column \d+: .* not known here\.")


Case = tuple[Query, int, str, int]


def drawn() -> Iterator[Case]:
    """Some arguments of some queries; in a soak each of all."""
    random = Random(seed_of("passed over"))
    for query in ALL if DEPTH > 1 else random.sample(ALL, 16):
        cases = [(query, *one) for one in set_arguments(read_query(query.text).tree)]
        yield from cases if DEPTH > 1 else random.sample(cases, min(len(cases), 4))


def differences(text: str, kind: type[exp.Expr], name: str) -> list[bool]:
    """For each time that a query sets an argument, whether there is another plan without it."""
    query, tree = Query(text), read_query(text).tree
    kinds = [type(node) for node in tree.walk()]
    places = [at for at, one, which in set_arguments(tree) if (kinds[at], one, which) == (kind, name, -1)]
    return [plan(without(tree, at, name, -1), query) != plan_of(query) for at in places]


@pytest.mark.parametrize("which", SAME, ids=lambda one: f"{one[0].__name__}-{one[1]}")
def test_what_may_go_goes_in_one_query_and_is_read_in_another(which: tuple[type[exp.Expr], str]) -> None:
    _, same, another = SAME[which]
    assert False in differences(same, *which)
    assert not another or True in differences(another, *which)


@pytest.mark.slow
def test_what_is_taken_out_of_a_query_makes_a_difference() -> None:
    missed = [told for case in drawn() if (told := passed_over(*case))]
    assert not missed, "\n".join(missed)


def test_the_queries_are_read_whole() -> None:
    some = ALL if DEPTH > 1 else Random(seed_of("whole")).sample(ALL, 12)
    refused = [query.text for query in some if plan_of(query).startswith("refused")]
    assert not refused


def test_the_queries_set_all_that_is_read() -> None:
    found = {(type(n), name) for text in QUERIES for n in read_query(text).tree.walk() for name in n.args}
    told = {(kind, name) for kind, names in READ.items() for name in names}
    unused = {(kind.__name__, name) for kind, name in told - found if any(k is kind for k, _ in found)}
    clauses = {(one, name) for one in ("Except", "Intersect") for name in ("order", "limit", "pace")}
    deeper = {("Column", "db"), ("Column", "catalog"), ("WindowSpec", "end_side"), ("Subquery", "match")}
    deeper |= {("Group", "grouping_sets")}
    assert unused <= clauses | deeper | {
        (one, "with_") for one in ("Union", "Except", "Intersect", "Subquery")
    }


def test_what_nobody_reads_is_refused_with_its_place() -> None:
    kinds = [
        kind for kind in vars(exp).values() if isinstance(kind, type) and issubclass(kind, exp.Expression)
    ]
    tried = 0
    for text in QUERIES:
        tree = read_query(text).tree
        for kind, node in {type(node): node for node in tree.walk()}.items():
            for name in set(kind.arg_types) - READ[kind]:
                before = node.args.get(name)
                node.set(name, exp.Literal.string("x"))
                with pytest.raises(cz.CaesuraError) as raised:
                    refuse_unread(tree, text)
                assert PLACED.match(raised.value.problem)
                node.set(name, before)
                tried += 1
    assert tried > 500
    strange = [kind for kind in kinds if kind not in READ]
    assert len(strange) > 500 and all(next(unread(kind(), READ))[1] == "" for kind in strange if _plain(kind))


def _plain(kind: type[exp.Expr]) -> bool:
    try:
        kind()
    except (TypeError, NotImplementedError):
        return False
    return True


SLIDING = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), 5, 10))"
ASIDE = [
    ("SELECT DISTINCT ON (k) k, v FROM t", "DISTINCT ON is not known"),
    (f"SELECT sum(v) AS s FROM {SLIDING}", "does not name the window"),
    (f"SELECT k, sum(v) AS s FROM {SLIDING} GROUP BY k", "does not name the"),
    (
        "SELECT (SELECT max(v) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), 5, 10))) AS m FROM u",
        "does not name the",
    ),
    (
        "SELECT k FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), 5, 10)) WHERE k IN (SELECT k FROM u)",
        "does not name",
    ),
    ("SELECT sum(v) AS s, TUMBLE_START(ts, 20) AS w FROM t GROUP BY TUMBLE(ts, 10)", "of another window"),
    ("SELECT sum(v) AS s FROM t GROUP BY TUMBLE(ts, 10), HOP(ts, 5, 10)", "grouped by two windows"),
    (
        "SELECT k, sum(v) FROM t GROUP BY GROUPING SETS ((k, TUMBLE(ts, 10)), (k))",
        "a set of keys has no window",
    ),
    ("SELECT sum(v) AS s FROM TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts))) GROUP BY 1", "by name"),
    (
        "SELECT count(*) OVER (ORDER BY ts GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) n FROM t",
        "this frame",
    ),
    ("SELECT count(*) OVER (ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) AS n FROM t", "this frame"),
    ("SELECT rank() OVER (ORDER BY v ROWS 1 PRECEDING) AS n FROM t", "RANK has no frame"),
    ("SELECT rank(v) OVER (ORDER BY v) AS n FROM t", "RANK does not take 1 arguments"),
    ("SELECT v BETWEEN SYMMETRIC 6 AND 1 AS b FROM t", "BETWEEN SYMMETRIC is not known"),
    ("SELECT * REPLACE (v + 1 AS v) FROM t", "* REPLACE is not known"),
    ("SELECT * RENAME (v AS w) FROM t", "* RENAME is not known"),
    ("SELECT * ILIKE 'v%' FROM t", "* ILIKE is not known"),
    (
        "SELECT id FROM arr CROSS JOIN UNNEST(tags) WITH ORDINALITY AS x(tag, n)",
        "WITH ORDINALITY is not known",
    ),
    ("SELECT id FROM arr LEFT SEMI JOIN UNNEST(tags) AS x(tag) ON TRUE", "not known in FROM"),
    ("SELECT k, sum(v) AS s FROM t GROUP BY DISTINCT k", "GROUP BY DISTINCT is not known"),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9 LIMIT 3) SELECT n FROM r",
        "LIMIT of a recursive table",
    ),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT 2 UNION SELECT n + 1 FROM r WHERE n < 9)) "
        "SELECT n FROM r",
        "UNION within UNION ALL",
    ),
    ("WITH a AS (SELECT k FROM t), A AS (SELECT v FROM t) SELECT k FROM a", "two tables called 'A'"),
    ("SELECT v FROM t HAVING v > 5", "HAVING stands without GROUP BY"),
    ("SELECT x.a FROM (SELECT k, v FROM t) x(a)", "'x' names 1 columns, and has 2"),
    ("SELECT x.col1 FROM (VALUES (1, 2), (3)) x", "rows of different lengths"),
    ("SELECT k FROM t JOIN u FOR VERSION AS OF t.ts ON t.k = u.k", "FOR SYSTEM_TIME AS OF"),
    ("SELECT CAST(v AS TIME) AS x FROM t", "the type TIME is not known"),
    ("SELECT CAST(ts AS TIMESTAMP(3)) AS x FROM t", "takes no number"),
    ("SELECT initcap(s, 'b') AS x FROM t", "INITCAP takes 1 argument"),
    ("SELECT k, sum(v) AS s FROM t GROUP BY 7", "SELECT has no column 7"),
    ("SELECT k, sum(v) AS s FROM t GROUP BY ROLLUP (k, 1e500)", "SELECT has no column 1e500"),
    ("SELECT FROM t", "SELECT names no column"),
    ("SELECT k FROM t FETCH FIRST 3 ROWS ONLY", "FETCH FIRST is not known"),
]


@pytest.mark.parametrize(("text", "problem"), ASIDE)
def test_what_was_once_passed_over_is_refused(text: str, problem: str) -> None:
    with pytest.raises(cz.CaesuraError) as raised:
        cz.sql(text, **streams())
    assert problem in raised.value.problem and raised.value.problem.startswith("line ")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (
            "SELECT max(v) AS m FROM TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => 10, "
            "SLIDE => 5)) GROUP BY window_start, window_end",
            f"SELECT max(v) AS m FROM {SLIDING} GROUP BY window_start, window_end",
        ),
        (
            "SELECT sum(v) OVER (ORDER BY ts rows unbounded preceding) AS n FROM t",
            "SELECT sum(v) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM t",
        ),
        (
            "SELECT a FROM (SELECT k, row_number() OVER (ORDER BY v) AS n FROM t) x(a, m) WHERE m <= 2",
            "SELECT k AS a FROM (SELECT k, row_number() OVER (ORDER BY v) AS n FROM t) WHERE n <= 2",
        ),
    ],
)
def test_two_ways_to_write_one_query_say_the_same(text: str, other: str) -> None:
    said = [cz.sql(one, **streams()).run().table().to_pylist() for one in (text, other)]
    assert said[0] == said[1] != []


def test_several_frames_and_a_rank_stand_in_one_select() -> None:
    text = """SELECT ts, sum(v) OVER (ORDER BY ts) AS a, count(*) OVER (PARTITION BY k ORDER BY ts) AS b,
        lag(v) OVER (ORDER BY ts) AS c, row_number() OVER (ORDER BY v) AS d FROM t"""
    found = cz.sql(text, **streams()).run().table().drop_columns(["LE", "RE"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (1, 5, 1, None, 1),
        (12, 12, 2, 5, 1),
        (13, 12, 1, 7, 1),
        (21, 17, 1, None, 1),
    ]
