"""`min` and `max`: one value per slot where values only come, a bag of them where they also go."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from caesura.expr import Expr, col
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.accumulators.extremes import Grows, RetractableExtreme, has_words
from caesura.ops.aggregate.accumulators.leading import Leading
from caesura.ops.aggregate.accumulators.multiset import Multiset
from caesura.ops.aggregate.accumulators.running import Extremes
from caesura.ops.aggregate.kinds.picked import BAG
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    PartialAggregate,
    Reading,
    State,
    define,
    either,
    made,
    with_order,
)


def min(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The least value.

    Parameters
    ----------
    value
        A column's name, or an expression of values with an order. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        The type of the values; null where there is none. NaN counts as greater than every number.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    See Also
    --------
    min_by : another column of that row.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.min("v")).run())
     LE  RE | x |
      0  10 | 2 | +
    """
    return made("min", value, either(where, filter))


def max(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The greatest value.

    Parameters
    ----------
    value
        A column's name, or an expression of values with an order. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        The type of the values; null where there is none. NaN counts as greater than every number.

    Notes
    -----
    State: one value a window and group where rows only come, each different value with its count where
    corrections come; a correction takes its value back exactly. Without keys every bucket computes its share,
    and the shares are combined.

    See Also
    --------
    max_by : another column of that row.
    top_k : several of them.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.max("v")).run())
     LE  RE | x |
      0  10 | 5 | +
    """
    return made("max", value, either(where, filter))


LEAST = State("min", lambda name, t: Grows(name, "min", t), running=Extremes)
GREATEST = State("max", lambda name, t: Grows(name, "max", t), running=Extremes)
"""Of values that a word holds and that only come."""


def state_of(kind: str, growing: State) -> Callable[[pa.DataType, bool], State]:
    """What is kept of values, by their type and whether they only come."""
    leading = State(kind, lambda name, t: Leading(name, kind, t))
    bag = State(kind, lambda name, t: RetractableExtreme(name, kind, t))

    def state(t: pa.DataType, insert_only: bool) -> State:
        if has_words(t):
            return growing if insert_only else bag
        return leading if insert_only else BAG

    return state


def least(_: Aggregate, reading: Reading) -> pa.Array:
    """The least of what was accumulated."""
    if isinstance(reading, InSlots) and isinstance(reading.part, Multiset):
        return picks.first(reading.part.edge(reading.at, 1, last=False), len(reading.at))
    return reading.values()


def greatest(_: Aggregate, reading: Reading) -> pa.Array:
    """The greatest of what was accumulated."""
    if isinstance(reading, InSlots) and isinstance(reading.part, Multiset):
        return picks.last(reading.part.edge(reading.at, 1, last=True), len(reading.at))
    return reading.values()


def share(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate:
    """An extreme of all is one of the extremes of the buckets."""
    return PartialAggregate(((name, one),), ((name, Aggregate(one.kind, col(name))),), col(name))


define(AggregateKind("min", with_order, least, state_of("min", LEAST), share, "down"))
define(
    AggregateKind(
        "max", with_order, greatest, state_of("max", GREATEST), share, "up", threshold=lambda _, best: best
    )
)
