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
from caesura.io.sources.quarantine import OnBad
from caesura.io.sources.read import Events
from caesura.misuse import checked_methods
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
    """Files and folders, a folder in the order of its names; topics of Kafka; tables of Postgres."""

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
        """A Parquet file, or a folder of them."""
        return Stream(io.read_parquet(path, columns=columns, schema=schema, on_bad=on_bad, **events))

    @staticmethod
    @sampled
    def csv(
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        on_bad: OnBad = "stop",
        **events: Unpack[Events],
    ) -> Stream:
        """A CSV file with a header line, or a folder of them."""
        return Stream(io.read_csv(path, columns=columns, schema=schema, on_bad=on_bad, **events))

    @staticmethod
    @sampled
    def json(
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        on_bad: OnBad = "stop",
        **events: Unpack[Events],
    ) -> Stream:
        """A file of JSON lines, or a folder of them."""
        return Stream(io.read_json(path, columns=columns, schema=schema, on_bad=on_bad, **events))

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

        ``value`` says what records hold: `cz.json(schema)`. With ``key``, a column or a value of its own, the
        stream is the current row of every key, and a record without a value deletes it. ``meta`` adds what
        the broker knows: "timestamp", "partition", "offset". The topic is read from its ``start`` and
        followed for ever, or ``until`` where it ends when reading begins. Where records are deleted before
        they are read, ``on_gap`` stops the query or skips them. Brokers may be away for ``timeout``;
        ``config`` has options of the client.
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
        """The stream that another query writes with ``sink=cz.kafka(topic, ..., punctuation=True)``.

        ``schema`` has the columns of that stream, and ``time`` says how it counts time: those of the other
        query are `stream.schema` and `stream.time`. Inserts, retracts and ends that changed come as they
        were, and what was final there is final here. ``value`` is that of the sink, where it has one. The
        other options are those of `read.kafka`.
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
        """The current row of every key of a table, from the changes that Debezium tells.

        They lie in JSON lines under a ``path``, or in a ``topic`` of Kafka, whose options are those of
        `read.kafka`; in envelopes with a ``payload`` around them or without. ``schema`` has the table's
        columns; of files it is inferred. A change counts from the ``time`` at which the database committed
        it, or at which the connector read it; several at one time by their place in the database's log.
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

        The stream is the current row of every ``key``, the primary key unless you say otherwise; a row lives
        from the commit that made it until the one that replaced it. ``slot`` names the replication slot that
        keeps changes for this query alone, ``publication`` which tables are published (by default, one of
        the slot's name); both are made where they are not there, and stay. The table is read once, when a
        query begins; from then on its changes are, without a gap. The server may be away for ``timeout``.
        ``punctuate`` is a second's delay unless you say otherwise.
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

        With ``key`` the stream is the current row of every key: versions that update or delete are read from
        the table's change feed, or else from the files that they replace, and count from when they were
        committed. Without, rows are appended, ``time`` names their column (or ``"_commit_timestamp"``),
        and such versions are refused. It begins with a snapshot, or at the ``latest`` version, and is
        followed for ever, or ``until`` the version that is there. Needs the package `deltalake`.
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
        """An Iceberg table by snapshot, as `read.delta`: ``read.iceberg("traffic.speeds", catalog="lake")``.

        ``catalog`` is the name of one that pyiceberg knows, or its properties. Needs the package `pyiceberg`.
        """
        options = {"start": start, "until": until}
        read = Stream(io.read_iceberg(table, catalog, keyed=key is not None, options=options, events=events))
        return _current(read, key, events.get("name", ""))


@sampled
def from_arrow(data: Any, **events: Unpack[Events]) -> Stream:
    """A stream of an Arrow table or batch, or, once, of an Arrow reader."""
    return Stream(io.from_arrow(data, **events))


@sampled
def from_pandas(frame: pd.DataFrame, **events: Unpack[Events]) -> Stream:
    """A stream of a pandas frame's rows."""
    return Stream(io.from_pandas(frame, **events))


@sampled
def from_rows(rows: Iterable[Any], schema: pa.Schema | None = None, **events: Unpack[Events]) -> Stream:
    """A stream of dicts, tuples or dataclasses, with punctuation between them where there is any."""
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

    Rows come one by one, or ``batch_size`` of them in a page; punctuation always ends a page.

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

    ``lane`` and ``offset`` name the columns that keep order, such as Kafka's partition and offset;
    ``lanes`` says how many lanes there are.
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

    ``changes`` is a Spark DataFrame, streaming or not, or Arrow data, with the feed's columns
    ``_change_type``, ``_commit_version`` and ``_commit_timestamp``; a change counts from its commit.

    >>> import caesura as cz
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
    """A SparkSession with everything set as Caesura needs it."""
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
    """A stream that is fed by hand, for tests and for queries that are pushed to.

    What is fed obeys the laws of every source: a row behind punctuation goes to the late table. With
    ``trusted``, whoever feeds it knows that every retract names an event that was fed before it, as the log
    of a database does: events are not kept to look that up, and a late row is an error.
    """
    held = Properties(**known)
    return Stream(Pushed(label=label, payload=schema, time_type=time, known=held, late=late, trusted=trusted))


def subscribe(publication: Publication) -> Stream:
    """A stream of what a running query publishes: the rows that still count, then all that follows.

    >>> import caesura as cz
    >>> query = cz.from_rows([{"ts": 3, "id": 7}, {"ts": 8, "id": 9}], time="ts").query()
    >>> print(cz.subscribe(query.publish("out")).where(cz.col("id") > 7).run())
     LE  RE | id |
      8  9  | 9  | +
    """
    return Stream(subscription(publication))
