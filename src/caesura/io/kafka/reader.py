"""A topic of Kafka as a source: its partitions are lanes, its offsets the source's offsets.

Nothing is committed to the broker: how far a query has read is saved with its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Literal

from caesura.errors import StreamError
from caesura.io.kafka.cluster import GIVE_TOPIC, SKIP, Cluster, TopicBounds
from caesura.io.kafka.polling import Begin, OnGap, Polling
from caesura.io.kafka.records import RecordForm
from caesura.io.sources.protocol import Offsets, Reader
from caesura.plan import Raw, SourceBatch

Until = Literal["latest"]
WAIT_SECONDS = 0.1
"""How long one who has nothing else to do waits for records at a time."""


class KafkaReader(Reader):
    """Reads a topic, and waits for more; or, with ``until``, ends where it ends when it is begun."""

    spark_form = "lanes"
    poll_seconds = 0.005
    put_back, gap_remedy = GIVE_TOPIC, SKIP

    def __init__(
        self, cluster: Cluster, form: RecordForm, *, begin: Begin, until: Until | None, on_gap: OnGap
    ) -> None:
        form.check()
        self.cluster, self.form = cluster, form
        self.begin, self.until, self.on_gap = begin, until, on_gap
        self.passes_gaps = on_gap == "skip"
        self.punctuates = form.punctuated
        self.lanes = len(cluster.partitions(form.topic))
        self._cluster_name = cluster.name()
        self._passed = self.lane_bounds.passed({})
        self._describe_form()

    def _describe_form(self) -> None:
        self.schema = self.form.schema
        self.key = f"kafka:{self._cluster_name}:{self.form.text}:{self.begin}:{self.until}"

    @property
    def finished(self) -> bool:
        """A topic with promises in it says itself when no more comes."""
        return not self.punctuates

    def lane_name(self, lane: int) -> str:
        return f"partition {lane} of topic '{self.form.topic}'"

    def describe(self) -> str:
        return f"Kafka topic '{self.form.topic}'"

    def narrowed(self, columns: Sequence[str]) -> KafkaReader:
        other = copy(self)
        other.form = replace(self.form, columns=tuple(columns), value=self.form.value.narrowed(columns))
        other._describe_form()
        return other

    def earliest(self) -> Offsets:
        """Where each partition begins."""
        return self.lane_bounds.earliest()

    def latest(self) -> Offsets:
        """Where what is committed of each partition ends."""
        return self.lane_bounds.latest()

    @property
    def lane_bounds(self) -> TopicBounds:
        return TopicBounds(self.cluster, self.form.topic)

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        return self._passed

    def displaced(self, passed: Mapping[str, int]) -> str:
        return self.lane_bounds.displaced(passed)

    def cannot_replay(self) -> str:
        """Retention and compaction take records away; the first leaves all from some offsets on."""
        begins = self.earliest()
        cut = [lane for lane, begin in begins.items() if begin]
        if cut:
            left = ", ".join(f"{begin} of partition {lane}" for lane, begin in sorted(begins.items()))
            lost = f"{self.lane_name(cut[0])} has lost its first records"
            return f"{lost}; the earliest that can be read again are those from offset {left} on"
        topic = self.form.topic
        try:
            compacted = "compact" in self.cluster.cleanup_policy(topic)
        except StreamError as error:
            return f"whether topic '{topic}' is compacted is not known: {error.problem.rstrip('.')}"
        return (
            f"topic '{topic}' is compacted: of a key only the last record is sure to stay"
            if compacted
            else ""
        )

    def _polling(self) -> Polling:
        return Polling(self.cluster, self.form, begin=self.begin, on_gap=self.on_gap, passed=self._passed)

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        return self._polling().batches(offsets, ends=None if self.until is None else self.latest())

    def read_between(self, start: Offsets, end: Offsets | None = None) -> Iterator[Raw]:
        ends = self.latest() if end is None else end
        named = {lane: at for lane, at in ends.items() if at > start.get(lane, 0)}
        for raw in self._polling().batches(start, ends=named, wait=WAIT_SECONDS):
            if isinstance(raw, Raw) and (raw.batch.num_rows or raw.gap or raw.refused):
                yield raw
