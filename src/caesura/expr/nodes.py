"""Column expressions: one small tree of frozen nodes, written with Python's own operators.

`==` builds an expression, so two trees are compared with `same` or through their hashable `.key`.

>>> (col("speed") * 2 > 100) & col("segment").is_not_null()
Expr(speed * 2 > 100 AND segment IS NOT NULL)
>>> same(col("a") + 1, col("a") + 1), same(lit(1), lit(1.0))
(True, False)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import ExprError
from caesura.expr.code import code_key
from caesura.expr.methods.nested import NestedMethods
from caesura.expr.methods.operators import Operators
from caesura.expr.methods.pieces import PieceMethods
from caesura.expr.methods.sets import SetMethods
from caesura.expr.methods.text import TextMethods
from caesura.expr.methods.values import ValueMethods
from caesura.expr.types import as_type, describe, type_of_value
from caesura.plain_arrays import plain_scalar


class Expr(Operators, ValueMethods, TextMethods, PieceMethods, SetMethods, NestedMethods):
    """An expression over a row's columns and lifetime; every method builds a larger one."""

    @cached_property
    def key(self) -> Hashable:
        """A hashable stand-in that is equal exactly for structurally equal expressions."""
        kind = type(self)
        return (kind.__name__, *[_key_of(getattr(self, n)) for n in _names(kind)])  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(self.key)

    def __bool__(self) -> bool:
        raise ExprError(
            f"'{self}' has one truth value per row, so Python's and, or, not, if cannot read it.",
            remedy="Use & for and, | for or, ~ for not, with parentheses round each side.",
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """PySpark's names for methods; any other is refused with the one that was meant."""
            from caesura.expr.idioms import meant

            return getattr(self, meant(name))

    def __str__(self) -> str:
        from caesura.expr.printing import text

        return text(self)

    def __repr__(self) -> str:
        return f"Expr({self})"


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expr):
    """A column, by name."""

    name: str


class SideColumn(Column):
    """A column that says whose it is: the left or the right side of a join, or a stream's."""

    def __init__(self, name: str, side: object) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "side", side)

    side: object

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to a worker it is a plain column: a plan does not carry another along."""
        return Column, (self.name,)

    @cached_property
    def key(self) -> Hashable:
        return Column(self.name).key


class AggregateValue(Column):
    """The column that an aggregate will have; only `agg` can compute it."""

    def __init__(self, name: str, aggregate: Any) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "aggregate", aggregate)

    aggregate: Any


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expr):
    """A value known when the plan is built, with its type."""

    value: Any
    type: pa.DataType

    @property
    def scalar(self) -> pa.Scalar:
        return plain_scalar(self.value, self.type)


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
    """A conversion; a value that cannot be converted is refused, or null where it only attempts."""

    arg: Expr
    type: pa.DataType
    attempts: bool = False


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
        """A further condition, looked at where none before it is true.

        Parameters
        ----------
        condition
            An expression of true and false; null is not true.
        value
            What a row has where it holds.

        Returns
        -------
        Case
            The longer chain.

        Examples
        --------
        >>> from caesura import col, when
        >>> from caesura.testing import values
        >>> values(when(col("v") > 60, "fast").when(col("v") > 30, "fair"), v=[70, 40, 9])
        ['fast', 'fair', None]
        """
        return Case((*self.branches, (as_expr(condition), as_expr(value))), self.default)

    def otherwise(self, value: object) -> Expr:
        """What a row has where no condition is true.

        Parameters
        ----------
        value
            A value, or an expression.

        Returns
        -------
        Expr
            The whole choice.

        Examples
        --------
        >>> from caesura import col, when
        >>> from caesura.testing import values
        >>> values(when(col("v") > 60, 1).otherwise(0), v=[70, 9, None])
        [1, 0, 0]
        """
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
    """A column, by name.

    Parameters
    ----------
    name
        The column's name; ``"a.b"`` is the field ``b`` of a struct ``a`` where no column has that name.

    Returns
    -------
    Expr
        The column's value in each row.

    See Also
    --------
    lit : a constant.

    Examples
    --------
    >>> from caesura import col
    >>> from caesura.testing import values
    >>> values(col("a") + 1, a=[1, None])
    [2, None]
    """
    if not isinstance(name, str):
        raise ExprError(f"a column is known by its name; got {name!r}.", remedy="Write col('id').")
    return Column(name)


def left(name: str) -> Expr:
    """A column of the left side of a join.

    Parameters
    ----------
    name
        The column's name.

    Returns
    -------
    Expr
        An expression for ``on=`` and ``where=`` of a join.

    See Also
    --------
    right : a column of the right side.

    Examples
    --------
    >>> import caesura as cz
    >>> people = cz.from_rows([{"t": 1, "id": 7, "name": "ann"}], time="t").forever()
    >>> sales = cz.from_rows([{"t": 3, "person": 7, "sum": 20}], time="t")
    >>> print(people.join(sales, on=cz.left("id") == cz.right("person")).run())
     LE  RE | id name sum |
      3  4  | 7  ann  20  | +
    """
    return SideColumn(name, "left")


def right(name: str) -> Expr:
    """A column of the right side of a join.

    Parameters
    ----------
    name
        The column's name.

    Returns
    -------
    Expr
        An expression for ``on=`` and ``where=`` of a join.

    See Also
    --------
    left : a column of the left side.

    Examples
    --------
    >>> import caesura as cz
    >>> bids = cz.from_rows([{"t": 1, "item": 7, "bid": 20}, {"t": 1, "item": 7, "bid": 5}], time="t")
    >>> items = cz.from_rows([{"t": 0, "item": 7, "least": 10}], time="t").forever()
    >>> print(bids.join(items, on="item", where=cz.left("bid") >= cz.right("least")).run())
     LE  RE | item bid least |
      1  2  | 7    20  10    | +
    """
    return SideColumn(name, "right")


def start() -> Expr:
    """The row's lifetime start (LE), in the stream's time type.

    Returns
    -------
    Expr
        A timestamp, or a whole number where the stream counts ticks; never null.

    See Also
    --------
    end : where it ends.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}], time="t")
    >>> print(rows.select("v", since=cz.start()).run())
     LE  RE | v since |
      1  2  | 5 1     | +
    """
    return Boundary("start")


def end() -> Expr:
    """The row's lifetime end (RE), in the stream's time type.

    Returns
    -------
    Expr
        A timestamp, or a whole number where the stream counts ticks; the greatest one where the lifetime
        has no end. Never null.

    See Also
    --------
    start : where it begins.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}], time="t")
    >>> print(rows.select("v", until=cz.end()).run())
     LE  RE | v until |
      1  2  | 5 2     | +
    """
    return Boundary("end")


def when(condition: object, value: object) -> Case:
    """A chain of conditions: the value of the first that is true.

    Parameters
    ----------
    condition
        An expression of true and false; null is not true.
    value
        What a row has where it holds: a value, or an expression; a text is itself.

    Returns
    -------
    Case
        An expression that goes on with ``.when(condition, value)`` and ends with ``.otherwise(value)``;
        null where none holds and there is no `otherwise`. A row is only asked for the value that it
        takes.

    Examples
    --------
    >>> from caesura import col, when
    >>> from caesura.testing import values
    >>> values(when(col("v") > 60, "fast").otherwise("slow"), v=[70, 9, None])
    ['fast', 'slow', 'slow']
    """
    return Case(((as_expr(condition), as_expr(value)),), lit(None))


def apply(name: str, *args: object, options: tuple[Any, ...] = ()) -> Expr:
    """A built-in by name; plain values among the arguments become constants."""
    return Apply(name, tuple(as_expr(a) for a in args), options)


def lit(value: object, type: pa.DataType | str | None = None) -> Expr:
    """A constant, typed as Spark types it.

    Parameters
    ----------
    value
        A Python value, a scalar of NumPy or Arrow, or an expression, which stays as it is. An int is an
        int, or a bigint where it must be.
    type
        The type that it has: of Arrow, or by its Spark name; without it, the value's own.

    Returns
    -------
    Expr
        The constant.

    See Also
    --------
    col : a column.

    Examples
    --------
    >>> from caesura import lit
    >>> lit(3).type, lit(2**40).type, lit(3, "double").type
    (DataType(int32), DataType(int64), DataType(double))
    >>> from caesura.testing import values
    >>> values(lit("x").concat("y"))
    ['xy']
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        value = value.item() if isinstance(value.item(), dt.date | float) else pa.scalar(value)
    if isinstance(value, pa.Scalar):
        raw = value.value if pa.types.is_timestamp(value.type) else value.as_py()
        return Constant(raw, as_type(type) if type is not None else value.type)
    if isinstance(value, list):
        value = _frozen(value)
    wanted = as_type(type) if type is not None else type_of_value(value)
    try:
        plain_scalar(value, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as wrong:
        raise ExprError(
            f"{value!r} is no {describe(wanted)}.", remedy="Give a value of that type, or leave the type out."
        ) from wrong
    return Constant(value, wanted)


def of_pyspark(value: object) -> bool:
    """Whether a value is PySpark's, such as a column of it."""
    return type(value).__module__.startswith("pyspark.sql")


def _frozen(value: object) -> object:
    """Lists as tuples, so that a constant is one for good."""
    return tuple(_frozen(v) for v in value) if isinstance(value, list | tuple) else value


def as_expr(value: object) -> Expr:
    """An expression as it is; any other value, text included, as a constant."""
    if isinstance(value, Expr):
        return value
    convert = getattr(type(value), "__caesura_expr__", None)
    if convert is None and of_pyspark(value):
        from caesura.expr.spark_columns import translated

        convert = translated
    made: Expr = lit(value) if convert is None else convert(value)
    return made


def as_column(value: object) -> Expr:
    """Text as a column name; an expression as it is; any other value as a constant."""
    return Column(value) if isinstance(value, str) else as_expr(value)


def as_predicate(value: object) -> Expr:
    """Text as SQL; an expression as it is; any other value as a constant."""
    if not isinstance(value, str):
        return as_expr(value)
    from caesura.expr.sql_text import from_text

    return from_text(value)


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are the same tree."""
    return a is b or a.key == b.key


def plain_value(where: str, value: object) -> Constant:
    """A constant; refuses what differs from row to row."""
    made = as_expr(value)
    if isinstance(made, Constant):
        return made
    raise ExprError(
        f"{where} wants plain values, got '{made}'.", remedy="Compare with == and join with | instead."
    )


def whole_number(name: str, value: object) -> int:
    """A whole number that 32 bits hold, as Spark has such arguments; anything else is refused."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**31:
        raise ExprError(
            f"{name} takes a whole number within 32 bits, not {value!r}.", remedy=f"Write {name}(..., 3)."
        )
    return value


def plain_text(where: str, value: object) -> str:
    """A text; refuses what differs from row to row."""
    if isinstance(value, Constant):
        value = value.value
    if isinstance(value, str):
        return value
    raise ExprError(
        f"{where} wants a plain text to look for, got '{value}'.", remedy=f"Write .{where}('...')."
    )


@cache
def _names(kind: type[Expr]) -> tuple[str, ...]:
    """The fields of expressions of a class."""
    return tuple(f.name for f in fields(kind))  # type: ignore[arg-type]


def _key_of(part: object) -> Hashable:
    if type(part) is str:
        return ("str", repr(part))
    match part:
        case Expr():
            return part.key
        case tuple():
            return tuple(_key_of(p) for p in part)
        case None | bool() | int() | float() | str() | bytes() | Decimal() | dt.date():
            return (type(part).__name__, repr(part))
    return part if isinstance(part, Hashable) and not callable(part) else code_key(part)
