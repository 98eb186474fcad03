"""The tables that a stream with a key can be held in, by the names users write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from caesura.io.sinks.delta_table import DeltaTableSink
from caesura.io.sinks.duckdb import DuckDBSink
from caesura.io.sinks.iceberg import IcebergSink
from caesura.io.sinks.iceberg_catalog import Catalog
from caesura.io.sinks.parquet_table import ParquetTableSink
from caesura.io.sinks.postgres import PostgresSink


def delta(path: str | Path, *, partition_by: str | Sequence[str] = ()) -> DeltaTableSink:
    """A Delta table: ``sink=cz.delta("lake/speeds")``. `caesura.spark.DeltaSink` holds all changes.

    ``partition_by`` names columns by whose values a table that is made is laid out.
    """
    return DeltaTableSink(path, _several(partition_by))


def iceberg(table: str, *, catalog: Catalog, partition_by: str | Sequence[str] = ()) -> IcebergSink:
    """An Iceberg table: ``sink=cz.iceberg("traffic.speeds", catalog="lake")``.

    A plan with `upserts` is held by key, of others all changes are appended. ``catalog`` is the name of one
    that pyiceberg knows, or its properties. A table that is there, and empty, keeps its own partition spec.
    """
    return IcebergSink(table, catalog, _several(partition_by))


def parquet(path: str | Path, *, partition_by: str | Sequence[str] = ()) -> ParquetTableSink:
    """A folder of Parquet files that holds a table: ``sink=cz.parquet("speeds")``.

    Its last manifest names the files that count: `sink.read_back()` and `create_view` go by it. A path alone,
    ``sink="speeds"``, holds all changes.
    """
    return ParquetTableSink(path, _several(partition_by))


def duckdb(path: str | Path, table: str = "out") -> DuckDBSink:
    """A table of a DuckDB file: ``sink=cz.duckdb("speeds.db", "now")``."""
    return DuckDBSink(path, table)


def postgres(dsn: str, table: str = "out") -> PostgresSink:
    """A table of a Postgres database: ``sink=cz.postgres("host=db dbname=speeds", "now")``."""
    return PostgresSink(dsn, table)


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
