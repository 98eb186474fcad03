"""What users call to read a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from caesura.errors import PlanError
from caesura.io.codecs.json import JsonCodec
from caesura.io.codecs.protocol import RecordCodec, TextCodec, is_schema
from caesura.io.ingress.policy import at_end
from caesura.io.ingress.refusals import Lateness
from caesura.io.kafka.cluster import Cluster
from caesura.io.kafka.polling import Begin, OnGap
from caesura.io.kafka.reader import KafkaReader, Until
from caesura.io.kafka.records import Meta, RecordForm
from caesura.io.kafka.written import LIFETIME
from caesura.io.sinks.rows import row_schema
from caesura.io.sources.read import Events, source_of
from caesura.io.sources.source import Source
from caesura.plan import Duration, seconds

KeyOf = str | RecordCodec


def read_kafka(
    servers: str,
    topic: str,
    *,
    value: RecordCodec,
    key: KeyOf | None = None,
    meta: Sequence[Meta] = (),
    start: Begin = "earliest",
    until: Until | None = None,
    on_gap: OnGap = "stop",
    timeout: Duration = "60s",
    config: Mapping[str, Any] | None = None,
    **events: Unpack[Events],
) -> Source:
    """Reads a topic of Kafka; its partitions are lanes."""

    def make() -> KafkaReader:
        _check_words(start, until, on_gap)
        time = events.get("time")
        form = RecordForm(topic, value, _key(key, value), tuple(meta), time if isinstance(time, str) else "")
        cluster = Cluster(servers, tuple((config or {}).items()), seconds(timeout, "timeout"))
        return KafkaReader(cluster, form, begin=start, until=until, on_gap=on_gap)

    return source_of(make, events)


def read_kafka_changes(
    servers: str,
    topic: str,
    schema: pa.Schema,
    *,
    time: pa.DataType,
    value: RecordCodec | None = None,
    start: Begin = "earliest",
    until: Until | None = None,
    on_gap: OnGap = "stop",
    timeout: Duration = "60s",
    config: Mapping[str, Any] | None = None,
    late: Lateness = "reject",
    late_limit: int | None = None,
    name: str = "",
) -> Source:
    """Reads a topic that a sink of ours writes: its changes, and what its writers promise."""
    rows = row_schema(is_schema(schema, "read.kafka_changes"), time)
    payload = list(rows)[len(LIFETIME) :]
    renamed = {row.name: own for row, own in zip(payload, schema.names, strict=True) if row.name != own}
    events: Events = {
        "time": "LE",
        "end": "RE",
        "kind": "kind",
        "new_end": "RE_new",
        "shape": "full",
        "rename": renamed or None,
        "punctuate": at_end(closes=False),
        "late": late,
        "late_limit": late_limit,
        "name": name,
    }

    def make() -> KafkaReader:
        _check_words(start, until, on_gap)
        cluster = Cluster(servers, tuple((config or {}).items()), seconds(timeout, "timeout"))
        form = RecordForm(topic, (value or JsonCodec(rows)).for_rows(rows), punctuated=True)
        return KafkaReader(cluster, form, begin=start, until=until, on_gap=on_gap)

    return source_of(make, events)


def _check_words(start: str, until: str | None, on_gap: str) -> None:
    known: dict[str, tuple[object, tuple[str | None, ...]]] = {
        "start": (start, ("earliest", "latest")),
        "until": (until, (None, "latest")),
        "on_gap": (on_gap, ("stop", "skip")),
    }
    for name, (given, words) in known.items():
        if given not in words:
            raise PlanError(
                f"{name}={given!r} tells a Kafka source nothing.",
                remedy=f"Give {' or '.join(repr(word) for word in words)}.",
            )


def _key(key: KeyOf | None, value: RecordCodec) -> RecordCodec | None:
    """A column's name stands for a key that is its text."""
    if not isinstance(key, str):
        return key
    known = key in value.schema.names
    return TextCodec(key, value.schema.field(key).type if known else pa.string())


def key_columns(key: KeyOf | None) -> list[str]:
    """The columns that a key has."""
    if key is None:
        return []
    return [key] if isinstance(key, str) else list(key.schema.names)
