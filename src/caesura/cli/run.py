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
from caesura.cli.load import load
from caesura.cli.shell import LATE_ROWS, AsJson, Strict, Target, app, reports_errors, say, say_json, working
from caesura.io.places import Place
from caesura.io.sinks.rows import rows_table
from caesura.io.sources.source import Source
from caesura.logs import set_log_level
from caesura.plan import walk
from caesura.runtime.metrics.waiting_line import watched
from caesura.runtime.query.result import Result, query_of
from caesura.sql.script import Script, script

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch
    from caesura.runtime.query.query import Query

Output = Literal["changes", "final", "marked"]
OUTPUTS = ("changes", "final", "marked")
Feedback = Annotated[list[str] | None, typer.Option(help="feedback, as in 'segment = 3, LE < 20'")]


@app.command()
@reports_errors
def run(
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
    chosen: Output = output  # type: ignore[assignment]
    options: dict[str, Any]
    if log_level or log_json:
        set_log_level(log_level or "INFO", json=log_json)  # type: ignore[arg-type]
    for given in (sink, checkpoint):
        if given not in (None, "console", "memory"):
            Place.of(given).reach()
    if target.endswith(".sql") and sink == "console" and (made := script(target)).inserts:
        options = {"checkpoint": checkpoint, "take_over": take_over}
        shown = {"name": name, "metrics_port": metrics_port}
        _run_script(made, options, shown, trigger, embedded=embedded, allow_unbounded=allow_unbounded)
        return
    stream = load(target)
    if embedded:
        query = query_of(stream.node, chosen, None, None)
        _serve(query, name, metrics_port)
        send_feedback(query, assume, desire)
        late = _shown(_embedded(stream, query), as_json=as_json, log=log)
    elif (
        not (assume or desire or feedback)
        and trigger == "available"
        and all(s.is_table for s in _sources(stream))
    ):
        late = _shown(_batch(stream, chosen), as_json=as_json, log=log)
    else:
        options = {"checkpoint": checkpoint, "take_over": take_over, "output": chosen, "trigger": trigger}
        options |= {"allow_unbounded": allow_unbounded, "feedback": feedback or bool(assume or desire)}
        options |= {"name": name, "metrics_port": metrics_port}
        begin = partial(send_feedback, assume=assume, desire=desire)
        late = _streaming(stream, sink, options, begin, as_json=as_json, log=log)
    if late and strict:
        raise typer.Exit(LATE_ROWS)


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
        while query.step():
            pass
    return Result(query.take("out"), stream.node, query.late(), query.counters())


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
