"""Column expressions: one small tree of frozen nodes, written with Python's own operators.

`==` builds an expression, so two trees are compared with `same` or through their hashable `.key`.

>>> (col("speed") * 2 > 100) & col("segment").is_not_null()
Expr(speed * 2 > 100 AND segment IS NOT NULL)
>>> same(col("a") + 1, col("a") + 1), same(lit(1), lit(1.0))
(True, False)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr.code import code_key
from caesura.expr.durations import Duration, micros
from caesura.expr.types import as_type, describe, type_of_value


class Expr:
    """An expression over a row's columns and lifetime; every method builds a larger one."""

    @cached_property
    def key(self) -> Hashable:
        """A hashable stand-in that is equal exactly for structurally equal expressions."""
        parts = (_key_of(getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return (type(self).__name__, *parts)

    def __hash__(self) -> int:
        return hash(self.key)

    def __bool__(self) -> bool:
        raise ExprError(
            f"'{self}' has one truth value per row, so Python's and, or, not, if cannot read it.",
            remedy="Use & for and, | for or, ~ for not, with parentheses round each side.",
        )

    def __str__(self) -> str:
        from caesura.expr.printing import text

        return text(self)

    def __repr__(self) -> str:
        return f"Expr({self})"

    # Operators.

    def __add__(self, other: object) -> Expr:
        return self.plus_time(other) if isinstance(other, dt.timedelta) else apply("add", self, other)

    def __radd__(self, other: object) -> Expr:
        return self.plus_time(other) if isinstance(other, dt.timedelta) else apply("add", other, self)

    def __sub__(self, other: object) -> Expr:
        return self.minus_time(other) if isinstance(other, dt.timedelta) else apply("subtract", self, other)

    def __rsub__(self, other: object) -> Expr:
        return apply("subtract", other, self)

    def __mul__(self, other: object) -> Expr:
        return apply("multiply", self, other)

    def __rmul__(self, other: object) -> Expr:
        return apply("multiply", other, self)

    def __truediv__(self, other: object) -> Expr:
        return apply("divide", self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return apply("divide", other, self)

    def __mod__(self, other: object) -> Expr:
        return apply("remainder", self, other)

    def __rmod__(self, other: object) -> Expr:
        return apply("remainder", other, self)

    def __pow__(self, other: object) -> Expr:
        return self.power(other)

    def __neg__(self) -> Expr:
        return apply("negate", self)

    def __abs__(self) -> Expr:
        return self.abs()

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return apply("equal", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return apply("not_equal", self, other)

    def __lt__(self, other: object) -> Expr:
        return apply("less", self, other)

    def __le__(self, other: object) -> Expr:
        return apply("less_equal", self, other)

    def __gt__(self, other: object) -> Expr:
        return apply("greater", self, other)

    def __ge__(self, other: object) -> Expr:
        return apply("greater_equal", self, other)

    def __and__(self, other: object) -> Expr:
        return apply("and", self, other)

    def __rand__(self, other: object) -> Expr:
        return apply("and", other, self)

    def __or__(self, other: object) -> Expr:
        return apply("or", self, other)

    def __ror__(self, other: object) -> Expr:
        return apply("or", other, self)

    def __invert__(self) -> Expr:
        return apply("not", self)

    # Names, types, nulls, sets.

    def alias(self, name: str) -> Expr:
        """The same value under another output name."""
        return Alias(self, name)

    def cast(self, type: pa.DataType | str) -> Expr:
        """The value as another type; what cannot be converted becomes null."""
        return Cast(self, as_type(type))

    def field(self, name: str) -> Expr:
        """One field of a struct."""
        return Field(self, name)

    def is_null(self) -> Expr:
        return apply("is_null", self)

    def is_not_null(self) -> Expr:
        return apply("is_not_null", self)

    def eq_null_safe(self, other: object) -> Expr:
        """Equality that answers for nulls too: two nulls are equal, one is not."""
        return apply("equal_null_safe", self, other)

    def isin(self, values: Iterable[object]) -> Expr:
        """SQL's IN over plain values: null when not found among values that hold a null."""
        if isinstance(values, str | bytes):
            raise ExprError(
                f"isin wants a list of values, got {values!r}.", remedy=f"Write .isin([{values!r}])."
            )
        return Member(self, tuple(_constant("isin", v) for v in values))

    def between(self, low: object, high: object) -> Expr:
        """Both bounds included."""
        return apply("between", self, low, high)

    def coalesce(self, *others: object) -> Expr:
        return apply("coalesce", self, *others)

    def nullif(self, other: object) -> Expr:
        return apply("nullif", self, other)

    def if_null(self, other: object) -> Expr:
        return apply("coalesce", self, other)

    # Text.

    def lower(self) -> Expr:
        return apply("lower", self)

    def upper(self) -> Expr:
        return apply("upper", self)

    def length(self) -> Expr:
        return apply("length", self)

    def trim(self) -> Expr:
        return apply("trim", self)

    def ltrim(self) -> Expr:
        return apply("ltrim", self)

    def rtrim(self) -> Expr:
        return apply("rtrim", self)

    def substring(self, pos: int, length: int | None = None) -> Expr:
        """Characters from `pos` on, counted from 1, or from the end when negative."""
        return apply("substring", self, options=(pos,) if length is None else (pos, length))

    def concat(self, *others: object) -> Expr:
        return apply("concat", self, *others)

    def contains(self, part: str | Expr) -> Expr:
        """Whether a text stands anywhere in this one: a constant, or another column's in each row."""
        if isinstance(part, Expr) and not isinstance(part, Constant):
            return apply("contains_each", self, part)
        return apply("contains", self, options=(_text("contains", part),))

    def startswith(self, prefix: str) -> Expr:
        return apply("startswith", self, options=(_text("startswith", prefix),))

    def endswith(self, suffix: str) -> Expr:
        return apply("endswith", self, options=(_text("endswith", suffix),))

    def like(self, pattern: str) -> Expr:
        """SQL's LIKE: % for any text, _ for one character, \\ before either to mean itself."""
        return apply("like", self, options=(_text("like", pattern),))

    def rlike(self, pattern: str) -> Expr:
        """Whether the regular expression (RE2) is found anywhere in the text."""
        return apply("rlike", self, options=(_text("rlike", pattern),))

    def replace(self, search: str, replacement: str = "") -> Expr:
        return apply("replace", self, options=(_text("replace", search), _text("replace", replacement)))

    def split_part(self, delimiter: str, part: int) -> Expr:
        """The part-th piece counted from 1, from the end when negative, '' when there is none."""
        return apply("split_part", self, options=(_text("split_part", delimiter), part))

    # Numbers.

    def abs(self) -> Expr:
        return apply("abs", self)

    def round(self, digits: int = 0) -> Expr:
        """Rounded half away from zero."""
        return apply("round", self, options=(digits,))

    def floor(self) -> Expr:
        return apply("floor", self)

    def ceil(self) -> Expr:
        return apply("ceil", self)

    def sqrt(self) -> Expr:
        return apply("sqrt", self)

    def exp(self) -> Expr:
        return apply("exp", self)

    def ln(self) -> Expr:
        return apply("ln", self)

    def power(self, exponent: object) -> Expr:
        return apply("power", self, exponent)

    def sign(self) -> Expr:
        return apply("sign", self)

    def greatest(self, *others: object) -> Expr:
        """The greatest that is not null; NaN is above every number."""
        return apply("greatest", self, *others)

    def least(self, *others: object) -> Expr:
        """The least that is not null."""
        return apply("least", self, *others)

    # Bits of whole numbers.

    def bit_and(self, other: object) -> Expr:
        return apply("bit_and", self, other)

    def bit_or(self, other: object) -> Expr:
        return apply("bit_or", self, other)

    def bit_xor(self, other: object) -> Expr:
        return apply("bit_xor", self, other)

    def shift_left(self, by: object) -> Expr:
        """The bits moved up so many places, in 64 bits: lit(1).shift_left(n) is the n-th bit."""
        return apply("shift_left", self, by)

    # Time.

    def year(self) -> Expr:
        return apply("year", self)

    def month(self) -> Expr:
        return apply("month", self)

    def day(self) -> Expr:
        return apply("day", self)

    def hour(self) -> Expr:
        return apply("hour", self)

    def minute(self) -> Expr:
        return apply("minute", self)

    def second(self) -> Expr:
        return apply("second", self)

    def day_of_week(self) -> Expr:
        """1 for Sunday to 7 for Saturday."""
        return apply("day_of_week", self)

    def date_trunc(self, unit: str) -> Expr:
        """The start of the year, quarter, month, week, day, hour, minute... it falls in."""
        return apply("date_trunc", self, options=(unit.lower(),))

    def unix_micros(self) -> Expr:
        return apply("unix_micros", self)

    def timestamp_micros(self) -> Expr:
        """The timestamp so many microseconds after 1970: the inverse of unix_micros."""
        return apply("timestamp_micros", self)

    def to_timestamp(self) -> Expr:
        return self.cast("timestamp")

    def plus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved later: plus_time("1h 30m"), plus_time(timedelta(days=1))."""
        return apply("plus_time", self, options=(micros(duration),))

    def minus_time(self, duration: Duration) -> Expr:
        """A timestamp or date moved earlier."""
        return apply("plus_time", self, options=(-micros(duration),))


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expr):
    """A column, by name."""

    name: str


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expr):
    """A value known when the plan is built, with its type."""

    value: Any
    type: pa.DataType

    @property
    def scalar(self) -> pa.Scalar:
        return pa.scalar(self.value, self.type)


@dataclass(frozen=True, eq=False, repr=False)
class Boundary(Expr):
    """One end of the row's lifetime."""

    side: Literal["start", "end"]


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Expr):
    """A built-in operator or function; `options` are plain parameters such as a pattern."""

    name: str
    args: tuple[Expr, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Cast(Expr):
    """A conversion; values that cannot be converted become null."""

    arg: Expr
    type: pa.DataType


@dataclass(frozen=True, eq=False, repr=False)
class Member(Expr):
    """SQL's IN over constants."""

    arg: Expr
    values: tuple[Constant, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Alias(Expr):
    """A value with an output name."""

    arg: Expr
    name: str


@dataclass(frozen=True, eq=False, repr=False)
class Field(Expr):
    """A field of a struct."""

    arg: Expr
    name: str


@dataclass(frozen=True, eq=False, repr=False)
class Case(Expr):
    """The value of the first branch whose condition is true, else the default."""

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr

    def when(self, condition: object, value: object) -> Case:
        return Case((*self.branches, (as_expr(condition), as_expr(value))), self.default)

    def otherwise(self, value: object) -> Expr:
        return Case(self.branches, as_expr(value))


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expr):
    """A user's own function: applied row by row, or to whole columns when vectorised."""

    name: str
    args: tuple[Expr, ...]
    function: Callable[..., Any]
    type: pa.DataType
    vectorised: bool | Literal["arrow"] = False
    takes: tuple[pa.DataType | None, ...] = ()
    """The types that its parameters are annotated with; None for any."""


def col(name: str) -> Expr:
    """A column, by name."""
    return Column(name)


def start() -> Expr:
    """The row's lifetime start (LE), in the stream's time type."""
    return Boundary("start")


def end() -> Expr:
    """The row's lifetime end (RE), in the stream's time type."""
    return Boundary("end")


def when(condition: object, value: object) -> Case:
    """A chain of conditions, null where none holds and no `.otherwise` is given.

    >>> when(col("v") > 60, "fast").otherwise("slow")
    Expr(CASE WHEN v > 60 THEN 'fast' ELSE 'slow' END)
    """
    return Case(((as_expr(condition), as_expr(value)),), lit(None))


def apply(name: str, *args: object, options: tuple[Any, ...] = ()) -> Expr:
    """A built-in by name; plain values among the arguments become constants."""
    return Apply(name, tuple(as_expr(a) for a in args), options)


def lit(value: object, type: pa.DataType | str | None = None) -> Expr:
    """A constant, typed as Spark types it: a Python int is an int, or a bigint when it must be.

    >>> lit(3).type, lit(2**40).type, lit(3, "double").type
    (DataType(int32), DataType(int64), DataType(double))
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        value = value.item() if isinstance(value.item(), dt.date | float) else pa.scalar(value)
    if isinstance(value, pa.Scalar):
        raw = value.value if pa.types.is_timestamp(value.type) else value.as_py()
        return Constant(raw, as_type(type) if type is not None else value.type)
    wanted = as_type(type) if type is not None else type_of_value(value)
    try:
        pa.scalar(value, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as wrong:
        raise ExprError(
            f"{value!r} is no {describe(wanted)}.", remedy="Give a value of that type, or leave the type out."
        ) from wrong
    return Constant(value, wanted)


def as_expr(value: object) -> Expr:
    """An expression as it is; any other value, text included, as a constant."""
    return value if isinstance(value, Expr) else lit(value)


def as_column(value: object) -> Expr:
    """Text as a column name; an expression as it is; any other value as a constant."""
    return Column(value) if isinstance(value, str) else as_expr(value)


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are the same tree."""
    return a is b or a.key == b.key


def _constant(where: str, value: object) -> Constant:
    made = as_expr(value)
    if isinstance(made, Constant):
        return made
    raise ExprError(
        f"{where} wants plain values, got '{made}'.", remedy="Compare with == and join with | instead."
    )


def _text(where: str, value: object) -> str:
    if isinstance(value, Constant):
        value = value.value
    if isinstance(value, str):
        return value
    raise ExprError(
        f"{where} wants a plain text to look for, got '{value}'.", remedy=f"Write .{where}('...')."
    )


def _key_of(part: object) -> Hashable:
    match part:
        case Expr():
            return part.key
        case tuple():
            return tuple(_key_of(p) for p in part)
        case None | bool() | int() | float() | str() | bytes() | Decimal() | dt.date():
            return (type(part).__name__, repr(part))
    if callable(part):
        return code_key(part)
    return part if isinstance(part, Hashable) else id(part)
