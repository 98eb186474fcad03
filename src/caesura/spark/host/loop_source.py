"""The loop log as a source of the query that writes it.

Its offset is the last epoch that sent anything back with the files that it sent, and the number of the last
feedback of a consumer, so an idle loop makes no epochs; with `availableNow` it goes on as long as
something circulates. A file that an offset names is read, or stops the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from caesura.spark.errors import errors_as_lines
from caesura.spark.loop_log.log import LoopLog

EPOCHS_TO_REREAD = 2
FILES = "files"
Offset = dict[str, Any]


class LoopSource(DataSource):
    """What a query sent back to its own earlier stages."""

    @classmethod
    def name(cls) -> str:
        return "caesura_loop"

    def streamReader(self, schema: Any) -> LoopReader:
        return LoopReader(self.options["path"])


class LoopReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the files of the epochs since the last one."""

    def __init__(self, place: str) -> None:
        self.place = place

    def initialOffset(self) -> Offset:
        return {"epoch": -1, "feedback": -1}

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing is fixed in advance: what circulates is drained."""

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        log = LoopLog(self.place)
        with errors_as_lines():
            fresh = log.sent(start["epoch"])
        if not fresh and log.last_feedback() <= start["feedback"]:
            return start
        last = max([start["epoch"], *(int(name.split("-")[0]) for name in fresh)])
        return {"epoch": last, "feedback": max(start["feedback"], log.last_feedback()), FILES: fresh}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        log = LoopLog(self.place)
        files = end.get(FILES, log.between(start["epoch"], end["epoch"]))
        return [
            InputPartition(name) for name in [*log.all_feedback(start["feedback"], end["feedback"]), *files]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with errors_as_lines():
            rows = LoopLog(self.place).read(partition.value)
        yield from rows.to_batches()

    def commit(self, end: Offset) -> None:
        """An epoch that a kill undoes reads its files again, so the last ones stay."""
        LoopLog(self.place).forget(end["epoch"] - EPOCHS_TO_REREAD, end["feedback"] - EPOCHS_TO_REREAD)
