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
    """A Delta table that holds a stream by its key: ``sink=cz.delta("lake/speeds")``.

    `caesura.spark.DeltaSink` holds all changes instead.

    Parameters
    ----------
    path
        The table's folder, on this machine or in an object store.
    partition_by
        Columns by whose values a table that is made is laid out.

    Returns
    -------
    DeltaTableSink
        For ``sink=``; the stream says its key with `upserts`.

    Notes
    -----
    Every epoch is one transaction: exactly once. Needs the extra ``delta``.

    See Also
    --------
    Stream.upserts : the key of a table that holds the stream.
    parquet : a folder of Parquet files by key.
    iceberg : an Iceberg table by key.
    duckdb : a table of DuckDB by key.
    postgres : a table of Postgres by key.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> moves = [{"ts": 1, "car": 7, "at": "a"}, {"ts": 5, "car": 7, "at": "b"}]
    >>> cars = cz.from_rows(moves, time="ts").latest("car").upserts(key="car")
    >>> folder = tempfile.mkdtemp()
    >>> query = cars.query(sink=cz.delta(f"{folder}/cars"), checkpoint=f"{folder}/state")
    >>> query.run()
    >>> query.table().to_pylist()
    [{'car': 7, 'at': 'b'}]
    """
    return DeltaTableSink(path, _several(partition_by))


def iceberg(table: str, *, catalog: Catalog, partition_by: str | Sequence[str] = ()) -> IcebergSink:
    """An Iceberg table: ``sink=cz.iceberg("traffic.speeds", catalog="lake")``.

    A stream that says its key with `upserts` is held by key; of others all changes are appended.

    Parameters
    ----------
    table
        Its name with its namespace.
    catalog
        The name of a catalog that pyiceberg knows, or its properties.
    partition_by
        Columns by whose values a table that is made is laid out; one that is there, and empty, keeps its
        own partition spec.

    Returns
    -------
    IcebergSink
        For ``sink=``.

    Notes
    -----
    Every epoch is one snapshot: exactly once. Needs the extra ``iceberg``.

    See Also
    --------
    Stream.upserts : the key of a table that holds the stream.
    delta : a Delta table by key.
    parquet : a folder of Parquet files by key.
    duckdb : a table of DuckDB by key.
    postgres : a table of Postgres by key.

    Examples
    --------
    With a catalog at hand::

        query = speeds.query(sink=cz.iceberg("traffic.speeds", catalog="lake"), checkpoint="state/")
    """
    return IcebergSink(table, catalog, _several(partition_by))


def parquet(path: str | Path, *, partition_by: str | Sequence[str] = ()) -> ParquetTableSink:
    """A folder of Parquet files that holds a stream by its key: ``sink=cz.parquet("speeds")``.

    A path alone, ``sink="speeds"``, holds all changes.

    Parameters
    ----------
    path
        The folder, on this machine or in an object store.
    partition_by
        Columns whose values name folders.

    Returns
    -------
    ParquetTableSink
        For ``sink=``; the stream says its key with `upserts`. ``read_back()`` gives the table.

    Notes
    -----
    Its last manifest names the files that count: exactly once, and readers go by the manifest.

    See Also
    --------
    Stream.upserts : the key of a table that holds the stream.
    delta : a Delta table by key.
    iceberg : an Iceberg table by key.
    duckdb : a table of DuckDB by key.
    postgres : a table of Postgres by key.
    kafka : a topic of Kafka as a sink.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> moves = [{"ts": 1, "car": 7, "at": "a"}, {"ts": 5, "car": 7, "at": "b"}]
    >>> cars = cz.from_rows(moves, time="ts").latest("car").upserts(key="car")
    >>> folder = tempfile.mkdtemp()
    >>> query = cars.query(sink=cz.parquet(f"{folder}/cars"), checkpoint=f"{folder}/state")
    >>> query.run()
    >>> query.table().to_pylist()
    [{'car': 7, 'at': 'b'}]
    """
    return ParquetTableSink(path, _several(partition_by))


def duckdb(path: str | Path, table: str = "out") -> DuckDBSink:
    """A table of a DuckDB file that holds a stream by its key.

    Parameters
    ----------
    path
        The file.
    table
        The table.

    Returns
    -------
    DuckDBSink
        For ``sink=``; the stream says its key with `upserts`.

    Notes
    -----
    Every epoch is one transaction: exactly once. One process writes. Needs the package ``duckdb``.

    See Also
    --------
    Stream.upserts : the key of a table that holds the stream.
    delta : a Delta table by key.
    parquet : a folder of Parquet files by key.
    iceberg : an Iceberg table by key.
    postgres : a table of Postgres by key.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> moves = [{"ts": 1, "car": 7, "at": "a"}, {"ts": 5, "car": 7, "at": "b"}]
    >>> cars = cz.from_rows(moves, time="ts").latest("car").upserts(key="car")
    >>> folder = tempfile.mkdtemp()
    >>> query = cars.query(sink=cz.duckdb(f"{folder}/cars.db", "now"), checkpoint=f"{folder}/state")
    >>> query.run()
    >>> query.table().to_pylist()
    [{'car': 7, 'at': 'b'}]
    """
    return DuckDBSink(path, table)


def postgres(dsn: str, table: str = "out") -> PostgresSink:
    """A table of a Postgres database that holds a stream by its key.

    Parameters
    ----------
    dsn
        How the server is reached: ``"host=db dbname=speeds"``.
    table
        The table.

    Returns
    -------
    PostgresSink
        For ``sink=``; the stream says its key with `upserts`.

    Notes
    -----
    Every epoch is one transaction: exactly once. Needs the extra ``postgres``.

    See Also
    --------
    Stream.upserts : the key of a table that holds the stream.
    delta : a Delta table by key.
    parquet : a folder of Parquet files by key.
    iceberg : an Iceberg table by key.
    duckdb : a table of DuckDB by key.

    Examples
    --------
    With a server at hand::

        now = cz.postgres("dbname=speeds", "now")
        query = speeds.upserts(key="segment").query(sink=now, checkpoint="state/")
    """
    return PostgresSink(dsn, table)


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
