"""Topics of a test: made anew, and filled by hand."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import count

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

NUMBERS, RUN = count(), uuid.uuid4().hex[:6]


class Topic:
    """A topic of one test, and a way to fill it."""

    def __init__(self, servers: str, partitions: int, config: dict[str, str]) -> None:
        self.servers, self.name = servers, f"topic-{RUN}-{next(NUMBERS)}"
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._create(partitions, config)
        # In order, also where a partition that is new has no leader yet and a record is sent again.
        options = {"linger.ms": 0, "enable.idempotence": True}
        self.producer = Producer({"bootstrap.servers": servers, **options})
        self._await(partitions)

    def _create(self, partitions: int, config: dict[str, str]) -> None:
        self.admin.create_topics([NewTopic(self.name, partitions, 1, config=config)])[self.name].result()

    def anew(self, partitions: int = 1) -> None:
        """Deletes the topic, and makes another of its name."""
        self.admin.delete_topics([self.name])[self.name].result()
        while self.name in self.producer.list_topics().topics:
            pass
        self._create(partitions, {})
        options = {"linger.ms": 0, "enable.idempotence": True}
        self.producer = Producer({"bootstrap.servers": self.servers, **options})
        self._await(partitions)

    def widen(self, partitions: int) -> None:
        """Gives the topic more partitions."""
        self.admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result()
        self._await(partitions)

    def _await(self, partitions: int) -> None:
        """Waits until the broker shows so many: its controller has answered before it knows of them."""
        while len(self.producer.list_topics(self.name).topics[self.name].partitions) < partitions:
            pass

    def put(self, *values: object, partition: int = 0, key: str | None = None, at: int = 0) -> None:
        """Puts records behind the others: bytes as they are, None as a tombstone, anything else as JSON."""
        for value in values:
            data = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
            self.producer.produce(self.name, data, key, partition, timestamp=at)
        self.producer.flush()

    def settle(self) -> None:
        """Waits for the markers of committed transactions, which a broker writes after it has answered."""
        client = {"bootstrap.servers": self.servers, "group.id": "none"}
        levels = ("read_committed", "read_uncommitted")
        stable, last = (Consumer({**client, "isolation.level": level}) for level in levels)
        for partition in stable.list_topics(self.name).topics[self.name].partitions:
            place = TopicPartition(self.name, partition)
            while stable.get_watermark_offsets(place) != last.get_watermark_offsets(place):
                pass
        stable.close()
        last.close()

    def rows(self, times: Sequence[int], partition: int = 0) -> None:
        """Puts rows of a time and a number."""
        self.put(*({"ts": t, "n": t * 10} for t in times), partition=partition)
