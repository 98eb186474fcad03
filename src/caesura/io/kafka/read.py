"""What users call to read a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from caesura.errors import PlanError
from caesura.io.codecs.protocol import RecordCodec, TextCodec
from caesura.io.kafka.cluster import Cluster
from caesura.io.kafka.polling import Begin, OnGap
from caesura.io.kafka.reader import KafkaReader, Until
from caesura.io.kafka.records import Meta, RecordForm
from caesura.io.sources.read import Events, source_of
from caesura.io.sources.source import Source
from caesura.plan import Duration, ticks

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
        seconds = ticks(timeout, pa.timestamp("us"), "timeout") / 1e6
        cluster = Cluster(servers, tuple((config or {}).items()), seconds)
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
