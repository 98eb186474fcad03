"""Clauses that are written in others, functions by other names; nothing of a query is passed over."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import caesura as cz

ROWS = pa.table(
    {
        "id": [0, 1, 2, 0, 1, 0],
        "v": [3, 9, 5, 6, 1, 2],
        "name": ["a", "b", "a", "b", "a", "a"],
        "tags": [["x", "y"], [], None, ["x"], ["z", "z"], ["y"]],
    }
)


def rows(text: str, **more: Any) -> list[tuple[Any, ...]]:
    """The answer over rows that are all there."""
    found = cz.sql(text, t=cz.table(ROWS), **more).run().table()
    return sorted((tuple(row.values()) for row in found.drop_columns(["LE", "RE"]).to_pylist()), key=repr)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, v FROM t QUALIFY row_number() OVER (PARTITION BY id ORDER BY v DESC) = 1",
        "SELECT id, v FROM t QUALIFY 2 > rank() OVER (PARTITION BY name ORDER BY v) AND id < 2",
        "WITH u AS (SELECT * FROM t WHERE v > 1) SELECT v FROM u QUALIFY row_number() OVER (ORDER BY v) <= 2",
        "SELECT v, rank() OVER (ORDER BY v) AS r FROM t QUALIFY r < 4 AND t.id + r > 2",
        "SELECT x.v FROM (SELECT * FROM t QUALIFY row_number() OVER (ORDER BY v, id) <= 3) x WHERE x.id = 0",
        "SELECT id, name, count(*) AS n FROM t GROUP BY ALL",
        "SELECT id % 2 AS odd, sum(v) AS s FROM t GROUP BY ALL",
        "SELECT id, count(*) AS c FROM t GROUP BY 1 HAVING c > 1",
        "SELECT id, sum(v) AS s FROM t GROUP BY id HAVING s + 1 > 10 OR id = 2",
        "SELECT name, string_agg(name, ',') AS s, min_by(id, v) AS l, max_by(id, v) FROM t GROUP BY name",
        "SELECT name, count_if(v > 2) AS c, count_if(v > 2) FILTER (WHERE id = 0) AS d FROM t GROUP BY name",
        "SELECT id, mode() WITHIN GROUP (ORDER BY name) AS m FROM t GROUP BY id HAVING id <> 1",
        "SELECT name, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS m FROM t GROUP BY name",
    ],
)
def test_a_clause_says_what_duckdb_says(text: str) -> None:
    base = duckdb.connect()
    base.register("t", ROWS)
    wanted = base.execute(text.replace("string_agg(name, ',')", "string_agg(name, ',' ORDER BY name)"))
    assert rows(text) == sorted(wanted.fetchall(), key=repr)


@pytest.mark.parametrize(
    ("text", "outer"),
    [
        ("SELECT id, tag FROM t LATERAL VIEW explode(tags) x AS tag", False),
        ("SELECT t.id, x.tag FROM t, UNNEST(tags) AS x(tag)", False),
        ("SELECT id, tag FROM t CROSS JOIN UNNEST(tags) AS x(tag)", False),
        ("SELECT id, tag FROM t LATERAL VIEW OUTER explode(tags) x AS tag", True),
        ("SELECT id, tag FROM t LEFT JOIN UNNEST(tags) AS x(tag) ON TRUE", True),
    ],
)
def test_elements_of_arrays_are_rows(text: str, outer: bool) -> None:
    wanted = [
        (row["id"], tag) for row in ROWS.to_pylist() for tag in row["tags"] or ([None] if outer else [])
    ]
    assert rows(text) == sorted(wanted, key=repr)
    filtered = [row for row in wanted if row[1] == "x"]
    assert rows(f"{text} WHERE tag = 'x'") == sorted(filtered, key=repr)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT id FROM t LIMIT 3 OFFSET 1", "OFFSET is not known"),
        ("SELECT id FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE is not known"),
        ("SELECT * FROM t PIVOT (sum(v) FOR id IN (0, 1))", "PIVOT is not known"),
        ("SELECT id FROM t UNION ALL BY NAME SELECT id FROM t", "BY NAME is not known"),
        ("SELECT sum(v) OVER w AS s FROM t WINDOW w AS (ORDER BY v)", "WINDOW is not known"),
        ("SELECT id FROM t SORT BY id", "SORT BY is not known"),
        ("SELECT id FROM t CLUSTER BY id", "CLUSTER BY is not known"),
        ("SELECT id FROM t FOR UPDATE", "FOR UPDATE is not known"),
        ("SELECT id FROM lake.t", "a name with a dot is not known"),
        ("SELECT id, p FROM t LATERAL VIEW posexplode(tags) x AS p", "LATERAL is known as"),
        ("SELECT now() AS n FROM t", "'now()' differs from run to run"),
        ("SELECT rand() AS n FROM t", "'rand()' differs from run to run"),
        ("SELECT current_date AS d FROM t", "differs from run to run"),
        ("SELECT hll_sketch_agg(v) AS p FROM t", "no function 'hll_sketch_agg'"),
    ],
)
def test_nothing_of_a_query_is_passed_over(text: str, problem: str) -> None:
    with pytest.raises(cz.CaesuraError) as raised:
        rows(text)
    assert problem in raised.value.problem
