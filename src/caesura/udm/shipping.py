"""How modules reach other processes: by name from installed packages, by value from everything else.

A host that sends plans asks `homes` which Python modules to send by value (with cloudpickle's
``register_pickle_by_value``). A module of an installed package is named only; where the package is
missing, the error says what to install.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from caesura.errors import StreamError
from caesura.plan.node import Node, walk

if TYPE_CHECKING:
    from caesura.udm.module import Module

INSTALLED = ("site-packages", "dist-packages")


def homes(*roots: Node) -> list[ModuleType]:
    """The Python modules, not installed anywhere, that the user-defined modules of a plan come from."""
    names = {use.module.target.__module__ for node in walk(*roots) for use in getattr(node, "uses", ())}
    found = [sys.modules[name] for name in sorted(names) if name in sys.modules and name != "__main__"]
    return [home for home in found if not _installed(home)]


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
