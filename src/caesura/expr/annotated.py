"""Column types from Python's annotations: what a user's function takes and gives, before it runs.

>>> arrow_type(float), arrow_type(int | None)
(DataType(double), DataType(int64))
"""

from __future__ import annotations

import datetime
import decimal
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError

SCALARS: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
    datetime.datetime: pa.timestamp("us"),
    decimal.Decimal: pa.decimal128(38, 9),
}


def bare(annotation: Any) -> Any:
    """An annotation without Optional."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        some = [a for a in typing.get_args(annotation) if a is not type(None)]
        return some[0] if len(some) == 1 else annotation
    return annotation


def arrow_type(annotation: Any) -> pa.DataType | None:
    """The column type for an annotation of a scalar, list or dict, or None.

    >>> arrow_type(dict[str, list[int]])
    MapType(map<string, list<item: int64>>)
    """
    plain = bare(annotation)
    inner = [arrow_type(part) for part in typing.get_args(plain)]
    if typing.get_origin(plain) in (list, dict) and None not in inner:
        return pa.list_(inner[0]) if len(inner) == 1 else pa.map_(*inner)
    if isinstance(plain, pa.DataType):
        return plain
    if isinstance(plain, type) and issubclass(plain, np.generic):
        return pa.from_numpy_dtype(np.dtype(plain))
    return SCALARS.get(plain) if isinstance(plain, type) else None


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, names resolved."""
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise PlanError(
            f"an annotation of '{function.__name__}' cannot be read: {error}.",
            remedy="Annotate with types that exist where the function is defined.",
        ) from None


def widens(got: pa.DataType, want: pa.DataType) -> bool:
    """Whether values of one type are taken as those of another: numbers widen, nothing else changes."""
    if pa.types.is_list(got) and pa.types.is_list(want):
        return got.value_type == want.value_type or widens(got.value_type, want.value_type)
    number = pa.types.is_integer(got) or pa.types.is_floating(got)
    if pa.types.is_floating(want):
        return bool(number)
    return bool(
        (pa.types.is_integer(want) and pa.types.is_integer(got))
        or (pa.types.is_timestamp(want) and pa.types.is_timestamp(got))
        or (pa.types.is_decimal(want) and pa.types.is_decimal(got))
    )
