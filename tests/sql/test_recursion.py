"""WITH RECURSIVE: at every instant the answer of DuckDB, over edges that come and go."""

from __future__ import annotations

from collections import Counter
from random import Random

import duckdb
import pyarrow as pa
import pytest
from depth import examples
from sql_queries import Row, alive, stream

import caesura as cz
from caesura.errors import CaesuraError

EDGES = {"a": pa.int64(), "b": pa.int64()}
REACHED = """
WITH RECURSIVE r(s, n) AS (
  SELECT a, b FROM edges UNION SELECT r.s, e.b FROM r JOIN edges e ON r.n = e.a
) SELECT s, n FROM r"""
QUERIES = {
    "linear": (REACHED, REACHED),
    "the step first": (
        """WITH RECURSIVE r(s, n) AS (
          SELECT r.s, e.b FROM edges e, r WHERE r.n = e.a UNION SELECT a, b FROM edges
        ) SELECT s, n FROM r""",
        REACHED,
    ),
    "non-linear": (
        """WITH RECURSIVE r(s, n) AS (
          SELECT a, b FROM edges UNION SELECT x.s, y.n FROM r x JOIN r y ON x.n = y.s
        ) SELECT s, n FROM r""",
        REACHED,
    ),
    "counted, with a bound": (
        text := """WITH RECURSIVE r AS (
          SELECT a AS s, b AS n, 1 AS depth FROM edges
          UNION ALL SELECT r.s, e.b, depth + 1 FROM r JOIN edges e ON r.n = e.a WHERE depth < 3
        ) SELECT s, depth, count(*) AS paths FROM r GROUP BY s, depth""",
        text,
    ),
    "two that need each other": (
        """WITH RECURSIVE even(s, n) AS (
          SELECT a, a FROM edges UNION SELECT o.s, e.b FROM odd o JOIN edges e ON o.n = e.a
        ), odd(s, n) AS (
          SELECT a, b FROM edges WHERE false UNION SELECT v.s, e.b FROM even v JOIN edges e ON v.n = e.a
        ) SELECT s, n FROM odd""",
        """WITH RECURSIVE two(a, b) AS (SELECT x.a, y.b FROM edges x JOIN edges y ON x.b = y.a),
        r(s, n) AS (SELECT a, b FROM edges UNION SELECT r.s, t.b FROM r JOIN two t ON r.n = t.a)
        SELECT s, n FROM r""",
    ),
    "beside plain ones, read by a join": (
        """WITH RECURSIVE loops AS (SELECT s FROM r WHERE s = n), r(s, n) AS (
          SELECT a, b FROM edges UNION SELECT r.s, e.b FROM r JOIN edges e ON r.n = e.a
        ) SELECT DISTINCT r.s, r.n FROM r JOIN loops ON r.s = loops.s""",
        f"SELECT DISTINCT x.s, x.n FROM ({REACHED}) x JOIN ({REACHED}) y ON x.s = y.s AND y.s = y.n",
    ),
}


def drawn(random: Random) -> list[Row]:
    rows: list[Row] = []
    for _ in range(random.randrange(3, 9)):
        start = random.randrange(12)
        end = random.choice([start + random.randrange(1, 9), cz.INFINITY])
        rows.append((start, end, {"a": random.randrange(4), "b": random.randrange(4)}))
    return rows


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", QUERIES)
def test_recursion_says_at_every_instant_what_duckdb_says(name: str) -> None:
    ours, theirs = QUERIES[name]
    base = duckdb.connect()
    for seed in range(examples(40, short=4)):
        rows = drawn(Random(seed))
        found = cz.sql(ours, edges=stream(rows, EDGES)).run().history.rows()
        for at in range(22):
            base.register("edges", alive(rows, at, EDGES))
            wanted = Counter(base.execute(theirs).fetchall())
            assert Counter(row for le, re, row in found if le <= at < re) == wanted, (name, seed, at)


def test_a_counter_starts_from_a_row_without_a_table() -> None:
    text = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT n FROM t"
    assert sorted(row["n"] for row in cz.sql(text).run().table().to_pylist()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("SELECT a, b FROM edges UNION ALL SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a", "loop ends"),
        ("SELECT a, b FROM r", "no part to start from"),
        ("SELECT a, b FROM edges UNION SELECT a FROM r", "one part has 2 columns, another 1"),
        ("SELECT a, b FROM edges UNION SELECT a, CAST(b AS STRING) FROM r", "goes around as string"),
    ],
)
def test_what_cannot_go_around_is_refused_by_name(body: str, problem: str) -> None:
    edges = stream([(1, 3, {"a": 1, "b": 2})], EDGES)
    with pytest.raises(CaesuraError) as raised:
        cz.sql(f"WITH RECURSIVE r AS ({body}) SELECT * FROM r", edges=edges)
    assert problem in raised.value.problem
