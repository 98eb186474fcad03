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
        match self.random.randrange(7):
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
            case 5:
                value, test = self.value(["k", "v"]), self.condition(["k", "v"], ["s"])
                return f"(SELECT k, {value} AS v FROM t WHERE {test}) q", ["k", "q.v"], []
            case _:
                return "t x JOIN t y ON x.k = y.v", ["x.k", "y.k", "x.v"], ["x.s", "y.s"]

    def select(self) -> str:
        """One SELECT of two columns."""
        source, numbers, texts = self.source()
        where = self.where(numbers, texts, source)
        match self.random.randrange(6):
            case 0 | 1:
                shown = f"{self.value(numbers)} AS p, {self.value(numbers)} AS q"
                return f"SELECT {self.pick('', 'DISTINCT ')}{shown} FROM {source}{where}"
            case 2 | 3:
                key = self.random.choice([*numbers, f"{numbers[0]} % 2"])
                agg = self.aggregate(numbers)
                having = self.pick("", "", f" HAVING count(*) > {self.random.randint(0, 2)}")
                return f"SELECT {key} AS p, {agg} AS q FROM {source}{where} GROUP BY {key}{having}"
            case 4:
                by = self.random.choice(numbers)
                shown = ", ".join(f"{c} AS c{n}" for n, c in enumerate([*numbers, *texts]))
                order = ", ".join(f"c{n} {self.pick('', 'DESC')}" for n in range(len(numbers) + len(texts)))
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
            return joined + self.pick(f"{c} IN (SELECT w FROM u)", exists, scalar)
        return joined + self.condition(numbers, texts)

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
        if self.random.random() < 0.25:
            kind = self.pick("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
            return f"({self.select()}) {kind} ({self.select()})"
        return self.select()


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
