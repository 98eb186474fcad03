"""``caesura upgrade``: a checkpoint goes on with another version of its pipeline."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal, cast

import typer

from caesura.api import Stream
from caesura.cli.load import load
from caesura.cli.shell import (
    AsJson,
    Checkpoint,
    Target,
    app,
    check_folder,
    reports_errors,
    say,
    say_json,
    working,
)
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.durable.change import PlanChange
from caesura.runtime.durable.manifest import Manifests
from caesura.runtime.query.query import Query

How = Literal["continue", "rebuild"]
Switch = Annotated[str | None, typer.Option("--how", help="continue or rebuild; without, nothing is changed")]
Out = Annotated[str | None, typer.Option("--sink", help="the folder that was sink= of the query")]


@app.command()
@reports_errors
def upgrade(
    checkpoint: Checkpoint, target: Target, how: Switch = None, sink: Out = None, as_json: AsJson = False
) -> None:
    """Shows what becomes of the state of each step under a new version of a pipeline, or goes over to it.

    "continue": state that fits is kept, and the new plan holds from here on. "rebuild": the sources are read
    again as far as they were read, and the output is corrected to what the new plan would have given.
    """
    if how not in (None, "continue", "rebuild"):
        raise typer.BadParameter(f"'{how}' is none of continue, rebuild", param_hint="--how")
    check_folder(checkpoint)
    stream, place = load(target), Place.of(checkpoint)
    change = _change(place, stream, how)
    if how is not None:
        with working(f"going over to {target}"):
            stream.query(checkpoint=checkpoint, sink=sink, on_change=cast("How", how)).close()
    if as_json:
        say_json({"differs": change.differs, "steps": [asdict(step) for step in change.steps]})
    else:
        say(str(change))


def _change(checkpoint: Place, stream: Stream, how: str | None) -> PlanChange:
    """The report, of a checkpoint of either host."""
    last = Manifests(checkpoint).last()
    if last is not None:
        return PlanChange.between(last.known_steps, Query(prune({"out": stream.node})).graph.cells)
    from caesura.spark.host.checkpoint import plan_change, read_plan

    buckets = (read_plan(checkpoint) or {}).get("buckets", 1)
    change = plan_change(checkpoint, cut(prune({"out": stream.node}), buckets))
    if how is not None:
        raise StreamError(
            "a query on Spark goes on with the steps that it has; it cannot be changed in place.",
            remedy="Start the new version with a new checkpoint and a new sink beside it, and switch when it "
            "has caught up.",
        )
    return change
