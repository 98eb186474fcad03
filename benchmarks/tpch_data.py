"""TPC-H's tables by `tpchgen-cli`, and refreshes of them: orders come and go, parts and suppliers change.

A refresh is the benchmark's RF1 and RF2 in one: so many new orders with their lines, as many old ones gone;
beside them parts and suppliers are replaced by rows with other values. New orders are old ones under new
keys, of other customers, so that values are spread as the generator spreads them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import caesura as cz
from caesura.events import Page
from caesura.events.page import NO_NEW_END

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
CHANGING = ("lineitem", "orders", "part", "supplier")
Other = Callable[[pa.Table, np.random.Generator], pa.Table]
BORN = "born"
"""The refresh that brought a row, so that it can be named when it goes."""


KEYS = {
    "orders": ["o_orderkey", "o_custkey"],
    "lineitem": ["l_orderkey"],
    "part": ["p_partkey", "p_size", "p_brand"],
    "supplier": ["s_suppkey", "s_nationkey", "s_acctbal"],
    "customer": ["c_custkey"],
}
"""What a refresh reads or writes."""


def generated(
    scale: float, folder: Path, columns: Mapping[str, list[str]] | None = None
) -> dict[str, pa.Table]:
    """The tables at a scale, written to a folder where they are not there; or these columns of some."""
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        command = [_generator(), "parquet", "-s", str(scale), "--output-dir", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    wanted: Mapping[str, list[str] | None] = dict.fromkeys(TABLES) if columns is None else columns
    return {t: _plain(pq.read_table(folder / f"{t}.parquet", columns=some)) for t, some in wanted.items()}


def _generator() -> str:
    """The program that makes the tables: beside Python, or where its package was laid."""
    places = [str(Path(sys.executable).parent), *(f"{path}/bin" for path in sys.path), os.environ["PATH"]]
    found = shutil.which("tpchgen-cli", path=os.pathsep.join(places))
    assert found, "tpchgen-cli is not installed"
    return found


def schemas(folder: Path) -> dict[str, pa.Schema]:
    """The columns of tables that are there."""
    return {name: pq.read_schema(folder / f"{name}.parquet") for name in TABLES}


def _plain(table: pa.Table) -> pa.Table:
    fields = [(f.name, pa.string() if f.type == pa.string_view() else f.type) for f in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


@dataclass(frozen=True)
class Change:
    """Rows of a table that came at a refresh, and rows that went, each with when it had come."""

    came: pa.Table
    went: pa.Table

    def page(self, at: int, columns: list[str]) -> Page:
        """The same as events: a row that came stays, one that went ends."""
        rows = pa.concat_tables([self.went, self.came]).select([*columns, BORN]).combine_chunks()
        born = rows.column(BORN).to_numpy().astype(np.int64)
        new = np.full(len(rows), NO_NEW_END)
        new[: self.went.num_rows] = at
        payload = pa.RecordBatch.from_arrays(
            [pa.concat_arrays(rows.column(n).chunks) for n in columns], columns
        )
        return Page.of(payload, le=born, re=np.full(len(rows), cz.INFINITY), re_new=new)


class Warehouse:
    """The tables as they are now, in DuckDB."""

    def __init__(self, tables: Mapping[str, pa.Table], *, threads: int = 2, seed: int = 7) -> None:
        self.base = duckdb.connect()
        self.base.execute(f"SET threads = {threads}")
        self.schemas = {name: table.schema for name, table in tables.items()}
        self._random = np.random.default_rng(seed)
        self._key = 1 << 40
        for name, table in tables.items():
            self.base.register("given", table)
            self.base.execute(f"CREATE TABLE {name} AS SELECT *, 0::BIGINT AS {BORN} FROM given")
            self.base.unregister("given")

    def first(self, name: str) -> Change:
        """All rows of a table as rows that came."""
        rows = self._rows(name, f"SELECT * FROM {name}")
        return Change(rows, rows.slice(0, 0))

    def _rows(self, name: str, text: str) -> pa.Table:
        found = self.base.sql(text).to_arrow_table()
        return found.cast(pa.schema([*self.schemas[name], (BORN, pa.int64())]))

    def _keys(self, name: str, key: str, count: int) -> str:
        keys = self.base.execute(f"SELECT {key} FROM {name} ORDER BY {key}").fetchnumpy()[key]
        return ", ".join(map(str, self._random.choice(keys, min(count, len(keys)), replace=False)))

    def refresh(self, at: int, share: float = 0.001) -> dict[str, Change]:
        """One refresh of a share of the rows; DuckDB's tables are those behind it."""
        made = {**self._orders(at, share)}
        made["part"] = self._replaced("part", "p_partkey", at, share, _other_part)
        made["supplier"] = self._replaced("supplier", "s_suppkey", at, share, _other_supplier)
        for name, change in made.items():
            key = {"orders": "o_orderkey", "lineitem": "l_orderkey", "part": "p_partkey"}.get(
                name, "s_suppkey"
            )
            self.base.register("went", change.went.select([key]))
            self.base.register("came", change.came)
            self.base.execute(f"DELETE FROM {name} WHERE {key} IN (SELECT {key} FROM went)")
            self.base.execute(f"INSERT INTO {name} SELECT * FROM came")
        return made

    def _orders(self, at: int, share: float) -> dict[str, Change]:
        count = self.base.execute("SELECT count(*) FROM orders").fetchall()[0][0]
        some = max(1, round(count * share))
        old, models = (self._keys("orders", "o_orderkey", some) for _ in range(2))
        customers = self.base.execute("SELECT count(*) FROM customer").fetchall()[0][0]
        came = {}
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            rows = self._rows(name, f"SELECT * FROM {name} WHERE {key} IN ({models})")
            came[name] = _set(rows, key, pc.add(rows.column(key), self._key), at)
        self._key += 1 << 40
        buyers = self._random.integers(1, customers + 1, came["orders"].num_rows)
        came["orders"] = _set(came["orders"], "o_custkey", pa.array(buyers), at)
        went = {
            "orders": self._rows("orders", f"SELECT * FROM orders WHERE o_orderkey IN ({old})"),
            "lineitem": self._rows("lineitem", f"SELECT * FROM lineitem WHERE l_orderkey IN ({old})"),
        }
        return {name: Change(came[name], went[name]) for name in came}

    def _replaced(self, name: str, key: str, at: int, share: float, other: Other) -> Change:
        count = self.base.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        keys = self._keys(name, key, max(1, round(count * share)))
        went = self._rows(name, f"SELECT * FROM {name} WHERE {key} IN ({keys})")
        return Change(_set(other(went, self._random), key, went.column(key), at), went)


def _set(table: pa.Table, name: str, values: pa.Array, at: int) -> pa.Table:
    """The rows with another column, born at a refresh."""
    born = pa.array(np.full(table.num_rows, at))
    columns = {name: values, BORN: born}
    made = [columns.get(f.name, table.column(f.name)) for f in table.schema]
    return pa.Table.from_arrays(
        [c.cast(f.type) for c, f in zip(made, table.schema, strict=True)], schema=table.schema
    )


def _other_part(rows: pa.Table, random: np.random.Generator) -> pa.Table:
    """Parts of another size and brand."""
    sizes = pa.array(random.integers(1, 51, rows.num_rows))
    brands = [f"Brand#{a}{b}" for a, b in random.integers(1, 6, (rows.num_rows, 2))]
    return _set(_set(rows, "p_size", sizes, 0), "p_brand", pa.array(brands), 0)


def _other_supplier(rows: pa.Table, random: np.random.Generator) -> pa.Table:
    """Suppliers of another nation, with another balance."""
    nations = pa.array(random.integers(0, 25, rows.num_rows))
    balances = [Decimal(int(n)).scaleb(-2) for n in random.integers(-99999, 999999, rows.num_rows)]
    return _set(_set(rows, "s_nationkey", nations, 0), "s_acctbal", pa.array(balances), 0)
