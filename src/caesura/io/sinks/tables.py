"""The tables that a stream with a key can be held in, by the names users write."""

from __future__ import annotations

from pathlib import Path

from caesura.io.sinks.delta_table import DeltaTableSink
from caesura.io.sinks.duckdb import DuckDBSink
from caesura.io.sinks.postgres import PostgresSink


def delta(path: str | Path) -> DeltaTableSink:
    """A Delta table: ``sink=cz.delta("lake/speeds")``. `caesura.spark.DeltaSink` holds all changes."""
    return DeltaTableSink(path)


def duckdb(path: str | Path, table: str = "out") -> DuckDBSink:
    """A table of a DuckDB file: ``sink=cz.duckdb("speeds.db", "now")``."""
    return DuckDBSink(path, table)


def postgres(dsn: str, table: str = "out") -> PostgresSink:
    """A table of a Postgres database: ``sink=cz.postgres("host=db dbname=speeds", "now")``."""
    return PostgresSink(dsn, table)
