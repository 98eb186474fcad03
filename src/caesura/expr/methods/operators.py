"""Python's operators; a timedelta moves a time."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NoReturn

from caesura.errors import ExprError
from caesura.expr import nodes
from caesura.expr.methods.numbers import NumberMethods
from caesura.expr.methods.times import TimeMethods
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class Operators(NumberMethods, TimeMethods):
    """Python's operators; a timedelta moves a time."""

    def __add__(self, other: object) -> Expr:
        return self.plus_time(other) if isinstance(other, dt.timedelta) else nodes.apply("add", self, other)

    def __radd__(self, other: object) -> Expr:
        return self.plus_time(other) if isinstance(other, dt.timedelta) else nodes.apply("add", other, self)

    def __sub__(self, other: object) -> Expr:
        return (
            self.minus_time(other)
            if isinstance(other, dt.timedelta)
            else nodes.apply("subtract", self, other)
        )

    def __rsub__(self, other: object) -> Expr:
        return nodes.apply("subtract", other, self)

    def __mul__(self, other: object) -> Expr:
        return nodes.apply("multiply", self, other)

    def __rmul__(self, other: object) -> Expr:
        return nodes.apply("multiply", other, self)

    def __truediv__(self, other: object) -> Expr:
        return nodes.apply("divide", self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return nodes.apply("divide", other, self)

    def __floordiv__(self, other: object) -> NoReturn:
        raise ExprError(
            "expressions have no '//': languages disagree on what it gives below zero.",
            remedy="Write (a / b).floor(), or (a - a % b) / b.",
        )

    __rfloordiv__ = __floordiv__

    def __mod__(self, other: object) -> Expr:
        return nodes.apply("remainder", self, other)

    def __rmod__(self, other: object) -> Expr:
        return nodes.apply("remainder", other, self)

    def __pow__(self, other: object) -> Expr:
        return self.power(other)

    def __neg__(self) -> Expr:
        return nodes.apply("negate", self)

    def __abs__(self) -> Expr:
        return self.abs()

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return nodes.apply("equal", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return nodes.apply("not_equal", self, other)

    def __lt__(self, other: object) -> Expr:
        return nodes.apply("less", self, other)

    def __le__(self, other: object) -> Expr:
        return nodes.apply("less_equal", self, other)

    def __gt__(self, other: object) -> Expr:
        return nodes.apply("greater", self, other)

    def __ge__(self, other: object) -> Expr:
        return nodes.apply("greater_equal", self, other)

    def __and__(self, other: object) -> Expr:
        return nodes.apply("and", self, other)

    def __rand__(self, other: object) -> Expr:
        return nodes.apply("and", other, self)

    def __or__(self, other: object) -> Expr:
        return nodes.apply("or", self, other)

    def __ror__(self, other: object) -> Expr:
        return nodes.apply("or", other, self)

    def __invert__(self) -> Expr:
        return nodes.apply("not", self)
