"""Aggregates of two columns: the value of the row with the greatest of another column, `corr`, `covar_pop`.

Both columns are one struct, which is null where the row does not count.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.columns import from_words
from caesura.expr import Expr, as_column, when
from caesura.expr.nodes import apply
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.accumulators.by import BagBy, LeadingBy
from caesura.ops.aggregate.accumulators.comoments import Comoments
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    InSlots,
    Reading,
    State,
    always,
    as_double,
    define,
    either,
    made,
    refused,
)
from caesura.ops.aggregate.kinds.shares import shared_sums


def max_by(
    value: str | Expr, by: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The value of the row with the greatest other value.

    Parameters
    ----------
    value
        What is taken: a column's name, or an expression; several columns as ``functions.struct("a",
        "b")``.
    by
        What rows are compared by: a column's name, or an expression. A row where it is null does not
        count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        The type of the value, which may be null; null where no row counts. Of several such rows it is the
        one that began first, then the least value.

    Notes
    -----
    State: one row a window and group where rows only come, all of them where corrections come; a correction
    takes its row back exactly. Without keys it runs in one bucket.

    See Also
    --------
    max : that other value itself.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5, "who": "ann"}, {"t": 2, "v": 9, "who": "bob"}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.max_by("who", "v")).run())
     LE  RE | x   |
      0  10 | bob | +
    """
    return _by("max_by", value, by, either(where, filter))


def min_by(
    value: str | Expr, by: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The value of the row with the least other value.

    Parameters
    ----------
    value
        What is taken: a column's name, or an expression; several columns as ``functions.struct("a",
        "b")``.
    by
        What rows are compared by: a column's name, or an expression. A row where it is null does not
        count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        The type of the value, which may be null; null where no row counts. Of several such rows it is the
        one that began first, then the least value.

    Notes
    -----
    State: one row a window and group where rows only come, all of them where corrections come; a correction
    takes its row back exactly. Without keys it runs in one bucket.

    See Also
    --------
    min : that other value itself.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5, "who": "ann"}, {"t": 2, "v": 9, "who": "bob"}], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.min_by("who", "v")).run())
     LE  RE | x   |
      0  10 | ann | +
    """
    return _by("min_by", value, by, either(where, filter))


def corr(a: str | Expr, b: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Pearson's correlation of two columns, from -1 to 1.

    Parameters
    ----------
    a, b
        Columns' names, or expressions of numbers. A row where either is null does not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null for fewer than two pairs, or where one column is constant.

    Notes
    -----
    State: some sums a window and group, whatever the number of rows; a correction takes its value back
    exactly. The sums are exact. Without keys it runs in one bucket.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": t, "a": t, "b": t * t} for t in (1, 2, 3)], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.corr("a", "b").round(3)).run())
     LE  RE | x    |
      0  10 | 0.99 | +
    """
    return _paired("corr", a, b, either(where, filter))


def covar_pop(
    a: str | Expr, b: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The covariance of two columns, of a population.

    Parameters
    ----------
    a, b
        Columns' names, or expressions of numbers. A row where either is null does not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null where no row counts.

    Notes
    -----
    State: some sums a window and group, whatever the number of rows; a correction takes its value back
    exactly. The sums are exact. Without keys it runs in one bucket.

    See Also
    --------
    covar_samp : of a sample.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": t, "a": t, "b": t * t} for t in (1, 2, 3)], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.covar_pop("a", "b").round(3)).run())
     LE  RE | x     |
      0  10 | 2.667 | +
    """
    return _paired("covar_pop", a, b, either(where, filter))


def covar_samp(
    a: str | Expr, b: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The covariance of two columns, of a sample.

    Parameters
    ----------
    a, b
        Columns' names, or expressions of numbers. A row where either is null does not count.
    where
        Which rows count: a predicate, or its SQL text; all without it.
    filter
        The same, by SQL's name.

    Returns
    -------
    Aggregate
        ``double``; null for fewer than two pairs.

    Notes
    -----
    State: some sums a window and group, whatever the number of rows; a correction takes its value back
    exactly. The sums are exact. Without keys it runs in one bucket.

    See Also
    --------
    covar_pop : of a population.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": t, "a": t, "b": t * t} for t in (1, 2, 3)], time="t")
    >>> print(rows.tumbling(10).agg(x=cz.covar_samp("a", "b")).run())
     LE  RE | x   |
      0  10 | 4.0 | +
    """
    return _paired("covar_samp", a, b, either(where, filter))


def _paired(kind: str, a: str | Expr, b: str | Expr, where: Condition) -> Aggregate:
    x, y = as_column(a), as_column(b)
    pair = when(x.is_not_null() & y.is_not_null(), apply("struct", x, y, options=("x", "y")))
    return _shown(made(kind, pair, where), (x, y), where)


def _by(kind: str, value: str | Expr, by: str | Expr, where: Condition) -> Aggregate:
    picked, key = as_column(value), as_column(by)
    pair = when(key.is_not_null(), apply("struct", picked, key, options=("value", "by")))
    return _shown(made(kind, pair, where), (picked, key), where)


def _shown(aggregate: Aggregate, columns: tuple[Expr, Expr], where: Condition) -> Aggregate:
    texts = [*map(str, columns), *([] if where is None else [f"where {where}"])]
    return replace(aggregate, shown=f"{aggregate.kind}({', '.join(texts)})")


def _of_value(_: Aggregate, t: pa.DataType) -> pa.DataType:
    return t.field(0).type


def _leader(_: Aggregate, reading: Reading) -> pa.Array:
    if isinstance(reading, InSlots) and isinstance(reading.part, BagBy):
        return pc.struct_field(picks.first(reading.part.leading(reading.at), len(reading.at)), [0])
    return pc.struct_field(reading.values(), [1, 0])


def _numbers(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    """Two numbers; the result is a double."""
    if not pa.types.is_struct(t) or t.num_fields != 2:
        raise refused(aggregate, t, "a pair of numbers")
    for field in t:
        as_double(aggregate, field.type)
    return pa.float64()


def _covariance(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    ddof = 1 if aggregate.kind == "covar_samp" else 0
    return from_words(reading.pair_sums().covariance("x", "y", ddof), reading.n > ddof, pa.float64())


def _correlation(_: Aggregate, reading: InSlots) -> pa.Array:
    found, varies = reading.pair_sums().correlation()
    return from_words(found, (reading.n > 1) & varies, pa.float64())


def _define_by(name: str, kind: str) -> None:
    comes = State(name, lambda field, t: LeadingBy(field, kind, t), timed=True)
    goes = State(name, lambda field, t: BagBy(field, kind, t), timed=True)
    define(AggregateKind(name, _of_value, _leader, lambda t, insert_only: comes if insert_only else goes))


_define_by("max_by", "max")
_define_by("min_by", "min")


def _pair(name: str) -> Comoments:
    return Comoments(name, squares=False)


def _squares(name: str) -> Comoments:
    return Comoments(name, squares=True)


PAIR, SQUARES = State("pair", lambda name, t: _pair(name)), State("squares", lambda name, t: _squares(name))
define(AggregateKind("corr", _numbers, _correlation, always(SQUARES), shared_sums("corr", _squares)))
define(AggregateKind("covar_pop", _numbers, _covariance, always(PAIR), shared_sums("covar_pop", _pair)))
define(AggregateKind("covar_samp", _numbers, _covariance, always(PAIR), shared_sums("covar_samp", _pair)))
