"""A user-defined module: what it is called, what it takes, what it gives, and what is known about it.

A module is an aggregate (one value per window) or an operator (any number of rows), works by
recomputing or incrementally, and sees payloads only or events with their lifetimes and the window.

>>> from caesura.udm import uda
>>> @uda
... def spread(values: list[float]) -> float:
...     return max(values) - min(values)
>>> spread
uda spread(list of double) -> double, recomputes
>>> spread([3.0, 7.5])
4.5
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, update_wrapper
from typing import Any, Literal

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Expr, as_column
from caesura.misuse import shown
from caesura.plan import here
from caesura.udm.annotations import View

Kind = Literal["uda", "udo"]


@dataclass(frozen=True)
class Traits:
    """What a module's writer declares; the planner relies on it and the checker tests it."""

    deterministic: bool = True
    """The same window gives the same result."""
    time_bound: bool = False
    """What is given for a time depends on nothing that happens later."""
    filter_commutes: bool = False
    """Rows that do not come out may be left out of the window first."""
    empty_preserving: bool = False
    """No rows in, no rows out; with ``filter_commutes``, a filter may go first."""
    mergeable: bool = False
    """The result for two windows together follows from their states: the class has ``merge``."""
    monotone: bool = False
    """More rows never lower the result."""

    def __str__(self) -> str:
        return ", ".join(f.name.replace("_", "-") for f in fields(self) if getattr(self, f.name))


@dataclass(frozen=True, eq=False, repr=False)
class Module:
    """A user's aggregate or operator, ready to be used by name."""

    name: str
    kind: Kind
    target: Any
    """The function or class as written."""
    view: View
    timed: bool
    incremental: bool
    segments: bool
    """Whether one call serves many windows: values and where each window begins."""
    takes: tuple[tuple[str, pa.DataType | None], ...] | None
    """The columns that it wants, each with its type if it has one; None for all there are."""
    row: Any
    """The class that a row is handed over as; None for plain values and frames."""
    gives: pa.Schema
    events: bool
    """Whether members come as events, with their lifetimes."""
    stamps: bool
    """Whether it stamps its own rows."""
    reads_window: bool
    params: tuple[str, ...]
    traits: Traits
    clip: str | None
    """How it wants its members cut to the window; None where it does not say."""
    stamp: str | None
    """When it wants its rows to live; None where it does not say."""
    token: str
    """What tells this definition from others, here and in the processes that it is sent to."""

    def __call__(self, /, *mapping: Any, **params: Any) -> Any:
        """With column names or expressions: a use in a query. With plain data: the function itself."""
        if mapping and not all(isinstance(m, (str, Expr)) for m in mapping):
            if isinstance(self.target, type):
                raise PlanError(
                    f"it takes columns by their names; got {shown(mapping[0])}.",
                    remedy=f"Write {self.name}('value'); parameters have names: {self._settable()}.",
                ).at(self.name, here())
            return self.target(*mapping, **params)
        for name in params:
            if name not in self.params:
                error = PlanError(f"it has no parameter '{name}'.", remedy=closest(name, self.params))
                raise error.at(self.name, here())
        return Use(self, tuple(as_column(m) for m in mapping), tuple(sorted(params.items())))

    def _settable(self) -> str:
        return ", ".join(f"{name}=..." for name in self.params) or "there are none here"

    def __repr__(self) -> str:
        taken = "all columns" if self.takes is None else ", ".join(str(t or "any") for _, t in self.takes)
        given = ", ".join(str(f.type) if self.kind == "uda" else f"{f.name} {f.type}" for f in self.gives)
        how = "incremental" if self.incremental else "recomputes"
        time = ", time-sensitive" if self.timed else ""
        return f"{self.kind} {self.name}({self.view} of {taken}) -> {given}, {how}{time}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        from caesura.udm.shipping import reference

        return reference(self) or super().__reduce_ex__(protocol)

    @property
    def key(self) -> object:
        return (self.name, self.token)

    @property
    def steps(self) -> tuple[Callable[..., Any], ...]:
        """What an incremental module adds and removes with; empty for one that recomputes."""
        return steps_of(self.target) if self.incremental else ()

    @property
    def in_sets(self) -> bool:
        """Whether it takes what comes and what goes as lists, a call for each window."""
        return self.incremental and hasattr(self.target, "add_all")

    def unset(self, params: tuple[tuple[str, Any], ...]) -> list[str]:
        """The parameters that have no value, neither here nor in the module."""
        spots = inspect.signature(self.target).parameters if self.params else {}
        given = {name for name, _ in params}
        needed = [name for name in self.params if spots[name].default is inspect.Parameter.empty]
        named = [n for n in needed if spots[n].kind not in (spots[n].VAR_POSITIONAL, spots[n].VAR_KEYWORD)]
        return [name for name in named if name not in given]

    def make(self, params: tuple[tuple[str, Any], ...]) -> Any:
        """The thing to call: an instance of a class, or a function with its parameters bound."""
        given = dict(params)
        if isinstance(self.target, type):
            made = self.target(**given)
            return InSets(made) if self.in_sets and not hasattr(made, "add") else made
        return partial(self.target, **given) if given else self.target


class InSets:
    """A module that takes lists, for those who have one member at a time."""

    def __init__(self, own: Any) -> None:
        self._own = own
        self.add = update_wrapper(self._one(own.add_all), own.add_all)
        self.remove = update_wrapper(self._one(own.remove_all), own.remove_all)

    def __getattr__(self, name: str) -> Any:
        if name == "_own":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self._own, name)

    @staticmethod
    def _one(step: Callable[..., Any]) -> Callable[..., Any]:
        return lambda state, value, **window: step(state, [value], **window)


def steps_of(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How a class adds and removes: one by one, or where it has no such steps, in sets."""
    if hasattr(target, "add"):
        return target.add, target.remove
    return target.add_all, target.remove_all


@dataclass(frozen=True, eq=False)
class Use:
    """A module with its initialisation parameters, mapped to a stream's columns."""

    module: Module
    mapping: tuple[Expr, ...]
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> object:
        return (self.module.key, tuple(m.key for m in self.mapping), repr(self.params))

    def __str__(self) -> str:
        words = [str(m) for m in self.mapping] + [f"{k}={v!r}" for k, v in self.params]
        return f"{self.module.name}({', '.join(words)})"
