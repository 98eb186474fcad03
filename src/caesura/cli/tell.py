"""``caesura tell``: the former name of ``caesura feedback CHECKPOINT``; it goes with the next version."""

from __future__ import annotations

from typing import Annotated

import typer

from caesura.cli.feedback import give
from caesura.cli.shell import AsJson, Checkpoint, app, reports_errors


@app.command(deprecated=True)
@reports_errors
def tell(
    checkpoint: Checkpoint,
    word: Annotated[str, typer.Argument()],
    what: Annotated[str | None, typer.Argument()] = None,
    output: Annotated[str | None, typer.Option()] = None,
    as_json: AsJson = False,
) -> None:
    """Write `caesura feedback CHECKPOINT ...` instead."""
    typer.echo("Write: caesura feedback CHECKPOINT ...", err=True)
    give(checkpoint, word, what, output, as_json=as_json)
