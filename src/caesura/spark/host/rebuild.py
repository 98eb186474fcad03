"""A rebuild on Spark: the new plan reads what the old one has read, in the first epoch of its own folder.

    <checkpoint>/plan-2/offsets/0      Spark's offset log begins with how far the old plan had read
    <checkpoint>/plan-2/sources/0/...  Spark's own logs of the sources, as they were
    <checkpoint>/caesura.json          names plan-2 once the first epoch is about to be committed

So Spark's first epoch reads the sources from their beginning up to the same prefix, files in the order in
which they were read first. What it gives is the history of the new plan on that prefix, the sink holds the
old one, and their difference is what the sink gets. Cut off before `caesura.json` is written, the old plan
still holds; behind that, the next start runs the first epoch again, and a sink that has it takes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.json_files import parsed
from caesura.io.sinks.protocol import Sink
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import LOOP
from caesura.runtime.buckets.clock import period
from caesura.runtime.durable.change import PlanChange
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.rebuild import cut_loop, refuse_rebuilding, unrepeatable
from caesura.spark.host.checkpoint import (
    BEFORE,
    FIRST,
    FOLDER,
    VERSION,
    SavedPlan,
    given_output,
)
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.part import SparkPart, folder_of, of_ours, remove_folder
from caesura.spark.host.source_log import files_between, last_batch, last_offsets, offsets_of
from caesura.spark.loop_log.records import FeedbackTargets
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from caesura.spark.host.frames import FrameReader

PARTITIONS = "spark.sql.shuffle.partitions"


def refuse_on_spark(
    then: SavedPlan,
    job: Job,
    nodes: Mapping[str, Node],
    sink: Sink,
    part: SparkPart,
    final_rows: FinalRows,
) -> None:
    """Refuses a plan whose past cannot be made again, or an output that cannot be corrected."""
    why = cut_loop(nodes)
    if any(arrival.label.startswith(LOOP) for stage in job.stages.stages for arrival in stage.arrivals):
        why = "it has a loop that crosses buckets, and one epoch does not end it"
    if job.ahead is not None:
        why = "files that lie ahead= wait for later epochs"
    if period(job.stages) is not None:
        why = "it goes by a clock, whose readings are not kept"
    takes = (part.folder / "loop" / FeedbackTargets.name).is_file()
    if takes and CheckpointFeedback.at(str(part.checkpoint)).standing():
        why = why or "feedback has kept rows from it, and is not repeated"
    sources = [source for source in job.stages.sources if isinstance(source, Source)]
    why = why or next(filter(None, map(_unrepeatable, sources)), "")
    refuse_rebuilding(nodes, sink, given_output(then), final_rows, why)


def _unrepeatable(source: Source) -> str:
    if source.reader.spark_form != "frame":
        return unrepeatable(source)
    reader = cast("FrameReader", source.reader)
    reason = "the rows of a DataFrame without lane= and offset= have no order"
    return f"of '{source.step}', {reason}" if reader.unordered else ""


def begin_rebuild(
    part: SparkPart, then: SavedPlan, now: SavedPlan, change: PlanChange, job: Job, sink: Sink
) -> SparkPart:
    """Makes the folder of the new plan; nothing counts of it before its first epoch is committed."""
    folder = part.checkpoint / folder_of(now[VERSION])
    remove_folder(folder)
    made = {**now, FOLDER: folder.name, FIRST: part.last + 1, BEFORE: asdict(given_output(then))}
    if (part.folder / "metadata").is_file():
        (folder / "metadata").put((part.folder / "metadata").read_bytes())
    epoch = _last_whole(part, sink, list(then["columns"]))
    if epoch >= 0:
        places = _places(then, now, change, job)
        _begin_with(part.folder, epoch, folder, places, now["partitions"], loop=bool(job.loop))
        check_first_read(folder, job)
    return SparkPart(part.checkpoint, folder, made[FIRST], made)


def _last_whole(part: SparkPart, sink: Sink, outputs: list[str]) -> int:
    """The last of Spark's epochs that the sink has; one that was cut off is read by the new plan alone."""
    last = last_offsets(part.folder)
    if last == 0 and part.becomes is not None:  # it stands for epochs that the sink has
        return last
    cut_off = last >= 0 and not (part.folder / "commits" / str(last)).is_file()
    return last - 1 if cut_off and sink.pending(part.first + last, outputs) else last


def _places(then: SavedPlan, now: SavedPlan, change: PlanChange, job: Job) -> list[int | None]:
    """For each source, which one of Spark's sources it was before; None for one that is new."""
    order = {fingerprint: place for place, fingerprint in enumerate(then["sources"])}
    before = {made: order[then["read"][was]] for was, made in change.renamed.items() if was in then["read"]}
    labels = {fingerprint: label for label, fingerprint in now["read"].items()}
    return [before.get(labels[source.fingerprint]) for source in job.stages.sources]


def _begin_with(
    before: Place, epoch: int, folder: Place, places: list[int | None], partitions: int, *, loop: bool
) -> None:
    """Spark's logs of the new folder: as far as the old plan had read, and nothing committed.

    A loop log is a source of the query too, behind the others, and begins empty.
    """
    file = before / "offsets" / str(epoch)
    version, head, *entries = file.read_text().splitlines()
    entries = [entry for entry in entries if not of_ours(entry)]
    about = parsed(head, file, wants=("conf",))
    about["conf"][PARTITIONS] = str(partitions)
    for place, was in enumerate(places):
        if was is not None:
            for log in (before / "sources" / str(was)).files():
                (folder / "sources" / str(place) / log.name).put(log.read_bytes())
    lines = ["-" if was is None else entries[was] for was in places] + ["-"] * loop
    (folder / "offsets" / "0").put("\n".join([version, json.dumps(about), *lines]).encode())


def check_first_read(folder: Place, job: Job) -> None:
    """Refuses to read again where a file is gone, naming the prefix that is still there."""
    for place, (source, entry) in enumerate(zip(job.stages.sources, offsets_of(folder, 0), strict=False)):
        end = last_batch(entry)
        paths = [] if end is None else [path for _, path in files_between(folder, place, 0, end)]
        there = next((at for at, path in enumerate(paths) if not Place.of(path).exists()), None)
        if there is not None:
            raise StreamError(
                f"'{source.step}' was read up to file {len(paths)}, and its file {there + 1}, "
                f"'{Place.of(paths[there])}', is gone: no prefix beyond file {there} can be read again.",
                remedy="Put it back; or start with a new checkpoint and a new sink.",
            )


def first_read(folder: Place, job: Job) -> dict[str, dict[str, int]]:
    """By source and file, the place in which a file was read first, of what the first epoch reads."""
    found: dict[str, dict[str, int]] = {}
    for place, (source, entry) in enumerate(zip(job.stages.sources, offsets_of(folder, 0), strict=False)):
        end = last_batch(entry)
        if end is not None:
            files = files_between(folder, place, 0, end)
            found[source.fingerprint] = {Place.of(path).identity: batch for batch, path in files}
    return found
