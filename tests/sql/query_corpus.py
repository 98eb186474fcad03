"""Queries that together set every argument that is read of every kind of node, and the tables they are of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from sqlglot import exp

import caesura as cz
from caesura.sql.dialects import SqlFlavour
from caesura.sql.text import read_query

T = pa.table(
    {
        "ts": [1, 12, 13, 21],
        "k": [1, 1, 2, 3],
        "v": [5, 7, None, 5],
        "s": ["a", "b", "a", "ab"],
        "d": [1.5, None, -0.5, 2.0],
    }
)
U = pa.table({"k": [1, 2, 2], "w": [3, 4, 9]})
ARR = pa.table({"id": [1, 2, 3], "tags": [["a", "b"], [], None]})


@cache
def streams() -> dict[str, cz.Stream]:
    """The tables as streams: t with times, the others always there."""
    t = cz.from_rows(T.to_pylist(), T.schema, time="ts")
    return {"t": t, "u": cz.table(U), "arr": cz.table(ARR)}


QUERIES = [
    "SELECT k, sum(v) AS s, count(*) AS n FROM t WHERE v > 3 AND s LIKE 'a%' GROUP BY k HAVING sum(v) > 2",
    "SELECT max(v) AS m, window_end FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), 10)) "
    "GROUP BY k, window_start, window_end",
    "SELECT HOP_END(ts, 5, 10) AS e, string_agg(s, ', ' ORDER BY v DESC) AS l FROM t GROUP BY HOP(ts, 5, 10)",
    "SELECT sum(v) AS s, window_start FROM TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => 10, "
    "SLIDE => 5)) GROUP BY window_start, window_end",
    "SELECT t.k, u.w, v + 1 AS x FROM t JOIN u ON t.k = u.k AND u.w > 1 WHERE t.v IS NOT NULL",
    "SELECT k, w FROM t LEFT OUTER JOIN u USING (k) WHERE w BETWEEN 1 AND 5 OR NOT v IN (1, 2, NULL)",
    "SELECT t.k FROM t LEFT SEMI JOIN u ON t.k = u.k",
    "SELECT a.k FROM t a, u b WHERE a.k = b.k AND EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND u.w > 3)",
    "SELECT k FROM t WHERE v > (SELECT avg(w) FROM u WHERE u.k = t.k) OR k IN (SELECT k FROM u)",
    "SELECT CASE WHEN v > 5 THEN 'big' WHEN v IS NULL THEN NULL ELSE upper(s) END AS c FROM t",
    "SELECT CASE k WHEN 1 THEN 'one' ELSE 'more' END AS c, if(v > 5, 1, 2) AS i FROM t",
    "SELECT k, lag(v, 1) OVER (PARTITION BY k ORDER BY ts) AS p FROM t",
    "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS f, "
    "count(*) OVER (ORDER BY ts RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS r FROM t",
    "SELECT k, rank() OVER (PARTITION BY s ORDER BY v DESC NULLS FIRST) AS r FROM t QUALIFY r <= 2",
    "SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t) x(a, b, c) "
    "WHERE c <= 2",
    "WITH a AS (SELECT k, v FROM t WHERE v > 1), b(x, y) AS (SELECT k, w FROM u) "
    "SELECT a.k, b.y FROM a JOIN b ON a.k = b.x",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r",
    "SELECT k FROM t UNION ALL SELECT k FROM u",
    "SELECT k FROM t EXCEPT SELECT k FROM u WHERE w > 3",
    "SELECT k FROM t INTERSECT ALL SELECT k FROM u",
    "SELECT k FROM t UNION SELECT k FROM u ORDER BY k DESC LIMIT 2",
    "SELECT ts, k FROM t UNION ALL SELECT ts, v AS k FROM t WITH PACE ON ts 10",
    "(WITH a AS (SELECT k FROM t) SELECT k FROM a)",
    "SELECT k FROM (WITH a AS (SELECT k FROM t) SELECT k FROM a) x",
    "SELECT DISTINCT s FROM t ORDER BY s DESC LIMIT 2",
    "SELECT id, tag FROM arr LATERAL VIEW OUTER explode(tags) x AS tag",
    "SELECT id, tag FROM arr CROSS JOIN UNNEST(tags) AS x(tag)",
    "SELECT id, tag FROM arr LEFT JOIN UNNEST(tags) AS x(tag) ON TRUE",
    "SELECT s, k, count(DISTINCT v) AS c, grouping(s) AS g FROM t GROUP BY GROUPING SETS ((s), (k, s), ())",
    "SELECT k, s, sum(v) AS a FROM t GROUP BY k, s WITH ROLLUP",
    "SELECT k, s, sum(v) AS a FROM t GROUP BY k, s WITH CUBE",
    "SELECT k, s, sum(v) AS a FROM t GROUP BY ROLLUP (k, s)",
    "SELECT k, s, sum(v) AS a FROM t GROUP BY CUBE (k, s)",
    "SELECT k, s, sum(v) AS a FROM t GROUP BY k, GROUPING SETS ((v, s), (s), ())",
    "SELECT k, count(*) AS n FROM t GROUP BY ALL",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS p, percentile_approx(v, 0.9, 100) AS q, "
    "mode() WITHIN GROUP (ORDER BY s) AS m, percentile(v, 0.3) AS e FROM t",
    "SELECT CAST(v AS DECIMAL(10, 2)) AS c, TRY_CAST(s AS INT) AS e, substring(s, 1, 2) AS f, "
    "CAST(tags AS ARRAY<STRING>) AS g FROM t, arr",
    "SELECT CAST(struct(k, v) AS STRUCT<a: INT, b: BIGINT>) AS c FROM t",
    "SELECT trim(LEADING 'a' FROM s) AS g, extract(YEAR FROM DATE '2024-01-01') AS h, "
    "position('b' IN s) AS p FROM t",
    "SELECT round(d, -1) AS x, 12345678901234567890 * v AS y, v % 2 AS z, v / 2 AS q, -v AS n, "
    "v & 3 AS a, v | 8 AS o, v ^ 1 AS b, s || 'x' AS t, v <=> NULL AS e, X'1F' AS h FROM t",
    "SELECT sum(v) FILTER (WHERE k > 1) AS s, min_by(s, v) AS m, max_by(s, v) AS l FROM t",
    "SELECT listagg(s, '-') AS l, string_agg(s) AS m FROM t",
    "SELECT x.a, x.b FROM (VALUES (1, 'a'), (2, NULL)) AS x(a, b) WHERE x.a <= 2 AND x.a >= 0 AND x.a < 9",
    "SELECT t.k, r.n FROM t ASOF LEFT JOIN (SELECT ts, k, v AS n FROM t) r ON t.k = r.k AND t.ts > r.ts",
    "SELECT t.k, u.w FROM t JOIN u FOR SYSTEM_TIME AS OF t.ts ON t.k = u.k",
    "SELECT k, v FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(B.v) AS v "
    "PATTERN (A B+) DEFINE B AS B.v > A.v) m(k, v)",
    "SELECT window.start AS w, count(*) AS n FROM t GROUP BY window(ts, 10, 5), k",
    "SELECT TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1' DAY AS x, "
    "DATE '2024-01-31' - INTERVAL 1 MONTH AS y, "
    "TIMESTAMP '2024-01-01' + INTERVAL '1:30' HOUR TO MINUTE AS z FROM t",
    "SELECT * EXCEPT (s) FROM t WHERE (k, v) IN (SELECT k, w FROM u) OR s = ANY (SELECT 'a')",
    "SELECT k FROM t WHERE k <> ALL (SELECT w FROM u) AND s IN ('a', 'b') AND TRUE",
    "SELECT split(s, ',')[0] AS a, struct(k, v).k AS d, s ILIKE 'A%' AS i, s RLIKE 'a+' AS r, "
    "initcap(s) AS c, NOT v <> 5 AS n FROM t",
    "SELECT k FROM t WHERE s NOT LIKE 'a%' AND NOT s NOT ILIKE 'B'",
    "SELECT y.k FROM (SELECT DISTINCT k, v FROM t) y WHERE y.v >= 5 ORDER BY y.v, y.k NULLS LAST LIMIT 3",
]


@dataclass(frozen=True)
class Query:
    """A query of docs, tests, examples or benchmarks, and what is known of its tables."""

    text: str
    dialect: SqlFlavour = "spark"
    told: str = ""
    """Its tables, as JSON; where it is empty, they are those above."""

    @property
    def known(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.told) if self.told else {}  # type: ignore[no-any-return]

    @cache  # noqa: B019 - there are as many as queries
    def tables(self) -> dict[str, pa.Table]:
        """Some rows for each, with values that the query itself names."""
        if not self.told:
            return {"t": T, "u": U, "arr": ARR}
        random, found = Random(self.text), {}
        literals = [one.name for one in read_query(self.text).tree.find_all(exp.Literal)]
        for name, told in self.known.items():
            columns = dict(told["columns"])
            if told["told"]:
                columns.setdefault(told["told"], told["time"])
            schema = pa.schema([(column, NAMED[written]) for column, written in columns.items()])
            rows = [{one.name: value(one.type, literals, random) for one in schema} for _ in range(9)]
            found[name] = pa.Table.from_pylist(rows, schema)
        return found

    @cache  # noqa: B019
    def streams(self) -> dict[str, cz.Stream]:
        """The tables as streams, with times where they had them."""
        if not self.told:
            return streams()
        made = {}
        for name, told in self.known.items():
            table = self.tables()[name]
            if not told["told"] and told["kind"] != "point":
                made[name] = cz.table(table)
                continue
            time = told["told"] or "when"
            table = (
                table if told["told"] else table.append_column(time, pa.array(range(9), NAMED[told["time"]]))
            )
            stream = cz.from_rows(table.to_pylist(), table.schema, time=time)
            made[name] = stream if told["kind"] == "point" else stream.forever()
        return made


NAMED = {
    "list<item: string>": pa.list_(pa.string()),
    "timestamp[us]": pa.timestamp("us"),
    "date32[day]": pa.date32(),
    **{str(one): one for one in (pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.bool_())},
    **{str(pa.decimal128(n, m)): pa.decimal128(n, m) for n in range(1, 39) for m in (0, 2, 4)},
}


def value(type: pa.DataType, literals: list[str], random: Random) -> Any:
    """A value of a type; often one of some literals."""
    if pa.types.is_list(type):
        return [value(type.value_type, literals, random) for _ in range(random.randrange(3))]
    texts = ["a", "b", "ab", *(one for one in literals if not one.isdigit())]
    numbers = [0, 1, 2, 3, 7, *(int(one) for one in literals if one.isdigit() and len(one) < 5)]
    if pa.types.is_string(type):
        return random.choice(texts)
    number = random.choice(numbers)
    if pa.types.is_date(type) or pa.types.is_timestamp(type):
        return datetime(1995, 1, 1) + timedelta(seconds=number)
    return number % 2 if pa.types.is_boolean(type) else number


def collected() -> list[Query]:
    """What collect_queries.py has found."""
    lines = (Path(__file__).parent / "collected.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [Query(one["text"], one["dialect"], json.dumps(one["tables"])) for one in found]


COLLECTED = collected()
ALL = [*(Query(text) for text in QUERIES), *COLLECTED]
