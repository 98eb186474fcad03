"""``caesura bench``: the benchmarks of a source checkout."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from caesura.cli.shell import AsJson, app, reports_errors
from caesura.errors import PlanError, closest


@app.command()
@reports_errors
def bench(
    name: Annotated[str, typer.Argument(help="which one, as in core; without one they are listed")] = "",
    as_json: AsJson = False,
) -> None:
    """Measures this machine with a benchmark of the source checkout that you are in."""
    home = Path.cwd()
    known = sorted(
        p.stem for p in (home / "benchmarks").glob("*.py") if p.stem != "report" and "_" not in p.stem
    )
    if not known or importlib.util.find_spec("caesura") is None:
        raise PlanError(
            f"there are no benchmarks in '{home}'.",
            remedy="Benchmarks come with the source: run this where it was cloned.",
        )
    if name not in known:
        problem = f"there is no benchmark '{name}'." if name else "no benchmark is named."
        raise PlanError(problem, remedy=f"Name one. {closest(name, known)}")
    command = [sys.executable, "-m", "benchmarks", name, *(["--json"] if as_json else [])]
    raise typer.Exit(subprocess.run(command, check=False, cwd=home).returncode)
