"""``caesura trace``: what became of some rows."""

from __future__ import annotations

from typing import Annotated

import typer

from caesura.cli.load import load
from caesura.cli.shell import AsJson, Target, app, reports_errors, say, say_json, working


@app.command()
@reports_errors
def trace(
    target: Target,
    rows: Annotated[
        str, typer.Argument(help='which rows of the sources, as in "ts = 18, segment in {1, 3}"')
    ],
    assume: Annotated[str | None, typer.Option(help="feedback from the start, as in 'segment = 3'")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "--most", help="how many rows of each source are read")
    ] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Shows what became of some rows: what every step says because of them, drops or takes back.

    Exit code 1 if there are no such rows.
    """
    stream = load(target)
    with working("running twice"):
        found = stream.trace(rows, assume=assume, limit=limit)
    if as_json:
        say_json(found.to_json())
    else:
        say(str(found))
    if not found.rows:
        raise typer.Exit(1)
