"""``caesura rescale``: the state of a stopped query over more or fewer buckets."""

from __future__ import annotations

from typing import Annotated

import typer

from caesura.cli.shell import AsJson, Checkpoint, app, check_folder, reports_errors, say, say_json, working
from caesura.waiting import waiting


@app.command()
@reports_errors
def rescale(
    checkpoint: Checkpoint,
    buckets: Annotated[int, typer.Option(help="over how many buckets its state shall lie")],
    as_json: AsJson = False,
) -> None:
    """Spreads the state of a stopped query over more or fewer buckets; it goes on where it stood.

    Start it again with a session of the new number: cz.session(buckets=n).
    """
    from caesura.spark import session
    from caesura.spark.host.rescale import rescale as move

    check_folder(checkpoint)
    with working("moving the state"), waiting(f"moving the state to {buckets} buckets"):
        had = move(session(), checkpoint, buckets)
    if as_json:
        say_json({"checkpoint": checkpoint, "had": had, "has": buckets})
    else:
        say(
            f"the state lay in {had} buckets and lies in {buckets}: start with cz.session(buckets={buckets})."
        )
