"""The `caesura` command: every command in one of the files that are imported here."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from caesura.cli import (
    audit,
    bench,
    check,
    console,
    doctor,
    explain,
    feedback,
    late,
    move,
    new,
    preview,
    rescale,
    run,
    sql,
    state,
    trace,
    upgrade,
)
from caesura.cli.shell import app, say

__all__ = [
    "app",
    "audit",
    "bench",
    "check",
    "console",
    "doctor",
    "explain",
    "feedback",
    "late",
    "main",
    "move",
    "new",
    "preview",
    "rescale",
    "run",
    "sql",
    "state",
    "trace",
    "upgrade",
]


def _version(wanted: bool) -> None:
    if wanted:
        say(f"caesura {version('caesura')}")
        raise typer.Exit


@app.callback()
def caesura(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="the version")
    ] = False,
) -> None:
    """Caesura: streams with lifetimes and promises."""


def main() -> None:
    """The entry point of the `caesura` command."""
    sys.exit(app())
