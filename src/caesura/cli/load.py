"""Finds the stream that a command names: ``flow.py``, ``flow.py:speeds``, ``views.sql:speeds``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from caesura.api import Pipeline, Stream
from caesura.errors import CaesuraError, PlanError, closest
from caesura.sql.script import script

T = TypeVar("T")


def load(target: str) -> Stream:
    """The stream in a Python file or a script of SQL; by name, or the only public one there is."""
    if is_script(target):
        file, dot, name = target.partition(".sql")
        return script(file + dot).target(name.removeprefix(":"))
    return _load(target, Stream, "stream")


def load_pipeline(target: str) -> Pipeline:
    """The pipeline in a Python file, by name or the only public one; of a script of SQL, all its views."""
    if is_script(target):
        return script(target.partition(".sql")[0] + ".sql").pipeline()
    return _load(target, Pipeline, "pipeline")


def is_script(target: str) -> bool:
    """Whether a target is a script of SQL, or one stream of it: ``views.sql:speeds``."""
    return target.endswith(".sql") or ".sql:" in target


def _load(target: str, kind: type[T], word: str) -> T:
    file, _, name = target.partition(":")
    found = {key: value for key, value in vars(_module(file, word)).items() if isinstance(value, kind)}
    if name in found:
        return found[name]
    public = {key: value for key, value in found.items() if not key.startswith("_")}
    if name:
        raise PlanError(f"'{file}' has no {word} '{name}'.", remedy=closest(name, public))
    if not public:
        raise PlanError(f"'{file}' has no {word}.", remedy=f"Let the file keep a {word} in a variable.")
    if len(public) > 1:
        listing = ", ".join(sorted(public))
        raise PlanError(
            f"'{file}' has {len(public)} {word}s: {listing}.", remedy=f"Name one, as in {file}:{min(public)}."
        )
    return next(iter(public.values()))


def _module(file: str, word: str) -> ModuleType:
    """The file, run as a module; what it raises is told with the user's own line."""
    path = Path(file)
    if not path.is_file():
        raise PlanError(f"there is no file '{file}'.", remedy=f"Give a Python file, or file.py:{word}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise PlanError(f"'{file}' is no Python file.", remedy="Give a file that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        # not by the loader: its byte code counts as fresh if a file of equal size was written in one second
        exec(spec.loader.source_to_code(path.read_bytes(), spec.loader.path), vars(module))
    except CaesuraError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if Path(f.filename).resolve() == path.resolve()]
        place = f"{path.name}:{own[-1].lineno}" if own else path.name
        raise PlanError(
            f"the file could not be run: {type(error).__name__}: {error}.",
            remedy=f"Run it by itself to see more: python {file}.",
            place=place,
        ) from error
    return module
