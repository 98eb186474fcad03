"""A rebuild on Spark: the new plan reads what the old one has read, in the first epochs of its own folder.

    <checkpoint>/plan-2/offsets/0      Spark's offset log begins with how far the old plan had read
    <checkpoint>/plan-2/sources/0/...  Spark's own logs of the sources, as they were
    <checkpoint>/plan-2/entered/...    what has entered the old plan besides rows, see `entered_epochs`
    <checkpoint>/caesura.json          names plan-2 once the corrections are about to be committed

So Spark's first epoch reads the sources from their beginning up to the same prefix, files in the order in
which they were read first. Where a clock was read, where a consumer has spoken, or where a loop takes epochs
to come to rest, several epochs do so, see `stepping`. What they give is the history of the new plan on that
prefix, the sink holds the old one, and their difference is what the sink gets. Cut off before `caesura.json`
is written, the old plan still holds; behind that, the next start runs the epoch of the corrections again, and
a sink that has it takes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, cast

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sinks.protocol import Sink
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import LOOP
from caesura.runtime.buckets.clock import period
from caesura.runtime.durable.change import PlanChange
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.rebuild import cut_loop, refuse_rebuilding, unrepeatable
from caesura.runtime.feedback.consumer import fits
from caesura.spark.host.checkpoint import (
    BEFORE,
    ENTERED,
    FIRST,
    FOLDER,
    VERSION,
    SavedPlan,
    given_output,
)
from caesura.spark.host.entered_epochs import (
    LOG,
    EnteredEpoch,
    EnteredEpochs,
    Message,
    Position,
    ReplayStep,
    SparkOffsets,
    heard_between,
    lost,
    replay_steps,
)
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.part import SparkPart, folder_of, remove_folder
from caesura.spark.host.read_files import source_logs, with_times_of_now
from caesura.spark.host.source_log import files_between, last_batch, last_offsets
from caesura.spark.host.stepping import OffsetWriter
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import FeedbackTargets, GivenFeedback
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from caesura.spark.host.frames import FrameReader

Places = Sequence[int | None]
"""For each source, which one of Spark's it was before; None for one that is new."""


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
    if job.ahead is not None:
        why = "which files waited for other sources (ahead=), and for how long, is not kept"
    why = why or _unknown_past(then, job, nodes, part, _last_whole(part, sink, list(then["columns"])))
    sources = [source for source in job.stages.sources if isinstance(source, Source)]
    why = why or next(filter(None, map(_unrepeatable, sources)), "")
    refuse_rebuilding(nodes, sink, given_output(then), final_rows, why)


def _unknown_past(then: SavedPlan, job: Job, nodes: Mapping[str, Node], part: SparkPart, epoch: int) -> str:
    """Why what entered besides rows, up to one of Spark's epochs, cannot enter again; empty where it can."""
    clocked, takes = period(job.stages) is not None, (part.folder / "loop" / FeedbackTargets.name).is_file()
    if epoch < 0:
        return ""
    if not then.get(ENTERED):
        if clocked:
            return "it goes by a clock, whose readings were not kept from the beginning"
        if takes and CheckpointFeedback.at(str(part.checkpoint)).standing():
            return "feedback has kept rows from it, and was not kept from the beginning"
        return ""
    entries, stands = _entered(part, epoch), SparkOffsets.of(part.folder, epoch)
    if clocked and stands.clock is None:
        return "it goes by a clock that was not there before"
    if lost(entries, stands):
        return f"'{part.folder / LOG}' has lost a part of what entered"
    for output, message in [*(said for entry in entries for said in entry.feedback), *_unheard(part, epoch)]:
        if not job.loop:
            return "feedback was given, and without feedback=True it would take none"
        if output not in nodes or not fits(message.pattern, nodes[output].schema):
            speaks = f"speaks of {message.pattern}, which it has not any more"
            return f"feedback was given on '{output}' that {speaks}"
    return ""


def _entered(part: SparkPart, epoch: int) -> list[EnteredEpoch]:
    """What had entered by one of Spark's epochs."""
    return [entry for entry in EnteredEpochs(part.folder).read() if entry.epoch <= part.first + epoch]


def _unrepeatable(source: Source) -> str:
    if source.reader.spark_form != "frame":
        return unrepeatable(source, clock=True)
    reader = cast("FrameReader", source.reader)
    reason = "the rows of a DataFrame without lane= and offset= have no order"
    return f"of '{source.step}', {reason}" if reader.unordered else ""


def begin_rebuild(
    part: SparkPart, then: SavedPlan, now: SavedPlan, change: PlanChange, job: Job, sink: Sink
) -> SparkPart:
    """Makes the folder of the new plan; nothing counts of it before its corrections are committed."""
    folder = part.checkpoint / folder_of(now[VERSION])
    remove_folder(folder)
    made = {**now, FOLDER: folder.name, FIRST: part.last + 1, BEFORE: asdict(given_output(then))}
    made[ENTERED] = True
    if (part.folder / "metadata").is_file():
        (folder / "metadata").put((part.folder / "metadata").read_bytes())
    epoch = _last_whole(part, sink, list(then["columns"]))
    begun = SparkPart(part.checkpoint, folder, made[FIRST], made)
    if epoch < 0:
        return begun
    places = _places(then, now, change, job)
    for place, was in enumerate(places):
        for log in () if was is None else source_logs(part.folder, str(was)):
            (folder / "sources" / str(place) / log.name).put(with_times_of_now(log)[0])
    end = _placed(SparkOffsets.of(part.folder, epoch).sources, places)
    check_first_read(folder, end, job)
    entered = _entered(part, epoch) if then.get(ENTERED) else []
    steps = _steps(entered, EnteredEpochs(folder), places, end, job)
    if not steps:
        OffsetWriter.like(part.folder, epoch, job).write(folder, 0, ReplayStep(end))
    given = part.folder / "loop" / GivenFeedback.name
    if job.loop and given.is_file():  # what stands of the feedback stands under its numbers
        (Place.of(job.loop) / GivenFeedback.name).put(given.read_bytes())
    return replace(begun, replay=steps, like=(part.folder, epoch), unheard=_unheard(part, epoch))


def _steps(
    entered: Sequence[EnteredEpoch], log: EnteredEpochs, places: Places, end: Position, job: Job
) -> tuple[ReplayStep, ...]:
    """The epochs in which a plan reads what was read before, taken down anew; none where one does."""
    clocked, now = period(job.stages) is not None, SparkOffsets()
    for entry in entered:
        before = replace(now, sources={**now.sources, **_placed(entry.before, places)})
        clock = entry.clock if clocked and entry.clock is not None else now.clock
        at = {**before.sources, **_placed(entry.at, places)}
        now = SparkOffsets(at, clock, now.heard + len(entry.feedback))
        log.take_down(entry.epoch, before, now, entry.feedback)
    log.save()
    entries = log.read()
    loops = any(arrival.label.startswith(LOOP) for stage in job.stages.stages for arrival in stage.arrivals)
    if not (clocked or loops or any(entry.cuts for entry in entries)):
        return ()
    return tuple(replay_steps(entries, end, clocked=clocked))


def _unheard(part: SparkPart, epoch: int) -> tuple[Message, ...]:
    """Feedback that was given and has not entered an epoch that counts."""
    loop = str(part.folder / "loop")
    heard, last = SparkOffsets.of(part.folder, epoch).heard, LoopLog(loop).last_feedback()
    return tuple(heard_between(loop, heard, last)) if heard < last else ()


def _last_whole(part: SparkPart, sink: Sink, outputs: list[str]) -> int:
    """The last of Spark's epochs that the sink has; one that was cut off is read by the new plan alone."""
    last = last_offsets(part.folder)
    if last == part.replayed and part.becomes is not None:  # it stands for epochs that the sink has
        return last
    cut_off = last >= 0 and not (part.folder / "commits" / str(last)).is_file()
    return last - 1 if cut_off and sink.pending(part.first + last, outputs) else last


def _places(then: SavedPlan, now: SavedPlan, change: PlanChange, job: Job) -> Places:
    """For each source, which one of Spark's sources it was before; None for one that is new."""
    order = {fingerprint: place for place, fingerprint in enumerate(then["sources"])}
    before = {made: order[then["read"][was]] for was, made in change.renamed.items() if was in then["read"]}
    labels = {fingerprint: label for label, fingerprint in now["read"].items()}
    return [before.get(labels[source.fingerprint]) for source in job.stages.sources]


def _placed(position: Position, places: Places) -> dict[str, str]:
    """The same in the order of the new plan's sources."""
    return {str(now): position[str(was)] for now, was in enumerate(places) if str(was) in position}


def check_first_read(folder: Place, end: Position, job: Job) -> None:
    """Refuses to read again where a file is gone, naming the prefix that is still there."""
    for place, source in enumerate(job.stages.sources):
        paths = [path for _, path in _files(folder, place, end)]
        there = next((at for at, path in enumerate(paths) if not Place.of(path).exists()), None)
        if there is not None:
            raise StreamError(
                f"'{source.step}' was read up to file {len(paths)}, and its file {there + 1}, "
                f"'{Place.of(paths[there])}', is gone: no prefix beyond file {there} can be read again.",
                remedy="Put it back; or start with a new checkpoint and a new sink.",
            )


def first_read(part: SparkPart, job: Job) -> dict[str, dict[str, int]]:
    """By source and file, the place in which a file was read first, of what is read once more."""
    end = part.replay[-1].at if part.replay else SparkOffsets.of(part.folder, part.replayed).sources
    found: dict[str, dict[str, int]] = {}
    for place, source in enumerate(job.stages.sources):
        files = _files(part.folder, place, end)
        if files:
            found[source.fingerprint] = {Place.of(path).identity: batch for batch, path in files}
    return found


def _files(folder: Place, place: int, end: Position) -> list[tuple[int, str]]:
    """The files of a source up to an end, each with the batch in which Spark named it."""
    last = last_batch(end.get(str(place), "-"))
    return [] if last is None else files_between(folder, place, 0, last)
