"""``caesura state``: what the steps of a checkpoint hold."""

from __future__ import annotations

from typing import Annotated

import typer

from caesura.cli import shell


@shell.app.command()
@shell.reports_errors
def state(
    context: typer.Context,
    checkpoint: shell.Checkpoint,
    op: Annotated[str | None, typer.Option(help="one step, with its rows")] = None,
    rows: Annotated[int, typer.Option(help="how many rows are shown of each table")] = shell.ROWS_SHOWN,
    as_json: shell.AsJson = False,
) -> None:
    """Shows what each step of a checkpoint holds, or the rows that one step holds.

    Reads Spark's state store as of the last epoch; the query need not run.
    """
    from caesura.spark import session
    from caesura.spark.host.state import read_state

    shell.check_folder(checkpoint)
    if op is None:
        shell.refuse_unused(context, "without --op", {"rows": "rows are shown with --op STEP"})
    if as_json:
        shell.refuse_unused(context, "with --json", {"rows": "it prints all rows"})
    with shell.working("reading the state store"):
        held = read_state(session(), checkpoint, op)
    if as_json:
        shell.say_json([{**h.to_json(), **({"rows": h.rows.to_pylist()} if op else {})} for h in held])
        return
    if not held:
        shell.say("no step holds anything.")
    for one in held:
        shell.say(
            f"stage {one.stage} {one.step} | bucket {one.bucket} | {one.table}: "
            f"{one.rows.num_rows} rows, {one.bytes} bytes"
        )
        if op:
            for row in one.rows.slice(0, rows).to_pylist():
                shell.say("  " + " ".join(f"{name}={value}" for name, value in row.items()))
