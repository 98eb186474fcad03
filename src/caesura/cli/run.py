"""``caesura run``: a stream on Spark, or in this process."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from caesura.api import Stream
from caesura.cli.feedback import send_feedback
from caesura.cli.load import is_script, load
from caesura.cli.shell import (
    LATE_ROWS,
    AsJson,
    Strict,
    Target,
    app,
    refuse_unused,
    reports_errors,
    say,
    say_json,
    working,
)
from caesura.errors import CaesuraError
from caesura.io.places import Place
from caesura.io.sinks.rows import rows_table
from caesura.io.sources.source import Source
from caesura.logs import set_log_level
from caesura.plan import seconds, walk
from caesura.runtime.metrics.waiting_line import watched
from caesura.runtime.query.result import Result, query_of
from caesura.sql.script import Script, script

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch
    from caesura.runtime.query.query import Query

Output = Literal["changes", "final", "marked"]
OUTPUTS = ("changes", "final", "marked")
Feedback = Annotated[list[str] | None, typer.Option(help="feedback, as in 'segment = 3, LE < 20'")]


OF_SCRIPTS = {
    "output": "a sink's declaration says it, as in CREATE SINK ... OUTPUT final",
    "assume": "run one stream of it, as script.sql:NAME",
    "desire": "run one stream of it, as script.sql:NAME",
    "feedback": "run one stream of it, as script.sql:NAME",
    "log": "run one stream of it, as script.sql:NAME",
    "strict": "look for late rows with caesura late FOLDER --strict",
}
"""What the INSERTs of a script have no use for."""
HERE = {
    "allow_unbounded": "only a query on Spark is refused for being unsafe; caesura check says whether it is",
    "feedback": "leave --embedded out; --assume and --desire give feedback from the start",
}
"""What a query in this process has no use for."""
OF_SCRIPTS_HERE = {
    "trigger": "in this process all there is is read, and then it stops; leave --embedded out",
    "allow_unbounded": HERE["allow_unbounded"],
}
OF_BATCHES = {
    "take_over": "there is no checkpoint",
    "allow_unbounded": "a batch ends, and all its state with it",
    "name": "nothing runs on that could be called so",
    "metrics_port": "nothing runs on that could be asked; --log prints what every step counted",
}


@app.command()
@reports_errors
def run(
    context: typer.Context,
    target: Target,
    sink: Annotated[str, typer.Option(help="console, or a folder for Parquet files")] = "console",
    checkpoint: Annotated[str | None, typer.Option(help="a folder to go on from after a stop")] = None,
    output: Annotated[str, typer.Option(help="changes, final or marked")] = "changes",
    trigger: Annotated[
        str, typer.Option(help="available (all there is, then stop), continuous, or a time like '10 seconds'")
    ] = "available",
    embedded: Annotated[bool, typer.Option("--embedded", help="in this process, without Spark")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="take the checkpoint from a process that has it")
    ] = False,
    allow_unbounded: Annotated[bool, typer.Option("--allow-unbounded", help="run an unsafe plan")] = False,
    assume: Feedback = None,
    desire: Feedback = None,
    feedback: Annotated[
        bool, typer.Option("--feedback", help="others may give feedback, by its checkpoint: see feedback")
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="at the end, what every step counted")] = False,
    name: Annotated[str | None, typer.Option(help="what Spark's pages, metrics and logs call it")] = None,
    metrics_port: Annotated[
        str | None, typer.Option(help="serve metrics for Prometheus: 9464, or 0.0.0.0:9464")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR, on stderr")] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="the log as lines of JSON")] = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Runs a stream on Spark, or with --embedded in this process. SIGTERM ends it behind an epoch, with 0.

    With --json every change is a line of JSON, and the last line says how the query stood.
    """
    if output not in OUTPUTS:
        raise typer.BadParameter(f"'{output}' is none of {', '.join(OUTPUTS)}", param_hint="--output")
    _check_trigger(trigger)
    if checkpoint is None and not is_script(target):
        refuse_unused(context, "without a checkpoint", {"take_over": "give --checkpoint FOLDER too"})
    if metrics_port is None and embedded:
        refuse_unused(
            context, "in this process without --metrics-port", {"name": "metrics alone are called by it"}
        )
    chosen: Output = output  # type: ignore[assignment]
    options: dict[str, Any]
    if log_level or log_json:
        set_log_level(log_level or "INFO", json=log_json)  # type: ignore[arg-type]
    for given in (sink, checkpoint):
        if given not in (None, "console", "memory"):
            Place.of(given).reach()
    if target.endswith(".sql") and sink == "console" and (made := script(target)).inserts:
        refuse_unused(
            context, "for the INSERTs of a script", OF_SCRIPTS | (OF_SCRIPTS_HERE if embedded else {})
        )
        options = {"checkpoint": checkpoint, "take_over": take_over}
        shown = {"name": name, "metrics_port": metrics_port}
        _run_script(made, options, shown, trigger, embedded=embedded, allow_unbounded=allow_unbounded)
        if as_json:
            say_json({"written": list(made.inserts)})
        return
    stream = load(target)
    if embedded:
        _refuse_here(context, trigger, sink, checkpoint)
        query = _query_here(stream, chosen, sink, checkpoint, take_over=take_over)
        _serve(query, name, metrics_port)
        send_feedback(query, assume, desire)
        if sink == "console":
            late = _shown(_embedded(stream, query), as_json=as_json, log=log)
        else:
            late = _written_here(query, sink, as_json=as_json, log=log)
    elif _at_once(stream, sink, checkpoint, trigger, feedback=bool(assume or desire or feedback)):
        refuse_unused(context, "for rows in memory, which are one batch", OF_BATCHES)
        late = _shown(_batch(stream, chosen), as_json=as_json, log=log)
    else:
        options = {"checkpoint": checkpoint, "take_over": take_over, "output": chosen, "trigger": trigger}
        options |= {"allow_unbounded": allow_unbounded, "feedback": feedback or bool(assume or desire)}
        options |= {"name": name, "metrics_port": metrics_port}
        begin = partial(send_feedback, assume=assume, desire=desire)
        late = _streaming(stream, sink, options, begin, as_json=as_json, log=log)
    if late and strict:
        raise typer.Exit(LATE_ROWS)


def _check_trigger(trigger: str) -> None:
    """Refuses what is no trigger before anything begins."""
    if trigger in ("available", "continuous"):
        return
    try:
        seconds(trigger, "trigger")
    except CaesuraError as error:
        raise typer.BadParameter(
            f"{error.problem} Write available, continuous, or a time like '10 seconds'",
            param_hint="--trigger",
        ) from None


def _refuse_here(context: typer.Context, trigger: str, sink: str, checkpoint: str | None) -> None:
    """Refuses what a query in this process has no use for."""
    refuse_unused(context, "with --embedded", HERE)
    if trigger != "available":
        refuse_unused(context, "with --embedded", {"trigger": OF_SCRIPTS_HERE["trigger"]})
    if checkpoint is not None and sink == "console":
        why = "give --sink FOLDER too: what was printed would come again after a stop"
        refuse_unused(context, "with --embedded and no sink", {"checkpoint": why})
    if checkpoint is None and sink != "console":
        why = "give --checkpoint FOLDER too: a sink takes what is saved"
        refuse_unused(context, "with --embedded and no checkpoint", {"sink": why})


def _query_here(
    stream: Stream, output: Output, sink: str, checkpoint: str | None, *, take_over: bool
) -> Query:
    """A query in this process; with a checkpoint it goes on from there, and a sink takes what it saves."""
    if checkpoint is None:
        return query_of(stream.node, output, None, None)
    target = None if sink == "console" else sink
    return stream.query(output=output, checkpoint=checkpoint, sink=target, take_over=take_over)


def _at_once(stream: Stream, sink: str, checkpoint: str | None, trigger: str, *, feedback: bool) -> bool:
    """Whether rows in memory are one batch on Spark, for nothing is asked of them that a batch has not."""
    plain = sink == "console" and checkpoint is None and trigger == "available" and not feedback
    return plain and all(source.is_table for source in _sources(stream))


def _run_script(
    made: Script,
    options: dict[str, Any],
    shown: dict[str, Any],
    trigger: str,
    *,
    embedded: bool,
    allow_unbounded: bool,
) -> None:
    """All INSERTs of a script as one query, into the sinks that it declares."""
    if embedded:
        with working("running"):
            query = made.query(**options)
            _serve(query, **shown)
            query.run()
        return
    with working("starting Spark"):
        options |= shown
        started = made.start(_session(), trigger=trigger, allow_unbounded=allow_unbounded, **options)
    _wait(started)


def _serve(query: Query, name: str | None, metrics_port: str | None) -> None:
    if metrics_port is not None:
        query.serve_metrics(metrics_port, name=name or "query")


def _wait(query: Any) -> None:
    """Until the query ends, or Ctrl-C stops it, or a SIGTERM does behind the epoch at work."""
    asked = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: asked.set())
    try:
        while not query.wait(1):
            if asked.is_set():
                query.finish()
                return
    except KeyboardInterrupt:
        query.stop()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _sources(stream: Stream) -> list[Source]:
    return [node for node in walk(stream.node) if isinstance(node, Source)]


def _embedded(stream: Stream, query: Query) -> Result:
    """Runs in this process; a terminal sees how many rows have been read."""
    with working("running"):
        watched(query)
        query.run()
    return Result(query.take("out"), stream.node, query.late(), query.counters())


def _written_here(query: Query, sink: str, *, as_json: bool, log: bool) -> int:
    """Runs in this process into a sink, which has late rows too; gives how many there are."""
    with working("running"):
        watched(query)
        query.run()
    status = query.status()
    say_json(status.to_json()) if as_json else say(f"written to {sink}.")
    if log:
        typer.echo(str(status.log()), err=True)
    return sum(source.late for source in status.sources.values())


def _batch(stream: Stream, output: Output) -> Result:
    """Rows in memory are all there ever is: one epoch on Spark."""
    with working("starting Spark"):
        spark = _session()
        return stream.run_batch(spark, output=output)


def _session() -> Any:
    from caesura.spark import session

    return session()


def _shown(result: Result, *, as_json: bool, log: bool) -> int:
    """Prints what came out; gives the number of rows that were rejected."""
    rejected = {source: table.num_rows for source, table in result.late.items() if table.num_rows}
    if as_json:
        for row in result.changes().to_pylist():
            say_json(row)
        say_json({"late": rejected})
    else:
        say(result.draw())
        for source, rows in rejected.items():
            typer.echo(f"{rows} late at '{source}'; `caesura late` shows them.", err=True)
    if log:
        typer.echo(str(result.log()), err=True)
    return sum(rejected.values())


def _streaming(
    stream: Stream,
    sink: str,
    options: dict[str, Any],
    begin: Callable[[Any], None],
    *,
    as_json: bool,
    log: bool,
) -> int:
    """A query of Structured Streaming until it ends or is interrupted; gives the rows rejected."""
    with working("starting Spark"):
        spark = _session()
        target: Any = _lines(stream) if as_json and sink == "console" else sink
        query = stream.start(spark, sink=target, **options)
        begin(query)
    if sys.stdout.isatty() and sink != "console" and not as_json:
        try:
            query.watch()
        except KeyboardInterrupt:
            query.stop()
            raise
    else:
        _wait(query)
    status = query.status()
    if as_json:
        say_json(status.to_json())
    if log:
        typer.echo(str(status.log()), err=True)
    return sum(source.late for source in status.sources.values())


def _lines(stream: Stream) -> Any:
    """A sink that prints every change as a line of JSON."""
    from caesura.spark import CallbackSink

    node = stream.node

    def show(epoch: Epoch) -> None:
        for name, items in epoch.items.items():
            for row in rows_table(items, node.schema, node.time).to_pylist():
                say_json({"epoch": epoch.number, "output": name, **row})

    return CallbackSink(show)
