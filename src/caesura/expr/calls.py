"""A hook for the user's own functions: row by row, or over whole columns when vectorised.

>>> from caesura.expr.nodes import col
>>> initials = udf(lambda a, b: a[0] + b[0], returns="string", name="initials")
>>> initials(col("first"), col("last"))
Expr(initials(first, last))
>>> @udf
... def kmh(mph: float) -> float:
...     return mph * 1.609
>>> kmh("speed")
Expr(kmh(speed))

One that is registered goes by its name, in texts of SQL too:

>>> knots = udf(lambda mph: mph * 0.869, returns="double", name="knots", registered=True)
>>> udf("knots")("speed")
Expr(knots(speed))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import update_wrapper
from itertools import zip_longest
from typing import Any, Literal, NoReturn, overload

import numpy as np
import pyarrow as pa

from caesura.errors import RAISED, CaesuraError, ExprError, here
from caesura.events.nested import python_values
from caesura.expr.annotated import arrow_type, hints, widens
from caesura.expr.arrays import exact_array
from caesura.expr.code import code_key
from caesura.expr.durations import micros
from caesura.expr.faults import CallFault
from caesura.expr.nodes import Call, Expr, as_column
from caesura.expr.rules import Kernel, TypedNode, Types
from caesura.expr.time_limit import TimeLimited
from caesura.expr.types import as_type, describe
from caesura.misuse import check_word

Vectorised = bool | Literal["arrow"]
GROUP = "caesura.udf"
"""The entry points under which installed packages offer functions."""
_registered: dict[str, Callable[..., Expr]] = {}


@overload
def udf(function: str) -> Callable[..., Expr]: ...


@overload
def udf(
    function: Callable[..., Any],
    *,
    returns: pa.DataType | str | None = ...,
    vectorised: Vectorised = ...,
    name: str | None = ...,
    registered: bool = ...,
    timeout: str | timedelta | None = ...,
) -> Callable[..., Expr]: ...


@overload
def udf(
    function: None = ...,
    *,
    returns: pa.DataType | str | None = ...,
    vectorised: Vectorised = ...,
    name: str | None = ...,
    registered: bool = ...,
    timeout: str | timedelta | None = ...,
) -> Callable[[Callable[..., Any]], Callable[..., Expr]]: ...


def udf(
    function: Callable[..., Any] | str | None = None,
    *,
    returns: pa.DataType | str | None = None,
    vectorised: Vectorised = False,
    name: str | None = None,
    registered: bool = False,
    timeout: str | timedelta | None = None,
) -> Any:
    """A function of expressions from a function of values: ``@udf`` or ``udf(function, ...)``.

    Row by row it gets Python values, None for null. Text arguments of what it gives name columns. The plain
    function stays there as ``__wrapped__``.

    Parameters
    ----------
    function
        The function; or the name of one that is registered, by this module or by an installed package as
        an entry point of the group ``caesura.udf``.
    returns
        The type of its answer, of Arrow or by its Spark name; without it, the annotated one.
    vectorised
        With True it gets NumPy arrays (NaN for a null number), with ``"arrow"`` the Arrow arrays
        themselves; it returns either, or a list.
    name
        What it is called in plans and messages; without it, the function's own name.
    registered
        Whether it goes by its name: ``udf("kmh")("speed")``, and in texts of SQL.
    timeout
        How long a call may take, ``"5s"``; one that takes longer fails as one that raises does.

    Returns
    -------
    Callable
        A function of columns' names and expressions that gives an `Expr`. Columns for annotated
        parameters are checked, and numbers widen.

    Notes
    -----
    It must give the same answer for the same values, since a correction computes it again. A row on which it
    fails, or gives a value of another type, stops the query, or waits in the late table with
    ``.on_bad("late")``. State: none. On Spark it runs in the workers, which need the packages it imports.

    See Also
    --------
    uda : an aggregate of your own.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura.testing import values
    >>> @cz.udf
    ... def kmh(mph: float) -> float:
    ...     return mph * 1.5
    >>> values(kmh("speed"), speed=[60.0, 8.0])
    [90.0, 12.0]
    >>> double = cz.udf(lambda v: v * 2, returns="bigint", vectorised=True, name="double")
    >>> values(double("v"), v=[1, 2])
    [2, 4]
    """
    if function is None:
        options: Any = {"returns": returns, "vectorised": vectorised, "name": name, "registered": registered}
        return lambda some: udf(some, **options, timeout=timeout)
    if isinstance(function, str):
        return find_udf(function)
    if not isinstance(vectorised, bool):
        check_word(vectorised, ("arrow",), "way to call a function on whole columns", "udf")
    label = name or getattr(function, "__name__", "function").strip("<>")
    try:
        type = _result(function, returns)
        takes = _parameters(function)
        called = function if timeout is None else TimeLimited(function, _limit(timeout))
    except CaesuraError as error:
        raise error.at(f"udf {label}", here()) from None

    def build(*args: object) -> Expr:
        if takes is not None and len(args) != len(takes):
            raise ExprError(
                f"function '{label}' takes {len(takes)} columns, but {len(args)} are given.",
                remedy=f"It is declared as {label}{inspect.signature(function)}.",
            )
        return Call(label, tuple(as_column(a) for a in args), called, type, vectorised, takes or ())

    update_wrapper(build, function, ("__module__", "__doc__"), ())
    build.__name__ = build.__qualname__ = label
    return _register(label, build) if registered else build


def _limit(timeout: str | timedelta) -> float:
    """How long a call may take, in seconds."""
    limit = micros(timeout)
    if limit <= 0:
        raise ExprError(
            f"timeout={timeout!r} leaves no time for an answer.", remedy="Write a text like '5s'."
        )
    return limit / 1e6


def _register(name: str, build: Callable[..., Expr]) -> Callable[..., Expr]:
    """Makes a function known by its name; the same one may come again, as when a module is loaded anew."""
    other = _registered.setdefault(name.lower(), build)
    if _told_from(other) != _told_from(build):
        raise ExprError(
            f"a function is called '{name}' already.", remedy="Give this one another name with name=."
        ).at(f"udf {name}", here())
    return build


def _told_from(build: Callable[..., Expr]) -> object:
    function = getattr(build, "__wrapped__", build)
    return getattr(function, "__module__", ""), getattr(function, "__qualname__", ""), code_key(function)


def registered_udf(name: str) -> Callable[..., Expr] | None:
    """The function of this name, in whatever case; None where there is none."""
    found = _registered.get(name.lower())
    if found is None:
        from importlib.metadata import entry_points

        point = next((p for p in entry_points(group=GROUP) if p.name.lower() == name.lower()), None)
        found = None if point is None else _registered.setdefault(name.lower(), point.load())
    return found


def find_udf(name: str) -> Callable[..., Expr]:
    """The function of this name; refuses one that is not there."""
    found = registered_udf(name)
    if found is None:
        raise ExprError(
            f"no function is registered as '{name}'.",
            remedy="Register it where it is written, with @cz.udf(registered=True).",
        ).at("udf", here())
    return found


def forget_udf(name: str) -> None:
    """Takes a name out again; for tests and notebooks."""
    _registered.pop(name.lower(), None)


def _result(function: Callable[..., Any], returns: pa.DataType | str | None) -> pa.DataType:
    if returns is not None:
        return as_type(returns)
    found = arrow_type(hints(function).get("return"))
    if found is None:
        raise ExprError(
            "its result has no type, so the plan cannot know its column.",
            remedy="Annotate the return, as in -> float, or pass returns='double'.",
        )
    return found


def _parameters(function: Callable[..., Any]) -> tuple[pa.DataType | None, ...] | None:
    """The annotated types of the parameters; None where it takes any number, or does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins have no signature
        return None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind not in plain or p.default is not p.empty for p in parameters):
        return None
    known = hints(function) if inspect.isfunction(function) else {}
    return tuple(arrow_type(known.get(p.name)) for p in parameters)


def call_plan(node: Call, types: Types) -> TypedNode:
    """A user's function takes the types it is annotated with, or any; its kernel also the number of rows."""
    operands = tuple(want or got for got, want in zip_longest(types, node.takes))
    for arg, got, want in zip(node.args, types, operands, strict=True):
        if got != want and not widens(got, want) and not pa.types.is_null(got):
            raise ExprError(
                f"function '{node.name}' takes {describe(want)}, but '{arg}' is {describe(got)}.",
                remedy=f"Cast it: .cast('{describe(want)}'), or annotate the type that comes.",
            )
    return TypedNode(node.type, operands, _columns(node) if node.vectorised else _rows(node))


def _rows(node: Call) -> Kernel:
    def kernel(rows: int, *args: pa.Array) -> pa.Array:
        results = []
        for row in zip(*(python_values(a) for a in args), strict=True) if args else [()] * rows:
            try:
                results.append(node.function(*row))
            except RAISED as raised:  # whatever the user's code raises is reported alike
                _raise(node, row, raised)
        try:
            return exact_array(results, node.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as raised:
            _raise_result(node, args, results, raised)

    return kernel


def _columns(node: Call) -> Kernel:
    def kernel(rows: int, *args: pa.Array) -> pa.Array:
        given = args if node.vectorised == "arrow" else [a.to_numpy(zero_copy_only=False) for a in args]
        try:
            result = node.function(*given)
            made = _as_array(result, node.type)
        except RAISED as raised:  # whatever the user's code raises is reported alike
            _raise(node, _row(args, 0), raised, rows=rows)
        if len(made) != rows:
            raise ExprError(
                f"function '{node.name}' returned {len(made)} values for {rows} rows.",
                remedy="A vectorised function returns one value for each row.",
            )
        return made

    return kernel


def _as_array(result: Any, type: pa.DataType) -> pa.Array:
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, pa.Array):
        return result if result.type == type else result.cast(type)
    if isinstance(result, np.ndarray) and result.dtype != object:
        return pa.array(result).cast(type)
    return exact_array(result, type)


def _row(args: Sequence[pa.Array], index: int) -> tuple[Any, ...]:
    return tuple(a[index].as_py() for a in args if len(a) > index)


def _raise(node: Call, row: tuple[Any, ...], raised: BaseException, *, rows: int | None = None) -> NoReturn:
    place = f"on {rows} rows, the first" if rows is not None else "on"
    given = ", ".join(f"{arg} = {value!r}" for arg, value in zip(node.args, row, strict=False))
    raise CallFault(
        f"function '{node.name}' failed {place} ({given}): {type(raised).__name__}: {raised}.",
        remedy="Make the function answer for such values; a null arrives as None.",
    ) from raised


def _raise_result(
    node: Call, args: Sequence[pa.Array], results: list[Any], raised: BaseException
) -> NoReturn:
    for index, value in enumerate(results):
        try:
            exact_array([value], node.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as wrong:
            _raise(node, _row(args, index), TypeError(f"returned {value!r}, not {node.type}: {wrong}"))
    _raise(node, (), raised)
