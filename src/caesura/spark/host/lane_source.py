"""Any source as a Python data source of Spark: a task reads a lane between two offsets.

Its offset is where each lane ends, which the driver asks the source for; so an epoch that runs again reads
the same rows, and a lane that appears is named before it has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from caesura.io.sources.protocol import Reader
from caesura.plan import Raw
from caesura.spark.errors import errors_as_lines
from caesura.spark.worker.job import PACKETS, Job
from caesura.spark.worker.reading import packets_of, reading

LANES = "lanes"
Offset = dict[str, dict[str, int]]


@dataclass
class LanePart(InputPartition):
    """The rows of a lane between two offsets."""

    lane: int
    start: int
    end: int


def lane_source(job: Job, fingerprint: str) -> type[DataSource]:
    """The data source that reads one source of a query; it is registered under a name of its own."""

    class LaneSource(DataSource):
        """A source of a query, lane by lane."""

        @classmethod
        def name(cls) -> str:
            return f"caesura_lanes_{fingerprint}"

        def schema(self) -> str:
            return PACKETS

        def streamReader(self, schema: Any) -> LaneReader:
            return LaneReader(job, fingerprint)

    return LaneSource


class LaneReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the lanes of a source from where they were read to where they end now."""

    def __init__(self, job: Job, fingerprint: str) -> None:
        self.job, self.fingerprint = job, fingerprint
        self._until: Offset | None = None

    @property
    def reader(self) -> Reader:
        return self.job.source(self.fingerprint).reader

    def initialOffset(self) -> Offset:
        return {LANES: {}}

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._latest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        end = self._latest() if self._until is None else self._until
        return {LANES: {**start[LANES], **end[LANES]}}

    def _latest(self) -> Offset:
        with errors_as_lines():
            return {LANES: _named(self.reader.latest() or {})}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with errors_as_lines():
            begins = {**_named(self.reader.earliest()), **start[LANES]}
        return [
            LanePart(int(lane), begins.get(lane, 0), stop)
            for lane, stop in end[LANES].items()
            if lane not in start[LANES] or stop > begins.get(lane, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LanePart)
        source, lane = self.job.source(self.fingerprint), partition.lane
        with reading(source):
            nothing = pa.RecordBatch.from_pylist([], source.reader.schema)
            yield self._packets(Raw(lane, partition.start, nothing))  # a lane appears before its first row
            for raw in source.read_between({lane: partition.start}, {lane: partition.end}):
                yield self._packets(raw)

    def _packets(self, raw: Raw) -> pa.RecordBatch:
        return packets_of(self.job, self.fingerprint, raw, (raw.offset, raw.batch.num_rows))


def _named(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(lane): at for lane, at in offsets.items()}
