"""A Postgres database as a sink: rows by COPY into a temporary table, from there by key, in one transaction.

Needs the package `psycopg`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv

from caesura.io.sinks.packages import package
from caesura.io.sinks.sql import SqlSink, SqlTransaction, as_json, quoted

WHOLE = {
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "uint64": "NUMERIC(20)",
}
TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], str]], ...] = (
    (pa.types.is_integer, lambda t: WHOLE[str(t)]),
    (pa.types.is_float64, lambda _: "DOUBLE PRECISION"),
    (pa.types.is_floating, lambda _: "REAL"),
    (pa.types.is_boolean, lambda _: "BOOLEAN"),
    (pa.types.is_date, lambda _: "DATE"),
    (pa.types.is_time, lambda _: "TIME"),
    (pa.types.is_timestamp, lambda t: "TIMESTAMPTZ" if t.tz else "TIMESTAMP"),
    (pa.types.is_decimal, lambda t: f"NUMERIC({t.precision}, {t.scale})"),
    (pa.types.is_binary, lambda _: "BYTEA"),
    (pa.types.is_large_binary, lambda _: "BYTEA"),
    (pa.types.is_duration, lambda _: "INTERVAL"),
    (pa.types.is_nested, lambda _: "JSONB"),
)


class PostgresSink(SqlSink):
    """Writes to the database that a connection string names."""

    def __init__(self, dsn: str, table: str = "out") -> None:
        super().__init__(table)
        self.dsn = dsn

    @property
    def place(self) -> str:
        from psycopg.conninfo import conninfo_to_dict

        known = conninfo_to_dict(self.dsn)
        return f"the Postgres database '{known.get('dbname', '')}' at {known.get('host', 'this machine')}"

    def column_type(self, t: pa.DataType) -> str:
        return next((name(t) for fits, name in TYPES if fits(t)), "TEXT")

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        psycopg = _psycopg()
        try:
            with psycopg.connect(self.dsn) as connection:
                yield _PostgresTransaction(connection, self.column_type)
        except psycopg.Error as error:
            raise self.failed(error) from error


class _PostgresTransaction:
    def __init__(self, connection: Any, column_type: Callable[[pa.DataType], str]) -> None:
        self._connection, self._type = connection, column_type

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        for place in range(len(values), 0, -1):
            sql = sql.replace(f"${place}", f"%(v{place})s")
        named = {f"v{place}": value for place, value in enumerate(values, 1)}
        done = self._connection.execute(sql, named or None)
        return list(done.fetchall()) if done.description else []

    def stage(self, name: str, table: pa.Table) -> None:
        columns = ", ".join(f"{quoted(f.name)} {self._type(f.type)}" for f in table.schema)
        self._connection.execute(f"CREATE TEMP TABLE {quoted(name)} ({columns}) ON COMMIT DROP")
        text = io.BytesIO()
        options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
        pa.csv.write_csv(written(table), text, options)
        copy = f"COPY {quoted(name)} FROM STDIN (FORMAT csv)"
        with self._connection.cursor() as cursor, cursor.copy(copy) as sent:
            sent.write(text.getvalue())


def written(table: pa.Table) -> pa.Table:
    """A table whose columns COPY can read as texts: bytes in hex, nested values as JSON, spans in seconds."""
    columns = []
    for column in table.combine_chunks().columns:  # Arrow writes what memory held for a chunk without rows
        t = column.type
        if pa.types.is_nested(t):
            column = pa.array([None if v is None else as_json(v) for v in column.to_pylist()], pa.string())
        elif pa.types.is_binary(t) or pa.types.is_large_binary(t):
            column = pa.array(
                [None if v is None else rf"\x{v.hex()}" for v in column.to_pylist()], pa.string()
            )
        elif pa.types.is_duration(t):
            spans = column.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
            column = pa.array([None if v is None else f"{v} microseconds" for v in spans], pa.string())
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def _psycopg() -> Any:
    return package("psycopg", "postgres")
