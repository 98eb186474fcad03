"""The `caesura` command: every command in one of the files that are imported here."""

from __future__ import annotations

import sys

from caesura.cli import bench, claims, flows, health, keep, new, running
from caesura.cli.shell import app

__all__ = ["app", "bench", "claims", "flows", "health", "keep", "main", "new", "running"]


def main() -> None:
    """The entry point of the `caesura` command."""
    sys.exit(app())
