"""A source without rows that tells the time of the clock, and ends where all others have."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from caesura.io.ingress.arrival import ingestion_time
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.source import Source
from caesura.plan import NOTHING_NOW, Duration, SourceBatch


class RowlessClock(Reader):
    """Has no rows, ever."""

    schema = pa.schema([("nothing", pa.int64())])
    key = "clock"
    follows = True
    rowless = True
    poll_seconds = 1.0
    streaming_remedy = "On Spark an epoch is the clock: leave clock= out, or run the query in this process."

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        while True:
            yield NOTHING_NOW

    def describe(self) -> str:
        return "clock"


def clock_source(every: Duration) -> Source:
    """The clock, read so often, as punctuation."""
    arrival = ingestion_time(every=every)
    return Source(reader=RowlessClock(), shape=arrival.shape({}), policy=arrival.policy, name="clock")
