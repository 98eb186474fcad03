"""Aggregates that give all the values, as a list or as one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, when
from caesura.expr.nodes import apply
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.kinds.picked import BAG
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    always,
    define,
    either,
    made,
    refused,
)
from caesura.plan import here


def collect(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """All values in order, copies included, as a list.

    Parameters
    ----------
    value
        A column's name, or an expression. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        A list in ascending order, copies included; empty where there is no value. Spark's has no order.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    collect_set : the different ones.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.collect("v")).run())
     LE  RE | x     |
      0  10 | [2,5] | +
    """
    return made("collect", value, either(where, filter))


def collect_list(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """All values in order, copies included; the same as `collect`.

    Parameters
    ----------
    value
        A column's name, or an expression. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        A list in ascending order, copies included; empty where there is no value. Spark's has no order.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.collect_list("v")).run())
     LE  RE | x     |
      0  10 | [2,5] | +
    """
    return collect(value, where=where, filter=filter)


def string_agg(
    value: str | Expr,
    separator: str = "",
    *,
    order: str | Expr | Sequence[str | Expr] = (),
    descending: bool = False,
    where: Condition = None,
    filter: Condition = None,
) -> Aggregate:
    """The texts, copies included, joined with a separator.

    Parameters
    ----------
    value
        A column's name, or an expression of texts. Nulls do not count.
    separator
        What stands between two texts.
    order
        A column's name, an expression, or several: the texts stand in this order, nulls first. Those that
        are equal there, or all without it, stand in their own order.
    descending
        Whether all of it is turned around.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``string``; null where there is no value.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5, "who": "ann"}, {"t": 2, "v": 9, "who": "bob"}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.string_agg("who", "-", order="v", descending=True)).run())
     LE  RE | x       |
      0  10 | bob-ann | +
    """
    if not isinstance(separator, str):
        raise PlanError(
            f"{separator!r} is no text to join texts with.",
            remedy="Give a separator, for example string_agg('name', ', ').",
        ).at("string_agg", here())
    keys = [order] if isinstance(order, str | Expr) else list(order)
    if not keys and not descending:
        return made("string_agg", value, either(where, filter), separator)
    text, by = as_column(value), [as_column(key) for key in keys]
    names = (*(f"order{i + 1}" for i in range(len(by))), "value")
    both = when(text.is_not_null(), apply("struct", *by, text, options=names))
    shown = f"{', '.join(map(str, by)) or text}{' descending' if descending else ''}"
    condition = either(where, filter)
    ordered = made("string_agg", both, condition, (separator, bool(descending)))
    end = "" if condition is None else f", where {condition}"
    return replace(ordered, shown=f"string_agg({text}, {separator!r}, by {shown}{end})")


def listagg(
    value: str | Expr,
    separator: str = "",
    *,
    order: str | Expr | Sequence[str | Expr] = (),
    descending: bool = False,
    where: Condition = None,
    filter: Condition = None,
) -> Aggregate:
    """The texts, copies included, joined with a separator; the same as `string_agg`.

    Parameters
    ----------
    value
        A column's name, or an expression of texts. Nulls do not count.
    separator
        What stands between two texts.
    order
        A column's name, an expression, or several: the texts stand in this order, nulls first. Those that
        are equal there, or all without it, stand in their own order.
    descending
        Whether all of it is turned around.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``string``; null where there is no value.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5, "who": "ann"}, {"t": 2, "v": 9, "who": "bob"}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.listagg("who", "-", order="v", descending=True)).run())
     LE  RE | x       |
      0  10 | bob-ann | +
    """
    return string_agg(value, separator, order=order, descending=descending, where=where, filter=filter)


def collect_set(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The different values in order, as a list.

    Parameters
    ----------
    value
        A column's name, or an expression. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        A list in ascending order; empty where there is no value. Spark's has no order.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    collect : with copies.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.collect_set("v")).run())
     LE  RE | x     |
      0  10 | [2,5] | +
    """
    return made("collect_set", value, either(where, filter))


def _collected(_: Aggregate, t: pa.DataType) -> pa.DataType:
    return pa.list_(t)


def _text(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    if isinstance(aggregate.option, tuple) and pa.types.is_struct(t):
        t = t.field(t.num_fields - 1).type
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return t
    raise refused(aggregate, t, "a text", remedy="Cast the column, for example col(...).cast('string').")


def _joined(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    held, count = reading.part.gather(reading.at), len(reading.at)
    if not isinstance(aggregate.option, tuple):
        return picks.joined(held, count, aggregate.option)
    separator, descending = aggregate.option
    texts = held._replace(values=held.values.field(held.values.type.num_fields - 1))
    return picks.joined(picks.turned(texts) if descending else texts, count, separator)


def _list(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.collected(reading.part.gather(reading.at), len(reading.at))


def _set(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.different(reading.part.gather(reading.at), len(reading.at))


define(AggregateKind("collect", _collected, _list, always(BAG)))
define(AggregateKind("string_agg", _text, _joined, always(BAG), shows_option=True))
define(AggregateKind("collect_set", _collected, _set, always(BAG)))
