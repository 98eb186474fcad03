"""Any source as a Python data source of Spark: a task reads a lane between two offsets.

Its offset is where each lane ends, which the driver asks the source for; so an epoch that runs again reads
the same rows, and a lane that appears is named before it has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pickle import loads
from typing import TYPE_CHECKING, Any

from pyspark.cloudpickle import dumps
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from caesura.spark.errors import errors_as_lines
from caesura.spark.worker.shipped import ShippedJob

if TYPE_CHECKING:
    import pyarrow as pa

    from caesura.io.sources.protocol import LaneBounds

LANES = "lanes"
Offset = dict[str, dict[str, int]]


@dataclass
class LanePart(InputPartition):
    """The rows of a lane between two offsets."""

    lane: int
    start: int
    end: int


def lane_source(shipped: ShippedJob, fingerprint: str, bounds: LaneBounds) -> type[DataSource]:
    """The data source that reads one source of a query; it is registered under a name of its own."""
    asked: bytes = dumps(bounds)  # type: ignore[no-untyped-call]

    class LaneSource(DataSource):
        """A source of a query, lane by lane."""

        @classmethod
        def name(cls) -> str:
            return f"caesura_lanes_{fingerprint}"

        def streamReader(self, schema: Any) -> LaneReader:
            return LaneReader(shipped, fingerprint, asked)

    return LaneSource


class LaneReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the lanes of a source from where they were read to where they end now."""

    def __init__(self, shipped: ShippedJob, fingerprint: str, bounds: bytes) -> None:
        self.shipped, self.fingerprint = shipped, fingerprint
        self._bounds = bounds
        """What tells where lanes begin and end, pickled: tasks that read need it as little as the plan is
        needed where that is asked."""
        self._until: Offset | None = None

    @cached_property
    def bounds(self) -> LaneBounds:
        bounds: LaneBounds = loads(self._bounds)
        return bounds

    def initialOffset(self) -> Offset:
        return {LANES: {}}

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._latest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        end = self._latest() if self._until is None else self._until
        return {LANES: {**start[LANES], **end[LANES]}}

    def _latest(self) -> Offset:
        with errors_as_lines():
            return {LANES: _named(self.bounds.latest() or {})}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with errors_as_lines():
            begins = {**_named(self.bounds.earliest()), **start[LANES]}
        return [
            LanePart(int(lane), begins.get(lane, 0), stop)
            for lane, stop in end[LANES].items()
            if lane not in start[LANES] or stop > begins.get(lane, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from caesura.spark.worker.reading import read_lane

        assert isinstance(partition, LanePart)
        lane, start, end = partition.lane, partition.start, partition.end
        yield from read_lane(self.shipped.job, self.fingerprint, lane, start, end)


def _named(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(lane): at for lane, at in offsets.items()}
