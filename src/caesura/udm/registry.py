"""Modules by name: those registered in this process, and those that installed packages offer.

A package offers modules under the entry point group ``caesura.udm``; they load when first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.errors import PlanError, closest
from caesura.udm.module import Module

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "caesura.udm"
_modules: dict[str, Module] = {}


def register(module: Module) -> Module:
    """Makes a module known by its name; a name can be taken once."""
    if _modules.setdefault(module.name, module) is not module:
        raise PlanError(
            f"a module is called '{module.name}' already.", remedy="Give this one another name with name=."
        )
    return module


def _offered() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """The names of all modules that can be used."""
    return sorted({*_modules, *_offered()})


def find(name: str) -> Module:
    """The module with a name.

    Parameters
    ----------
    name
        The module's name.

    Returns
    -------
    Module
        The module: one that is registered in this process, or that an installed package offers under the
        entry point group ``caesura.udm``.

    Raises
    ------
    PlanError
        Where there is none, with the closest name.

    Examples
    --------
    >>> import caesura as cz
    >>> @cz.uda(registered=True, name="range_of")
    ... def spread(values: list[float]) -> float:
    ...     return max(values) - min(values)
    >>> cz.udm("range_of").name
    'range_of'
    """
    if name in _modules:
        return _modules[name]
    point = _offered().get(name)
    if point is None:
        raise PlanError(
            f"there is no module '{name}'.",
            remedy=f"{closest(name, names())} @cz.udo(registered=True) names one; or pass it itself.",
        )
    try:
        module = point.load()
    except ImportError as error:
        raise PlanError(
            f"the module '{name}' cannot be loaded from {point.value}: {error}.",
            remedy=f"Install the package that has {point.value.partition(':')[0]} where the query runs.",
        ) from error
    if not isinstance(module, Module):
        raise PlanError(
            f"{point.value} is no module but {type(module).__name__}.",
            remedy="Point the entry at a function or class decorated with uda or udo.",
        )
    _modules[name] = module
    return module


def forget(name: str) -> None:
    """Takes a name out again; for tests and notebooks."""
    _modules.pop(name, None)
