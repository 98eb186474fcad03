"""Functions of maps, structs and the elements of lists, and of a row for each element.

>>> map_keys("m"), transform("a", lambda x: x + 1)
(Expr(map_keys(m)), Expr(transform(a, x -> x + 1)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caesura.errors import ExprError
from caesura.expr.lambdas import each, fold
from caesura.expr.nodes import Expr, apply, as_column, as_expr
from caesura.expr.rewrite import name_of

__all__ = [
    "aggregate",
    "create_map",
    "exists",
    "explode",
    "explode_outer",
    "filter",
    "forall",
    "map_contains_key",
    "map_entries",
    "map_keys",
    "map_values",
    "posexplode",
    "posexplode_outer",
    "struct",
    "transform",
]


def aggregate(
    x: object,
    initialValue: object,
    merge: Callable[..., Any],
    finish: Callable[..., Any] | None = None,
) -> Expr:
    """A list folded into one value.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    initialValue
        What it begins with: a value, or an expression; a text is itself, not a column's name.
    merge
        A function of the value so far and the next element: ``lambda acc, x: acc + x``.
    finish
        A function of the last value; without it that is the answer.

    Returns
    -------
    Expr
        The type of what ``merge`` gives, or ``finish``; the first value for an empty list, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.aggregate("a", 0, lambda acc, x: acc + x), a=[[1, 2, 3], [], None])
    [6, 0, None]
    """
    return fold(x, initialValue, merge, finish)


def create_map(first: object, *others: object) -> Expr:
    """A map of keys and values: a key, its value, and so on.

    Parameters
    ----------
    first, *others
        Columns' names, expressions or values; as many keys as values.

    Returns
    -------
    Expr
        A map. A row with a key that is null or there twice is refused.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura import lit
    >>> from caesura.testing import values
    >>> values(F.create_map(lit("x"), "a", lit("y"), 0), a=[1, None])
    [[('x', 1), ('y', 0)], [('x', None), ('y', 0)]]
    """
    parts = [as_column(v) for v in (first, *others)]
    if len(parts) % 2:
        raise ExprError("the last key has no value.", remedy="Write create_map(key, value, key, value, ...).")
    return apply("create_map", *parts)


def exists(x: object, f: Callable[..., Any]) -> Expr:
    """Whether a condition is true for an element.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    f
        A function of the element: ``lambda x: x > 1``.

    Returns
    -------
    Expr
        ``boolean``; null for null, and where it is true for none and null for one.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.exists("a", lambda x: x > 2), a=[[1, 3], [1], [None], None])
    [True, False, None, None]
    """
    return each("exists", x, f)


def explode(x: object) -> Expr:
    """A row for each element of a list or entry of a map.

    It is one column of `select` or `with_columns`; a row whose list is null or empty goes.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        The element, or the columns ``key`` and ``value`` of a map.

    Notes
    -----
    Each new row has the lifetime of the old one, and a correction corrects all of them. State: none.

    See Also
    --------
    Stream.explode : the same as a step.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import functions as F
    >>> rows = cz.from_rows([{"t": 1, "a": [7, 8]}, {"t": 2, "a": []}], time="t")
    >>> print(rows.select(x=F.explode("a")).run())
     LE  RE | x |
      1  2  | 7 | +
      1  2  | 8 | +
    """
    return apply("explode", as_column(x))


def explode_outer(x: object) -> Expr:
    """As `explode`, and one row with null for a list that is null or empty.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        The element, or the columns ``key`` and ``value`` of a map.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import functions as F
    >>> rows = cz.from_rows([{"t": 1, "a": [7, 8]}, {"t": 2, "a": []}], time="t")
    >>> print(rows.select(x=F.explode_outer("a")).run())
     LE  RE | x    |
      1  2  | 7    | +
      1  2  | 8    | +
      2  3  | null | +
    """
    return apply("explode_outer", as_column(x))


def filter(x: object, f: Callable[..., Any]) -> Expr:
    """The elements of a list for which a condition is true.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    f
        A function of the element, and of its place from 0 on if it takes two: ``lambda x: x > 1``.

    Returns
    -------
    Expr
        The same type; null for null. An element for which the condition is null is left out.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.filter("a", lambda x: x > 1), a=[[1, None, 3], None])
    [[3], None]
    """
    return each("filter", x, f)


def forall(x: object, f: Callable[..., Any]) -> Expr:
    """Whether a condition is true for all elements.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    f
        A function of the element: ``lambda x: x > 1``.

    Returns
    -------
    Expr
        ``boolean``; null for null, and where it is false for none and null for one. True of an empty
        list.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.forall("a", lambda x: x > 0), a=[[1, 3], [0], [None], []])
    [True, False, None, True]
    """
    return each("forall", x, f)


def map_contains_key(x: object, key: object) -> Expr:
    """Whether a map has a key.

    Parameters
    ----------
    x
        A column's name, or an expression: maps.
    key
        A value, or an expression; a text is itself, not a column's name.

    Returns
    -------
    Expr
        ``boolean``; null where either is null.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> maps = pa.array([[("x", 1)], [], None], pa.map_(pa.string(), pa.int64()))
    >>> values(F.map_contains_key("m", "x"), m=maps)
    [True, False, None]
    """
    return apply("map_contains_key", as_column(x), as_expr(key))


def map_entries(x: object) -> Expr:
    """The entries of a map as structs of key and value, in the order of its keys.

    Parameters
    ----------
    x
        A column's name, or an expression: maps.

    Returns
    -------
    Expr
        A list of structs; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import pyarrow as pa
    >>> from caesura.testing import values
    >>> values(F.map_entries("m"), m=pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64())))
    [[{'key': 'x', 'value': 1}], None]
    """
    return apply("map_entries", as_column(x))


def map_keys(x: object) -> Expr:
    """The keys of a map, in their order.

    Parameters
    ----------
    x
        A column's name, or an expression: maps.

    Returns
    -------
    Expr
        A list of keys; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import pyarrow as pa
    >>> from caesura.testing import values
    >>> values(F.map_keys("m"), m=pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64())))
    [['x'], None]
    """
    return apply("map_keys", as_column(x))


def map_values(x: object) -> Expr:
    """The values of a map, in the order of its keys.

    Parameters
    ----------
    x
        A column's name, or an expression: maps.

    Returns
    -------
    Expr
        A list of values; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> import pyarrow as pa
    >>> from caesura.testing import values
    >>> values(F.map_values("m"), m=pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64())))
    [[1], None]
    """
    return apply("map_values", as_column(x))


def posexplode(x: object) -> Expr:
    """As `explode`, with the element's place, from 0 on, in a column ``pos``.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        Two columns, ``pos`` and the element; or ``pos``, ``key`` and ``value`` of a map.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import functions as F
    >>> rows = cz.from_rows([{"t": 1, "a": [7, 8]}, {"t": 2, "a": []}], time="t")
    >>> print(rows.select(F.posexplode("a")).run())
     LE  RE | pos col |
      1  2  | 0   7   | +
      1  2  | 1   8   | +
    """
    return apply("posexplode", as_column(x))


def posexplode_outer(x: object) -> Expr:
    """As `explode_outer`, with the element's place, from 0 on, in a column ``pos``.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        Two columns, ``pos`` and the element; or ``pos``, ``key`` and ``value`` of a map. Both are null
        for a list that is null or empty.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import functions as F
    >>> rows = cz.from_rows([{"t": 1, "a": [7, 8]}, {"t": 2, "a": []}], time="t")
    >>> print(rows.select(F.posexplode_outer("a")).run())
     LE  RE | pos  col  |
      1  2  | 0    7    | +
      1  2  | 1    8    | +
      2  3  | null null | +
    """
    return apply("posexplode_outer", as_column(x))


def struct(first: object, *others: object) -> Expr:
    """A struct of these values, by their names.

    Parameters
    ----------
    first, *others
        Columns' names, or expressions with an `alias`.

    Returns
    -------
    Expr
        A struct, never null; a null is a field as others are.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura import col
    >>> from caesura.testing import values
    >>> values(F.struct("a", (col("a") + 1).alias("b")), a=[1, None])
    [{'a': 1, 'b': 2}, {'a': None, 'b': None}]
    """
    values = [as_column(v) for v in (first, *others)]
    return apply("struct", *values, options=tuple(name_of(v) for v in values))


def transform(x: object, f: Callable[..., Any]) -> Expr:
    """A list of what a function makes of each element.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    f
        A function of the element, and of its place from 0 on if it takes two: ``lambda x: x + 1``. It is
        asked once for an expression, not for every element.

    Returns
    -------
    Expr
        A list of what it gives; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.transform("a", lambda x: x * 10), a=[[1, None, 3], None])
    [[10, None, 30], None]
    >>> values(F.transform("a", lambda x, i: x + i), a=[[5, 5]])
    [[5, 6]]
    """
    return each("transform", x, f)
