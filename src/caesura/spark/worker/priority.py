"""Files that hold desired rows are read in earlier epochs than others, where no row becomes late by it.

Spark hands files to tasks in its own order, and no task knows of the others. So while rows of a folder are
desired, new files are not read at once: their names go through the loop log, and in the next epoch one task
has all that wait before it. It reads the wanted ones first, as many as an epoch takes, by the rule that the
embedded source has for row groups: a file is taken before others only if all times of those files lie within
the lag. The others wait; while Spark names files, some epochs long, since wanted ones may be to come.

Law: of two files of which the later is read first, neither has a row that the other makes late; so the same
rows enter, and the same are refused.

What a task decides depends on notes of earlier epochs and on the loop log alone, so an epoch that runs again
decides the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from caesura.io.sources.protocol import Reader
from caesura.io.sources.pruning import Pruning, ValueRange
from caesura.io.sources.source import Source
from caesura.punctuation import Pattern
from caesura.runtime.buckets.source_pruning import over_source
from caesura.runtime.buckets.stage0 import root_of
from caesura.runtime.packets.packet import Packet, decode
from caesura.spark.loop_log.log import SUFFIX, LoopLog
from caesura.spark.loop_log.records import ByLabel, PriorityRows
from caesura.spark.worker.admission import DEFERRED, EVERYTHING, EpochLimits
from caesura.spark.worker.job import Job, epoch_here

PATIENCE = 8
"""So many epochs a file waits for wanted ones that Spark may still name."""


@dataclass(frozen=True)
class WaitingFile:
    """A file that waits: when Spark named it, and what its statistics say."""

    epoch: int
    path: str
    spans: Mapping[str, ValueRange]
    rows: int = 0
    bytes: int = 0


def note_wanted(job: Job, stage: int, bucket: int, wanted: ByLabel) -> None:
    """Writes down what a bucket wants first of what enters there, if that has changed."""
    log, name = LoopLog(job.loop), PriorityRows.name(stage, bucket)
    before = log.load(name, PriorityRows) or PriorityRows()
    now = before.at(epoch_here(), wanted)
    if now != before:
        log.save(name, now)


def wanted_of(job: Job, source: Source) -> list[Pattern]:
    """The rows of a source that some bucket wanted first, as of the epoch before."""
    log, epoch = LoopLog(job.loop), epoch_here()
    found: dict[Pattern, None] = {}
    for stage in job.stages.stages[1:]:
        arrivals = [e for e in stage.arrivals if e.source_stage == 0]
        mine = {e.label: e for e in arrivals if root_of(e.producer, job.stages) is source}
        for bucket in range(job.buckets if mine else 0):
            record = log.load(PriorityRows.name(stage.number, bucket), PriorityRows) or PriorityRows()
            for label, patterns in record.before(epoch).items():
                for pattern in patterns if label in mine else ():
                    wide = over_source(mine[label], source, pattern, "wide")
                    found.update({} if wide is None else {wide: None})
    return list(found)


def reorders(source: Source) -> bool:
    """Whether the order of a source's files may change on account of a priority."""
    reader = source.reader
    pruned = reader.spark_form == "files" and reader.prunes
    return pruned and source.permutable and source.properties.points and source.late == "reject"


def wait(job: Job, source: Source, pruning: Pruning | None, limits: EpochLimits) -> bool:
    """Whether new files of a source wait for the next epoch: some are wanted first, or wait already."""
    if not job.priorities or not job.loop or not reorders(source):
        return False
    if pruning is not None and pruning.wanted():
        return True
    return limits != EVERYTHING and any(held["source"] == source.fingerprint for held in _in_line(job))


def _in_line(job: Job) -> list[dict[str, Any]]:
    """The files that wait since the epoch before."""
    log, name = LoopLog(job.loop), f"{epoch_here() - 1:012d}-0000{SUFFIX}"
    if name not in log.names():
        return []
    rows = log.read(name).select(["label", "data"]).to_pylist()
    headers = [decode(row["data"])[0] for row in rows if row["label"] == DEFERRED]
    return [header for header in headers if "epoch" in header]


def waits(fingerprint: str, path: str, epoch: int) -> Packet:
    """The name of a file on its way to the next epoch."""
    header = {"source": fingerprint, "path": path, "epoch": epoch}
    return Packet(~0, DEFERRED, 0, f"{fingerprint}:{path}", 0, header)


def lined_up(source: Source, headers: Sequence[Mapping[str, Any]]) -> list[WaitingFile]:
    """The files that wait, in the order in which Spark named them."""
    reader, time = source.reader, source.shape.time
    named = sorted({(int(h["epoch"]), str(h["path"])) for h in headers})
    return [WaitingFile(epoch, path, *_known(reader, path, time)) for epoch, path in named]


@lru_cache(maxsize=4096)
def _known(reader: Reader, path: str, time: str) -> tuple[Mapping[str, ValueRange], int, int]:
    return reader.as_files.spans(path, time)


def choose(
    files: Sequence[WaitingFile], pruning: Pruning | None, limits: EpochLimits, now: int
) -> tuple[list[WaitingFile], list[WaitingFile]]:
    """Which of the files that wait are read in this epoch, and which wait on.

    As many as an epoch takes, wanted ones first. Others wait as long as Spark still names files, for some
    epochs, since wanted ones may be among those. Where an epoch takes any number, the wanted ones are read,
    or all if none is.
    """
    left, size = list(files), 0
    chosen: list[WaitingFile] = []
    naming = any(file.epoch >= now - 1 for file in files)
    while left and not _full(limits, len(chosen), size):
        place = 0
        if pruning is not None and pruning.wanted():
            place = pruning.first([file.spans for file in left])
            if not pruning.meets(left[place].spans):
                more = any(pruning.meets(file.spans) for file in left)
                if limits == EVERYTHING and not more and not chosen:
                    return left, []
                if limits == EVERYTHING and any(pruning.meets(file.spans) for file in chosen):
                    break
                if limits != EVERYTHING and not more and naming and left[0].epoch > now - PATIENCE:
                    break
        file = left.pop(place)
        if place and pruning is not None:
            pruning.moved += file.rows
        chosen.append(file)
        size += file.bytes
    return chosen, left


def _full(limits: EpochLimits, files: int, size: int) -> bool:
    if files == 0:
        return False
    enough = limits.files is not None and files >= limits.files
    return enough or (limits.bytes is not None and size >= limits.bytes)
