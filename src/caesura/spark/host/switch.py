"""The start of a query on a checkpoint: from where it was, or over to another plan.

"continue" keeps the state where it lies, under other names; "rebuild" begins anew in a folder of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sinks.protocol import Sink
from caesura.plan import Node
from caesura.plan.prune import prune
from caesura.runtime.buckets.clock import period
from caesura.runtime.durable.change import OnChange, PlanChange
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.rebuild import refuse_columns
from caesura.spark.host.carry import carried_names
from caesura.spark.host.checkpoint import (
    CARRIED,
    FINAL_ROWS,
    NAME,
    PLANS,
    SWITCHED,
    VERSION,
    SavedPlan,
    answers_differ,
    changed,
    differs,
    given_output,
    plan_now,
    plans_of,
    read_plan,
    refuse_spread,
    save_plan,
    write_plan,
)
from caesura.spark.host.clock_source import CLOCK
from caesura.spark.host.part import SparkPart, folder_of, of_ours
from caesura.spark.host.read_files import changed_files
from caesura.spark.host.rebuild import begin_rebuild, first_read, refuse_on_spark
from caesura.spark.host.source_log import last_offsets, offsets_of
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.worker.carried import CarriedState
from caesura.spark.worker.job import Job


def go_on(
    part: SparkPart,
    job: Job,
    nodes: Mapping[str, Node],
    sink: Sink,
    partitions: int,
    on_change: OnChange,
    cut: Callable[..., Job],
    final_rows: FinalRows = "refuse",
) -> tuple[Job, SparkPart]:
    """The job, and Spark's part of the checkpoint, with which a start goes on."""
    part.enter(sink)
    place, steps = part.checkpoint, prune(nodes)
    then, now = read_plan(place), plan_now(job.stages, job.buckets, partitions, steps)
    rebuilds = on_change == "rebuild"
    columns = "" if then is None else given_output(then).other_columns(steps, sink)
    exact = sink.claims or rebuilds
    other = then is not None and exact and answers_differ(then, now)
    others = bool(columns) or other or (then is not None and differs(then, now))
    if then is not None and (others or (rebuilds and _must_read_anew(then, part, partitions))):
        change = changed(then, now)
        change.refuse(on_change)
        _refuse_unknown(then, place)
        refuse_columns(columns if on_change == "continue" else "")
        version = int(then.get(VERSION, 1)) + 1
        if on_change == "continue":
            made = {**now, VERSION: version, PLANS: [*plans_of(then), version]}
            return _carry_on(part, then, made, change, job, sink), part
        job = cut(partitions, loop=f"{place / folder_of(version)}/loop")
        refuse_on_spark(then, job, steps, sink, part, final_rows)
        now = plan_now(job.stages, job.buckets, partitions, steps)
        now |= {VERSION: version, FINAL_ROWS: final_rows, PLANS: [version]}
        part = begin_rebuild(part, then, now, change, job, sink)
    else:
        stages = save_plan(place, job.stages, job.buckets, partitions, steps)
        if then is not None and sink.claims and set(then.get("read") or now["read"]) != set(now["read"]):
            _count_names(place)
        job = replace(job, stages=stages, carried=_carried(then or {}))
        part.sweep()
    known = {} if part.becomes is None else first_read(part, job)
    return replace(job, first_read=known, replayed=part.replayed), part


def _must_read_anew(then: SavedPlan, part: SparkPart, partitions: int) -> bool:
    """Whether the same plan has to read its sources again: other buckets, or a file that was written anew."""
    return bool(then["partitions"] != partitions) or any(changed_files(part.folder))


def _count_names(checkpoint: Place) -> None:
    """Counts a plan with the same answers and other names as one more: claims name its sources otherwise."""
    saved = read_plan(checkpoint)
    assert saved is not None  # it was written
    version = int(saved.get(VERSION, 1)) + 1
    write_plan(checkpoint, {**saved, VERSION: version, PLANS: [*plans_of(saved)[:-1], version]})


def _carry_on(
    part: SparkPart, then: SavedPlan, now: SavedPlan, change: PlanChange, job: Job, sink: Sink
) -> Job:
    """The job that goes on from here with the state that there is, where it is."""
    refuse_spread(then, now["partitions"])
    names = carried_names(then, now, change)
    _refuse_half(part, job, sink, list(now["columns"]))
    order = [names.get(fingerprint, fingerprint) for fingerprint in then["sources"]]
    kept = {name: then[name] for name in SWITCHED if name in then and name not in (VERSION, PLANS)}
    texts = {fingerprint: now["sources"][fingerprint] for fingerprint in order}
    changes = [*then.get(CARRIED, []), [now[VERSION], names]]
    made = {**now, **kept, "sources": texts, CARRIED: changes}
    write_plan(part.checkpoint, made)
    sources = tuple(sorted(job.stages.sources, key=lambda source: order.index(source.fingerprint)))
    return replace(job, stages=replace(job.stages, sources=sources), carried=_carried(made))


def _carried(saved: SavedPlan) -> CarriedState:
    return CarriedState(tuple((number, names) for number, names in saved.get(CARRIED, [])))


def _refuse_half(part: SparkPart, job: Job, sink: Sink, outputs: list[str]) -> None:
    """Refuses a query with half of an epoch behind it, or with messages on their way."""
    last, why = last_offsets(part.folder), ""
    committed = last < 0 or (part.folder / "commits" / str(last)).is_file()
    if not committed and (part.becomes is not None or not sink.pending(part.first + last, outputs)):
        why = f"the sink has epoch {part.first + last}, and the state has not"
    entries = offsets_of(part.folder, last)
    wanted = len(job.stages.sources) + bool(job.loop) + (period(job.stages) is not None)
    if entries and len(entries) != wanted:
        why = why or "a clock, a loop or feedback has come or gone"
    loop = next((json.loads(entry) for entry in entries if of_ours(entry) and CLOCK not in entry), None)
    log = LoopLog(str(part.folder / "loop"))
    if loop is not None and (log.latest() > loop["epoch"] or log.last_feedback() > loop["feedback"]):
        why = why or "messages are on their way back to earlier steps"
    if why:
        raise StreamError(
            f"the query is not at rest: {why}.",
            remedy="Start the old plan once more with trigger='available' and let it end, then change it; or "
            "take on_change='rebuild'.",
        )


def _refuse_unknown(then: SavedPlan, checkpoint: Place) -> None:
    """Refuses to go over from a plan of which a checkpoint does not say enough."""
    if "fragments" not in then:
        raise StreamError(
            f"'{checkpoint / NAME}' was written by an earlier version, which did not say what steps do.",
            remedy="Start the old plan once more with this version, then change it; or start with a new "
            "checkpoint.",
        )
