"""``caesura preview``: the first final rows of a stream, drawn."""

from __future__ import annotations

from typing import Annotated

import typer

from caesura.cli.load import load
from caesura.cli.shell import AsJson, Target, app, reports_errors, say, say_json, working
from caesura.io.places import Place


@app.command()
@reports_errors
def preview(
    target: Target,
    rows: int = 20,
    html: Annotated[str | None, typer.Option(help="write the timeline to this HTML file")] = None,
    as_json: AsJson = False,
) -> None:
    """Runs in this process until some final rows have come out, and draws them as a timeline."""
    stream = load(target)
    with working("running"):
        result = stream.preview(rows)
    if html is not None:
        Place.of(html).put(result._repr_html_().encode())
    if as_json:
        say_json(result.table().to_pylist())
    elif html is None:
        say(str(result))
