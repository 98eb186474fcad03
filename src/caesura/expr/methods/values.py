"""Names, types, nulls and sets of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr import nodes
from caesura.expr.types import as_type
from caesura.misuse import checked_methods, strict

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class ValueMethods:
    """Names, types, nulls and sets of values."""

    def alias(self, name: str) -> Expr:
        """The same value under another output name."""
        return nodes.Alias(nodes.as_expr(self), name)

    def cast(self, type: pa.DataType | str) -> Expr:
        """The value as another type; a row with a value that cannot be converted is refused."""
        return nodes.Cast(nodes.as_expr(self), as_type(type))

    def try_cast(self, type: pa.DataType | str) -> Expr:
        """The value as another type; null where it cannot be converted."""
        return nodes.Cast(nodes.as_expr(self), as_type(type), attempts=True)

    @strict
    def field(self, name: str) -> Expr:
        """One field of a struct."""
        return nodes.Field(nodes.as_expr(self), name)

    def is_null(self) -> Expr:
        """Whether there is no value."""
        return nodes.apply("is_null", self)

    def is_not_null(self) -> Expr:
        """Whether there is a value."""
        return nodes.apply("is_not_null", self)

    def eq_null_safe(self, other: object) -> Expr:
        """Equality that answers for nulls too: two nulls are equal, one is not."""
        return nodes.apply("equal_null_safe", self, other)

    def isin(self, *listed: object) -> Expr:
        """SQL's IN over plain values, in a list or one by one: null when not found if one of them is null."""
        values = listed
        if len(listed) == 1:
            if isinstance(listed[0], str | bytes):
                raise ExprError(
                    f"isin wants a list of values, got {listed[0]!r}.",
                    remedy=f"Write .isin([{listed[0]!r}]).",
                )
            values = tuple(listed[0]) if isinstance(listed[0], Iterable) else listed
        return nodes.Member(nodes.as_expr(self), tuple(nodes.plain_value("isin", v) for v in values))

    def between(self, low: object, high: object) -> Expr:
        """Both bounds included."""
        return nodes.apply("between", self, low, high)

    def coalesce(self, *others: object) -> Expr:
        """The first that is not null."""
        return nodes.apply("coalesce", self, *others)

    def nullif(self, other: object) -> Expr:
        """Null where it equals the other."""
        return nodes.apply("nullif", self, other)

    def if_null(self, other: object) -> Expr:
        """The other where it is null."""
        return nodes.apply("coalesce", self, other)
