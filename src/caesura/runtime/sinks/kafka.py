"""A topic of Kafka as a sink: an epoch is one transaction, which notes the epoch's number itself.

A start takes the transactional id of the topic, so that an earlier one commits no more, then asks which epoch
was committed last: whatever was killed where, every epoch is in the topic once, for readers of what is
committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from caesura.errors import PlanError, StreamError, closest
from caesura.events import Page
from caesura.io.codecs.json import JsonCodec
from caesura.io.kafka.cluster import Cluster
from caesura.io.kafka.written import OutRecord, changes, upserts
from caesura.io.sinks.protocol import EpochSink
from caesura.io.sinks.rows import rows_table
from caesura.misuse import strict
from caesura.plan import Duration, Node, here, ticks
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.buckets.status import Board

if TYPE_CHECKING:
    from confluent_kafka import Producer

RecordsAs = Literal["changes", "upserts"]
PRODUCER = {"linger.ms": 20, "partitioner": "murmur2_random", "transaction.timeout.ms": 120_000}
"""Keys go to the partitions that Kafka's own client sends them to."""


class KafkaSink(EpochSink):
    """Writes the rows of an output into a topic."""

    def __init__(
        self, cluster: Cluster, topic: str, *, key: Sequence[str], form: RecordsAs, late: str | None
    ) -> None:
        self._cluster, self._topic, self._key, self._form, self._late = cluster, topic, key, form, late
        self.board = Board()
        self._query = ""
        self._producer: Producer | None = None
        self._group: Any = None
        self._last: int | None = None

    @property
    def _name(self) -> str:
        """Under which the topic is written to: transactional id, and group that the epoch is noted in."""
        return f"caesura-sink-{self._topic}"

    def open(self, outputs: Mapping[str, Node]) -> None:
        """Refuses several outputs, and keys that there are not; asks for the topics."""
        if len(outputs) != 1:
            raise PlanError(
                f"a topic holds one output, and there are {len(outputs)}: {', '.join(outputs)}.",
                remedy="Start a query for each, with a topic of its own.",
            ).at("kafka", here())
        [self._node] = outputs.values()
        for name in self._key:
            if name not in self._node.schema.names:
                raise PlanError(
                    f"the output has no column '{name}' for a key.",
                    remedy=closest(name, self._node.schema.names),
                ).at("kafka", here())
        for topic in (self._topic, *([self._late] if self._late else [])):
            self._cluster.partitions(topic)

    def attach(self, query: str) -> None:
        """Fences earlier starts, and reads which epoch they committed last."""
        self._query = query
        self._producer = self._cluster.producer(**PRODUCER, **{"transactional.id": self._name})
        with self._cluster.asking():
            self._producer.init_transactions(self._cluster.seconds)
        owner, self._last = self._noted()
        if owner not in ("", query):
            raise StreamError(
                f"topic '{self._topic}' was written from another checkpoint, and this query's epochs would "
                "come on top of what is there.",
                remedy="Go on with that checkpoint, or write into a new topic.",
            )

    def _noted(self) -> tuple[str, int | None]:
        """The query that wrote to the topic, and the last epoch that it committed."""
        from confluent_kafka import Consumer, TopicPartition

        options = {"group.id": self._name, "enable.auto.commit": False, "isolation.level": "read_committed"}
        servers = {"bootstrap.servers": self._cluster.servers, **dict(self._cluster.config)}
        with self._cluster.asking():
            consumer = Consumer({**servers, **options})
            place = TopicPartition(self._topic, 0)
            [found] = consumer.committed([place], timeout=self._cluster.seconds)
            self._group = consumer.consumer_group_metadata()
            consumer.close()
        if found.offset < 0:
            return "", None
        noted = json.loads(found.metadata or "{}")
        return str(noted.get("query", "")), int(noted["epoch"]) if "epoch" in noted else None

    def last_epoch(self) -> int | None:
        return self._last

    def take(self, epoch: Epoch) -> None:
        """Writes an epoch and notes its number, in one transaction."""
        if self._producer is None:
            self.attach("")
        producer = self._producer
        assert producer is not None
        with self._transaction(producer):
            for topic, records in self._records(epoch):
                for record in records:
                    self._produce(producer, topic, record)
            self._note(producer, epoch.number)
            producer.commit_transaction(self._cluster.seconds)
        self._last = epoch.number

    def _note(self, producer: Producer, epoch: int) -> None:
        from confluent_kafka import TopicPartition

        noted = json.dumps({"query": self._query, "epoch": epoch})
        place = TopicPartition(self._topic, 0, epoch + 1, noted)
        producer.send_offsets_to_transaction([place], self._group, self._cluster.seconds)

    def _records(self, epoch: Epoch) -> Iterator[tuple[str, Iterator[OutRecord]]]:
        pages = [item for items in epoch.items.values() for item in items if isinstance(item, Page)]
        rows = rows_table(pages, self._node.schema, self._node.time)
        yield self._topic, (changes if self._form == "changes" else upserts)(rows, self._key)
        for source, batches in epoch.late.items() if self._late else ():
            for batch in batches:
                yield self._late or "", _late_records(source, batch)

    @staticmethod
    def _produce(producer: Producer, topic: str, record: OutRecord) -> None:
        while True:
            try:
                return producer.produce(topic, record.value, record.key)
            except BufferError:  # the client's queue is full: let some go
                producer.poll(0.1)

    @contextmanager
    def _transaction(self, producer: Producer) -> Iterator[None]:
        """What is done within counts whole, or not at all."""
        from confluent_kafka import KafkaException

        try:
            producer.begin_transaction()
            yield
        except KafkaException as error:
            self._producer = None
            raise self._meaning(error) from None
        except BaseException:
            producer.abort_transaction(self._cluster.seconds)
            raise

    def _meaning(self, error: Exception) -> Exception:
        from confluent_kafka import KafkaError

        told = error.args[0]
        if told.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
            return StreamError(
                f"another start of this query writes to topic '{self._topic}'.",
                remedy="Let the later one run, or stop it and start this one again.",
            )
        return self._cluster.meaning(told, self._topic)


def _late_records(source: str, batch: pa.RecordBatch) -> Iterator[OutRecord]:
    """Late rows, with the source that they are of as their key."""
    values = JsonCodec(batch.schema).encode(batch)
    yield from (OutRecord(source.encode(), value) for value in values)


@strict
def kafka(
    servers: str,
    topic: str,
    *,
    key: str | Sequence[str] = (),
    records: RecordsAs = "changes",
    late: str | None = None,
    timeout: Duration = "60s",
    config: Mapping[str, Any] | None = None,
) -> KafkaSink:
    """A topic as a sink, for ``query(sink=...)`` and ``start(spark, sink=...)``; every epoch comes once.

    As "changes" a record is a JSON object with kind, LE, RE, RE_new and the values, which `cz.read.kafka`
    takes with ``time="LE", end="RE", kind="kind", new_end="RE_new"``. As "upserts" it is the row of its key
    that never ends, and a record without a value deletes one: for compacted topics. Late rows go to the
    topic ``late``, where one is named.
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    if records not in ("changes", "upserts") or (records == "upserts" and not keys):
        raise PlanError(
            f"records={records!r} with key={key!r} says nothing of what is written.",
            remedy="Give records='changes', or records='upserts' with the columns of a key.",
        ).at("kafka", here())
    seconds = ticks(timeout, pa.timestamp("us"), "timeout") / 1e6
    cluster = Cluster(servers, tuple((config or {}).items()), seconds)
    return KafkaSink(cluster, topic, key=keys, form=records, late=late)
