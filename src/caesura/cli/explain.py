"""``caesura explain``: the plan of a stream."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from caesura.cli.load import load
from caesura.cli.shell import AsJson, Target, app, reports_errors, say, say_json
from caesura.plan.outline import outline


@app.command()
@reports_errors
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
