"""Types from annotations: what a module takes and what it gives, known before it runs.

>>> shape_of(list[Event[float]])
MemberView(view='list', timed=True, row=<class 'float'>)
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr.annotated import SCALARS, arrow_type, bare
from caesura.udm.values import Event

View = Literal["list", "array", "frame", "batch"]


class MemberView(NamedTuple):
    """How a module looks at a window's members, and the type of one of them (None: any)."""

    view: View
    timed: bool
    row: Any


def is_row(annotation: Any) -> bool:
    """Whether a class describes a row: a dataclass, a NamedTuple or a TypedDict."""
    if not isinstance(annotation, type):
        return False
    named = issubclass(annotation, tuple) and hasattr(annotation, "_fields")
    return dataclasses.is_dataclass(annotation) or named or typing.is_typeddict(annotation)


def row_fields(annotation: Any) -> list[tuple[str, pa.DataType]]:
    """The columns of a row class."""
    out = []
    for name, kind in typing.get_type_hints(annotation).items():
        found = arrow_type(kind)
        if found is None:
            raise PlanError(
                f"the field '{name}' of {annotation.__name__} has the type {kind!r}, which no column has.",
                remedy=f"Use one of {', '.join(k.__name__ for k in SCALARS)}, or a pyarrow type.",
            )
        out.append((name, found))
    return out


def shape_of(annotation: Any) -> MemberView:
    """The shape that the annotation of a module's first parameter asks for."""
    if annotation in (inspect.Parameter.empty, Any, None, list):
        return MemberView("list", False, None)
    if annotation is np.ndarray or typing.get_origin(annotation) is np.ndarray:
        return MemberView("array", False, None)
    if annotation is pa.RecordBatch:
        return MemberView("batch", False, None)
    if getattr(annotation, "__name__", "") == "DataFrame":
        return MemberView("frame", False, None)
    row, timed = element(annotation)
    return MemberView("list", timed, row)


def element(annotation: Any) -> tuple[Any, bool]:
    """The type of the elements of a list annotation, and whether they are events."""
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is Event or annotation is Event:
        return (inner[0] if inner else None), True
    if not inner:
        return None, False
    item = bare(inner[0])
    if typing.get_origin(item) is Event or item is Event:
        args = typing.get_args(item)
        return (args[0] if args else None), True
    return (None if item is Any else item), False
