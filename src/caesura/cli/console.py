"""``caesura console``: a query, or a plan that does not run yet, on pages of the browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caesura.cli.load import is_script, load
from caesura.cli.shell import AsJson, app, check_folder, reports_errors, say, say_json
from caesura.io.places import Place

if TYPE_CHECKING:
    from caesura.console.web.speaking import Speaker
    from caesura.console.web.sql_page import EditedScript
    from caesura.console.web.watched import Watched

NO_PLAN = (
    "A checkpoint says what the steps do, and not how. For rows between steps, check, trace, the debugger "
    "and SQL give the file of the stream too: caesura console CHECKPOINT flow.py:NAME."
)


@app.command()
@reports_errors
def console(
    target: Annotated[
        str,
        typer.Argument(help="a checkpoint, a folder that a query writes, or a file with a stream"),
    ],
    flow: Annotated[
        str | None, typer.Argument(help="of a checkpoint: the file of its stream, as flow.py:NAME")
    ] = None,
    port: Annotated[int, typer.Option(help="0 takes one that is free")] = 0,
    host: Annotated[str, typer.Option(help="another address needs --password-file")] = "127.0.0.1",
    password_file: Annotated[
        str | None, typer.Option(help="a file of one line that only you can read")
    ] = None,
    proxy: Annotated[str | None, typer.Option(help="HEADER@ADDRESS of a proxy that knows who asks")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="take no form from anybody")] = False,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="open the page in the browser")] = True,
    as_json: AsJson = False,
) -> None:
    """Shows a query in the browser until Ctrl-C: its plan as it runs, from any process.

    Of a file it shows the plan, and what each step keeps and promises. A checkpoint with the file of its
    stream beside it has the debugger too: caesura console CHECKPOINT flow.py:NAME.
    """
    from caesura.console.web.opening import opened

    server = opened(
        _watched(target, flow),
        host=host,
        port=port,
        password_file=password_file,
        proxy=proxy,
        read_only=read_only,
        open_page=open_page,
    )
    with server:
        say_json({"url": server.url}) if as_json else say(server.url)
        server.wait()


def _watched(target: str, flow: str | None = None) -> Watched:
    from caesura.console.web.sink_folder import SinkFolder, is_sink_folder
    from caesura.console.web.watched import Watched
    from caesura.console.web.written_times import WrittenTimes
    from caesura.runtime.inspect.trace import trace
    from caesura.runtime.metrics.figures import Figures
    from caesura.runtime.metrics.plan_shape import PlanShape
    from caesura.runtime.metrics.saved_status import SavedFigures
    from caesura.runtime.metrics.status import Board, Status

    if is_script(target) or target.partition(":")[0].endswith(".py"):
        if flow is not None:
            raise typer.BadParameter("the file of a stream goes behind a checkpoint", param_hint="FLOW")
        stream = load(target)
        node, figures = stream.node, Figures(target, Status(), active=False)
        return Watched(
            target,
            PlanShape.of({"out": node}),
            lambda: figures,
            "the plan, not running",
            nodes={"out": node},
            tracer=lambda rows, assumed: trace(node, rows, assume=assumed or None),
            stretch=stream.replay,
            stream=target if ":" in target else "",
            script=_script(target) if is_script(target) else None,
        )
    check_folder(target)
    if flow is None and is_sink_folder(Place.of(target)):
        nothing, written = PlanShape(()), Figures(target, Status(), active=False)
        times = WrittenTimes(nothing, Board, SinkFolder(target))
        return Watched(target, nothing, lambda: written, "what was written", times=times)
    saved = SavedFigures(Place.of(target))
    about = f"{saved.host}, from {target}"
    folder = SinkFolder(saved.folder) if saved.folder else None
    times = WrittenTimes(saved.shape, saved.board, folder)
    watched = Watched(
        saved.name or target, saved.shape, saved.read, about, speaker=_speaker(target), times=times
    )
    return replace(watched, note=NO_PLAN) if flow is None else _with_plan(watched, Place.of(target), flow)


def _with_plan(watched: Watched, checkpoint: Place, flow: str) -> Watched:
    """With all that needs the plan: rows between steps, check, trace, the debugger, SQL."""
    from caesura.cli.checkpoint_plan import CheckpointPlan

    plan = CheckpointPlan.of(checkpoint, flow, watched.shape)
    return replace(
        watched,
        rows=plan.rows().rows,
        nodes={"out": plan.node},
        tracer=lambda rows, assumed: plan.stretch().trace(rows, assume=assumed or None),
        stretch=plan.stretch,
        stream=flow if ":" in flow else "",
        script=_script(flow) if is_script(flow) else None,
    )


def _script(target: str) -> EditedScript:
    """The script that a target names, to be edited on a page."""
    from caesura.cli.sql_preview import sql_preview
    from caesura.console.web.sql_page import EditedScript

    file, dot, name = target.partition(".sql")
    path = file + dot
    return EditedScript(Path(path).read_text, lambda text: sql_preview(path, name.removeprefix(":"), text))


def _speaker(checkpoint: str) -> Speaker | None:
    """Feedback to the query of a checkpoint, where it was started to take any, and Spark is there to ask."""
    from caesura.spark.host.checkpoint import spark_folder
    from caesura.spark.host.feedback import CheckpointFeedback
    from caesura.spark.host.speaking import CheckpointSpeaker
    from caesura.spark.loop_log.records import FeedbackTargets

    if not (spark_folder(Place.of(checkpoint)) / "loop" / FeedbackTargets.name).is_file():
        return None

    return CheckpointSpeaker(CheckpointFeedback.at(checkpoint))
