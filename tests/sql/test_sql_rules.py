"""Rewrite rules of SQL, before and after; and the order in which tables of FROM meet."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

import caesura as cz
from caesura.ops.aggregate import Alive
from caesura.ops.join import Join
from caesura.plan import walk
from caesura.sql.members import only_true_counts, without_any, without_limit
from caesura.sql.rules import factored, implied, wants_value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(a = b AND c = 1) OR (a = b AND c = 2)", ["a = b", "c = 1 OR c = 2"]),
        ("(a = b AND c = 1 AND d) OR (d AND a = b AND c = 2)", ["a = b", "d", "c = 1 OR c = 2"]),
        ("(a = b AND c = 1) OR a = b", ["a = b"]),
        ("a = b OR c = 1", ["a = b OR c = 1"]),
        ("(x AND (y OR z)) OR (x AND w)", ["x", "(y OR z) OR w"]),
    ],
)
def test_what_all_branches_of_or_say_is_a_condition_of_its_own(before: str, after: list[str]) -> None:
    assert [one.sql() for one in factored(parse_one(before))] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(n = 1 AND m = 2) OR (n = 2 AND m = 1)", "n = 1 OR n = 2"),
        ("(n = 1 AND n < m AND n > 0) OR n = 3", "(n = 1 AND n > 0) OR n = 3"),
        ("(n = 1 AND m = 2) OR m = 1", None),
        ("n = 1", None),
    ],
)
def test_branches_that_all_speak_of_a_table_say_something_of_it_alone(before: str, after: str | None) -> None:
    found = implied(parse_one(before), lambda node: {c.name for c in node.find_all(exp.Column)} == {"n"})
    assert (found.sql() if found is not None else None) == after


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a < (SELECT 1)", True),
        ("(a + 1 > 2 * (SELECT 1))", True),
        ("a < coalesce((SELECT 1), 0)", False),
        ("(SELECT 1) IS NULL", False),
        ("a < (SELECT 1) OR b", False),
    ],
)
def test_a_comparison_is_never_true_of_null(text: str, wanted: bool) -> None:
    node = parse_one(text)
    query = node.find(exp.Subquery)
    assert query is not None
    assert wants_value(node, query) is wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = ANY (SELECT b FROM c)", "a IN (SELECT b FROM c)"),
        ("x OR a <> ALL (SELECT b FROM c)", "x OR NOT a IN (SELECT b FROM c)"),
        ("a = ANY (xs)", "a = ANY(xs)"),
    ],
)
def test_any_and_all_of_a_query_are_in(before: str, after: str) -> None:
    assert without_any(parse_one(before), before).sql() == after


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a IN (SELECT 1)", True),
        ("x OR (y AND a IN (SELECT 1))", True),
        ("x OR NOT a IN (SELECT 1)", False),
        ("(a IN (SELECT 1)) IS NULL", False),
    ],
)
def test_within_and_and_or_null_is_as_good_as_false(text: str, wanted: bool) -> None:
    node = parse_one(text)
    part = node.find(exp.In)
    assert part is not None
    assert only_true_counts(node, part) is wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT a FROM t LIMIT 1", "SELECT a FROM t"),
        ("SELECT a FROM t ORDER BY a LIMIT 3", "SELECT a FROM t"),
        ("SELECT a FROM t GROUP BY a", "SELECT a FROM t"),
        ("SELECT a FROM t GROUP BY a HAVING a > 1", "SELECT a FROM t GROUP BY a HAVING a > 1"),
        ("SELECT a FROM t LIMIT 0", "SELECT a FROM t LIMIT 0"),
    ],
)
def test_whether_there_are_rows_no_limit_and_no_groups_decide(before: str, after: str) -> None:
    assert without_limit(parse_one(before)).sql() == after


def table(name: str, *columns: str) -> cz.Stream:
    return cz.from_rows([{f"{name}at": 1, **{f"{name}{c}": 1 for c in columns}}], time=f"{name}at").forever()


def joins(text: str) -> list[str]:
    """The keys of the joins of a plan, those below first."""
    tables = {"a": table("a", "k", "v"), "b": table("b", "k", "v"), "c": table("c", "k", "v")}
    nodes = walk(cz.sql(text, **tables).node)
    return [", ".join(left for left, _ in node.on) for node in nodes if isinstance(node, Join)]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT * FROM a, b, c WHERE ak = ck AND bk = cv", ["ak", "cv"]),
        ("SELECT * FROM a, b, c WHERE ak = bk AND bv = ck", ["ak", "bv"]),
        ("SELECT * FROM a, b, c WHERE ak = bk AND bv = ck AND cv = 1", ["bv", "ak"]),
        ("SELECT * FROM a, b, c WHERE ak = bk AND ak = ck AND cv > bv", ["ak", "ak"]),
        ("SELECT * FROM a, b WHERE (ak = bk AND av = 1) OR (ak = bk AND bv = 1)", ["ak"]),
        ("SELECT * FROM a, b, c WHERE ak = bk", ["ak", "join key 0"]),
        ("SELECT * FROM a, b WHERE ak = bk AND av < (SELECT max(cv) FROM c WHERE ck = ak)", ["ak", "ak"]),
    ],
)
def test_tables_meet_by_equalities_and_those_with_conditions_of_their_own_first(
    text: str, keys: list[str]
) -> None:
    assert joins(text) == keys


def test_columns_stand_in_the_order_of_from_whoever_meets_first() -> None:
    text = "SELECT * FROM a, b, c WHERE ak = ck AND bk = cv"
    made = cz.sql(text, a=table("a", "k"), b=table("b", "k"), c=table("c", "k", "v"))
    assert [n for n in made.columns if not n.endswith("at")] == ["ak", "bk", "ck", "cv"]


def test_a_condition_of_on_is_of_the_tables_before_it() -> None:
    """``k`` is a's, although c, which comes later, has one too."""
    a, b, c = ({"k": 1}, {"x": 1}, {"k": 1, "y": 1})
    text = "SELECT a.k FROM a JOIN b ON k = x JOIN c ON x = y"
    made = cz.sql(text, a=cz.table([a]), b=cz.table([b]), c=cz.table([c]))
    assert [row[2] for row in made.run().history.rows()] == [(1,)]


@pytest.mark.parametrize(
    ("where", "known", "held"),
    [
        ("t.v > 1 AND t.v < (SELECT avg(u.w) FROM u WHERE u.k = t.k)", {}, True),
        ("t.k IN (SELECT k FROM u) AND t.v < (SELECT sum(u.w) FROM u WHERE u.k = t.k)", {}, True),
        ("t.v < (SELECT avg(u.w) FROM u WHERE u.k = t.k)", {}, False),
        ("t.v > 1 AND t.v < (SELECT avg(u.w) FROM u WHERE u.k = t.k)", {"insert_only": True}, False),
        ("t.v > 1 AND t.v < (SELECT first(u.w) FROM u WHERE u.k = t.k)", {}, False),
        ("t.v > 1 AND t.v < (SELECT avg(u.w) FROM u)", {}, False),
    ],
)
def test_groups_are_made_of_rows_that_are_asked_for_where_conditions_leave_out_others(
    where: str, known: dict[str, bool], held: bool
) -> None:
    t = cz.input_stream("t", pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    u = cz.input_stream("u", pa.schema([("k", pa.int64()), ("w", pa.int64())]), **known)
    plan = cz.sql(f"SELECT k FROM t WHERE {where}", t=t, u=u).node
    [groups] = [node for node in walk(plan) if isinstance(node, Alive)]
    assert any(isinstance(node, Join) for node in walk(groups)) is held


@pytest.mark.parametrize(
    ("join", "tested"),
    [
        ("LEFT JOIN u ON u.k = t.k AND u.w > 1", False),
        ("LEFT JOIN u ON u.k = t.k AND t.v > 1", True),
        ("LEFT JOIN u ON u.k = t.k AND u.w > t.v", True),
        ("RIGHT JOIN u ON u.k = t.k AND u.w > 1", True),
        ("FULL JOIN u ON u.k = t.k AND u.w > 1", True),
        ("LEFT ANTI JOIN u ON u.k = t.k AND u.w > 1", False),
    ],
)
def test_what_on_says_of_the_right_side_alone_is_looked_at_before_a_left_join(
    join: str, tested: bool
) -> None:
    t = cz.input_stream("t", pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    u = cz.input_stream("u", pa.schema([("k", pa.int64()), ("w", pa.int64())]))
    plan = cz.sql(f"SELECT t.k, t.v FROM t {join}", t=t, u=u).node
    [met] = [node for node in walk(plan) if isinstance(node, Join)]
    assert (met.residual is not None) is tested
