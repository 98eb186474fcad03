"""A hook for the user's own functions: row by row, or over whole columns when vectorised.

>>> from caesura.expr.nodes import col
>>> initials = udf(lambda a, b: a[0] + b[0], returns="string", name="initials")
>>> initials(col("first"), col("last"))
Expr(initials(first, last))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr.nodes import Call, Expr, as_column
from caesura.expr.rules import Kernel, Plan, Types
from caesura.expr.types import as_type

Vectorised = bool | Literal["arrow"]


def udf(
    function: Callable[..., Any],
    *,
    returns: pa.DataType | str,
    vectorised: Vectorised = False,
    name: str | None = None,
) -> Callable[..., Expr]:
    """A function of expressions from a function of values; text arguments name columns.

    Row by row it gets Python values, None for null. With vectorised=True it gets NumPy arrays (NaN for
    a null number), with vectorised="arrow" the Arrow arrays themselves; it returns either, or a list.
    """
    type = as_type(returns)
    label = name or getattr(function, "__name__", "function").strip("<>")

    def build(*args: object) -> Expr:
        return Call(label, tuple(as_column(a) for a in args), function, type, vectorised)

    build.__name__ = label
    build.__doc__ = function.__doc__
    return build


def call_plan(node: Call, types: Types) -> Plan:
    """A user's function takes any types; its kernel also takes the number of rows first."""
    return Plan(node.type, tuple(types), _columns(node) if node.vectorised else _rows(node))


def _rows(node: Call) -> Kernel:
    def kernel(rows: int, *args: pa.Array) -> pa.Array:
        results = []
        for row in zip(*(a.to_pylist() for a in args), strict=True) if args else [()] * rows:
            try:
                results.append(node.function(*row))
            except Exception as raised:  # noqa: BLE001 - whatever the user's code raises is reported alike
                _raise(node, row, raised)
        try:
            return pa.array(results, type=node.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as raised:
            _raise_result(node, args, results, raised)

    return kernel


def _columns(node: Call) -> Kernel:
    def kernel(rows: int, *args: pa.Array) -> pa.Array:
        given = args if node.vectorised == "arrow" else [a.to_numpy(zero_copy_only=False) for a in args]
        try:
            result = node.function(*given)
            made = _as_array(result, node.type)
        except Exception as raised:  # noqa: BLE001 - whatever the user's code raises is reported alike
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
    return pa.array(result, type=type)


def _row(args: Sequence[pa.Array], index: int) -> tuple[Any, ...]:
    return tuple(a[index].as_py() for a in args if len(a) > index)


def _raise(node: Call, row: tuple[Any, ...], raised: Exception, *, rows: int | None = None) -> NoReturn:
    place = f"on {rows} rows, the first" if rows is not None else "on"
    given = ", ".join(f"{arg} = {value!r}" for arg, value in zip(node.args, row, strict=False))
    raise ExprError(
        f"function '{node.name}' failed {place} ({given}): {type(raised).__name__}: {raised}.",
        remedy="Make the function answer for such values; a null arrives as None.",
    ) from raised


def _raise_result(node: Call, args: Sequence[pa.Array], results: list[Any], raised: Exception) -> NoReturn:
    for index, value in enumerate(results):
        try:
            pa.scalar(value, type=node.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as wrong:
            _raise(node, _row(args, index), TypeError(f"returned {value!r}, not {node.type}: {wrong}"))
    _raise(node, (), raised)
