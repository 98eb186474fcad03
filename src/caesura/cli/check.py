"""``caesura check``: does state stay bounded, and do answers come out?"""

from __future__ import annotations

import typer

from caesura.cli.load import load
from caesura.cli.shell import AsJson, Target, app, reports_errors, say, say_json


@app.command()
@reports_errors
def check(target: Target, output: str = "changes", as_json: AsJson = False) -> None:
    """Says before it runs whether state stays bounded and answers come out; exit code 1 if not."""
    verdict = load(target).check(output)  # type: ignore[arg-type]
    if as_json:
        parts = {"findings": verdict.findings, "remedies": verdict.remedies, "notes": verdict.notes}
        say_json({"safe": verdict.safe, **{name: [str(one) for one in some] for name, some in parts.items()}})
    else:
        say(str(verdict))
    if not verdict.safe:
        raise typer.Exit(1)
