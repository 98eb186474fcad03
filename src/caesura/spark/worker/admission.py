"""No source is read further ahead of the slowest, in event time, than a bound: a backfill must not join
hours against minutes.

After every epoch the gates note how far each source has come. A task that is handed a file which begins
beyond the bound does not read it: the file's name goes into the loop log and comes back in the next
epoch. What a task decides depends on notes of earlier epochs alone, so an epoch that runs again decides
the same. A file waits only as long as somebody else moves: an idle source holds nobody up.
"""

from __future__ import annotations

from dataclasses import dataclass

from caesura.errors import PlanError
from caesura.io.sources.protocol import ListedFiles
from caesura.punctuation import MIN_TIME
from caesura.runtime.packets.packet import Packet
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import SourceProgress
from caesura.spark.worker.job import Job, epoch_here


@dataclass(frozen=True)
class EpochLimits:
    """How much of each folder an epoch takes: so many files, or files of so many bytes; at least one."""

    files: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        if self.files is not None and self.bytes is not None:
            raise PlanError(
                "an epoch is bounded by files_per_epoch and by bytes_per_epoch.", remedy="Give one of them."
            )
        for name, value in (("files_per_epoch", self.files), ("bytes_per_epoch", self.bytes)):
            if value is not None and value < 1:
                raise PlanError(f"{name} is {value}.", remedy="Give 1 or more, or leave it out.")

    def options(self) -> dict[str, int | str]:
        """The same for Spark's file source."""
        given = {"maxFilesPerTrigger": self.files, "maxBytesPerTrigger": self.bytes, "maxFileAge": ANY_AGE}
        return {name: value for name, value in given.items() if value is not None}


EVERYTHING = EpochLimits()
ANY_AGE = "36500d"
"""Spark passes over files that are a week older than the newest, without a word."""
DEFERRED = "held"
"""The label of packets that name a file which was not read yet."""
EPOCHS_REMEMBERED = 4


def note_progress(job: Job, stage: int, reached: dict[str, int]) -> None:
    """Writes down how far the sources that enter at a stage have come."""
    epoch, log = epoch_here(), LoopLog(job.loop)
    log.save(SourceProgress.name(epoch, stage), SourceProgress(reached))
    log.remove(SourceProgress.name(epoch - EPOCHS_REMEMBERED, stage))


def time_limit(job: Job, fingerprint: str) -> int | None:
    """The time up to which a source is read in this epoch; None where nothing holds it back."""
    if job.ahead is None:
        return None
    epoch = epoch_here()
    last, before = (_others(job, epoch - back, fingerprint) for back in (1, 2))
    moving = {name for name, at in last.items() if at > max(MIN_TIME, before.get(name, MIN_TIME))}
    slowest = min((last[name] for name in moving), default=None)
    return None if slowest is None else slowest + job.ahead


def admitted(reader: ListedFiles, path: str, time: str, limit: int | None) -> bool:
    """Whether a file begins within what is read in this epoch."""
    if limit is None or not time:  # rows that the clock times are never ahead of it
        return True
    begins = reader.first_time(path, time)
    return begins is None or begins <= limit


def deferred(fingerprint: str, path: str) -> Packet:
    """The name of a file, on its way to the next epoch."""
    return Packet(~0, DEFERRED, 0, f"{fingerprint}:{path}", 0, {"source": fingerprint, "path": path})


def _others(job: Job, epoch: int, fingerprint: str) -> dict[str, int]:
    """How far the other sources had come after an epoch."""
    log = LoopLog(job.loop)
    names = [SourceProgress.name(epoch, stage) for stage in range(1, len(job.stages.stages))]
    records = [record for name in names if (record := log.load(name, SourceProgress)) is not None]
    return {name: at for record in records for name, at in record.reached.items() if name != fingerprint}
