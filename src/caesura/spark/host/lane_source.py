"""Any source as a Python data source of Spark: a task reads a lane between two offsets.

Its offset is where each lane ends, which the driver asks the source for; so an epoch that runs again reads
the same rows, and a lane that appears is named before it has any. With the ends it says whose they are: where
a topic or a table is another one than was read, or ends before where it was read to, the query stops.
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

from caesura.errors import StreamError
from caesura.spark.errors import errors_as_lines
from caesura.spark.worker.shipped import ShippedJob

if TYPE_CHECKING:
    import pyarrow as pa

    from caesura.io.sources.protocol import LaneBounds
    from caesura.io.sources.source import Source

LANES, PASSED = "lanes", "passed"
Offset = dict[str, dict[str, int]]


@dataclass
class LanePart(InputPartition):
    """The rows of a lane between two offsets."""

    lane: int
    start: int
    end: int


@dataclass(frozen=True)
class SourceText:
    """What messages say of a source, for a process that does not have it."""

    what: str
    put_back: str
    step: str = ""
    place: str = ""

    def lost(self, problem: str) -> StreamError:
        """Stops a query whose source is not what was read any more."""
        return StreamError(problem, remedy=self.put_back, step=self.step, place=self.place)


def lane_source(shipped: ShippedJob, source: Source) -> type[DataSource]:
    """The data source that reads one source of a query; it is registered under a name of its own."""
    reader, fingerprint = source.reader, source.fingerprint
    asked: bytes = dumps(reader.lane_bounds)  # type: ignore[no-untyped-call]
    text = SourceText(reader.describe(), reader.put_back, source.step, source.place)

    class LaneSource(DataSource):
        """A source of a query, lane by lane."""

        @classmethod
        def name(cls) -> str:
            return f"caesura_lanes_{fingerprint}"

        def streamReader(self, schema: Any) -> LaneReader:
            return LaneReader(shipped, fingerprint, asked, text)

    return LaneSource


class LaneReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the lanes of a source from where they were read to where they end now."""

    def __init__(self, shipped: ShippedJob, fingerprint: str, bounds: bytes, text: SourceText) -> None:
        self.shipped, self.fingerprint, self.text = shipped, fingerprint, text
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
        with errors_as_lines():
            self._refuse_other(start)
            self._refuse_shorter(start[LANES], end[LANES])
        return {**end, LANES: {**start[LANES], **end[LANES]}}

    def _latest(self) -> Offset:
        with errors_as_lines():
            ends = self.bounds.latest() or {}
            passed = dict(self.bounds.passed(ends))
            return {LANES: _named(ends), **({PASSED: passed} if passed else {})}

    def _refuse_other(self, offset: Offset) -> None:
        """Stops where an offset was taken down of another topic or table."""
        if why := self.bounds.displaced(offset.get(PASSED, {})):
            raise self.text.lost(f"{why}: its rows have other offsets.")

    def _refuse_shorter(self, start: Mapping[str, int], end: Mapping[str, int]) -> None:
        """Stops where a lane ends before where it was read to: an offset never goes back."""
        for lane, at in start.items():
            if at > (there := end.get(lane, 0)):
                raise self.text.lost(
                    f"lane {lane} of {self.text.what} is to be read on from {at}, and it ends at {there} "
                    "now: rows of it are gone."
                )

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with errors_as_lines():
            self._refuse_other(end)
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
