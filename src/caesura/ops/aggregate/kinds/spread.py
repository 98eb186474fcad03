"""`variance` and `stddev`, from exact sums of values and of their squares."""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.columns import from_words
from caesura.expr import Expr
from caesura.ops.aggregate.accumulators.moments import Moments
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    State,
    always,
    as_double,
    define,
    either,
    made,
)
from caesura.ops.aggregate.kinds.shares import shared_sums
from caesura.plan import here


def variance(
    value: str | Expr, *, ddof: int = 1, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The variance, of a sample by default.

    Parameters
    ----------
    value
        A column's name, or an expression of numbers. Nulls do not count.
    ddof
        How much the number of values is lessened by: 1 for a sample, 0 for a population.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null for not more than ``ddof`` values.

    Notes
    -----
    State: some sums a window and group, whatever the number of rows; a correction takes its value back
    exactly. The sums are exact. Without keys it runs in one bucket.

    See Also
    --------
    stddev : its square root.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.variance("v")).run())
     LE  RE | x   |
      0  10 | 4.5 | +
    """
    return made("variance", value, either(where, filter), _freedom(ddof))


def stddev(
    value: str | Expr, *, ddof: int = 1, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The standard deviation, of a sample by default.

    Parameters
    ----------
    value
        A column's name, or an expression of numbers. Nulls do not count.
    ddof
        How much the number of values is lessened by: 1 for a sample, 0 for a population.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null for not more than ``ddof`` values.

    Notes
    -----
    State: some sums a window and group, whatever the number of rows; a correction takes its value back
    exactly. The sums are exact. Without keys it runs in one bucket.

    See Also
    --------
    variance : its square.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.stddev("v").round(3)).run())
     LE  RE | x     |
      0  10 | 2.121 | +
    """
    return made("stddev", value, either(where, filter), _freedom(ddof))


def _freedom(ddof: int) -> int:
    if isinstance(ddof, bool) or not isinstance(ddof, int) or not 0 <= ddof < 2**31:
        raise PlanError(
            f"ddof={ddof!r} is no number of values to leave out of count.",
            remedy="Give ddof=1 for a sample, ddof=0 for a population.",
            place=here(),
        )
    return ddof


MOMENTS = State("moments", lambda name, t: Moments(name))


def _variance(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    found = reading.spread().variance(int(aggregate.option), rooted=False)
    return from_words(found, reading.n > aggregate.option, pa.float64())


def _stddev(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    found = reading.spread().variance(int(aggregate.option), rooted=True)
    return from_words(found, reading.n > aggregate.option, pa.float64())


define(AggregateKind("variance", as_double, _variance, always(MOMENTS), shared_sums("variance", Moments)))
define(AggregateKind("stddev", as_double, _stddev, always(MOMENTS), shared_sums("stddev", Moments)))
