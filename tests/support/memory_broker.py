"""A Kafka broker in memory, with what sources and sinks ask of one: transactions, fencing, groups, holes.

It stands in for the clients of confluent-kafka; a run can be killed at a chosen call of a producer.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from confluent_kafka import KafkaError, KafkaException
from faults import Killed

NUMBERS = count()


@dataclass
class Entry:
    """What one offset of a partition holds; markers of transactions are in no state that is read."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]] | None
    state: str = "committed"


@dataclass
class Transaction:
    """A transactional id: who has it, and what is open under it."""

    owner: int = 0
    open: bool = False
    entries: list[Entry] = field(default_factory=list)
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: dict[tuple[str, str, int], Any] = field(default_factory=dict)


class MemoryBroker:
    """Topics, groups and transactions; `poll` says how many records of a partition come at a time."""

    def __init__(self, poll: int = 1000) -> None:
        self.servers = f"memory-{next(NUMBERS)}"
        self.poll = poll
        self.topics: dict[str, list[list[Entry]]] = {}
        self.ids: dict[str, int] = {}
        """A number for each topic; one that is made anew has another."""
        self.begins: dict[tuple[str, int], int] = {}
        """Where partitions begin whose first records are gone."""
        self.groups: dict[tuple[str, str, int], Any] = {}
        self.transactions: dict[str, Transaction] = {}
        self.calls, self.kill_at, self.dead = 0, -1, False
        self.spread = 0

    def make(self, topic: str, partitions: int = 1) -> str:
        if topic not in self.topics:
            self.topics[topic], self.ids[topic] = [], next(NUMBERS) + 1
        self.topics[topic] += [[] for _ in range(partitions - len(self.topics[topic]))]
        return topic

    def drop(self, topic: str) -> None:
        """Deletes a topic."""
        del self.topics[topic]

    @contextmanager
    def served(self, kill_at: int = -1) -> Iterator[MemoryBroker]:
        """Clients speak to this broker; the producers' call with the number ``kill_at`` is their last."""
        self.calls, self.kill_at, self.dead = 0, kill_at, False
        made = {"Consumer": MemoryConsumer, "Producer": MemoryProducer}
        with (
            patch.multiple("confluent_kafka", **{n: _bound(c, self) for n, c in made.items()}),
            patch("confluent_kafka.admin.AdminClient", _bound(MemoryClient, self)),
        ):
            yield self

    def called(self) -> None:
        """Kills the process here, if it is to be killed; who is dead does nothing any more."""
        number, self.calls = self.calls, self.calls + 1
        if number == self.kill_at:
            self.dead = True
            raise Killed

    def end(self, topic: str, partition: int, committed: bool) -> int:
        entries = self.topics[topic][partition]
        if not committed:
            return len(entries)
        return next((at for at, entry in enumerate(entries) if entry.state == "open"), len(entries))

    def resolve(self, transaction: Transaction, state: str) -> None:
        """Ends what is open: its records count or not, and a marker follows them."""
        for entry in transaction.entries:
            entry.state = state
        for topic, partition in transaction.partitions:
            self.topics[topic][partition].append(Entry(None, None, None, "marker"))
        if state == "committed":
            self.groups |= transaction.offsets
        owner = transaction.owner
        transaction.__dict__ = Transaction(owner).__dict__


def _bound(client: type, broker: MemoryBroker) -> Any:
    return lambda config, logger=None: client(broker, config)


def _error(code: int) -> KafkaException:
    return KafkaException(KafkaError(code, "in memory"))


@dataclass
class MemoryMessage:
    """A record, or an error, as a client gives it."""

    place: tuple[str, int, int]
    entry: Entry | None
    wrong: KafkaError | None = None

    def error(self) -> KafkaError | None:
        return self.wrong

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.place[2]

    def value(self) -> bytes | None:
        return None if self.entry is None else self.entry.value

    def key(self) -> bytes | None:
        return None if self.entry is None else self.entry.key

    def headers(self) -> list[tuple[str, bytes]] | None:
        return None if self.entry is None else self.entry.headers

    def timestamp(self) -> tuple[int, int]:
        return (1, 0)


class MemoryClient:
    """What every client may ask."""

    def __init__(self, broker: MemoryBroker, config: dict[str, Any]) -> None:
        self.broker, self.config = broker, config

    def list_topics(self, topic: str | None = None, timeout: float = 0) -> Any:
        made = {
            name: SimpleNamespace(partitions=dict.fromkeys(range(len(parts))), error=None)
            for name, parts in self.broker.topics.items()
        }
        if topic is not None and topic not in made:
            made[topic] = SimpleNamespace(partitions={}, error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return SimpleNamespace(topics=made, cluster_id=self.broker.servers)

    def describe_topics(self, topics: Any, request_timeout: float = 0) -> dict[str, Any]:
        """What an administrator learns of the one topic that is asked for: here, its id."""
        number = self.broker.ids[topics.topic_names[0]]
        own = SimpleNamespace(get_most_significant_bits=lambda: number, get_least_significant_bits=lambda: 0)
        return {topics.topic_names[0]: SimpleNamespace(result=lambda: SimpleNamespace(topic_id=own))}

    def create_topics(self, topics: list[Any]) -> dict[str, Any]:
        for one in topics:
            self.broker.make(one.topic, one.num_partitions)
        return {one.topic: SimpleNamespace(result=lambda timeout: None) for one in topics}

    def close(self) -> None:
        return


class MemoryConsumer(MemoryClient):
    """Reads what is committed, and says where partitions end."""

    def __init__(self, broker: MemoryBroker, config: dict[str, Any]) -> None:
        super().__init__(broker, config)
        self.positions: dict[tuple[str, int], int] = {}
        self.told: dict[tuple[str, int], int] = {}
        self.committed_only = config["isolation.level"] == "read_committed"

    def get_watermark_offsets(self, place: Any, timeout: float = 0) -> tuple[int, int]:
        low = self.broker.begins.get((place.topic, place.partition), 0)
        return low, self.broker.end(place.topic, place.partition, self.committed_only)

    def incremental_assign(self, places: list[Any]) -> None:
        self.positions |= {(place.topic, place.partition): place.offset for place in places}

    assign = incremental_assign

    def incremental_unassign(self, places: list[Any]) -> None:
        for place in places:
            del self.positions[place.topic, place.partition]

    def consume(self, number: int, timeout: float = 0) -> list[MemoryMessage]:
        return [message for place in list(self.positions) for message in self._of(place)]

    def _of(self, place: tuple[str, int]) -> Iterator[MemoryMessage]:
        entries, end = self.broker.topics[place[0]][place[1]], self.broker.end(*place, self.committed_only)
        taken = 0
        if self.positions[place] < self.broker.begins.get(place, 0):
            yield MemoryMessage((*place, 0), None, KafkaError(KafkaError._AUTO_OFFSET_RESET))
            return
        while (at := self.positions[place]) < end and taken < self.broker.poll:
            self.positions[place] += 1
            if entries[at].state in ("committed", "open"):
                taken += 1
                yield MemoryMessage((*place, at), entries[at])
        if self.positions[place] == end and self.told.get(place) != end:
            self.told[place] = end
            yield MemoryMessage((*place, end), None, KafkaError(KafkaError._PARTITION_EOF))

    def committed(self, places: list[Any], timeout: float = 0) -> list[Any]:
        group = self.config["group.id"]
        nothing = SimpleNamespace(offset=-1001, metadata=None)
        return [self.broker.groups.get((group, p.topic, p.partition), nothing) for p in places]

    def consumer_group_metadata(self) -> str:
        return str(self.config["group.id"])


class MemoryProducer(MemoryClient):
    """Writes in transactions; one whose id another has taken is fenced."""

    def init_transactions(self, timeout: float = 0) -> None:
        self.mine = self.broker.transactions.setdefault(self.config["transactional.id"], Transaction())
        if self.mine.open:
            self.broker.resolve(self.mine, "aborted")
        self.mine.owner += 1
        self.owner = self.mine.owner

    def _check(self) -> None:
        self.broker.called()
        if self.owner != self.mine.owner:
            raise _error(KafkaError._FENCED)

    def begin_transaction(self) -> None:
        self._check()
        self.mine.open = True

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None:
        self._check()
        parts = self.broker.topics[topic]
        if partition is None:
            self.broker.spread += 1
            partition = (self.broker.spread if key is None else zlib.crc32(key)) % len(parts)
        entry = Entry(key, value, headers, "open")
        parts[partition].append(entry)
        self.mine.entries.append(entry)
        self.mine.partitions.add((topic, partition))

    def send_offsets_to_transaction(self, places: list[Any], group: str, timeout: float = 0) -> None:
        self._check()
        for place in places:
            found = SimpleNamespace(offset=place.offset, metadata=place.metadata)
            self.mine.offsets[group, place.topic, place.partition] = found

    def commit_transaction(self, timeout: float = 0) -> None:
        self._check()
        self.broker.resolve(self.mine, "committed")
        self.broker.called()  # killed before the answer comes

    def abort_transaction(self, timeout: float = 0) -> None:
        if not self.broker.dead:
            self.broker.resolve(self.mine, "aborted")

    def poll(self, timeout: float = 0) -> int:
        return 0

    flush = poll
