"""A consumer at work: which partitions of a topic it reads, from where, and when it has read them.

Offsets have holes (compaction, the markers of transactions), so a partition is read when its position has
reached its end, which the broker tells; records are never counted for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import methodcaller
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from caesura.io.kafka.cluster import Cluster, TopicBounds, lost, refuse_ahead, refuse_gap, refuse_made_anew
from caesura.io.kafka.passing import passes
from caesura.io.kafka.promised import found_promises, with_promises
from caesura.io.kafka.records import RecordForm, lane_rows
from caesura.plan import NOTHING_NOW, Raw, SourceBatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

RECORDS = 50_000
"""How many records are taken at a time, if they are there."""
REFRESH_SECONDS = 5.0
"""After how long it is asked whether the topic has more partitions."""
PROBE_SECONDS = 1.0
ERROR, OFFSET, PARTITION = methodcaller("error"), methodcaller("offset"), methodcaller("partition")
"""What a message is asked, without a line of Python for each."""
OnGap = Literal["stop", "skip"]
Begin = Literal["earliest", "latest"]


class Polling:
    """Reads partitions of a topic, each from a position on."""

    def __init__(
        self,
        cluster: Cluster,
        form: RecordForm,
        *,
        begin: Begin,
        on_gap: OnGap,
        passed: Mapping[str, int] | None = None,
    ) -> None:
        self._cluster, self._form, self._begin, self._on_gap = cluster, form, begin, on_gap
        self._passed = passed or {}
        """Which topic it is."""
        self._nothing = pa.RecordBatch.from_pylist([], form.schema)
        self.positions: dict[int, int] = {}
        self._ends: dict[int, int] | None = None
        """Where each partition is read to; None where reading goes on."""
        self._skipped: dict[int, str] = {}
        """What was lost of partitions, until it is told with their next rows."""
        self._trouble: KafkaError | None = None
        self._since = 0.0
        self._waiting: dict[int, float] = {}
        """Partitions that no broker gives records of now: since when."""
        self._refreshed = time.monotonic()

    # -- reading ------------------------------------------------------------------------------------------

    def batches(
        self, offsets: Mapping[int, int], *, ends: Mapping[int, int] | None = None, wait: float = 0.0
    ) -> Iterator[SourceBatch]:
        """The records behind some offsets, and all that come; with ``ends``, up to those.

        ``wait`` is for how many seconds it waits before it says that there is nothing now.
        """
        consumer = self._cluster.consumer(self._on_error, bounded=ends is not None)
        try:
            self._ends = None if ends is None else dict(ends)
            lanes = self._cluster.partitions(self._form.topic) if ends is None else list(ends)
            yield from self._join(consumer, lanes, offsets)
            while not self._read_to_end():
                raws = list(self._polled(consumer, wait))
                yield from raws
                if not raws:
                    self._check()
                    yield NOTHING_NOW
                if ends is None and time.monotonic() - self._refreshed >= REFRESH_SECONDS:
                    yield from self._join(consumer, self._there(), {})
        finally:
            consumer.close()

    def _read_to_end(self) -> bool:
        ends = self._ends
        return ends is not None and all(self.positions[lane] >= end for lane, end in ends.items())

    def _there(self) -> list[int]:
        """The partitions that there are now; those that are known where nobody answers."""
        self._refreshed = time.monotonic()
        if self._trouble is not None:
            return list(self.positions)
        refuse_made_anew(TopicBounds(self._cluster, self._form.topic), self._passed)
        return self._cluster.partitions(self._form.topic)

    def _join(self, consumer: Consumer, lanes: Iterable[int], offsets: Mapping[int, int]) -> Iterator[Raw]:
        """Begins to read partitions; each gives an empty batch first, so that it holds the others up."""
        from confluent_kafka import TopicPartition

        added = [lane for lane in lanes if lane not in self.positions]
        for lane in added:
            named = offsets.get(lane)
            if named is None:
                low, high = self._cluster.watermarks(self._form.topic, lane)
                late_comer = bool(self.positions.keys() - added)
                named = low if self._begin == "earliest" or late_comer else high
            self.positions[lane] = named
        topic = self._form.topic
        if added:
            consumer.incremental_assign([TopicPartition(topic, lane, self.positions[lane]) for lane in added])
        for lane in added:
            if lane not in offsets:
                yield Raw(lane, self.positions[lane], self._nothing)

    def _polled(self, consumer: Consumer, seconds: float) -> Iterator[Raw]:
        """What is there now, partition by partition."""
        messages = consumer.consume(self._wanted(), seconds)
        ended: dict[int, int] = {}
        errors = list(map(ERROR, messages))
        if set(map(type, errors)) - {NoneType}:  # an error may compare equal to None
            notices = [message for message, error in zip(messages, errors, strict=True) if error is not None]
            messages = [message for message, error in zip(messages, errors, strict=True) if error is None]
            for message in notices:
                self._take_notice(consumer, message, ended)
        if messages:
            self._trouble = None
            yield from self._rows(messages, ended)
        for lane, offset in ended.items():
            yield from self._hole(lane, offset)

    def _wanted(self) -> int:
        """How many records are asked for: no more than there can be, for a client waits for all of them."""
        if self._ends is None:
            return RECORDS
        left = sum(max(0, end - self.positions[lane]) for lane, end in self._ends.items())
        return max(1, min(RECORDS, left))

    def _rows(self, messages: list[Message], ended: dict[int, int]) -> Iterator[Raw]:
        count = len(messages)
        offsets = np.fromiter(map(OFFSET, messages), np.int64, count)
        lanes = np.fromiter(map(PARTITION, messages), np.int64, count)
        if self._ends is not None:
            limits = np.array([self._ends.get(lane, 0) for lane in range(int(lanes.max()) + 1)])
            inside = offsets < limits[lanes]
            if not inside.all():
                for lane in np.unique(lanes[~inside]).tolist():
                    ended[lane] = max(ended.get(lane, 0), self._ends.get(lane, 0))
                messages = [messages[at] for at in np.flatnonzero(inside).tolist()]
                offsets, lanes = offsets[inside], lanes[inside]
        if not messages:
            return
        ends = {lane: int(offsets[lanes == lane].max()) + 1 for lane in np.unique(lanes).tolist()}
        given = found_promises(messages) if self._form.punctuated else {}
        promises = [(int(lanes[at]), int(offsets[at]), promise) for at, promise in given.items()]
        if given:
            rest = np.setdiff1d(np.arange(len(messages)), list(given), assume_unique=True)
            messages = [messages[at] for at in rest.tolist()]
            offsets, lanes = offsets[rest], lanes[rest]
        rows = self._form.rows(messages, offsets, lanes)
        for lane, end in ends.items():
            mine = np.flatnonzero(lanes == lane)
            raw = lane_rows(self._form, rows, lane, mine, offsets, (self.positions[lane], end))
            own = [(offset, promise) for at, offset, promise in promises if at == lane]
            yield self._moved(with_promises(raw, own) if own else raw)

    def _hole(self, lane: int, offset: int) -> Iterator[Raw]:
        """Offsets behind the last record that stand for none."""
        begin = self.positions[lane]
        if offset > begin:
            yield self._moved(Raw(lane, begin, self._nothing, gap=offset - begin))

    def _moved(self, raw: Raw) -> Raw:
        """Notes how far a partition is read; what was lost of it is told with its rows."""
        self.positions[raw.lane] = raw.end
        self._waiting.pop(raw.lane, None)
        missing = self._skipped.pop(raw.lane, None)
        if missing is None:
            return raw
        return replace(raw, refused=((raw.offset, missing), *raw.refused))

    # -- what goes wrong ----------------------------------------------------------------------------------

    def _on_error(self, error: KafkaError) -> None:
        """Takes what the client says of its brokers, from within a poll."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._ALL_BROKERS_DOWN or error.fatal():
            if self._trouble is None:
                self._since = time.monotonic()
            self._trouble = error

    def _check(self) -> None:
        """Stops where brokers have been away for too long, or a partition has had none for as long."""
        for lane, since in list(self._waiting.items()):
            if time.monotonic() - since >= self._cluster.seconds:
                self._cluster.watermarks(self._form.topic, lane, PROBE_SECONDS)  # raises where it has none
                del self._waiting[lane]
        if self._trouble is None:
            return
        if self._trouble.fatal():
            raise self._cluster.meaning(self._trouble, self._form.topic)
        away = time.monotonic() - self._since
        if away < self._cluster.seconds:
            return
        self._cluster.partitions(self._form.topic, seconds=PROBE_SECONDS)  # raises where nobody answers
        self._trouble = None

    def _take_notice(self, consumer: Consumer, message: Any, ended: dict[int, int]) -> None:
        """Takes a message that is no record: an end, or something wrong with a partition."""
        from confluent_kafka import KafkaError

        error, lane = message.error(), message.partition()
        if error.code() == KafkaError._PARTITION_EOF:
            self._trouble = None
            self._waiting.pop(lane, None)
            ended[lane] = message.offset()
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._out_of_range(consumer, lane)
        elif passes(error):
            self._waiting.setdefault(lane, time.monotonic())
        else:
            raise self._cluster.meaning(error, self._form.topic)

    def _out_of_range(self, consumer: Consumer, lane: int) -> None:
        from confluent_kafka import TopicPartition

        topic, position = self._form.topic, self.positions[lane]
        low, high = self._cluster.watermarks(topic, lane)
        if position > high:
            refuse_ahead(topic, lane, position, high)
        if position < low:
            if self._on_gap == "stop":
                refuse_gap(topic, lane, position, low)
            self._skipped[lane] = lost(topic, lane, position, low)
        consumer.incremental_unassign([TopicPartition(topic, lane)])
        consumer.incremental_assign([TopicPartition(topic, lane, max(low, position))])
