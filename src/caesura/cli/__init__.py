"""The command line; ``caesura --help`` lists the commands."""

from caesura.cli.main import app

__all__ = ["app"]
