"""How modules reach other processes: by name from installed packages, by value from everything else.

A host that sends plans asks `homes` which Python modules to send by value (with cloudpickle's
``register_pickle_by_value``). A module of an installed package is named only; where the package is
missing, the error says what to install.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from caesura.errors import StreamError
from caesura.expr.nodes import Call, Expr
from caesura.expr.rewrite import children
from caesura.plan.node import Node, walk

if TYPE_CHECKING:
    from caesura.udm.module import Module

INSTALLED = ("site-packages", "dist-packages")


def homes(*roots: Node) -> list[ModuleType]:
    """The Python modules, not installed anywhere, that a plan's functions and modules come from."""
    names = {use.module.target.__module__ for node in walk(*roots) for use in getattr(node, "uses", ())}
    for node in walk(*roots):
        for field in dataclasses.fields(node):
            names |= {_home(f) for f in functions(getattr(node, field.name))} - {""}
    found = [sys.modules[name] for name in sorted(names) if name in sys.modules and name != "__main__"]
    return [home for home in found if not _installed(home)]


def functions(part: object) -> Iterator[Any]:
    """The users' functions in a parameter of a step."""
    if isinstance(part, Call):
        yield part.function
    elif not isinstance(part, Expr) and callable(getattr(part, "function", None)):
        yield part.function  # type: ignore[attr-defined]
    if isinstance(part, Expr):
        for child in children(part):
            yield from functions(child)
    elif isinstance(part, tuple):
        for inner in part:
            yield from functions(inner)


def _home(function: Any) -> str:
    return str(getattr(function, "__module__", None) or "")


def _installed(home: ModuleType) -> bool:
    place = getattr(home, "__file__", None) or ""
    return any(part in place for part in INSTALLED)


def reference(module: Module) -> tuple[Any, ...] | None:
    """How to find a module again by name; None where it must be sent by value."""
    home = sys.modules.get(module.target.__module__)
    name = getattr(module.target, "__qualname__", "")
    if home is None or not _installed(home) or getattr(home, name, None) is not module:
        return None
    return arrive, (module.kind, module.name, home.__name__, name)


def arrive(kind: str, name: str, home: str, attribute: str) -> Any:
    """A module by its place in an installed package."""
    try:
        return getattr(importlib.import_module(home), attribute)
    except (ImportError, AttributeError) as error:
        raise StreamError(
            f"{kind} '{name}' comes from {home}.{attribute}, which this process does not have.",
            remedy=f"Install or ship the package '{home.partition('.')[0]}' to the executors (addPyFile).",
        ) from error
