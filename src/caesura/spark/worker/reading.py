"""Tasks that read a source: its rows become packets, and files wait for an epoch that takes them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caesura.io.sources.protocol import ListedFiles
from caesura.io.sources.pruning import Pruning
from caesura.io.sources.source import Source
from caesura.plan import Raw
from caesura.runtime.buckets.labels import UNREAD
from caesura.runtime.buckets.source_pruning import unneeded_rows
from caesura.runtime.packets.packet import Packet, decode
from caesura.spark.errors import named_errors
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import ByLabel, IgnoredRows
from caesura.spark.worker.admission import DEFERRED, EpochLimits, admitted, deferred, time_limit
from caesura.spark.worker.job import Job, as_batch, epoch_here
from caesura.spark.worker.live import exempt_from_collection, mapper
from caesura.spark.worker.priority import choose, lined_up, reorders, wait, waits, wanted_of

CHUNK_ROWS = 1 << 20
"""How many rows are read and sent on at a time, of wide ones fewer: a task does nothing else with them."""


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """A task that reads a source."""
    exempt_from_collection()
    with named_errors(source):
        yield


def packets_of(job: Job, fingerprint: str, raw: Raw, order: tuple[Any, ...]) -> pa.RecordBatch:
    """The packets that a chunk makes, as a batch of rows for Spark."""
    if job.recorded is not None and raw.batch.num_rows:
        job.recorded.write(epoch_here(), f"{fingerprint} {order}", [(fingerprint, raw)])
    with named_errors(job.source(fingerprint)):
        rows = [p for whole in mapper(job, fingerprint).map(raw, order) for p in whole.split()]
    return as_batch(rows, job.keys)


def unread_report(job: Job, fingerprint: str, pruning: Pruning) -> pa.RecordBatch:
    """What was not read, or before others, on its way to whoever watches the query."""
    source = job.source(fingerprint)
    counts = {"source": source.step, "rows": pruning.rows, "bytes": pruning.bytes, "groups": pruning.groups}
    counts |= {"first": pruning.moved}
    return as_batch([Packet(0, UNREAD, 0, uuid.uuid4().hex, 0, counts)], job.keys)


def pruning_of(job: Job, source: Source) -> Pruning | None:
    """What a source need not read in this epoch; None where it reads everything."""
    if not job.loop:
        return None
    log = LoopLog(job.loop)
    ignored: dict[tuple[int, int], ByLabel] = {}
    for stage in range(1, len(job.stages.stages)):
        for bucket in range(job.buckets):
            record = log.load(IgnoredRows.name(stage, bucket), IgnoredRows)
            if record is not None and record.readers == job.stages.readers:
                ignored[stage, bucket] = record.patterns
    patterns = unneeded_rows(job.stages, source, ignored, job.buckets)
    wanted = wanted_of(job, source) if job.priorities and reorders(source) else []
    return source.pruned_by(lambda: patterns, lambda: wanted) if patterns or wanted else None


def resume(job: Job, batches: Iterator[pa.RecordBatch], limits: EpochLimits) -> Iterator[pa.RecordBatch]:
    """What came back through the loop log; of files that waited the rows, as many as an epoch takes."""
    files: list[dict[str, Any]] = []
    for batch in batches:
        waited = pc.equal(batch.column("label"), DEFERRED)
        yield batch.filter(pc.invert(waited))
        files += [decode(data)[0] for data in batch.filter(waited).column("data").to_pylist()]
    for source in sorted({file["source"] for file in files}):
        mine = [file for file in files if file["source"] == source]
        paths = sorted(file["path"] for file in mine if "epoch" not in file)
        yield from read_files(job, source, ((epoch_here(), p) for p in paths), limits, files=limits.files)
        in_line = [file for file in mine if "epoch" in file]
        if in_line:
            yield from read_waiting(job, source, in_line, limits)


def read_files(
    job: Job,
    fingerprint: str,
    named: Iterable[tuple[int, str]],
    limits: EpochLimits,
    *,
    files: int | None = None,
    new: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The packets of files, named in an epoch; of those that have to wait only that they do.

    They lie too far ahead, are too many, or stand in line while others are wanted first.
    """
    source = job.source(fingerprint)
    with reading(source):
        chunks, pruning = _chunks(job, fingerprint), pruning_of(job, source)
        bound, done = time_limit(job, fingerprint), 0
        in_line = new and wait(job, source, pruning, limits)
        for epoch, path in named:
            if in_line:
                yield as_batch([waits(fingerprint, path, epoch)], job.keys)
            elif done == files or not admitted(chunks, path, source.shape.time, bound):
                yield as_batch([deferred(fingerprint, path)], job.keys)
            else:
                done += 1
                yield from _packets(job, fingerprint, chunks, pruning, epoch, path)
        if pruning is not None and (pruning.rows or pruning.moved):
            yield unread_report(job, fingerprint, pruning)


def read_lane(job: Job, fingerprint: str, lane: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The packets of a lane between two offsets; it appears before its first row."""
    source = job.source(fingerprint)
    with reading(source):
        nothing = pa.RecordBatch.from_pylist([], source.reader.schema)
        first = Raw(lane, start, nothing)
        for raw in chain([first], source.read_between({lane: start}, {lane: end})):
            yield packets_of(job, fingerprint, raw, (raw.offset, raw.batch.num_rows))


def read_waiting(
    job: Job, fingerprint: str, headers: list[dict[str, Any]], limits: EpochLimits
) -> Iterator[pa.RecordBatch]:
    """The packets of those files that wait which are read now; the names of the others."""
    source = job.source(fingerprint)
    with reading(source):
        chunks, pruning = _chunks(job, fingerprint), pruning_of(job, source)
        bound, time = time_limit(job, fingerprint), source.shape.time
        files = lined_up(source, headers)
        ready = list(takewhile(lambda file: admitted(chunks, file.path, time, bound), files))
        chosen, left = choose(ready, pruning, limits, epoch_here())
        left += files[len(ready) :]
        for file in chosen:
            yield from _packets(job, fingerprint, chunks, pruning, file.epoch, file.path)
        if left:
            packets = [waits(fingerprint, file.path, file.epoch) for file in left]
            yield as_batch(packets, job.keys)
        if pruning is not None and (pruning.rows or pruning.moved):
            yield unread_report(job, fingerprint, pruning)


def _chunks(job: Job, fingerprint: str) -> ListedFiles:
    """A source's files, in parts as large as a task takes."""
    return mapper(job, fingerprint).source.reader.batched(CHUNK_ROWS).as_files


def _packets(
    job: Job, fingerprint: str, chunks: ListedFiles, pruning: Pruning | None, epoch: int, path: str
) -> Iterator[pa.RecordBatch]:
    for number, raw in enumerate(chunks.read_file(path, pruning)):
        yield packets_of(job, fingerprint, raw, (epoch, path, number))
