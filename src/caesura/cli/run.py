"""``caesura run``: a stream on Spark, or in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from caesura.api import Stream
from caesura.cli.feedback import send_feedback
from caesura.cli.load import load
from caesura.cli.shell import LATE_ROWS, AsJson, Strict, Target, app, reports_errors, say, say_json, working
from caesura.io.places import Place
from caesura.io.sinks.rows import rows_table
from caesura.io.sources.source import Source
from caesura.plan import walk
from caesura.runtime.query.result import Result, query_of

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch

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
    allow_unbounded: Annotated[bool, typer.Option("--allow-unbounded", help="run an unsafe plan")] = False,
    assume: Feedback = None,
    desire: Feedback = None,
    feedback: Annotated[
        bool, typer.Option("--feedback", help="others may give feedback, by its checkpoint: see feedback")
    ] = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Runs a stream on Spark, or with --embedded in this process.

    With --json every change is a line of JSON, and the last line says how the query stood.
    """
    if output not in OUTPUTS:
        raise typer.BadParameter(f"'{output}' is none of {', '.join(OUTPUTS)}", param_hint="--output")
    chosen: Output = output  # type: ignore[assignment]
    for given in (sink, checkpoint):
        if given not in (None, "console", "memory"):
            Place.of(given).reach()
    stream = load(target)
    if embedded:
        late = _shown(_embedded(stream, chosen, assume, desire), as_json=as_json)
    elif (
        not (assume or desire or feedback)
        and trigger == "available"
        and all(s.is_table for s in _sources(stream))
    ):
        late = _shown(_batch(stream, chosen), as_json=as_json)
    else:
        options: dict[str, Any] = {"checkpoint": checkpoint, "output": chosen, "trigger": trigger}
        options |= {"allow_unbounded": allow_unbounded, "feedback": feedback or bool(assume or desire)}
        late = _streaming(stream, sink, options, lambda q: send_feedback(q, assume, desire), as_json=as_json)
    if late and strict:
        raise typer.Exit(LATE_ROWS)


def _sources(stream: Stream) -> list[Source]:
    return [node for node in walk(stream.node) if isinstance(node, Source)]


def _embedded(stream: Stream, output: Output, assume: list[str] | None, desire: list[str] | None) -> Result:
    """Runs in this process; a terminal sees how many rows have been read."""
    query = query_of(stream.node, output, None, None)
    send_feedback(query, assume, desire)
    cells = [cell for cell in query.graph.cells if isinstance(cell.node, Source)]
    with working("reading") as progress:
        steps = 0
        while query.step():
            steps += 1
            if steps % 64 == 0:
                progress(f"{sum(cell.operator.counters.rows_in for cell in cells):,} rows")
    return Result(query.take("out"), stream.node, query.late(), query.counters())


def _batch(stream: Stream, output: Output) -> Result:
    """Rows in memory are all there ever is: one epoch on Spark."""
    with working("starting Spark"):
        spark = _session()
        return stream.run_batch(spark, output=output)


def _session() -> Any:
    from caesura.spark import session

    return session()


def _shown(result: Result, *, as_json: bool) -> int:
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
    return sum(rejected.values())


def _streaming(
    stream: Stream, sink: str, options: dict[str, Any], begin: Callable[[Any], None], *, as_json: bool
) -> int:
    """A query of Structured Streaming until it ends or is interrupted; gives the rows rejected."""
    with working("starting Spark"):
        spark = _session()
        target: Any = _lines(stream) if as_json and sink == "console" else sink
        query = stream.start(spark, sink=target, **options)
        begin(query)
    try:
        if sys.stdout.isatty() and sink != "console" and not as_json:
            query.watch()
        else:
            query.wait()
    except KeyboardInterrupt:
        query.stop()
        raise
    status = query.status()
    if as_json:
        say_json(status.to_json())
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
