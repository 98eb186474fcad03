"""A writer of a topic: what it writes in an epoch is one transaction, which notes the epoch itself.

A writer takes its transactional id before it asks for its last note: an earlier process, or an earlier
attempt, that has the same id commits no more after that. So an epoch is in the topic once, whoever was killed
where, as long as one that runs again gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from caesura.errors import StreamError
from caesura.io.kafka.cluster import Cluster
from caesura.io.kafka.epoch_notes import EpochNote, EpochNotes
from caesura.io.kafka.written import ANY, OutRecord

if TYPE_CHECKING:
    from confluent_kafka import Producer

PRODUCER: dict[str, Any] = {"linger.ms": 20, "partitioner": "murmur2_random"}
"""Keys go to the partitions that Kafka's own client sends them to."""


@dataclass(frozen=True)
class Target:
    """The topic that a query writes to, and how; it travels to workers."""

    cluster: Cluster
    topic: str
    notes: str
    transaction_seconds: float

    def name(self, writer: int | None) -> str:
        """Under which a writer is known; the one that writes whole epochs has no number."""
        return f"caesura-sink-{self.topic}" + ("" if writer is None else f"-{writer}")

    def meaning(self, error: Exception) -> Exception:
        """What an error of a producer means."""
        from confluent_kafka import KafkaError

        cause = error.args[0]
        if cause.code() in (
            KafkaError._FENCED,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
        ):
            return FencedError(
                f"another start of this query writes to topic '{self.topic}', or a transaction took longer "
                f"than {self.transaction_seconds:g} s.",
                remedy="Let the later one run, or stop it and start this one again; transaction_timeout= "
                "says how long an epoch may take to write.",
            )
        return self.cluster.meaning(cause, self.topic)


class TopicWriter:
    """One of the writers of a topic, for one query."""

    def __init__(self, target: Target, query: str, writer: int | None = None) -> None:
        self._target, self._query = target, query
        self._cluster, self._topic = target.cluster, target.topic
        name = target.name(writer)
        self._notes = EpochNotes(target.cluster, target.topic, name, target.notes)
        millis = round(1000 * target.transaction_seconds)
        own = {"transactional.id": name, "transaction.timeout.ms": millis}
        self._producer = self._cluster.producer(**PRODUCER, **own)
        with self._cluster.asking():
            # One that is not connected yet asks for its transactional id again after half a second.
            self._producer.list_topics(target.topic, timeout=self._cluster.seconds)
            self._producer.init_transactions(self._cluster.seconds)
        noted = self._notes.last()
        self.last = None if noted is None else noted.epoch
        """The last epoch that was committed."""
        if noted is not None and noted.query != query:
            refuse_other_query(target.topic)

    @contextmanager
    def epoch(self, number: int) -> Iterator[TopicWriter]:
        """What is written within counts whole, with the note of the epoch, or not at all."""
        from confluent_kafka import KafkaException

        producer = self._producer
        try:
            producer.begin_transaction()
            yield self
            self._notes.write(producer, EpochNote(self._query, number))
            producer.commit_transaction(self._cluster.seconds)
        except KafkaException as error:
            raise self._target.meaning(error) from None
        except BaseException:
            producer.abort_transaction(self._cluster.seconds)
            raise
        self.last = number

    def put(self, topic: str, records: Iterable[OutRecord]) -> None:
        """Writes records, in the transaction that is open."""
        for record in records:
            self._produce(self._producer, topic, record)

    def flush(self) -> None:
        """Waits until all records are with the broker."""
        self._producer.flush(self._cluster.seconds)

    @staticmethod
    def _produce(producer: Producer, topic: str, record: OutRecord) -> None:
        more: dict[str, Any] = {} if record.partition == ANY else {"partition": record.partition}
        if record.headers:
            more["headers"] = list(record.headers)
        while True:
            try:
                return producer.produce(topic, record.value, record.key, **more)
            except BufferError:  # the client's queue is full: let some go
                producer.poll(0.1)


def refuse_other_query(topic: str) -> NoReturn:
    """Stops a query that would write behind another's epochs."""
    raise StreamError(
        f"topic '{topic}' was written from another checkpoint, and this query's epochs would come on top of "
        "what is there.",
        remedy="Go on with that checkpoint, or write into a new topic.",
    )


class FencedError(StreamError):
    """Another process has taken over the transactional id."""
