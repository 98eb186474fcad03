"""Arithmetic on whole numbers that answers null where the type cannot hold the result.

>>> import pyarrow as pa
>>> CHECKED["add"](pa.array([1, 2**63 - 1]), pa.array([1, 1])).to_pylist()
[2, None]
>>> shifted(pa.array([1, 1, 3]), pa.array([62, 63, 62])).to_pylist()
[4611686018427387904, None, None]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from caesura.expr.arrays import column, numbers

Datum = Any


def _added(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _subtracted(a: Any, b: Any) -> tuple[Any, Any]:
    rest = a - b
    return rest, ((a ^ b) & (a ^ rest)) < 0


def _multiplied(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    least = np.iinfo(product.dtype).min
    plain = np.where((a == 0) | (a == -1), 1, a).astype(product.dtype)
    wrong = np.where((a == 0) | (a == -1), (a == -1) & (b == least), product // plain != b)
    return product, wrong


def _binary(operation: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Datum, Datum], Datum]:
    def kernel(a: Datum, b: Datum) -> Datum:
        (left, nulls), (right, missing) = numbers(a), numbers(b)
        with np.errstate(over="ignore"):
            made, wrong = operation(*np.broadcast_arrays(left, right))
        return column(made, wrong | nulls | missing, a.type)

    return kernel


def _unary(operation: Callable[[Any], Any]) -> Callable[[Datum], Datum]:
    def kernel(a: Datum) -> Datum:
        values, nulls = numbers(a)
        with np.errstate(over="ignore"):
            made = operation(values)
        return column(made, (values == np.iinfo(values.dtype).min) | nulls, a.type)

    return kernel


def _moved(a: Any, by: Any) -> tuple[Any, Any]:
    within = (by >= 0) & (by < 64)
    places = np.where(within, by, 0)
    made = np.left_shift(a, places)
    return made, ~within | (np.right_shift(made, places) != a)


shifted = _binary(_moved)
"""The bits moved up; null where one falls off the end, or onto the sign."""
CHECKED: dict[str, Callable[..., Datum]] = {
    "add": _binary(_added),
    "subtract": _binary(_subtracted),
    "multiply": _binary(_multiplied),
    "negate": _unary(np.negative),
    "abs": _unary(np.abs),
}
