"""Dotted names: `col("st.a")` reaches into a struct, unless a column has that very name.

>>> columns = {"st": pa.struct([("a", pa.struct([("b", pa.int64())]))]), "x.y": pa.int64()}
>>> with_paths(Column("st.a.b") > Column("x.y"), columns)
Expr(st.a.b > `x.y`)
>>> reached("st.a", columns), reached("x.y", columns), reached("nowhere", columns)
(Expr(st.a), None, None)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any

import pyarrow as pa

from caesura.expr.nodes import Column, Expr, Field, apply
from caesura.expr.rewrite import attributes, substitute
from caesura.expr.types import kind

Columns = Mapping[str, pa.DataType]


def reached(name: str, columns: Columns) -> Expr | None:
    """What a dotted name means; None where it is a column's own, or begins with none that has parts."""
    if name in columns or "." not in name:
        return None
    parts = name.split(".")
    for count in range(1, len(parts)):
        first = ".".join(parts[:count])
        if first in columns and kind(columns[first]) in ("struct", "map", "list"):
            return _within(first, columns[first], parts[count:])
    return None


def _within(first: str, t: pa.DataType, names: list[str]) -> Expr:
    made: Expr = Column(first)
    for name in names:
        if kind(t) != "struct":
            made = apply("item", made, name)
            t = t.item_type if kind(t) == "map" else pa.null()
            continue
        made = Field(made, name)
        place = t.get_field_index(name)
        t = t.field(place).type if place >= 0 else pa.null()
    return made


def with_paths(value: Any, columns: Columns) -> Any:
    """An expression, or what holds some, with dotted names as what they reach; the same if there are none."""
    if isinstance(value, Expr):
        found = {name: made for name in attributes(value) if (made := reached(name, columns)) is not None}
        return substitute(value, found) if found else value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        parts = tuple(with_paths(part, columns) for part in value)
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    if is_dataclass(value) and isinstance(getattr(value, "value", None), Expr):
        made = with_paths(value.value, columns)  # type: ignore[union-attr]
        return value if made is value.value else replace(value, value=made)  # type: ignore
    return value
