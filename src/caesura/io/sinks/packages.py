"""Packages that only some sinks need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from caesura.errors import StreamError


def package(name: str, extra: str) -> ModuleType:
    """A package that is installed with an extra of ours."""
    try:
        return import_module(name)
    except ImportError as error:
        raise StreamError(
            f"the package '{name}' is not installed.",
            remedy=f"Install it with: pip install 'caesura[{extra}]'.",
        ) from error
