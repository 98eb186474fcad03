"""The command line: ``caesura doctor | explain | preview | run``."""

from caesura.cli.main import app

__all__ = ["app"]
