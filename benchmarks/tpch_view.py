"""One query of TPC-H as a view that is fed with refreshes, and its answer beside DuckDB's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp, parse_one

import caesura as cz
from benchmarks.tpch_data import CHANGING, KEYS, TABLES, Change, Warehouse
from benchmarks.tpch_queries import QUERIES
from caesura.events.page import NO_NEW_END, Page

Row = tuple[Any, ...]


def columns_read(text: str, schemas: Mapping[str, pa.Schema]) -> dict[str, list[str]]:
    """The tables that a query reads, and the columns of each that it names."""
    tree = parse_one(text)
    names = {column.name for column in tree.find_all(exp.Column)}
    tables = {table.name for table in tree.find_all(exp.Table)} & set(TABLES)
    return {t: [n for n in schemas[t].names if n in names] for t in sorted(tables)}


def columns_needed(text: str, schemas: Mapping[str, pa.Schema]) -> dict[str, list[str]]:
    """The columns that a query and its refreshes read."""
    read = columns_read(text, schemas)
    return {
        t: [n for n in schemas[t].names if n in (*read.get(t, ()), *KEYS.get(t, ()))] for t in {*read, *KEYS}
    }


class View:
    """A query that is kept alive: fed with what changed, it gives what changed in its answer."""

    def __init__(self, name: str, warehouse: Warehouse) -> None:
        self.text = QUERIES[name]
        self.columns = columns_read(self.text, warehouse.schemas)
        self.rows: Counter[Row] = Counter()
        """The answer now."""
        inputs = {}
        for table, columns in self.columns.items():
            schema = pa.schema([warehouse.schemas[table].field(n) for n in columns])
            known = {"trusted": True} if table in CHANGING else {"insert_only": True}
            inputs[table] = cz.input_stream(table, schema, **known)
        self.stream = cz.sql(self.text, **inputs)
        self.query = self.stream.query()

    def pages(self, at: int, changes: Mapping[str, Change]) -> dict[str, Page]:
        """What changed, for each table that the view reads."""
        return {t: changes[t].page(at, columns) for t, columns in self.columns.items() if t in changes}

    def feed(self, at: int, pages: Mapping[str, Page]) -> list[Page]:
        """Takes a refresh up; gives what changed in the answer."""
        for table, page in pages.items():
            self.query.feed(table, page)
        for table in self.columns:
            self.query.feed(table, cz.cti(at + 1))
        self.query.run()
        return [item for item in self.query.take("out") if isinstance(item, Page)]

    def apply(self, pages: list[Page]) -> None:
        """Brings the answer up to date."""
        for page in pages:
            new = page.re_new if page.re_new is not None else [NO_NEW_END] * len(page)
            rows = zip(*(column.to_pylist() for column in page.payload.columns), strict=True)
            for row, end, then in zip(rows, page.re.tolist(), map(int, new), strict=True):
                before = end == cz.INFINITY and then != NO_NEW_END
                after = (end if then == NO_NEW_END else then) == cz.INFINITY
                self.rows[row] += after - before


def differences(rows: Counter[Row], wanted: list[Row]) -> str:
    """What a view says and DuckDB does not, or nothing.

    DuckDB divides decimals as doubles, so such values are compared to nine digits; all others must be equal.
    Of no rows an aggregate without GROUP BY is no row here, and one of nulls there.
    """
    ours = sorted(rows.elements(), key=_order)
    theirs = sorted((row for row in wanted if any(value is not None for value in row)), key=_order)
    if any(count < 0 for count in rows.values()):
        return f"rows that went twice: {-rows}"
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, DuckDB has {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if not all(_same(a, b) for a, b in zip(one, other, strict=True)):
            return f"{one}, DuckDB has {other}"
    return ""


def _order(row: Row) -> list[str]:
    """Equal rows stand at equal places: by what is exact on both sides first."""
    exact = [str(value) for value in row if not isinstance(value, Decimal | float)]
    return exact + [f"{value:030.3f}" for value in row if isinstance(value, Decimal | float)]


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, float) and ours is not None:
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-4)
    return bool(ours == theirs)
