"""``caesura upgrade``: a checkpoint goes on with another version of its pipeline."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, cast, get_args

import typer

from caesura.api import Pipeline, Stream
from caesura.cli.load import load, load_pipeline
from caesura.cli.run import OUTPUTS
from caesura.cli.shell import (
    AsJson,
    Checkpoint,
    Target,
    app,
    check_folder,
    refuse_unused,
    reports_errors,
    say,
    say_json,
    working,
)
from caesura.consistency.store import Store
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.plan import Node
from caesura.plan.prune import prune
from caesura.runtime.durable.change import PlanChange, steps_of
from caesura.runtime.durable.claimed_views import views_change
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.manifest import Manifests
from caesura.runtime.durable.preparing import Preparation
from caesura.runtime.query.query import Query
from caesura.runtime.query.result import Output, delivered
from caesura.waiting import waiting

Switch = Annotated[str | None, typer.Option("--how", help="continue or rebuild; without, nothing is changed")]
Out = Annotated[str | None, typer.Option("--sink", help="the folder that was sink= of the query")]


Ahead = Annotated[
    bool, typer.Option("--prepare", help="while the query runs, read what a later --how rebuild would read")
]


@app.command()
@reports_errors
def upgrade(
    context: typer.Context,
    checkpoint: Checkpoint,
    target: Target,
    how: Switch = None,
    sink: Out = None,
    output: Annotated[str, typer.Option(help="changes, final or marked: what the query gives")] = "changes",
    final_rows: Annotated[
        str, typer.Option(help="rows that were final and would differ: refuse, keep or new_generation")
    ] = "refuse",
    prepare: Ahead = False,
    as_json: AsJson = False,
) -> None:
    """Shows what becomes of the state of each step under a new version of a pipeline, or goes over to it.

    "continue": state that fits is kept, and the new plan holds from here on. "rebuild": the sources are read
    again as far as they were read, and the output is corrected to what the new plan would have given.
    --prepare, once or more, reads that beforehand beside the query that runs: it stands still for the rest.
    Of a pipeline with claims CHECKPOINT is its folder; on Spark its checkpoint, and --sink its folder.
    """
    _check_choices(how, output, final_rows, prepare=prepare)
    check_folder(checkpoint)
    if how != "rebuild":
        why = {"final_rows": "only a rebuild touches rows that were final"}
        refuse_unused(context, "without --how rebuild", why)
    place, form = Place.of(checkpoint), cast("Output", output)
    claimed = _claims_of(place, sink)
    done: Preparation | None = None
    if claimed is not None:
        refuse_unused(context, "for a pipeline with claims", {"output": "its views give changes"})
        pipeline = load_pipeline(target)
        change = _upgrade_views(place, claimed, pipeline, how, final_rows)
    else:
        stream = load(target)
        change = _change(place, {"out": delivered(stream.node, form)})
    if prepare:
        with working(f"preparing {target}"):
            done = (
                stream.prepare_upgrade(checkpoint, output=form)
                if claimed is None
                else pipeline.prepare_upgrade(str(claimed.path))
            )
    if how is not None and claimed is None:
        given: dict[str, Any] = {"checkpoint": checkpoint, "sink": sink, "output": form, "on_change": how}
        given |= {"final_rows": final_rows}
        with working(f"going over to {target}"):
            _go_over(place, stream, given)
    if as_json:
        told = {"differs": change.differs, "steps": [asdict(step) for step in change.steps]}
        say_json(told if done is None else {**told, "prepared": asdict(done)})
    else:
        say(str(change) if done is None else f"{change}\n{done}")


def _check_choices(how: str | None, output: str, final_rows: str, *, prepare: bool) -> None:
    if how not in (None, "continue", "rebuild"):
        raise typer.BadParameter(f"'{how}' is none of continue, rebuild", param_hint="--how")
    if output not in OUTPUTS:
        raise typer.BadParameter(f"'{output}' is none of {', '.join(OUTPUTS)}", param_hint="--output")
    if final_rows not in get_args(FinalRows):
        known = ", ".join(get_args(FinalRows))
        raise typer.BadParameter(f"'{final_rows}' is none of {known}", param_hint="--final-rows")
    if prepare and how is not None:
        why = "--prepare comes before --how: the query runs meanwhile"
        raise typer.BadParameter(why, param_hint="--prepare")


def _claims_of(checkpoint: Place, sink: str | None) -> Store | None:
    """The claimed views that a checkpoint goes with: in the same folder, or on Spark beside it; if any."""
    for place in (checkpoint, *(() if sink is None else (Place.of(sink),))):
        if (store := Store(place)).described:
            return store
    return None


def _upgrade_views(
    checkpoint: Place, store: Store, pipeline: Pipeline, how: str | None, final_rows: str
) -> PlanChange:
    """The report of a pipeline with claims; goes over to it, if that is asked for."""
    given: dict[str, Any] = {"on_change": how, "final_rows": final_rows}
    if store.about["host"] == "embedded":
        change = views_change(pipeline.nodes, store)
        if how is not None:
            with working("going over"):
                next(pipeline.writing(str(store.path), **given), None)
        return change
    from caesura.spark import session
    from caesura.spark.host.checkpoint import plan_change, read_plan

    change = plan_change(checkpoint, pipeline.nodes)
    if how is not None:
        saved = read_plan(checkpoint)
        assert saved is not None  # the report was made of it
        spark = session(buckets=saved["partitions"])
        given |= {"path": str(store.path), "checkpoint": str(checkpoint), "trigger": "available"}
        with working("going over"):
            pipeline.start(spark, **given).wait()
    return change


def _change(checkpoint: Place, outputs: dict[str, Node]) -> PlanChange:
    """The report, of a checkpoint of either host."""
    last = Manifests(checkpoint).last()
    if last is not None:
        return PlanChange.between(last.known_steps, steps_of(Query(prune(outputs)).graph.cells))
    from caesura.spark.host.checkpoint import plan_change

    return plan_change(checkpoint, outputs)


def _go_over(checkpoint: Place, stream: Stream, given: dict[str, Any]) -> None:
    """In this process, or on Spark, where what has come since is processed too."""
    if Manifests(checkpoint).last() is not None:
        stream.query(**given).close()
        return
    from caesura.spark import session
    from caesura.spark.host.checkpoint import read_plan

    if given["sink"] is None:
        raise StreamError(
            "the sink of the query is needed, to be corrected or to go on with.",
            remedy="Give --sink FOLDER, the folder that was sink= of start.",
        )
    saved = read_plan(checkpoint)
    assert saved is not None  # the report was made of it
    query = stream.start(session(buckets=saved["partitions"]), trigger="available", **given)
    with waiting("reading again and on", unit="rows") as progress:
        while not query.wait(1):
            progress.done = sum(source.rows for source in query.status().sources.values())
