"""Aggregates that look at all the values of a slot: first, last, top-k, distinct.

They share one multiset of the values of an expression, as those in `ranks` and `collected` do; `first` and
`last` keep one with starts.
"""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.accumulators.multiset import Multiset
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    State,
    always,
    define,
    either,
    made,
    told_apart,
    with_order,
)

TOP_LIMIT = 64

BAG = State("bag", lambda name, t: Multiset(name, t, timed=False))
TIMED_BAG = State("timed", lambda name, t: Multiset(name, t, timed=True), timed=True)


def first(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value of the row that starts first; of several, the least.

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
        The type of the values; null where there is none.

    Notes
    -----
    State: each different pair of start and value with its count, a window and group; a correction takes its
    value back exactly. Without keys it runs in one bucket.

    See Also
    --------
    last : of the row that starts last.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.first("v")).run())
     LE  RE | x |
      0  10 | 5 | +
    """
    return made("first", value, either(where, filter))


def last(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value of the row that starts last; of several, the greatest.

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
        The type of the values; null where there is none.

    Notes
    -----
    State: each different pair of start and value with its count, a window and group; a correction takes its
    value back exactly. Without keys it runs in one bucket.

    See Also
    --------
    first : of the row that starts first.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.last("v")).run())
     LE  RE | x |
      0  10 | 2 | +
    """
    return made("last", value, either(where, filter))


def top_k(value: str | Expr, k: int, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The k greatest values, copies included.

    Parameters
    ----------
    value
        A column's name, or an expression of values with an order. Nulls do not count.
    k
        How many, from 1 to 64.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        A struct with the fields ``top1`` to ``topk``, the greatest first; null for those that there are
        not.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    Stream.top : whole rows.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.top_k("v", 3)).run())
     LE  RE | x                               |
      0  10 | {"top1":5,"top2":2,"top3":null} | +
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= TOP_LIMIT:
        raise PlanError(
            f"top_k of {k!r} values says nothing.", remedy=f"Give a whole k from 1 to {TOP_LIMIT}."
        )
    return made("top_k", value, either(where, filter), k)


def count_distinct(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """How many different values there are.

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
        ``bigint``; 0 where there is none.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    approx_count_distinct : about so many, in fixed state.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.count_distinct("v")).run())
     LE  RE | x |
      0  10 | 2 | +
    """
    return made("count_distinct", value, either(where, filter))


# Types.


def _top_fields(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    return picks.top_fields(int(aggregate.option), with_order(aggregate, t))


# Results.


def _first(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.first(reading.part.edge(reading.at, 1, last=False), len(reading.at))


def _last(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.last(reading.part.edge(reading.at, 1, last=True), len(reading.at))


def _top(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    k = int(aggregate.option)
    return picks.top(reading.part.edge(reading.at, k, last=True), len(reading.at), k)


def _kth(aggregate: Aggregate, results: pa.Array) -> pa.Array:
    return results.field(int(aggregate.option) - 1)


define(AggregateKind("first", with_order, _first, always(TIMED_BAG)))
define(AggregateKind("last", with_order, _last, always(TIMED_BAG)))
define(AggregateKind("top_k", _top_fields, _top, always(BAG), threshold=_kth, shows_option=True))
define(
    AggregateKind(
        "count_distinct",
        told_apart,
        lambda _, held: held.values(),
        always(BAG),
        direction="up",
        counts_values=True,
    )
)
