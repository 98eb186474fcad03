"""Plans on storage: what a pipeline writes about itself, so that an audit can find its steps again.

Modules and functions of users go by their names, so the process that reads a plan must be able to import
them; a plan with a function inside a function cannot be written down.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from caesura.io.kafka.cluster import Cluster
from caesura.plan import Node
from caesura.udm import Module


class ByName(pickle.Pickler):
    """Names what a decorator has put in the place of a function or a class."""

    def reducer_override(self, obj: Any) -> Any:
        """How to find a module or a wrapped function again; everything else as usual, but for secrets."""
        if isinstance(obj, Cluster):
            return obj.without_secrets().__reduce_ex__(4)
        target = obj.target if isinstance(obj, Module) else obj
        if not isinstance(obj, Module | FunctionType):
            return NotImplemented
        home, name = getattr(target, "__module__", ""), getattr(target, "__qualname__", "")
        there = getattr(sys.modules.get(home), name, None)
        if home == "__main__" or there is None or (there is target and not isinstance(obj, Module)):
            return NotImplemented
        if there is obj or getattr(there, "__wrapped__", None) is obj:
            return found, (home, name, there is not obj)
        return NotImplemented


def found(home: str, name: str, wrapped: bool) -> Any:
    """What a name stands for, or what a decorator has wrapped there."""
    there = getattr(importlib.import_module(home), name)
    return there.__wrapped__ if wrapped else there


def pickled(nodes: Mapping[str, Node]) -> bytes | None:
    """The plan for an audit; None where it holds what cannot be written, such as a nested function."""
    into = io.BytesIO()
    try:
        ByName(into).dump(dict(nodes))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return into.getvalue()


def described(node: Node) -> str:
    """A step with its parameters and columns, and the steps that it stands on."""
    columns = ", ".join(f"{f.name} {f.type}" for f in node.schema)
    own = f"{node.step} {node.describe()}".strip()
    above = ", ".join(child.step for child in node.inputs)
    return f"{own} ({columns})" + (f" on {above}" if above else "")
