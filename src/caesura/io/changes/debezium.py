"""Reading what Debezium writes: files of JSON lines, or a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.errors import CaesuraError, DataError, PlanError, closest
from caesura.io.codecs.debezium import TIME, ClockOf, DebeziumCodec
from caesura.io.kafka.read import read_kafka
from caesura.io.places import Place
from caesura.io.sources.files import JSON, FileReader
from caesura.io.sources.formats import Format
from caesura.io.sources.memory import BATCH
from caesura.io.sources.read import source_of
from caesura.io.sources.source import Source
from caesura.plan import here


def read_debezium(
    path: str | Path | None,
    *,
    key: Sequence[str],
    schema: pa.Schema | None,
    time: ClockOf,
    kafka: Mapping[str, Any],
    events: Mapping[str, Any],
) -> Source:
    """The changes of a table as rows, from files or from a topic."""
    try:
        if time not in ("source", "connector"):
            raise PlanError(
                f"time={time!r} is no clock that a record of Debezium tells.",
                remedy="Give 'source' (the database's, the default) or 'connector'.",
            )
        topic = kafka.get("topic")
        if (path is None) == (topic is None) or (kafka.get("servers") is None) != (topic is None):
            raise PlanError(
                "it is not said where the changes are.",
                remedy="Give the path of files, or servers= and topic= of Kafka.",
            )
        if path is not None:
            _refuse_of_topics(kafka)
            rows = _inferred(path) if schema is None else schema
            codec = DebeziumCodec(_with_key(rows, key), key, time)
            made = _format(codec)
            timed = {**events, "time": codec.time}
            return source_of(lambda: FileReader(path, made, schema=codec.schema), timed)  # type: ignore[arg-type]
        if schema is None:
            raise PlanError(
                "nothing tells the columns of the table before its first change.",
                remedy="Give them: schema=pa.schema([('id', pa.int64()), ('name', pa.string())]).",
            )
    except CaesuraError as error:
        raise error.at(events.get("name") or "debezium", here()) from None
    codec = DebeziumCodec(_with_key(schema, key), key, time)
    return read_kafka(**kafka, value=codec, **{**events, "time": codec.time})  # type: ignore[arg-type]


def _with_key(rows: pa.Schema, key: Sequence[str]) -> pa.Schema:
    for name in key:
        if name not in rows.names:
            raise PlanError(
                f"the table has no column '{name}' for its key.", remedy=closest(name, rows.names)
            ).at("debezium", here())
    return rows


def _inferred(path: str | Path) -> pa.Schema:
    """The columns of the table, from the first file there is."""
    found = FileReader(path, JSON).schema
    for side in ("after", "before"):
        for fields in (found, _struct(found, "payload")):
            rows = _struct(fields, side)
            if rows:
                return pa.schema([(f.name, _plain(f.type)) for f in rows])
    raise DataError(
        f"the first changes in '{Place.of(path)}' have neither 'after' nor 'before', so nothing tells the "
        "columns of the table.",
        remedy="Give schema=; or read them with cz.read.json if they are no records of Debezium.",
    )


def _struct(fields: Any, name: str) -> list[pa.Field]:
    """The fields of a struct among others; none where there is no such."""
    mine = next((field for field in fields if field.name == name), None)
    return list(mine.type) if mine is not None and pa.types.is_struct(mine.type) else []


def _plain(t: pa.DataType) -> pa.DataType:
    """A text that looks like a time is one with a zone; a column of nulls may hold texts."""
    if pa.types.is_timestamp(t):
        return TIME
    return pa.string() if pa.types.is_null(t) else t


def _format(codec: DebeziumCodec) -> Format:
    columns, batches = partial(_columns, codec), partial(_batches, codec)
    return Format("JSON lines of Debezium", JSON.endings, columns, batches, None, JSON.fits)


def _columns(codec: DebeziumCodec, file: Place) -> pa.Schema:
    return codec.schema


def _batches(
    codec: DebeziumCodec, file: Place, schema: pa.Schema, size: int = BATCH
) -> Iterator[pa.RecordBatch]:
    for batch in JSON.batches(file, codec.envelope, size):
        yield codec.changes(batch)


OF_TOPICS = {"start": "earliest", "until": None, "on_gap": "stop", "timeout": "60s", "config": None}
"""What is said of a topic, and what it is where nothing is said."""


def _refuse_of_topics(kafka: Mapping[str, Any]) -> None:
    """Refuses what speaks of a topic where files are read."""
    wrong = next((name for name, plain in OF_TOPICS.items() if kafka.get(name, plain) != plain), None)
    if wrong is not None:
        raise PlanError(
            f"{wrong}= says something of a topic of Kafka, and files are read.",
            remedy=f"Leave {wrong}= out; or give servers= and topic= instead of a path.",
        )
