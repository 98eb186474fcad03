"""The clock as a source of a query: its offset is the reading, so a restart reads the same time again.

It is there only when a policy asks for it (`heartbeat`, or `idle=`). A reading that is due makes an epoch,
whether rows have come or not. Between two readings lies one look without news, so that whoever waits for all
there is (`drain`) does not wait for ever; with ``trigger="available"`` the clock is read once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa

CLOCK = "clock"
Offset = dict[str, int]


class ClockSource(DataSource):
    """Readings of the clock, as packets for the stages that ask for them."""

    @classmethod
    def name(cls) -> str:
        return "caesura_clock"

    def streamReader(self, schema: Any) -> ClockReader:
        about = json.loads(self.options["about"])
        return ClockReader(about["period"], about["stages"], about["buckets"])


def about(period: int, stages: list[int], buckets: int) -> str:
    """What a clock must know, as an option of the source."""
    return json.dumps({"period": period, "stages": stages, "buckets": buckets})


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the clock when it is due."""

    def __init__(self, period: int, stages: list[int], buckets: int) -> None:
        self.period, self.stages, self.buckets = period, stages, buckets
        self._once: int | None = None
        self._rests = False

    def initialOffset(self) -> Offset:
        return {CLOCK: 0}

    def prepareForTriggerAvailableNow(self) -> None:
        self._once = _now()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        now = _now() if self._once is None else self._once
        rests, self._rests = self._rests, False
        if now - start[CLOCK] < self.period or rests:
            return start
        self._rests = self._once is None
        return {CLOCK: now}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [InputPartition(end[CLOCK])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from caesura.runtime.buckets.clock import clock_readings
        from caesura.spark.worker.bucket_keys import bucket_keys
        from caesura.spark.worker.job import as_batch

        packets = clock_readings(self.stages, self.buckets, int(partition.value))
        yield as_batch(packets, bucket_keys(self.buckets))


def _now() -> int:
    return time.time_ns() // 1000
