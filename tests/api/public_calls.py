"""Every function and method that a user can call, found by what the rooms export and what calls give."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from api_misuse import OWNERS

import caesura as cz
from caesura import contracts, qre, spark
from caesura.sql.script import Script

MORE = (Script,)


def public_functions() -> dict[str, FunctionType]:
    """By where they are and what they are called: ``caesura.api.grouped.Windowing.tumbling``."""
    rooms: list[Any] = [cz, qre, contracts, spark, cz.functions]
    things = [getattr(room, name) for room in rooms for name in room.__all__]
    classes = [*MORE, *(type(make()) for make in OWNERS.values())]
    found = (inspect.unwrap(one) for thing in [*things, *classes] for one in _functions_of(thing))
    return {
        f"{one.__module__}.{one.__qualname__}": one for one in found if one.__module__.startswith("caesura")
    }


def _functions_of(thing: Any) -> Iterator[FunctionType]:
    if isinstance(thing, FunctionType):
        yield thing
    if not isinstance(thing, type):
        return
    for name in dir(thing):
        member = inspect.getattr_static(thing, name)
        function = getattr(member, "__func__", member)
        if isinstance(function, FunctionType) and (not name.startswith("_") or name == "__init__"):
            yield function
