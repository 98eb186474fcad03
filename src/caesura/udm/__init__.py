"""User-defined modules: aggregates and operators over windows, in plain Python.

>>> from caesura.udm import Event, Window, uda
>>> @uda
... def weighted(events: list[Event[float]], window: Window) -> float:
...     return sum(e.payload * e.duration for e in events) / window.duration
>>> weighted.timed, weighted.gives.field(0).type
(True, DataType(double))
"""

from caesura.misuse import renamed_members
from caesura.udm.check import ModuleFinding, ModuleReport, check_module
from caesura.udm.define import uda, udo
from caesura.udm.module import Module, Traits, Use
from caesura.udm.registry import find, forget, names, register
from caesura.udm.shipping import homes
from caesura.udm.values import Event, Window

__all__ = [
    "Event",
    "Module",
    "ModuleFinding",
    "ModuleReport",
    "Traits",
    "Use",
    "Window",
    "check_module",
    "find",
    "forget",
    "homes",
    "names",
    "register",
    "uda",
    "udo",
]

__getattr__ = renamed_members(__name__, Finding="ModuleFinding", Report="ModuleReport")
