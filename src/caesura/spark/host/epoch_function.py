"""What Spark calls with every epoch of a query: a value, so that it can go to a Spark Connect server.

In a classic session it is called in this process. Over Spark Connect it travels, as the sink in it does, and
is called in a process of the server: how the query stands then goes through a file at the checkpoint's place.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pickle import loads
from typing import TYPE_CHECKING

from pyspark.cloudpickle import dumps

from caesura.io.places.lease import refuse_deposed
from caesura.ops.held import shipped
from caesura.printable import printable
from caesura.runtime.metrics.saved_status import save_status
from caesura.runtime.metrics.spans import span
from caesura.runtime.metrics.status import log_epoch
from caesura.runtime.query.recorded_rows import RecordedRows
from caesura.spark.errors import as_line, explained
from caesura.spark.host.checkpoint import ENTERED, query_id, read_plan
from caesura.spark.host.entered_epochs import EnteredEpochs, take_down_epoch
from caesura.spark.host.part import SparkPart
from caesura.spark.host.source_log import check_files
from caesura.spark.host.stepping import collected
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.sinks.epochs import EpochWriter
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


LONGEST = 120
"""Characters of a description on Spark's pages."""


@dataclass
class EpochFunction:
    """Writes an epoch, once, as long as no other start has taken the checkpoint over."""

    writer: EpochWriter
    part: SparkPart
    job: Job | None
    """What is left out on a server: it is there for its tables."""
    fence: int = 0
    """The number of the lease; 0 for none."""
    loop: str = ""
    name: str = ""
    away: bool = False
    """Whether it works on a server, away from whoever has started the query."""
    steps: str = ""
    """The plan in a line, for Spark's pages."""
    recorded: RecordedRows | None = None
    """Where rows are kept as they come in, if they are."""
    entered: EnteredEpochs | None = None
    """Where is taken down what enters besides rows, if that is so from the first epoch on."""
    failures: list[Exception] = field(default_factory=list)
    """What went wrong in an epoch, as ours, where that can be asked for."""

    @staticmethod
    def of(writer: EpochWriter, part: SparkPart, job: Job, name: str, *, away: bool) -> EpochFunction:
        writer.expects = partial(_last, part)
        kept = (part.becomes or read_plan(part.checkpoint) or {}).get(ENTERED)
        entered = EnteredEpochs(part.folder) if kept else None
        own = (job.fence, job.loop, name, away, _steps(job), job.recorded)
        return EpochFunction(writer, part, job, *own, entered)

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            self._write(batch, number)
        except Exception as error:
            self.failures.append(explained(error, number))
            if self.away:
                raise as_line(self.failures[-1]) from error
            raise

    def _write(self, batch: DataFrame, number: int) -> None:
        checkpoint, epoch = self.part.checkpoint, self.part.first + number
        check_files(self.part.folder, number)
        if self.fence:
            refuse_deposed(checkpoint, self.fence)
        if self.entered is not None:
            take_down_epoch(self.entered, self.part.folder, number, epoch, self.loop)
        began = time.monotonic()
        if not self.writer.attached:
            self.writer.attach(query_id(self.part.folder))
        if not self.away:
            about = f"{self.name or 'caesura'}, epoch {epoch}: {self.steps}"
            batch.sparkSession.sparkContext.setJobDescription(about)
        with span("epoch", query=self.name, epoch=epoch) as told:
            if number == self.part.replayed and (change := self.part.rebuilt) is not None:
                self.writer.correct(epoch, batch, change, self.part.switch, collected(self.part))
            else:
                self.writer.write(epoch, batch)
            board = self.writer.sink.board
            told.tell_status(board.status)
        if self.loop:
            LoopLog(self.loop).note_sent()
        if self.recorded is not None:
            self.recorded.sweep()
        seconds = time.monotonic() - began
        save_status(checkpoint, board, epoch, seconds)
        log_epoch(board.status(), epoch, seconds, self.name)

    def __getstate__(self) -> dict[str, bytes]:
        tables = {} if self.job is None else self.job.tables
        with shipped(tables):
            return {"epochs": dumps({**vars(self), "job": None})}  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, bytes]) -> None:
        vars(self).update(loads(state["epochs"]))


def _steps(job: Job) -> str:
    """The steps of a plan in a line, a stage behind a bar; of many the first."""
    stages = [", ".join(node.step for node in stage.nodes) for stage in job.stages.stages]
    text = printable(" | ".join(filter(None, stages)))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _last(part: SparkPart) -> int:
    return part.last
