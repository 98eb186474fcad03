"""A bucket of a stage as Spark calls it; where only its state is planned, nothing of the plan is imported."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from caesura.spark.worker.shipped import ShippedJob
from caesura.spark.worker.state_store import ChunkStore


class BucketProcessor(StatefulProcessor):
    """The buckets of one stage at work."""

    def __init__(self, shipped: ShippedJob, stage: int) -> None:
        self.shipped, self.stage = shipped, stage

    def init(self, handle: Any) -> None:
        self.store = ChunkStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        from caesura.spark.errors import as_line
        from caesura.spark.worker.bucket import run_bucket

        try:
            yield from run_bucket(self.shipped.job, self.stage, int(key[0]), rows, self.store)
        except Exception as error:
            raise as_line(error) from error

    def close(self) -> None:
        return None
