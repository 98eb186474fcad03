"""Which epoch a writer of a topic committed last: noted in the transaction that writes the epoch.

A note is the offset of a group of the writer's own, which is quick to ask for and visible exactly when the
transaction counts. A broker forgets it after ``offsets.retention.minutes``, so the same note is a record of a
compacted topic too, which is asked where the group knows nothing.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from caesura.errors import StreamError
from caesura.io.kafka.cluster import Cluster

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer

SETTINGS = {"cleanup.policy": "compact", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}
"""Of the topic of notes: old ones go after some ten minutes."""
POLL_SECONDS = 0.5


class EpochNote(NamedTuple):
    """The query that wrote to a topic, and the last epoch that it committed."""

    query: str
    epoch: int


@dataclass(frozen=True)
class EpochNotes:
    """The notes of one writer of a topic."""

    cluster: Cluster
    topic: str
    writer: str
    """Its name: the transactional id, the group, and the key of its record."""
    archive: str
    """The topic of notes."""

    def prepare(self) -> None:
        """Makes the topic of notes, unless it is there."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.cimpl import NewTopic

        with self.cluster.asking():
            admin = self.cluster.admin()
            if self.archive in admin.list_topics(timeout=self.cluster.seconds).topics:
                return
            made = admin.create_topics([NewTopic(self.archive, 1, -1, config=dict(SETTINGS))])
            try:
                made[self.archive].result(self.cluster.seconds)
            except TimeoutError:
                refuse_unmade(self.archive, "no answer came")
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    refuse_unmade(self.archive, error.args[0].str())

    def write(self, producer: Producer, note: EpochNote) -> None:
        """Notes an epoch, in the transaction that is open."""
        from confluent_kafka import TopicPartition

        text = json.dumps(note._asdict())
        place = TopicPartition(self.topic, 0, note.epoch + 1, text)
        producer.send_offsets_to_transaction([place], self._group, self.cluster.seconds)
        producer.produce(self.archive, text.encode(), self.writer.encode(), 0)

    @cached_property
    def _group(self) -> object:
        consumer = self.cluster.consumer(group=self.writer)
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def last(self) -> EpochNote | None:
        """The last note that counts; asked for when no earlier process of this writer can commit any more."""
        from confluent_kafka import TopicPartition

        with self.cluster.asking():
            consumer = self.cluster.consumer(group=self.writer)
            try:
                [found] = consumer.committed([TopicPartition(self.topic, 0)], self.cluster.seconds)
            finally:
                consumer.close()
        if found.offset < 0 or not found.metadata:
            return self._archived()
        return EpochNote(**json.loads(found.metadata))

    def _archived(self) -> EpochNote | None:
        """The last note among the records that counts.

        Open transactions of other writers hide what lies behind them: where the last of ours does, it waits.
        """
        last, _ = self._read(committed=False, end=None)
        if last < 0:
            return None
        _, note = self._read(committed=True, end=last + 1)
        return note

    def _read(self, *, committed: bool, end: int | None) -> tuple[int, EpochNote | None]:
        """The offset of our last record, and what it notes; up to an offset, or all."""
        from confluent_kafka import TopicPartition

        found: tuple[int, EpochNote | None] = (-1, None)
        until = time.monotonic() + self.cluster.seconds
        consumer = self.cluster.consumer(committed=committed, bounded=True)
        try:
            with self.cluster.asking():
                place = TopicPartition(self.archive, 0)
                low, high = consumer.get_watermark_offsets(place, timeout=self.cluster.seconds)
                consumer.assign([TopicPartition(self.archive, 0, low)])
            position, stop = int(low), int(high) if end is None else end
            while position < stop:
                for message in _come(consumer):
                    offset, read = int(message.offset() or 0), message.error() is None
                    position = max(position, offset + read)
                    if read and message.key() == self.writer.encode():
                        found = offset, EpochNote(**json.loads(message.value() or b"{}"))
                if position < stop and time.monotonic() > until:
                    refuse_hidden(self.archive)
        finally:
            consumer.close()
        return found


def _come(consumer: Consumer) -> list[Message]:
    """What is there, as soon as anything is: `consume` alone waits for as much as it asks for."""
    first = consumer.consume(1, POLL_SECONDS)
    return [*first, *consumer.consume(10_000, 0)] if first else []


def refuse_unmade(archive: str, why: str) -> NoReturn:
    """Stops where the topic of notes cannot be made."""
    raise StreamError(
        f"the topic '{archive}', in which sinks note their epochs, cannot be made: {why.rstrip('. ')}.",
        remedy="Have it made with one partition and cleanup.policy=compact, or name another with notes=.",
    )


def refuse_hidden(archive: str) -> NoReturn:
    """Stops where a transaction of another writer stays open in front of a note."""
    raise StreamError(
        f"the notes of epochs in topic '{archive}' cannot be read to their end: a transaction of another "
        "writer is open.",
        remedy="Start again when it has ended, at the latest after its timeout.",
    )
