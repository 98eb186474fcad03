"""A DuckDB file as a sink: each output a table of what holds now, or of the history.

The file is open for as long as an epoch is written; between epochs others may read it. Needs the package
`duckdb`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.io.places import Place
from caesura.io.sinks.packages import package
from caesura.io.sinks.sql import SqlSink, SqlTransaction, quoted


class DuckDBSink(SqlSink):
    """Writes to a DuckDB file, which is made if it is not there."""

    def __init__(self, path: str | Path, table: str = "out") -> None:
        super().__init__(table)
        self.path = Place.of(path).on_this_machine("a DuckDB file")

    @property
    def place(self) -> str:
        return f"the DuckDB file '{self.path}'"

    def column_type(self, t: pa.DataType) -> str:
        with _duckdb().connect() as memory:
            memory.register("empty", pa.table({"c": pa.array([], t)}))
            return str(memory.execute("DESCRIBE SELECT c FROM empty").fetchall()[0][1])

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        duckdb = _duckdb()
        try:
            with duckdb.connect(str(self.path)) as connection:
                connection.execute("BEGIN")
                yield _DuckDBTransaction(connection)
                connection.execute("COMMIT")
        except duckdb.Error as error:
            raise self.failed(error) from error


class _DuckDBTransaction:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, list(values)).fetchall()  # type: ignore[no-any-return]

    def stage(self, name: str, table: pa.Table) -> None:
        self._connection.register(f"{name}_rows", table)
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(name)} AS SELECT * FROM {name}_rows")
        self._connection.unregister(f"{name}_rows")


def _duckdb() -> Any:
    return package("duckdb", "duckdb")
