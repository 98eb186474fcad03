"""Drawn queries over two small tables whose rows come and go, and what DuckDB says of each instant."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import caesura as cz

Row = tuple[int, int, dict[str, Any]]
INFINITY = cz.INFINITY
T, U = {"k": pa.int64(), "v": pa.int64(), "s": pa.string()}, {"k": pa.int64(), "w": pa.int64()}


def table(random: Random, columns: dict[str, pa.DataType]) -> list[Row]:
    """Rows with lifetimes; some never end."""
    made = []
    for _ in range(random.randint(0, 9)):
        le = random.randint(0, 12)
        re = random.choice([INFINITY, le + random.randint(1, 8)])
        text = {n: random.choice("ab") for n, t in columns.items() if t == pa.string()}
        numbers = {n: random.choice([None, 0, 1, 2, 3]) for n in columns if n not in text}
        made.append((le, re, {**numbers, **text}))
    return made


def stream(rows: list[Row], columns: dict[str, pa.DataType]) -> cz.Stream:
    """The rows as a stream."""
    schema = pa.schema([*columns.items(), ("begins", pa.int64()), ("ends", pa.int64())])
    given = [{**row, "begins": le, "ends": None if re == INFINITY else re} for le, re, row in rows]
    return cz.from_rows(given, schema, time="begins", end="ends")


def alive(rows: list[Row], at: int, columns: dict[str, pa.DataType]) -> pa.Table:
    """The rows that are there at an instant."""
    return pa.Table.from_pylist([row for le, re, row in rows if le <= at < re], pa.schema([*columns.items()]))


def bag(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows)


class Drawn:
    """A query drawn clause by clause."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def pick(self, *some: str) -> str:
        return self.random.choice(some)

    def condition(self, columns: list[str], texts: list[str]) -> str:
        c, d = self.random.choice(columns), self.random.choice(columns)
        kinds = [f"{c} > {self.random.randint(0, 3)}", f"{c} <= {d}", f"{c} IS NOT NULL", f"{c} IN (0, 2)"]
        kinds += [f"{x} = 'a'" for x in texts] + [
            f"{c} BETWEEN 1 AND 2",
            f"{c} + {d} < 4",
            f"{c} IS NULL OR {d} = 1",
        ]
        one = self.random.choice(kinds)
        return (
            f"({one}) AND {c} <> 3"
            if self.random.random() < 0.2
            else f"NOT ({one})"
            if self.random.random() < 0.15
            else one
        )

    def value(self, columns: list[str]) -> str:
        c, d = self.random.choice(columns), self.random.choice(columns)
        return self.pick(
            c, f"{c} + 1", f"{c} * {d}", f"coalesce({c}, 7)", f"CASE WHEN {c} > 1 THEN {d} ELSE 0 END"
        )

    def source(self) -> tuple[str, list[str], list[str]]:
        """FROM, and the numbers and texts that it has."""
        match self.random.randrange(9):
            case 0 | 1:
                return "t", ["k", "v"], ["s"]
            case 2:
                return "t a JOIN u b ON a.k = b.k", ["a.k", "v", "w"], ["s"]
            case 3:
                more = self.pick("", " AND a.v > b.w")
                return (
                    f"t a {self.pick('LEFT', 'RIGHT', 'FULL')} JOIN u b ON a.k = b.k{more}",
                    ["a.k", "b.k", "v", "w"],
                    ["s"],
                )
            case 4:
                return "t a, u b WHERE a.k = b.w", ["a.k", "b.k", "v"], ["s"]
            case 7:
                kind = self.pick("", "LEFT ", "RIGHT ", "FULL ")
                return f"t a {kind}JOIN u b USING (k)", ["k", "v", "w"], ["s"]
            case 6:
                more = self.pick("", " AND b.w > 0", " AND (a.v = c.k OR a.v > 1 AND c.k = 2)")
                return f"t a, t c, u b WHERE a.k = b.w AND b.k = c.v{more}", ["a.k", "c.v", "b.w"], ["a.s"]
            case 5:
                value, test = self.value(["k", "v"]), self.condition(["k", "v"], ["s"])
                return f"(SELECT k, {value} AS v FROM t WHERE {test}) q", ["k", "q.v"], []
            case _:
                return "t x JOIN t y ON x.k = y.v", ["x.k", "y.k", "x.v"], ["x.s", "y.s"]

    def select(self) -> str:
        """One SELECT of two columns."""
        source, numbers, texts = self.source()
        where = self.where(numbers, texts, source)
        match self.random.randrange(9):
            case 7 | 8:
                return self.beside(numbers, texts, source, where)
            case 6:
                return self.sets(numbers, source, where)
            case 0 | 1:
                shown = f"{self.value(numbers)} AS p, {self.value(numbers)} AS q"
                return f"SELECT {self.pick('', 'DISTINCT ')}{shown} FROM {source}{where}"
            case 2 | 3:
                key = self.random.choice([*numbers, f"{numbers[0]} % 2"])
                agg, called = self.aggregate(numbers), "q"
                if texts and self.random.random() < 0.2:
                    called = "r"
                    down = self.pick("", " DESC")
                    agg = self.pick(
                        f"string_agg({texts[0]}, '-' ORDER BY {texts[0]}{down})",
                        f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {numbers[-1]})",
                    )
                scalar = "(SELECT count(*) / 2 FROM u WHERE u.w > 0)"
                having = self.pick(
                    "", "", f" HAVING count(*) > {self.random.randint(0, 2)}", f" HAVING count(*) > {scalar}"
                )
                return f"SELECT {key} AS p, {agg} AS {called} FROM {source}{where} GROUP BY {key}{having}"
            case 4:
                by = self.random.choice(numbers)
                shown = ", ".join(f"{c} AS c{n}" for n, c in enumerate([*numbers, *texts]))
                nulls = ("", " NULLS FIRST", " NULLS LAST")
                order = ", ".join(
                    f"c{n}{self.pick('', ' DESC')}{self.pick(*nulls)}"
                    for n in range(len(numbers) + len(texts))
                )
                inner = f"SELECT DISTINCT {shown} FROM {source}{where}"
                ranks = (
                    f"SELECT *, row_number() OVER (PARTITION BY c0 ORDER BY {order}) AS n FROM ({inner}) i"
                )
                return (
                    f"SELECT c0 AS p, c1 AS q FROM ({ranks}) r WHERE n <= {self.random.randint(1, 2)}"
                    if by
                    else ""
                )
            case _:
                held = f"SELECT {numbers[0]} AS p, {numbers[-1]} AS q FROM {source}{where}"
                return f"WITH w AS ({held}) SELECT a.p, b.q FROM w a JOIN w b ON a.p = b.p"

    def sets(self, numbers: list[str], source: str, where: str) -> str:
        """Groups by several sets of keys. Without rows there is no row of all of them here, so HAVING."""
        a, b = numbers[0], numbers[-1]
        keys = self.pick(
            f"ROLLUP ({a}, {b})",
            f"CUBE ({a}, {b})",
            f"GROUPING SETS (({a}), ({a}, {b}), ())",
            f"{a}, ROLLUP ({b})",
        )
        shown = f"{a} AS p, {self.aggregate(numbers)} AS q, grouping({b}) AS g, grouping({a}, {b}) AS h"
        return f"SELECT {shown} FROM {source}{where} GROUP BY {keys} HAVING count(*) > 0"

    def beside(self, numbers: list[str], texts: list[str], source: str, where: str) -> str:
        """Rows beside what is said of others: totals of their group, answers of queries, texts."""
        a, b = self.random.choice(numbers), self.random.choice(numbers)
        by = self.pick("", f"PARTITION BY {a}", f"PARTITION BY {a}, {numbers[-1]}", f"PARTITION BY {a} % 2")
        text = self.random.choice([*(f"{x} || {a}" for x in texts), f"{a} || '-' || {b}", f"'x' || {a}"])
        shown = self.pick(
            f"{self.pick('sum', 'count', 'avg', 'max')}({b}) OVER ({by})",
            self.question(a),
            f"NOT ({self.question(a)})",
            f"(SELECT {self.pick('count(*)', 'max(z.w)', 'sum(z.k)')} FROM u z WHERE {self.between(a)})",
            text,
        )
        return f"SELECT {self.value(numbers)} AS p, {shown} AS r FROM {source}{where}"

    def between(self, c: str) -> str:
        """A condition on rows of u and the row around it that is no equality."""
        return self.pick(
            f"z.w < {c}",
            f"z.k <> {c}",
            f"z.k = {c} AND z.w >= {c}",
            f"z.w > 0 AND (z.k = {c} OR {c} IS NULL)",
            f"z.w + {c} > 2",
        )

    def question(self, c: str) -> str:
        """IN and EXISTS over a query."""
        distinct = self.pick("", "DISTINCT ")
        return self.pick(
            f"{c} {self.pick('', 'NOT ')}IN (SELECT {distinct}z.w FROM u z)",
            f"{c} {self.pick('', 'NOT ')}IN (SELECT z.w FROM u z WHERE z.k = {c})",
            f"{c} {self.pick('', 'NOT ')}IN (SELECT {distinct}z.w FROM u z WHERE {self.between(c)})",
            f"{c} + 1 IN (SELECT z.k + 1 FROM u z WHERE z.w IS NOT NULL)",
            f"{c} IN (SELECT max(z.w) FROM u z GROUP BY z.k)",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM u z WHERE {self.between(c)} LIMIT 1)",
            "EXISTS (SELECT z.k FROM u z GROUP BY z.k HAVING count(*) > 1)",
        )

    def where(self, numbers: list[str], texts: list[str], source: str) -> str:
        joined = " AND " if " WHERE " in source and not source.startswith("(") else " WHERE "
        if self.random.random() < 0.4:
            return ""
        if self.random.random() < 0.25:
            c = self.random.choice(numbers)
            exists = f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM u z WHERE z.w = {c})"
            scalar = (
                f"{c} {self.pick('>', '=')} (SELECT {self.pick('min', 'avg', 'count')}(w) FROM u WHERE k > 0)"
            )
            either = f"({self.condition(numbers, texts)} OR {self.pick(self.question(c), exists)})"
            return joined + self.pick(
                f"{c} IN (SELECT w FROM u)", exists, scalar, either, self.question(c), self.nested(c)
            )
        return joined + self.condition(numbers, texts)

    def nested(self, c: str) -> str:
        """A query in a condition, of which most speak of the row around it."""
        agg = self.pick("min(z.w)", "count(*)", "sum(z.w) + 1", "coalesce(max(z.w), 2)", "count(z.w) * 2")
        having = self.pick("", " HAVING count(*) > 1", " HAVING count(*) < 2")
        said = self.pick(f"z.k = {c}", f"z.k = {c} AND z.w > 0", self.between(c))
        about = self.pick("", f" WHERE {said}")
        compare = self.pick("<", "=", ">=")
        return self.pick(
            f"{c} {compare} (SELECT {agg} FROM u z{about}{having})",
            f"{c} + 1 > 2 * (SELECT {agg} FROM u z{about})",
            f"(SELECT {agg} FROM u z{about}{having}) IS NULL",
            f"{c} NOT IN (SELECT z.w FROM u z{self.pick('', ' WHERE z.w IS NOT NULL', ' WHERE z.k = 1')})",
            f"{c} IN (SELECT z.k FROM u z GROUP BY z.k HAVING sum(z.w) > 1)",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM u z WHERE z.k = {c} AND z.w <> {c})",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT max(z.w) FROM u z{about}{having})",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT z.k FROM u z GROUP BY z.k HAVING count(*) > 1)",
        )

    def aggregate(self, numbers: list[str]) -> str:
        c = self.random.choice(numbers)
        plain = self.pick(
            "count(*)",
            f"count({c})",
            f"sum({c})",
            f"min({c})",
            f"max({c})",
            f"avg({c})",
            f"count(DISTINCT {c})",
        )
        if self.random.random() < 0.3:
            return f"{plain} FILTER (WHERE {c} > 0)"
        return self.pick(plain, f"coalesce(sum({c}), 0) + count(*)")

    def query(self) -> str:
        one = self.select()
        if self.random.random() < 0.25:
            kind = self.pick("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
            other = self.select()
            numbers = all(f" AS {name} FROM " not in each for name in "hr" for each in (one, other))
            return f"({one}) {kind} ({other})" if numbers else one
        return one


def check(seed: int) -> bool:
    """Whether a drawn query says at every instant what DuckDB says of the rows alive then."""
    random = Random(seed)
    t, u = table(random, T), table(random, U)
    text = Drawn(random).query()
    made = cz.sql(text, t=stream(t, T), u=stream(u, U))
    found = made.run().history.rows()
    base = duckdb.connect()
    base.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    instants = sorted({at for le, re, _ in (*t, *u) for at in (le, re) if at != INFINITY})
    for at in instants:
        base.register("t", alive(t, at, T))
        base.register("u", alive(u, at, U))
        wanted = bag(base.execute(text).fetchall())
        ours = bag(row for le, re, row in found if le <= at < re)
        assert ours == wanted, (
            f"seed {seed}, at {at}: {text}\nonly here {ours - wanted}, only DuckDB {wanted - ours}"
        )
    return bool(found)
