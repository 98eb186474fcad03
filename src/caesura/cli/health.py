"""``caesura doctor``: is this installation sound?"""

from __future__ import annotations

import typer

from caesura.cli.doctor import examine
from caesura.cli.shell import AsJson, app, say, say_json


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Checks Java, Python, libraries and settings, and says what to do."""
    findings = examine()
    if as_json:
        say_json([vars(f) for f in findings])
    else:
        for finding in findings:
            say(finding.line())
    if not all(f.ok for f in findings):
        raise typer.Exit(1)
