"""Finds the stream that a command names: ``flow.py`` or ``flow.py:speeds``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TypeVar

from caesura.api import Pipeline, Stream
from caesura.errors import PlanError, closest

T = TypeVar("T")


def load(target: str) -> Stream:
    """The stream in a Python file; by name, or the only one there is."""
    return _load(target, Stream, "stream")


def load_pipeline(target: str) -> Pipeline:
    """The pipeline in a Python file; by name, or the only one there is."""
    return _load(target, Pipeline, "pipeline")


def _load(target: str, kind: type[T], word: str) -> T:
    file, _, name = target.partition(":")
    path = Path(file)
    if not path.is_file():
        raise PlanError(f"there is no file '{file}'.", remedy=f"Give a Python file, or file.py:{word}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if isinstance(value, kind)}
    if name in found:
        return found[name]
    if name:
        raise PlanError(f"'{file}' has no {word} '{name}'.", remedy=closest(name, found))
    if len(found) != 1:
        listing = ", ".join(sorted(found)) or "none"
        raise PlanError(f"'{file}' has {len(found)} {word}s: {listing}.", remedy=f"Name one: {file}:NAME.")
    return next(iter(found.values()))
