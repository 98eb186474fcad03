"""Looking at a stream without running it for good: explain, check, preview, trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from caesura.cli.feedback import read_pattern
from caesura.cli.load import load
from caesura.cli.shell import AsJson, Target, app, say, say_json, told, working
from caesura.feedback.explain import responses
from caesura.feedback.predicates import patterns_of
from caesura.plan.outline import outline


@app.command()
@told
def explain(
    target: Target,
    spark: Annotated[bool, typer.Option("--spark", help="the stages on Spark")] = False,
    html: Annotated[bool, typer.Option("--html", help="as an HTML table")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="as a Mermaid flowchart")] = False,
    as_json: AsJson = False,
) -> None:
    """Prints the plan: steps, columns, properties, punctuation."""
    if spark + html + mermaid + as_json > 1:
        raise typer.BadParameter("choose one of --spark, --html, --mermaid, --json")
    stream = load(target)
    if as_json:
        say_json([step.to_json() for step in outline(stream.node)])
        return
    chosen: dict[Literal["spark", "html", "mermaid"], bool] = {
        "spark": spark,
        "html": html,
        "mermaid": mermaid,
    }
    what: Literal["plan", "spark", "mermaid", "html"] = "plan"
    for name in chosen:
        what = name if chosen[name] else what
    say(stream.explain(what))


@app.command()
@told
def feedback(
    target: Target,
    pattern: Annotated[str, typer.Argument(help="as in 'segment = 3, LE < 20'")],
    audit: Annotated[bool, typer.Option("--audit", help="run with and without, and compare")] = False,
    as_json: AsJson = False,
) -> None:
    """Prints what each step would do if such rows were assumed away.

    With --audit runs the stream with that feedback and without it, and checks that nothing else is missing;
    exit code 1 if something is.
    """
    stream, said = load(target), read_pattern(pattern)
    if audit:
        with working("running twice"):
            found = stream.audit(said)
        say_json(found.to_json()) if as_json else say(str(found))
        if not found.holds:
            raise typer.Exit(1)
    elif as_json:
        node = stream.node
        heard = patterns_of(said, node.schema, node.time)
        say_json([one.to_json() for one in responses(node, heard)])
    else:
        say(stream.explain("feedback", pattern=said))


@app.command()
@told
def check(target: Target, output: str = "changes", as_json: AsJson = False) -> None:
    """Says before it runs whether state stays bounded and answers come out; exit code 1 if not."""
    verdict = load(target).check(output)  # type: ignore[arg-type]
    if as_json:
        said = {"findings": verdict.findings, "remedies": verdict.remedies, "notes": verdict.notes}
        say_json({"safe": verdict.safe, **{name: [str(one) for one in some] for name, some in said.items()}})
    else:
        say(str(verdict))
    if not verdict.safe:
        raise typer.Exit(1)


@app.command()
@told
def preview(
    target: Target,
    rows: int = 20,
    html: Annotated[Path | None, typer.Option(help="write the timeline to this HTML file")] = None,
    as_json: AsJson = False,
) -> None:
    """Runs in this process until some final rows have come out, and draws them as a timeline."""
    stream = load(target)
    with working("running"):
        result = stream.preview(rows)
    if html is not None:
        html.write_text(result._repr_html_())
    if as_json:
        say_json(result.table().to_pylist())
    elif html is None:
        say(str(result))


@app.command()
@told
def trace(
    target: Target,
    rows: Annotated[
        str, typer.Argument(help='which rows of the sources, as in "ts = 18, segment in {1, 3}"')
    ],
    assume: Annotated[str | None, typer.Option(help="feedback from the start, as in 'segment = 3'")] = None,
    most: Annotated[int, typer.Option(help="how many rows of each source are read")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Shows what became of some rows: what every step says because of them, drops or takes back.

    Exit code 1 if there are no such rows.
    """
    stream = load(target)
    with working("running twice"):
        found = stream.trace(rows, assume=assume, most=most)
    if as_json:
        say_json(found.to_json())
    else:
        say(str(found))
    if not found.rows:
        raise typer.Exit(1)
