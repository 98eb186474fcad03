"""A stretch of what a query on Spark has read, read again in this process: the last rows before where it is.

How far it was read stands in Spark's own logs of the checkpoint: the last offsets of each lane, or the files
of the last epochs. The sources are read by our own readers, so nothing is asked of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from caesura.io.places import Place
from caesura.io.sources.source import Source
from caesura.plan import Node, Raw
from caesura.runtime.query.read_again import check_rows, unrepeatable
from caesura.runtime.query.recording import Recording
from caesura.spark.host.lane_source import LANES
from caesura.spark.host.part import SparkPart, of_ours
from caesura.spark.host.source_log import files_between, last_batch, last_offsets, offsets_of
from caesura.spark.worker.job import Job

EPOCHS = 64
"""The files of so many of the last epochs are looked at."""


def read_again_on_spark(part: SparkPart, job: Job, node: Node, rows: int) -> Recording:
    """The last rows of every lane of a plan's sources, once more; one whose rows cannot be is refused."""
    if job.recorded is not None:
        return job.recorded.recording(node)
    made = Recording(node, check_rows(rows))
    wanted = made.sources
    epoch = last_offsets(part.folder)
    entries = [entry for entry in offsets_of(part.folder, epoch) if not of_ours(entry)]
    for place, source in enumerate(job.stages.sources):
        if source.fingerprint in wanted and isinstance(source, Source):
            entry = entries[place] if place < len(entries) else "-"
            made.raws[source.fingerprint] = _again(part.folder, place, source, entry, rows)
    return made


def _again(folder: Place, place: int, source: Source, entry: str, rows: int) -> list[Raw]:
    reader = source.reader
    if reader.spark_form == "frame" or (why := reader.cannot_replay()):
        raise unrepeatable(source, reader.cannot_replay() if reader.spark_form == "frame" else why)
    if entry == "-":
        return []
    batch = last_batch(entry)
    if batch is not None:
        files = files_between(folder, place, max(0, batch - EPOCHS + 1), batch)
        paths = [path for _, path in sorted(files) if path.endswith(reader.as_files.suffixes)]
        return _last(source, paths, rows)
    ends = {int(lane): int(at) for lane, at in json.loads(entry)[LANES].items()}
    earliest = reader.earliest()
    starts = {lane: max(earliest.get(lane, 0), at - rows) for lane, at in ends.items()}
    return list(reader.read_between(starts, ends))


def _last(source: Source, paths: Iterable[str], rows: int) -> list[Raw]:
    """The last rows of some files, counted on from file to file."""
    found: list[list[Raw]] = []
    left = rows
    for path in reversed(list(paths)):
        raws = list(source.reader.as_files.read_file(path))
        found.insert(0, raws)
        left -= sum(raw.batch.num_rows for raw in raws)
        if left <= 0:
            break
    made: list[Raw] = []
    base, over = 0, max(0, -left)
    for raws in found:
        for raw in raws:
            moved = replace(raw, offset=base)
            base = moved.end
            if over >= moved.batch.num_rows:
                over -= moved.batch.num_rows
                continue
            made.append(moved.split(over)[1] if over else moved)
            over = 0
    return made
