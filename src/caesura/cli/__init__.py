"""The command line: ``caesura doctor | explain | check | preview | run``."""

from caesura.cli.main import app

__all__ = ["app"]
