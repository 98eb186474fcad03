"""`bool_or` and `bool_and`: whether a condition holds for some, or for all, of the values that are not null.

They are the greatest and the least of truth values, kept and shared as `max` and `min` are.
"""

from __future__ import annotations

import pyarrow as pa

from caesura.expr import Expr
from caesura.ops.aggregate.kinds.extremes import GREATEST, LEAST, greatest, least, share, state_of
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    define,
    either,
    made,
    refused,
)


def bool_or(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Whether some value is true.

    Parameters
    ----------
    value
        A column's name, or an expression of true and false. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``boolean``; null where there is no value.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "ok": True}, {"t": 2, "ok": None}, {"t": 3, "ok": False}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.bool_or("ok")).run())
     LE  RE | x    |
      0  10 | true | +
    """
    return made("bool_or", value, either(where, filter))


def any(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Whether some value is true; the same as `bool_or`.

    Parameters
    ----------
    value
        A column's name, or an expression of true and false. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``boolean``; null where there is no value.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "ok": True}, {"t": 2, "ok": None}, {"t": 3, "ok": False}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.any("ok")).run())
     LE  RE | x    |
      0  10 | true | +
    """
    return bool_or(value, where=where, filter=filter)


def some(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Whether some value is true; the same as `bool_or`.

    Parameters
    ----------
    value
        A column's name, or an expression of true and false. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``boolean``; null where there is no value.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "ok": True}, {"t": 2, "ok": None}, {"t": 3, "ok": False}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.some("ok")).run())
     LE  RE | x    |
      0  10 | true | +
    """
    return bool_or(value, where=where, filter=filter)


def bool_and(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Whether every value is true.

    Parameters
    ----------
    value
        A column's name, or an expression of true and false. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``boolean``; null where there is no value.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "ok": True}, {"t": 2, "ok": None}, {"t": 3, "ok": False}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.bool_and("ok")).run())
     LE  RE | x     |
      0  10 | false | +
    """
    return made("bool_and", value, either(where, filter))


def all(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Whether every value is true; the same as `bool_and`.

    Parameters
    ----------
    value
        A column's name, or an expression of true and false. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``boolean``; null where there is no value.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "ok": True}, {"t": 2, "ok": None}, {"t": 3, "ok": False}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.all("ok")).run())
     LE  RE | x     |
      0  10 | false | +
    """
    return bool_and(value, where=where, filter=filter)


def _truth(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    if pa.types.is_boolean(t):
        return t
    raise refused(aggregate, t, "a condition", remedy="Compare it, for example col(...) > 0.")


define(AggregateKind("bool_or", _truth, greatest, state_of("max", GREATEST), share, "up"))
define(AggregateKind("bool_and", _truth, least, state_of("min", LEAST), share, "down"))
