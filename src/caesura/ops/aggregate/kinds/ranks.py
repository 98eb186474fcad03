"""Aggregates of the order of the values: quantiles, median, the most frequent one."""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.kinds.picked import BAG
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    always,
    as_double,
    define,
    either,
    made,
    with_order,
)
from caesura.plan import here


def quantile(value: str | Expr, q: float, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The least value that at least a share of the values does not exceed.

    Parameters
    ----------
    value
        A column's name, or an expression of values with an order. Nulls do not count.
    q
        The share, from 0 to 1.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        The type of the values, and one of them; null where there is none. It is exact.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    percentile : between the two nearest values, as Spark has it.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.quantile("v", 0.9)).run())
     LE  RE | x |
      0  10 | 5 | +
    """
    if not 0 <= q <= 1:
        error = PlanError(f"no quantile lies at {q}.", remedy="Give a share from 0 to 1, like 0.95.")
        raise error.at("quantile", here())
    return made("quantile", value, either(where, filter), q)


def percentile(
    value: str | Expr, percentage: float, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The value below which a share of the values lies, as Spark has it.

    Parameters
    ----------
    value
        A column's name, or an expression of numbers. Nulls do not count.
    percentage
        The share, from 0 to 1.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``, between the two nearest values; null where there is none. It is exact:
        ``percentile("v", 0.5)`` is the median.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    quantile : one of the values.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.percentile("v", 0.9)).run())
     LE  RE | x   |
      0  10 | 4.7 | +
    """
    if isinstance(percentage, bool) or not isinstance(percentage, int | float) or not 0 <= percentage <= 1:
        error = PlanError(
            f"no percentile lies at {percentage!r}.", remedy="Give a share from 0 to 1, like 0.95."
        )
        raise error.at("percentile", here())
    return made("percentile", value, either(where, filter), float(percentage))


def median(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value in the middle, or the mean of the two there.

    Parameters
    ----------
    value
        A column's name, or an expression of numbers. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null where there is no value. It is exact.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    percentile : other shares than one half.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.median("v")).run())
     LE  RE | x   |
      0  10 | 3.5 | +
    """
    return made("median", value, either(where, filter), 0.5)


def median_absolute_deviation(
    value: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The median distance of the values from their median.

    Parameters
    ----------
    value
        A column's name, or an expression of numbers. Nulls do not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null where there is no value. Outliers hardly move it.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    See Also
    --------
    stddev : the standard deviation.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.median_absolute_deviation("v")).run())
     LE  RE | x   |
      0  10 | 1.5 | +
    """
    return made("median_absolute_deviation", value, either(where, filter))


def mode(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value that comes most often; of several, the least.

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
        The type of the values; null where there is none.

    Notes
    -----
    State: each different value with its count, a window and group; a correction takes its value back exactly.
    Without keys it runs in one bucket.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.mode("v")).run())
     LE  RE | x |
      0  10 | 2 | +
    """
    return made("mode", value, either(where, filter))


def _quantile(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    return picks.quantile(reading.part.gather(reading.at), len(reading.at), aggregate.option)


def _interpolated(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    return picks.interpolated(reading.part.gather(reading.at), len(reading.at), aggregate.option)


def _median(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    return picks.interpolated(reading.part.gather(reading.at), len(reading.at), 0.5)


def _deviation(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.deviation(reading.part.gather(reading.at), len(reading.at))


def _mode(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.most_frequent(reading.part.gather(reading.at), len(reading.at))


define(AggregateKind("quantile", with_order, _quantile, always(BAG), shows_option=True))
define(AggregateKind("percentile", as_double, _interpolated, always(BAG), shows_option=True))
define(AggregateKind("median", as_double, _median, always(BAG)))
define(AggregateKind("median_absolute_deviation", as_double, _deviation, always(BAG)))
define(AggregateKind("mode", with_order, _mode, always(BAG)))
