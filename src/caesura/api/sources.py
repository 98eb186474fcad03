"""Where streams begin: ``cz.read.parquet(...)``, ``cz.from_rows(...)``, and inputs fed by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

import pyarrow as pa

from caesura import io
from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError
from caesura.events import Item, parse
from caesura.expr import col
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.pushed import Pushed
from caesura.io.ingress.refusals import Lateness
from caesura.io.sources.read import Events
from caesura.misuse import check_word, checked_methods
from caesura.plan import TICKS, Duration, Properties, here
from caesura.runtime.graph.publication import Publication, subscription

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from caesura.io.changes.lake_reader import Start
    from caesura.io.changes.lake_reader import Until as UntilVersion
    from caesura.io.changes.read import VersionEvents
    from caesura.io.codecs.debezium import ClockOf
    from caesura.io.codecs.protocol import RecordCodec
    from caesura.io.kafka.polling import Begin, OnGap
    from caesura.io.kafka.reader import Until
    from caesura.io.kafka.records import Meta
    from caesura.io.sinks.iceberg_catalog import Catalog
    from caesura.io.sources.quarantine import OnBad

ONLY_TYPES = {
    "Start": "caesura.io.changes.lake_reader",
    "UntilVersion": "caesura.io.changes.lake_reader.Until",
    "VersionEvents": "caesura.io.changes.read",
    "ClockOf": "caesura.io.codecs.debezium",
    "RecordCodec": "caesura.io.codecs.protocol",
    "Begin": "caesura.io.kafka.polling",
    "OnGap": "caesura.io.kafka.polling",
    "Until": "caesura.io.kafka.reader",
    "Meta": "caesura.io.kafka.records",
    "Catalog": "caesura.io.sinks.iceberg_catalog",
    "OnBad": "caesura.io.sources.quarantine",
}
"""Where the types of arguments are that a wrong call needs: a connector is imported when it is used."""

MICROSECONDS = pa.timestamp("us")
F = TypeVar("F", bound=Callable[..., Stream])


def sampled(make: F) -> F:
    """A way of reading whose rows may each live until the next sample: edge events without end rows."""

    @wraps(make)
    def read(*args: Any, until_next: str | Sequence[str] | None = None, **events: Any) -> Stream:
        made = make(*args, **events)
        if until_next is None:
            return made
        if events.get("end") or events.get("kind"):
            raise PlanError(
                "end= (or kind=) and until_next= both say when a row ends.",
                remedy="Leave one of the two out.",
            ).at(events.get("name") or "read", here())
        return made.latest(until_next)

    return cast(F, read)


@checked_methods
class read:  # noqa: N801  (users write cz.read.parquet)
    """Files and folders, topics of Kafka, tables of Postgres, Delta and Iceberg, as streams.

    A folder is read in the order of its names. Every way of reading takes the options of
    `caesura.io.Events`: which column tells time, what the source promises, what becomes of late rows.
    """

    @staticmethod
    @sampled
    def parquet(
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        on_bad: OnBad = "stop",
        **events: Unpack[Events],
    ) -> Stream:
        """A Parquet file, or a folder of them in the order of their names.

        Parameters
        ----------
        path
            A file or folder on this machine, or in an object store: ``"s3://bucket/folder"``.
        columns
            The payload columns that are read; by default all that the plan needs.
        schema
            The columns with their types; by default those of the first file.
        on_bad
            What becomes of files that cannot be read: ``"stop"`` the query; ``"quarantine"``, noted beside
            them, to be given back once mended; ``"late"``, told in the late table.
        **events
            How rows become events: ``time`` and the other options of `caesura.io.Events`.

        Returns
        -------
        Stream
            The rows of the files; on Spark and with a checkpoint, new files of a folder too.

        Notes
        -----
        Promises: what ``punctuate`` says; without it nothing before the end. State: none where rows are
        points or have their ends; else the events that corrections may still name. Feedback: rows that will
        be ignored go no further, and row groups that hold no others are not read; desired ones are read
        first where that makes no row late. Spark: Spark lists the new files, workers read their columns
        straight into packets.

        See Also
        --------
        read.csv : CSV files.
        read.json : files of JSON lines.
        read.delta : a Delta table by version.
        read.iceberg : an Iceberg table by snapshot.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caesura as cz
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.parquet"
        >>> pq.write_table(pa.table({"ts": [1, 4], "id": [7, 9]}), path)
        >>> print(cz.read.parquet(path, time="ts", punctuate=cz.delay(5)).run())
         LE  RE | id |
          1  2  | 7  | +
          4  5  | 9  | +
        """
        return Stream(io.read_parquet(path, columns=columns, schema=schema, on_bad=on_bad, **events))

    @staticmethod
    @sampled
    def csv(
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        encoding: str = "utf-8",
        on_bad: OnBad = "stop",
        appended: bool = False,
        **events: Unpack[Events],
    ) -> Stream:
        r"""A CSV file with a header line, or a folder of them; an empty field is null.

        Parameters
        ----------
        path
            A file or folder, as in `read.parquet`.
        columns
            The payload columns that are read; by default all that the plan needs.
        schema
            The columns with their types; by default they are inferred from the first file.
        encoding
            What the files are written in: ``"latin-1"``, ``"utf-16"``. One that is not UTF-8 is refused
            unless this says so; it goes with ``on_bad="stop"`` only.
        on_bad
            What becomes of lines and files that cannot be read: ``"stop"`` the query; ``"quarantine"``, set
            aside in the folder, to be given back once mended; ``"late"``, told in the late table.
        appended
            Whether the file that was read last may grow at its end, as a log does, and is read on there:
            up to its last whole line, now and at every start. Files before it must stay as they are.
        **events
            How rows become events: ``time`` and the other options of `caesura.io.Events`.

        Returns
        -------
        Stream
            The rows of the files.

        Notes
        -----
        Promises, State, Spark: as `read.parquet`; with ``appended`` a streaming query on Spark is refused,
        since Spark lists a file once. Feedback: rows that will be ignored go no further; all are read.

        See Also
        --------
        read.parquet : Parquet files.
        read.json : files of JSON lines.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caesura as cz
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
        >>> _ = path.write_text("ts,id\n1,7\n4,9\n")
        >>> print(cz.read.csv(path, time="ts").run())
         LE  RE | id |
          1  2  | 7  | +
          4  5  | 9  | +
        """
        return Stream(
            io.read_csv(
                path,
                columns=columns,
                schema=schema,
                encoding=encoding,
                on_bad=on_bad,
                appended=appended,
                **events,
            )
        )

    @staticmethod
    @sampled
    def json(
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        on_bad: OnBad = "stop",
        appended: bool = False,
        **events: Unpack[Events],
    ) -> Stream:
        r"""A file of JSON lines, or a folder of them.

        Parameters
        ----------
        path
            A file or folder, as in `read.parquet`.
        columns
            The payload columns that are read; by default all that the plan needs.
        schema
            The columns with their types; by default they are inferred from the first file.
        on_bad
            What becomes of lines and files that cannot be read, as in `read.csv`.
        appended
            Whether the file that was read last may grow at its end, as in `read.csv`.
        **events
            How rows become events: ``time`` and the other options of `caesura.io.Events`.

        Returns
        -------
        Stream
            The rows of the files.

        Notes
        -----
        Promises, State, Feedback, Spark: as `read.csv`.

        See Also
        --------
        read.parquet : Parquet files.
        read.csv : CSV files.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caesura as cz
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.json"
        >>> _ = path.write_text('{"ts": 1, "id": 7}\n{"ts": 4, "id": 9}\n')
        >>> print(cz.read.json(path, time="ts").run())
         LE  RE | id |
          1  2  | 7  | +
          4  5  | 9  | +
        """
        return Stream(
            io.read_json(path, columns=columns, schema=schema, on_bad=on_bad, appended=appended, **events)
        )

    @staticmethod
    @sampled
    def kafka(
        servers: str,
        topic: str,
        *,
        value: RecordCodec,
        key: str | RecordCodec | None = None,
        meta: Sequence[Meta] = (),
        start: Begin = "earliest",
        until: Until | None = None,
        on_gap: OnGap = "stop",
        timeout: Duration = "60s",
        config: Mapping[str, Any] | None = None,
        **events: Unpack[Events],
    ) -> Stream:
        """A topic of Kafka; its partitions are lanes, its offsets are saved with the query's state.

        Parameters
        ----------
        servers
            The brokers: ``"kafka:9092"``.
        topic
            The topic.
        value
            What records hold: `cz.json`, `cz.avro` or `cz.protobuf`.
        key
            A column, or what record keys hold: then the stream is the current row of every key, and a
            record without a value deletes it.
        meta
            What the broker knows, as columns: ``"timestamp"``, ``"partition"``, ``"offset"``.
        start
            ``"earliest"`` or ``"latest"``, for a query that has no saved offsets.
        until
            ``"latest"`` to end where the topic ends when reading begins; without it, it is followed for
            ever.
        on_gap
            Where records are deleted before they are read: ``"stop"`` the query, or ``"skip"`` them.
        timeout
            For how long brokers may be away.
        config
            Options of the client, by its names.
        **events
            How rows become events: ``time`` and the other options of `caesura.io.Events`.

        Returns
        -------
        Stream
            The rows of the records; with ``key`` the current row of every key.

        Notes
        -----
        Promises: what ``punctuate`` says, per partition. State: as `read.parquet`; with ``key`` that of
        `Stream.changelog`. Feedback: rows that will be ignored go no further; all are read. Spark: a source
        whose offsets lie in Spark's checkpoint; workers read the partitions. Needs the extra ``kafka``.

        See Also
        --------
        read.kafka_changes : a stream that another query wrote to Kafka.
        read.debezium : the changes that Debezium tells.
        json : records that hold JSON.
        avro : records that hold Avro.
        protobuf : records that hold messages.
        kafka : a topic of Kafka as a sink.

        Examples
        --------
        With a broker at hand::

            schema = pa.schema([("ts", pa.timestamp("us")), ("segment", pa.int64()), ("speed", pa.float64())])
            records = cz.json(schema)
            behind = cz.delay("30s")
            speeds = cz.read.kafka("kafka:9092", "speeds", value=records, time="ts", punctuate=behind)
        """
        options: dict[str, Any] = {
            "meta": meta,
            "start": start,
            "until": until,
            "on_gap": on_gap,
            "timeout": timeout,
            "config": config,
        }
        read = Stream(io.read_kafka(servers, topic, value=value, key=key, **options, **events))
        if key is None:
            return read
        from caesura.io.kafka.read import key_columns
        from caesura.io.kafka.records import DELETE, OP, ORDER, PUT

        current = read.changelog(
            key_columns(key), op=OP, insert=PUT, update=(), delete=DELETE, order=ORDER, name=topic
        )
        return current.drop(ORDER)

    @staticmethod
    def kafka_changes(
        servers: str,
        topic: str,
        schema: pa.Schema,
        *,
        time: pa.DataType = MICROSECONDS,
        value: RecordCodec | None = None,
        start: Begin = "earliest",
        until: Until | None = None,
        on_gap: OnGap = "stop",
        timeout: Duration = "60s",
        config: Mapping[str, Any] | None = None,
        late: Lateness = "reject",
        late_limit: int | None = None,
        name: str = "",
    ) -> Stream:
        """The stream that another query writes with ``sink=cz.kafka(servers, topic, punctuation=True)``.

        Inserts, retracts and ends that changed come as they were, and what was final there is final here.

        Parameters
        ----------
        servers
            The brokers: ``"kafka:9092"``.
        topic
            The topic that the other query writes to.
        schema
            The columns of the other stream: ``stream.schema``.
        time
            How it counts time: ``stream.node.time``.
        value
            What its sink was given as ``value``, where it was.
        start
            As in `read.kafka`.
        until
            As in `read.kafka`.
        on_gap
            As in `read.kafka`.
        timeout
            As in `read.kafka`.
        config
            As in `read.kafka`.
        late
            What becomes of late rows: ``"reject"``, ``"adjust"`` or ``"error"``.
        late_limit
            How many late rows are kept at most until they are asked for.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The other query's output.

        Notes
        -----
        Promises: what the other query promised. State: the events that corrections may still name.
        Feedback: rows that will be ignored go no further; all are read. Spark: as `read.kafka`.

        See Also
        --------
        read.kafka : a topic of Kafka.
        kafka : a topic of Kafka as a sink.

        Examples
        --------
        With a broker at hand::

            averages = cz.read.kafka_changes("kafka:9092", "averages", made.schema, time=made.node.time)
        """
        return Stream(
            io.read_kafka_changes(
                servers,
                topic,
                schema,
                time=time,
                value=value,
                start=start,
                until=until,
                on_gap=on_gap,
                timeout=timeout,
                config=config,
                late=late,
                late_limit=late_limit,
                name=name,
            )
        )

    @staticmethod
    def debezium(
        path: str | Path | None = None,
        *,
        key: str | Sequence[str],
        servers: str | None = None,
        topic: str | None = None,
        schema: pa.Schema | None = None,
        time: ClockOf = "source",
        start: Begin = "earliest",
        until: Until | None = None,
        on_gap: OnGap = "stop",
        timeout: Duration = "60s",
        config: Mapping[str, Any] | None = None,
        punctuate: Policy | None = None,
        late: Lateness = "reject",
        late_limit: int | None = None,
        name: str = "",
    ) -> Stream:
        r"""The current row of every key of a table, from the changes that Debezium tells.

        Parameters
        ----------
        path
            JSON lines in a file or folder, in envelopes with a ``payload`` around them or without; or
        key
            The columns that tell rows of the table apart.
        servers
            The brokers of Kafka, and
        topic
            the topic with the changes.
        schema
            The table's columns; of files they are inferred.
        time
            From when a change counts: ``"source"``, when the database committed it, or ``"connector"``,
            when the connector read it; several at one time by their place in the database's log.
        start
            As in `read.kafka`.
        until
            As in `read.kafka`.
        on_gap
            As in `read.kafka`.
        timeout
            As in `read.kafka`.
        config
            As in `read.kafka`.
        punctuate
            What the source promises, such as `cz.delay`.
        late
            What becomes of late rows: ``"reject"``, ``"adjust"`` or ``"error"``.
        late_limit
            How many late rows are kept at most until they are asked for.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            At each instant at most one row of a key.

        Notes
        -----
        Promises, State, Feedback, Spark: as `Stream.changelog` behind `read.json` or `read.kafka`.

        See Also
        --------
        Stream.changelog : the current row, from inserts, updates and deletes.
        read.kafka : a topic of Kafka.
        read.postgres : a table of Postgres and its changes.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> import caesura as cz
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "changes.json"
        >>> def told(op, ms, before, after):
        ...     return json.dumps({"op": op, "source": {"ts_ms": ms}, "before": before, "after": after})
        >>> one, other = {"id": 7, "v": "a"}, {"id": 7, "v": "b"}
        >>> _ = path.write_text(told("c", 1, None, one) + "\n" + told("u", 5, one, other) + "\n")
        >>> print(cz.read.debezium(path, key="id").run().table().select(["id", "v"]).to_pylist())
        [{'id': 7, 'v': 'a'}, {'id': 7, 'v': 'b'}]
        """
        from caesura.io.codecs import debezium

        keys = [key] if isinstance(key, str) else list(key)
        kafka = {
            "servers": servers,
            "topic": topic,
            "start": start,
            "until": until,
            "on_gap": on_gap,
            "timeout": timeout,
            "config": config,
        }
        events = {"punctuate": punctuate, "late": late, "late_limit": late_limit, "name": name}
        read = io.read_debezium(path, key=keys, schema=schema, time=time, kafka=kafka, events=events)
        rows = Stream(read).where(col(debezium.OP) != debezium.MESSAGE)
        current = rows.changelog(keys, op=debezium.OP, order=debezium.ORDER, name=name)
        return current.drop(*debezium.ORDER)

    @staticmethod
    def postgres(
        dsn: str,
        table: str,
        *,
        slot: str,
        publication: str = "",
        key: str | Sequence[str] = (),
        columns: Sequence[str] | None = None,
        until: Until | None = None,
        timeout: Duration = "60s",
        punctuate: Policy | None = None,
        name: str = "",
    ) -> Stream:
        """A table of Postgres: its rows as they are, then every change, by the server's logical decoding.

        The table is read once, when a query begins; from then on its changes are, without a gap.

        Parameters
        ----------
        dsn
            How the server is reached: ``"host=db dbname=shop user=reader"``.
        table
            The table, perhaps with its schema: ``"public.orders"``.
        slot
            The replication slot that keeps changes for this query alone; made where it is not there, and
            stays.
        publication
            Which tables are published; by default one of the slot's name, made where it is not there.
        key
            The columns that tell rows apart; the primary key unless you say otherwise.
        columns
            The columns that are read; by default all.
        until
            ``"latest"`` to end with the changes that are there when reading begins; without it, it is
            followed for ever.
        timeout
            For how long the server may be away.
        punctuate
            What the source promises; a second's delay unless you say otherwise.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The current row of every key; a row lives from the commit that made it until the one that
            replaced it.

        Notes
        -----
        Promises, State, Feedback: as `Stream.changelog`. Spark: refused; follow the table in one process,
        with a checkpoint, or read its changes from Kafka with `read.debezium`. Needs the extra
        ``postgres``.

        See Also
        --------
        read.debezium : the changes that Debezium tells.

        Examples
        --------
        With a server at hand::

            orders = cz.read.postgres("host=db dbname=shop", "orders", slot="caesura_orders")
        """
        from caesura.io.postgres import reader as postgres

        read, group = io.read_postgres(
            dsn,
            table,
            slot=slot,
            publication=publication,
            key=key,
            columns=columns,
            until=until,
            timeout=timeout,
            punctuate=punctuate,
            name=name,
        )
        current = Stream(read).changelog(
            group,
            op=postgres.OP,
            insert=postgres.PUT,
            update=(),
            delete=postgres.DELETE,
            order=postgres.ORDER,
            name=name or table,
        )
        return current.drop(postgres.ORDER)

    @staticmethod
    def delta(
        path: str | Path,
        *,
        key: str | Sequence[str] | None = None,
        start: Start = "snapshot",
        until: UntilVersion | None = None,
        **events: Unpack[VersionEvents],
    ) -> Stream:
        """A Delta table by version: all its rows, then what each later version adds.

        Parameters
        ----------
        path
            The table's folder, on this machine or in an object store.
        key
            The columns that tell rows apart: then the stream is the current row of every key. Versions that
            update or delete are read from the table's change feed, or else from the files that they
            replace, and count from when they were committed. Without a key rows are appended, and such
            versions are refused.
        start
            ``"snapshot"``, or the ``"latest"`` version.
        until
            ``"latest"`` to end with the version that is there; without it, it is followed for ever.
        **events
            Without a key, ``time`` names the rows' column, or ``"_commit_timestamp"``; and the other
            options of `caesura.io.Events`.

        Returns
        -------
        Stream
            The rows of the table; with ``key`` the current row of every key.

        Notes
        -----
        Promises: what ``punctuate`` says. State: as `read.parquet`; with ``key`` that of
        `Stream.changelog`. Feedback: rows that will be ignored go no further. Spark: a source whose offsets
        are versions; workers read the files. Needs the extra ``delta``.

        See Also
        --------
        read.parquet : Parquet files.
        read.iceberg : an Iceberg table by snapshot.
        from_cdf : the change feed of a Delta table.

        Examples
        --------
        Of a table with a key::

            prices = cz.read.delta("lake/prices", key="item", until="latest")
        """
        options = {"start": start, "until": until}
        read = Stream(io.read_delta(path, keyed=key is not None, options=options, events=events))
        return _current(read, key, events.get("name", ""))

    @staticmethod
    def iceberg(
        table: str,
        *,
        catalog: Catalog,
        key: str | Sequence[str] | None = None,
        start: Start = "snapshot",
        until: UntilVersion | None = None,
        **events: Unpack[VersionEvents],
    ) -> Stream:
        """An Iceberg table by snapshot: all its rows, then what each later snapshot adds.

        Parameters
        ----------
        table
            Its name with its namespace: ``"traffic.speeds"``.
        catalog
            The name of a catalog that pyiceberg knows, or its properties.
        key
            As in `read.delta`.
        start
            As in `read.delta`.
        until
            As in `read.delta`.
        **events
            As in `read.delta`.

        Returns
        -------
        Stream
            The rows of the table; with ``key`` the current row of every key.

        Notes
        -----
        Promises, State, Feedback, Spark: as `read.delta`, with snapshots for versions. Needs the extra
        ``iceberg``.

        See Also
        --------
        read.parquet : Parquet files.
        read.delta : a Delta table by version.
        from_cdf : the change feed of a Delta table.

        Examples
        --------
        Of a table to which rows are appended::

            speeds = cz.read.iceberg("traffic.speeds", catalog="lake", time="ts")
        """
        options = {"start": start, "until": until}
        read = Stream(io.read_iceberg(table, catalog, keyed=key is not None, options=options, events=events))
        return _current(read, key, events.get("name", ""))


@sampled
def from_arrow(data: Any, **events: Unpack[Events]) -> Stream:
    """A stream of an Arrow table or batch, or, once, of an Arrow reader.

    Parameters
    ----------
    data
        An Arrow table, record batch or record batch reader, or what has the Arrow interface for streams.
    **events
        How rows become events: ``time`` and the other options of `caesura.io.Events`.

    Returns
    -------
    Stream
        The rows, without copying them.

    Notes
    -----
    Promises: what ``punctuate`` says; without it nothing before the end. State: as `read.parquet`.
    Feedback: rows that will be ignored go no further. Spark: read by one task of a batch, ``run_batch``;
    ``start`` refuses it, for a streaming query would have nothing to wait for.

    See Also
    --------
    from_rows : Python rows.
    from_pandas : a pandas frame.
    from_items : a drawn stream.

    Examples
    --------
    >>> import caesura as cz
    >>> import pyarrow as pa
    >>> print(cz.from_arrow(pa.table({"ts": [1, 4], "id": [7, 9]}), time="ts").run())
     LE  RE | id |
      1  2  | 7  | +
      4  5  | 9  | +
    """
    return Stream(io.from_arrow(data, **events))


@sampled
def from_pandas(frame: pd.DataFrame, **events: Unpack[Events]) -> Stream:
    """A stream of a pandas frame's rows, without its index.

    Parameters
    ----------
    frame
        The frame.
    **events
        How rows become events: ``time`` and the other options of `caesura.io.Events`.

    Returns
    -------
    Stream
        The rows.

    Notes
    -----
    Promises, State, Feedback, Spark: as `from_arrow`.

    See Also
    --------
    from_rows : Python rows.
    from_arrow : Arrow data.
    from_items : a drawn stream.

    Examples
    --------
    >>> import caesura as cz
    >>> import pandas as pd
    >>> print(cz.from_pandas(pd.DataFrame({"ts": [1, 4], "id": [7, 9]}), time="ts").run())
     LE  RE | id |
      1  2  | 7  | +
      4  5  | 9  | +
    """
    return Stream(io.from_pandas(frame, **events))


@sampled
def from_rows(rows: Iterable[Any], schema: pa.Schema | None = None, **events: Unpack[Events]) -> Stream:
    """A stream of dicts, tuples or dataclasses, with punctuation between them where there is any.

    Parameters
    ----------
    rows
        The rows; an iterator is read once.
    schema
        The columns with their types; by default they are inferred from the first rows.
    **events
        How rows become events: ``time`` and the other options of `caesura.io.Events`.

    Returns
    -------
    Stream
        The rows.

    Notes
    -----
    Promises: what ``punctuate`` says and punctuation between the rows; without, nothing before the end.
    State: as `read.parquet`. Feedback: rows that will be ignored go no further. Spark: as `from_arrow`.

    See Also
    --------
    from_arrow : Arrow data.
    from_pandas : a pandas frame.
    from_items : a drawn stream.
    ingestion_time : the clock as the time of events.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = [{"ts": 1, "till": 5, "id": 7}, {"ts": 4, "till": 6, "id": 9}]
    >>> print(cz.from_rows(rows, time="ts", end="till").run())
     LE  RE | id |
      1  5  | 7  | +
      4  6  | 9  | +
    """
    return Stream(io.from_rows(rows, schema, **events))


def from_items(
    items: Iterable[Item] | str,
    schema: pa.Schema | None = None,
    *,
    time: pa.DataType = TICKS,
    name: str = "",
    batch_size: int = 1,
) -> Stream:
    """A stream of items: drawn as a text, parsed, or made by a test. It runs on every host.

    Parameters
    ----------
    items
        A drawing, or pages and punctuation.
    schema
        The columns with their types; of a drawing they are inferred.
    time
        How time is counted: whole ticks, or a timestamp type.
    name
        What the step is called in drawings, messages and metrics.
    batch_size
        How many rows make a page; punctuation always ends one.

    Returns
    -------
    Stream
        The items as they stand.

    Notes
    -----
    Promises: the punctuation among the items. State: none. Feedback: rows that will be ignored go no
    further. Spark: as `from_arrow`.

    See Also
    --------
    from_rows : Python rows.
    from_arrow : Arrow data.
    from_pandas : a pandas frame.
    input_stream : a stream that is fed by hand.

    Examples
    --------
    >>> import caesura as cz
    >>> visits = cz.from_items('''
    ...  LE  RE    | id |
    ...   1  9     | 7  | +
    ...   1  9->5  | 7  | -
    ... ''')
    >>> print(visits.run())
     LE  RE | id |
      1  5  | 7  | +
    """
    try:
        some = parse(items, schema) if isinstance(items, str) else items
        return Stream(io.from_items(some, schema, time=time, name=name, batch_size=batch_size))
    except CaesuraError as error:
        raise error.at(name or "read", here()) from None


@sampled
def from_spark(
    frame: DataFrame,
    *,
    lane: str | None = None,
    offset: str | None = None,
    lanes: int = 1,
    **events: Unpack[Events],
) -> Stream:
    """A stream of a Spark DataFrame's rows, streaming or not.

    Parameters
    ----------
    frame
        The DataFrame. Leading `where` and `select` steps run in Spark SQL before rows go to Python.
    lane
        The column that tells rows with an order of their own apart, such as Kafka's partition.
    offset
        The column of their order, such as Kafka's offset. Without both, a row is late by earlier epochs
        only, as with Spark's own watermark.
    lanes
        How many lanes there are.
    **events
        How rows become events: ``time`` and the other options of `caesura.io.Events`.

    Returns
    -------
    Stream
        The rows; it runs on Spark.

    Notes
    -----
    Promises: what ``punctuate`` says; without it, what the DataFrame's own ``withWatermark`` on the column of
    time says. State: as `read.parquet`. Feedback: rows that will be ignored go no further. Spark: any source
    that Spark has; rows hop into Python workers as Arrow batches.

    See Also
    --------
    session : a SparkSession set as Caesura needs it.
    from_cdf : the change feed of a Delta table.

    Examples
    --------
    With a session at hand::

        frame = spark.readStream.format("rate").load()
        counted = cz.from_spark(frame, time="timestamp").tumbling("1m").agg(n=cz.count())
    """
    from caesura.spark.host.frames import read_frame

    return Stream(read_frame(frame, lane=lane, offset=offset, lanes=lanes, events=events))


def from_cdf(
    changes: Any,
    *,
    key: str | Sequence[str],
    punctuate: Policy | None = None,
    late: Lateness = "reject",
    late_limit: int | None = None,
    name: str = "",
) -> Stream:
    """The current row of every key, from the change feed of a Delta table.

    Parameters
    ----------
    changes
        A Spark DataFrame, streaming or not, or Arrow data, with the feed's columns ``_change_type``,
        ``_commit_version`` and ``_commit_timestamp``; a change counts from its commit.
    key
        The columns that tell rows apart.
    punctuate
        What the source promises, such as `cz.delay`.
    late
        What becomes of late rows: ``"reject"``, ``"adjust"`` or ``"error"``.
    late_limit
        How many late rows are kept at most until they are asked for.
    name
        What the step is called in drawings, messages and metrics.

    Returns
    -------
    Stream
        At each instant at most one row of a key.

    Notes
    -----
    Promises, State, Feedback, Spark: as `Stream.changelog` behind `from_spark` or `from_arrow`.

    See Also
    --------
    Stream.changelog : the current row, from inserts, updates and deletes.
    read.delta : a Delta table by version.
    read.iceberg : an Iceberg table by snapshot.
    from_spark : a Spark DataFrame.

    Examples
    --------
    >>> import caesura as cz
    >>> import pyarrow as pa
    >>> feed = pa.table({
    ...     "_change_type": ["insert", "update_preimage", "update_postimage"],
    ...     "_commit_version": [1, 2, 2], "_commit_timestamp": [1, 5, 5],
    ...     "id": [7, 7, 7], "v": ["a", "a", "b"],
    ... })
    >>> print(cz.from_cdf(feed, key="id").run())
     LE  RE  | id v |
      1  5   | 7  a | +
      5  inf | 7  b | +
    """
    from caesura.io.changes.lake_reader import TIME

    events: Events = {
        "time": TIME,
        "punctuate": punctuate,
        "late": late,
        "late_limit": late_limit,
        "name": name,
    }
    spark = type(changes).__module__.startswith("pyspark.")
    read = from_spark(changes, **events) if spark else from_arrow(changes, **events)
    return _current(read, key, name)


def _current(changes: Stream, key: str | Sequence[str] | None, name: str) -> Stream:
    """The current row of every key of a table's changes; without a key the changes."""
    from caesura.api.changes import current

    return changes if key is None else current(changes, key, name)


def session(
    name: str = "caesura", *, master: str = "local[*]", buckets: int | None = None, **settings: Any
) -> SparkSession:
    """A SparkSession with everything set as Caesura needs it.

    Parameters
    ----------
    name
        What the application is called.
    master
        Where it runs: ``"local[*]"``, ``"local-cluster[2,1,1024]"``, ``"spark://host:7077"``.
    buckets
        How many buckets stages have; by default one for each core.
    **settings
        Further settings with underscores for dots, ``spark_driver_memory="4g"``, or as they are called:
        ``**{"spark.executorEnv.AWS_REGION": "eu-west-1"}``.

    Returns
    -------
    pyspark.sql.SparkSession
        The session; the one that runs already, if there is one.

    Notes
    -----
    It sets the Python of the workers, the state store and the number of partitions; ``caesura doctor`` says
    what a session of your own lacks. Needs the extra ``spark``.

    See Also
    --------
    Stream.start : a streaming query on Spark.
    from_spark : a Spark DataFrame.

    Examples
    --------
    On this machine::

        spark = cz.session("speeds", master="local[4]")
    """
    from caesura.spark import session as made

    return made(name, master=master, buckets=buckets, **settings)


def input_stream(
    label: str,
    schema: pa.Schema,
    *,
    time: pa.DataType = TICKS,
    late: Lateness = "reject",
    trusted: bool = False,
    **known: bool,
) -> Stream:
    r"""A stream that is fed by hand, for tests and for queries that are pushed to.

    What is fed obeys the laws of every source: a row behind punctuation goes to the late table.

    Parameters
    ----------
    label
        What ``query.feed(label, item)`` calls it.
    schema
        The columns with their types.
    time
        How time is counted: whole ticks, or a timestamp type.
    late
        What becomes of late rows: ``"reject"``, ``"adjust"`` or ``"error"``.
    trusted
        Whether whoever feeds it knows that every retract names an event that was fed before it, as the log
        of a database does: events are not kept to look that up, and a late row is an error.
    **known
        What is known of its events: ``insert_only=True``, ``points=True``.

    Returns
    -------
    Stream
        What is fed.

    Notes
    -----
    Promises: what is fed as punctuation. State: the events that corrections may still name; none if it is
    trusted, or only inserts come. Feedback: told to whoever feeds, by ``query.upstream_feedback``. Spark:
    refused; read files, a topic or a DataFrame there.

    See Also
    --------
    from_items : a drawn stream.
    subscribe : what a running query publishes.
    caesura.runtime.Query.feed : an item put into an input.

    Examples
    --------
    >>> import caesura as cz
    >>> import pyarrow as pa
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> query = clicks.tumbling(10).agg(n=cz.count()).query(output="final")
    >>> for item in cz.parse(" LE RE | id |\n 1 2 | 7 | +\n 4 5 | 9 | +\n-- 10 --"):
    ...     query.feed("clicks", item)
    >>> query.run()
    >>> print(cz.draw(query.take("out")))
     LE  RE | n |
      0  10 | 2 | +
    -- definite: time < 10 --
    """
    held = Properties(**known)
    check_word(late, ("reject", "adjust", "error"), "way to treat late rows", "input_stream")
    if trusted and late == "adjust":
        raise PlanError(
            "late='adjust' needs events to be looked up, and trusted=True says that none is.",
            remedy="Leave one of the two out.",
        ).at(label or "input_stream", here())
    return Stream(Pushed(label=label, payload=schema, time_type=time, known=held, late=late, trusted=trusted))


def subscribe(publication: Publication) -> Stream:
    """A stream of what a running query publishes: the rows that still count, then all that follows.

    Parameters
    ----------
    publication
        What ``query.publish("out")`` gives.

    Returns
    -------
    Stream
        The output of that query, for another one in this process.

    Notes
    -----
    Promises: what the query promises. State: none here; the publication keeps rows that may still change.
    Feedback: told to the query, which acts on what all of its readers say. Spark: refused; a sink and a
    source take its place, such as Kafka's.

    See Also
    --------
    input_stream : a stream that is fed by hand.
    caesura.runtime.Query.publish : an output opened to later queries.

    Examples
    --------
    >>> import caesura as cz
    >>> query = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 8, "id": 9}], time="ts").query()
    >>> print(cz.subscribe(query.publish("out")).where(cz.col("id") > 7).run())
     LE  RE | id |
      8  9  | 9  | +
    """
    return Stream(subscription(publication))
