"""`uda` and `udo`: a plain function or a small class becomes a module.

A function takes the members of a window: a list of values or rows, a NumPy array, a DataFrame or an
Arrow batch, as its first parameter is annotated. ``Event[...]`` elements or a parameter ``window`` make
it time-sensitive; further parameters are set where it is used. A class with ``add``, ``remove``,
``compute`` and ``init`` is incremental; with ``add_all`` and ``remove_all`` it takes what changes of a window
as lists, in one call each. One with ``compute`` alone recomputes.

>>> @uda
... class Total:
...     def init(self): return [0.0]
...     def add(self, state, value: float): state[0] += value
...     def remove(self, state, value: float): state[0] -= value
...     def compute(self, state) -> float: return state[0]
>>> Total
uda Total(list of double) -> double, incremental
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, overload

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError
from caesura.expr import as_type
from caesura.expr.annotated import arrow_type, hints
from caesura.expr.code import code_key
from caesura.misuse import shown
from caesura.plan import here
from caesura.udm.annotations import MemberView, View, element, is_row, row_fields, shape_of
from caesura.udm.module import Kind, Module, Traits, steps_of
from caesura.udm.registry import register

STEPS = ("init", "add", "remove", "compute")
STEPS_IN_SETS = ("init", "add_all", "remove_all", "compute")


@overload
def uda(target: Callable[..., Any] | type, /) -> Module: ...
@overload
def uda(
    *,
    name: str = "",
    returns: Any = None,
    takes: Any = None,
    vectorised: bool = False,
    registered: bool = False,
    clip: str | None = None,
    **traits: bool,
) -> Callable[[Any], Module]: ...
def uda(target: Any = None, /, **options: Any) -> Any:
    """An aggregate of your own: one value per window.

    Parameters
    ----------
    target
        A function of all values of a window, or a class with ``add``, ``remove`` and ``compute``, which
        works row by row.
    **options
        ``name``: what it is called. ``returns``: the type of its answer, where it is not annotated.
        ``takes``: the columns that it reads, by name with their types, where its annotations do not say: of
        one column the values, of several dicts, or an array with a field for each. ``registered``: whether
        it goes by its name, in SQL too. ``vectorised``: whether it is given NumPy arrays of several
        windows at once. ``clip``: how lifetimes are cut to the window: ``"none"``, ``"left"``,
        ``"right"`` or ``"full"``. Properties that it promises, such as ``mergeable=True``,
        ``monotone=True`` or ``deterministic=False``.

    Returns
    -------
    Module
        A function of columns for ``agg``: ``agg(x=spread("v"))``; without a target, a decorator.

    Notes
    -----
    State: the values of each open window; of an incremental class, its state. A correction gives the window
    anew, or removes one value and adds another. On Spark it runs in the workers.

    See Also
    --------
    udo : any number of rows per window.
    udm.check_module : tries whether it holds what it promises.
    api.Windowed.agg : where it stands in a query.

    Examples
    --------
    >>> import caesura as cz
    >>> @cz.uda
    ... def spread(values: list[float]) -> float:
    ...     return max(values) - min(values)
    >>> rows = cz.from_rows([{"t": 1, "v": 5.0}, {"t": 2, "v": 2.0}], time="t")
    >>> print(rows.tumbling(10).agg(x=spread("v")).run())
     LE  RE | x   |
      0  10 | 3.0 | +
    """
    return _defined("uda", target, options)


@overload
def udo(target: Callable[..., Any] | type, /) -> Module: ...
@overload
def udo(
    *,
    name: str = "",
    returns: Any = None,
    takes: Any = None,
    registered: bool = False,
    clip: str | None = None,
    stamp: str | None = None,
    **traits: bool,
) -> Callable[[Any], Module]: ...
def udo(target: Any = None, /, **options: Any) -> Any:
    """An operator of your own: any number of rows per window.

    Parameters
    ----------
    target
        A function of all rows of a window, or an incremental class. It may stamp its rows itself, by
        giving events.
    **options
        ``name``: what it is called. ``returns``: the type of its answer, where it is not annotated.
        ``takes``: the columns that it reads, by name with their types, where its annotations do not say: of
        one column the values, of several dicts, or an array with a field for each. ``registered``: whether
        it goes by its name, in SQL too. ``clip``: how lifetimes are cut to the window: ``"none"``,
        ``"left"``, ``"right"`` or ``"full"``. Properties that it promises, such as ``mergeable=True``,
        ``monotone=True`` or ``deterministic=False``. ``stamp``: when its rows live; a query that uses it
        may say otherwise.

    Returns
    -------
    Module
        What ``apply`` takes: ``tumbling(10).apply(peaks)``; without a target, a decorator.

    Notes
    -----
    State: the rows of each open window. On Spark it runs in the workers.

    See Also
    --------
    uda : one value per window.
    api.Windowed.apply : where it stands in a query.
    api.AliveRows.apply : over what is alive.

    Examples
    --------
    >>> import caesura as cz
    >>> @cz.udo
    ... def twice(values: list[float]) -> list[float]:
    ...     return [2 * v for v in values]
    >>> rows = cz.from_rows([{"t": 1, "v": 5.0}, {"t": 2, "v": 2.0}], time="t")
    >>> print(rows.select("v").tumbling(10).apply(twice("v")).run())
     LE  RE | value |
      0  10 | 4.0   | +
      0  10 | 10.0  | +
    """
    return _defined("udo", target, options)


def _defined(kind: Kind, target: Any, options: dict[str, Any]) -> Any:
    if target is None:
        return lambda real: _defined(kind, real, options)
    place = here()
    try:
        return _module(kind, target, **options)
    except CaesuraError as error:
        raise error.at(f"{kind} {getattr(target, '__name__', shown(target))}", place) from None


def _module(
    kind: Kind,
    target: Any,
    *,
    name: str = "",
    returns: Any = None,
    takes: Any = None,
    vectorised: bool = False,
    registered: bool = False,
    clip: str | None = None,
    stamp: str | None = None,
    **traits: bool,
) -> Module:
    known = _traits(traits)
    incremental = isinstance(target, type) and (hasattr(target, "add") or hasattr(target, "add_all"))
    in_sets = incremental and not hasattr(target, "add")
    if vectorised and (incremental or kind == "udo"):
        raise PlanError(
            f"vectorised=True gives one value for each of many windows, which {_other_form(kind)} does not.",
            remedy="Leave vectorised out, or make it a uda that takes (values, starts).",
        )
    data, result, params = _methods(target, incremental, vectorised)
    if known.mergeable and not (incremental and callable(getattr(target, "merge", None))):
        raise PlanError(
            "it is declared mergeable, but has no way to merge two states.",
            remedy="Give an incremental class merge(self, a, b), or leave mergeable out.",
        )
    notes = hints(data)
    spots = list(inspect.signature(data).parameters.values())
    item = _item(spots, incremental, isinstance(target, type))
    single = incremental and not in_sets
    shape = _one(notes.get(item.name)) if single else shape_of(notes.get(item.name, item.annotation))
    if vectorised:
        shape = MemberView("array", False, None)
    steps: Any = target
    reads = any(reads_window(f) for f in {data, result, *(steps_of(steps) if incremental else ())})
    returned = hints(result).get("return") if returns is None else returns
    gives, stamps = _gives(kind, returned)
    timed = shape.timed or reads or stamps
    module = Module(
        name=name or target.__name__,
        kind=kind,
        target=target,
        view=shape.view,
        timed=timed,
        incremental=incremental,
        segments=vectorised,
        takes=_takes(shape, takes),
        row=shape.row if is_row(shape.row) else None,
        gives=gives,
        events=shape.timed,
        stamps=stamps,
        reads_window=reads,
        params=params,
        traits=known,
        clip=clip,
        stamp=stamp,
        token=f"{target.__module__}.{getattr(target, '__qualname__', name)}#{code_key(target)}",
    )
    return register(module) if registered else module


def _traits(given: dict[str, bool]) -> Traits:
    try:
        return Traits(**given)
    except TypeError:
        known = ", ".join(Traits.__dataclass_fields__)
        raise PlanError(
            f"no property of a module is called {' or '.join(given)}.", remedy=f"There are: {known}."
        ) from None


def _other_form(kind: Kind) -> str:
    return "an operator (udo)" if kind == "udo" else "a class that adds and removes"


def _methods(target: Any, incremental: bool, vectorised: bool) -> tuple[Any, Any, tuple[str, ...]]:
    """The function that takes the data, the one that gives the result, and the parameters to set."""
    if not isinstance(target, type):
        if not callable(target):
            raise PlanError(f"{shown(target)} cannot be called.", remedy="Decorate a function or a class.")
        spots = [p.name for p in inspect.signature(target).parameters.values()][2 if vectorised else 1 :]
        if vectorised:
            _check_starts(list(inspect.signature(target).parameters.values()))
        return target, target, tuple(n for n in spots if n != "window")
    if incremental:
        needed = STEPS if hasattr(target, "add") else STEPS_IN_SETS
        missing = [step for step in needed if not callable(getattr(target, step, None))]
        if missing:
            raise PlanError(
                f"an incremental module needs {', '.join(needed)}; missing: {', '.join(missing)}.",
                remedy="Add what is missing, or leave out add and give compute(self, values) alone.",
            )
    elif not callable(getattr(target, "compute", None)):
        raise PlanError(
            "the class has neither add nor compute.", remedy="Give compute(self, values), or all four steps."
        )
    own = list(inspect.signature(target).parameters) if "__init__" in vars(target) else []
    steps: Any = target
    if vectorised:
        _check_starts(list(inspect.signature(steps.compute).parameters.values())[1:])
    return (steps_of(steps)[0] if incremental else steps.compute), steps.compute, tuple(own)


def _check_starts(spots: list[inspect.Parameter]) -> None:
    """Refuses a function of many windows that does not take where each begins."""
    takes = [p for p in spots[:2] if p.name != "window" and p.kind is not p.KEYWORD_ONLY]
    if len(takes) < 2 and not any(p.kind is p.VAR_POSITIONAL for p in takes):
        raise PlanError(
            "vectorised=True hands over all values and where each window begins, which it does not take.",
            remedy="Give it the parameters (values, starts), and window behind them where it reads windows.",
        )


def _item(spots: list[inspect.Parameter], incremental: bool, method: bool) -> inspect.Parameter:
    """The parameter that takes the data."""
    place = (1 if method else 0) + (1 if incremental else 0)
    if len(spots) <= place:
        wanted = "(self, state, value)" if incremental else "(values)"
        raise PlanError(
            f"it takes {len(spots)} parameters, too few to be given data.",
            remedy=f"Give it the parameters {wanted}.",
        )
    return spots[place]


def _one(annotation: Any) -> MemberView:
    """The shape of a single member, for add and remove."""
    if annotation is None:
        return MemberView("list", False, None)
    row, timed = element(annotation)
    return MemberView("list", timed, row) if timed else MemberView("list", False, annotation)


def _takes(shape: MemberView, takes: Any) -> tuple[tuple[str, pa.DataType | None], ...] | None:
    view: View = shape.view
    if takes is not None:
        named = takes if isinstance(takes, dict) else {"value": takes}
        _check_taken(shape, list(named))
        return tuple((name, as_type(t)) for name, t in named.items())
    if view in ("frame", "batch"):
        return None
    if is_row(shape.row):
        return tuple(row_fields(shape.row))
    if shape.row is None or view == "array":
        return (("value", None),)
    found = arrow_type(shape.row)
    if found is None:
        raise PlanError(
            f"it wants members of the type {shape.row!r}, which no column has.",
            remedy="Annotate with a list of float, int, str, bool, bytes, dates, or of a row class.",
        )
    return (("value", found),)


def _check_taken(shape: MemberView, names: list[str]) -> None:
    """Refuses columns that members, as they are annotated, have no place for."""
    if not names:
        raise PlanError("takes= names no column.", remedy="Name one, or leave takes out.")
    if shape.view != "list" or shape.row is None:
        return
    if is_row(shape.row):
        wanted = [name for name, _ in row_fields(shape.row)]
        if sorted(wanted) != sorted(names):
            raise PlanError(
                f"takes= has the columns {', '.join(names)}, but a {shape.row.__name__} has the fields "
                f"{', '.join(wanted)}.",
                remedy="Leave takes out: the fields say what is taken.",
            )
    elif len(names) > 1 and (typing.get_origin(shape.row) or shape.row) is not dict:
        raise PlanError(
            f"takes= has {len(names)} columns ({', '.join(names)}), but its members are annotated as "
            f"{getattr(shape.row, '__name__', shape.row)}, which is one value.",
            remedy="Annotate with list[dict], which has each column by its name, or with a list of a row "
            "class.",
        )


def _gives(kind: Kind, returned: Any) -> tuple[pa.Schema, bool]:
    """The columns that come out, and whether they are stamped."""
    if returned is None:
        raise PlanError(
            "its result has no type, so the plan cannot know its columns.",
            remedy="Annotate the return (-> float, -> list[Row]) or pass returns=.",
        )
    if isinstance(returned, dict):
        returned = pa.schema([(n, as_type(t)) for n, t in returned.items()])
    if isinstance(returned, pa.Schema):
        own = pa.schema([f for f in returned if f.name not in ("LE", "RE")])
        return own, len(own) < len(returned)
    if kind == "uda":
        found = as_type(returned) if isinstance(returned, (str, pa.DataType)) else arrow_type(returned)
        if found is None:
            raise PlanError(
                f"an aggregate gives one value; {returned!r} is no column type.",
                remedy="Return a number, text, date or the like, or make it a udo.",
            )
        return pa.schema([("value", found)]), False
    row, stamps = element(returned)
    if is_row(row):
        return pa.schema(row_fields(row)), stamps
    found = arrow_type(row)
    if found is None:
        raise PlanError(
            f"an operator gives a list of rows; {returned!r} does not say their columns.",
            remedy="Annotate -> list[Row] or -> list[Event[Row]] with a dataclass Row, or pass returns=.",
        )
    return pa.schema([("value", found)]), stamps


def reads_window(method: Callable[..., Any]) -> bool:
    """Whether a function takes its window."""
    return "window" in inspect.signature(method).parameters
