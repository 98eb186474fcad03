"""`count`, `sum` and `avg`: exact sums, kept in 128 bits or in limbs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.columns import from_words
from caesura.expr import Expr, col
from caesura.ops.aggregate.accumulators.float_sums import FloatSum
from caesura.ops.aggregate.accumulators.running import Floats, Wides
from caesura.ops.aggregate.accumulators.sums import WideSum
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    PartialAggregate,
    Reading,
    State,
    always,
    as_double,
    define,
    either,
    made,
    refused,
    whole,
)
from caesura.ops.aggregate.kinds.shares import shared_sums
from caesura.plain_arrays import plain_array


def count(value: str | Expr | None = None, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """How many rows; with a column, how many of its values are not null.

    Parameters
    ----------
    value
        A column's name, or an expression; nulls do not count. Without it rows are counted.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``bigint``; 0 where no row counts, in windows that there are.

    Notes
    -----
    State: a number a window and group, whatever the number of rows; a correction takes its value back
    exactly. Overlapping windows share panes. Without keys every bucket computes its share, and the shares are
    combined.

    See Also
    --------
    count_distinct : how many different values.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(n=cz.count(), values=cz.count("v")).run())
     LE  RE | n values |
      0  10 | 3 2      | +
    """
    return made("count", value, either(where, filter))


def sum(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The sum of the values that are not null.

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
        ``bigint`` of whole numbers, ``double`` of floats, ``decimal(38, s)`` of decimals; null where
        there is no value. Float sums are exact, so their order does not matter. A sum that its type
        cannot hold is refused when it is sent: with ``output="final"`` at the end of its window.

    Notes
    -----
    State: some numbers a window and group, whatever the number of rows; a correction takes its value back
    exactly. Whole numbers are kept in 128 bits. Overlapping windows share panes. Without keys every bucket
    computes its share of whole numbers; floats and decimals run in one bucket.

    See Also
    --------
    avg : their mean.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.sum("v")).run())
     LE  RE | x |
      0  10 | 7 | +
    """
    return made("sum", value, either(where, filter))


def avg(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The mean of the values that are not null.

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
        ``double``; null where there is no value.

    Notes
    -----
    State: some numbers a window and group, whatever the number of rows; a correction takes its value back
    exactly. Overlapping windows share panes. Without keys every bucket computes its share of whole numbers;
    floats and decimals run in one bucket.

    See Also
    --------
    median : the value in the middle.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": None}, {"t": 3, "v": 2}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.avg("v")).run())
     LE  RE | x   |
      0  10 | 3.5 | +
    """
    return made("avg", value, either(where, filter))


def sum_type(t: pa.DataType) -> pa.DataType | None:
    """The type of a sum; None where there is none."""
    if pa.types.is_integer(t):
        return pa.int64()
    if pa.types.is_floating(t):
        return pa.float64()
    return pa.decimal128(38, t.scale) if pa.types.is_decimal(t) else None


def _summed(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    found = sum_type(t)
    if found is None:
        raise refused(aggregate, t, "a number")
    return found


FLOAT_SUM = State("sum", lambda name, t: FloatSum(name), running=Floats)
WIDE_SUM = State("sum", lambda name, t: WideSum(name, sum_type(t)), running=Wides)
WHOLE_SUM = State("whole_sum", lambda name, t: WideSum(name, pa.int64()), running=Wides)


def _state(t: pa.DataType, insert_only: bool) -> State:
    return FLOAT_SUM if pa.types.is_floating(t) else WIDE_SUM


def _total(_: Aggregate, reading: Reading) -> pa.Array:
    total, some = reading.values(), reading.n > 0
    return total if some.all() else pc.if_else(pa.array(some), total, pa.scalar(None, total.type))


def _mean(_: Aggregate, reading: Reading) -> pa.Array:
    n = reading.n
    return from_words(reading.floats() / np.maximum(n, 1), n > 0, pa.float64())


def _wide(value: Expr | None) -> Aggregate:
    """A share of a sum may be beyond 64 bits where the sum is not, so it is a decimal."""
    assert value is not None
    return sum(value.cast(pa.decimal128(20, 0)))


SHORT_DECIMAL = 28
"""Sums of decimals of so many digits have room for 10 ** 10 of them."""
_float_sum, _float_mean = shared_sums("sum", FloatSum), shared_sums("avg", FloatSum)


def _share_sum(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate | None:
    if pa.types.is_floating(t):
        return _float_sum(name, one, t)
    if pa.types.is_decimal(t) and t.precision <= SHORT_DECIMAL:
        return PartialAggregate(((name, one),), ((name, sum(name)),), col(name), on_request=True)
    if not pa.types.is_integer(t):
        return None
    return PartialAggregate(
        ((name, _wide(one.value)),), ((name, Aggregate("whole_sum", col(name))),), col(name)
    )


def _share_mean(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate | None:
    if pa.types.is_floating(t):
        return _float_mean(name, one, t)
    if not pa.types.is_integer(t):
        return None
    total, number = f"{name} sum", f"{name} count"
    parts = ((total, _wide(one.value)), (number, count(one.value)))
    combined = ((total, sum(total)), (number, sum(number)))
    return PartialAggregate(parts, combined, col(total).cast(pa.float64()) / col(number))


def _share_count(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate:
    return PartialAggregate(((name, one),), ((name, Aggregate("sum", col(name))),), col(name))


def _number(_: Aggregate, reading: Reading) -> pa.Array:
    return plain_array(reading.n)


define(AggregateKind("count", whole, _number, share=_share_count, direction="up"))
define(AggregateKind("sum", _summed, _total, _state, _share_sum))
define(AggregateKind("avg", as_double, _mean, _state, _share_mean))
define(AggregateKind("whole_sum", whole, _total, always(WHOLE_SUM)))
"""Adds up the shares that buckets have of a sum of whole numbers; users do not write it."""
