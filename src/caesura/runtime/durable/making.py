"""Making a durable query from what a user gives, or refusing it."""

from __future__ import annotations

from pathlib import Path

from caesura.consistency import Mode
from caesura.errors import PlanError
from caesura.io.places import Place
from caesura.io.sinks.keyed import outputs_for
from caesura.io.sinks.protocol import Sink
from caesura.plan import Duration, Node, Speculate, seconds
from caesura.plan.prune import prune
from caesura.runtime.durable.change import OnChange
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.preparing import Preparation, prepare
from caesura.runtime.durable.query import DurableQuery
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.sinks.named import as_sink


def durable_query(
    node: Node,
    checkpoint: str | Path | None,
    sink: Sink | str | Path | None,
    *,
    every: Duration,
    claims: Mode | None,
    schedule: Schedule | ScheduleName | None,
    speculate: Speculate,
    take_over: bool = False,
    on_change: OnChange = "refuse",
    final_rows: FinalRows = "refuse",
    state_memory: int | str | None = None,
    record: Duration | None = None,
) -> DurableQuery:
    """A query with one output and a checkpoint."""
    if checkpoint is None and sink is None:
        raise PlanError(
            "what is recorded lies beside a checkpoint, and there is none.",
            remedy="Give query(checkpoint=FOLDER, record=...) too; or keep rows in memory: query.record().",
        )
    if checkpoint is None:
        raise PlanError(
            "a sink takes whole epochs, and without a checkpoint there are none.",
            remedy="Give query(checkpoint=FOLDER, sink=...) too; or take the output with take('out').",
        )
    if final_rows in ("keep", "new_generation") and on_change != "rebuild":
        raise PlanError(
            f"final_rows={final_rows!r} is about a rebuild, and on_change={on_change!r} makes none.",
            remedy="Leave final_rows= out; or give on_change='rebuild' too.",
        )
    if claims is not None:
        raise PlanError(
            "a query with a checkpoint makes no claims.",
            remedy="Leave claims= out; or write claimed views: cz.pipeline(...).write(folder).",
        )
    target = None if sink is None else as_sink(sink, "query")
    return DurableQuery(
        prune(outputs_for(target, {"out": node})),
        checkpoint=Place.of(checkpoint).absolute(),
        sink=target,
        every=saving_period(every),
        schedule=schedule,
        speculate=speculate,
        take_over=take_over,
        on_change=on_change,
        final_rows=final_rows,
        state_memory=state_memory,
        record=record,
    )


def prepared_upgrade(
    node: Node, checkpoint: str | Path, *, every: Duration, speculate: Speculate, take_over: bool
) -> Preparation:
    """Reads with a plan what the query of a checkpoint has read, for a later switch."""
    return prepare(
        prune({"out": node}),
        Place.of(checkpoint).absolute(),
        speculate=speculate,
        every=saving_period(every),
        take_over=take_over,
    )


def saving_period(every: Duration) -> float:
    """How long to go on without saving, in seconds."""
    return seconds(every, "time to save after")
