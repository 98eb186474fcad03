"""Finds the stream that a command names: ``flow.py`` or ``flow.py:speeds``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from caesura.api import Stream
from caesura.errors import PlanError, closest


def load(target: str) -> Stream:
    """The stream in a Python file; by name, or the only one there is."""
    file, _, name = target.partition(":")
    path = Path(file)
    if not path.is_file():
        raise PlanError(f"there is no file '{file}'.", remedy="Give a Python file, or file.py:stream.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Stream)}
    if name in found:
        return found[name]
    if name:
        raise PlanError(f"'{file}' has no stream '{name}'.", remedy=closest(name, found))
    if len(found) != 1:
        listing = ", ".join(sorted(found)) or "none"
        raise PlanError(f"'{file}' has {len(found)} streams: {listing}.", remedy=f"Name one: {file}:NAME.")
    return next(iter(found.values()))
