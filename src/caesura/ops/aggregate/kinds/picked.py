"""Aggregates that look at all the values of a slot: first, last, top-k, quantiles, mode, distinct, collect.

They share one multiset of the values of an expression; `first` and `last` keep one with starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, when
from caesura.expr.nodes import apply
from caesura.ops.aggregate.accumulators import picks
from caesura.ops.aggregate.accumulators.multiset import Multiset
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
    whole,
    with_order,
)
from caesura.plan import here

TOP_LIMIT = 64

BAG = State("bag", lambda name, t: Multiset(name, t, timed=False))
TIMED_BAG = State("timed", lambda name, t: Multiset(name, t, timed=True), timed=True)


def first(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value of the event that starts first; of several, the least."""
    return made("first", value, either(where, filter))


def last(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value of the event that starts last; of several, the greatest."""
    return made("last", value, either(where, filter))


def top_k(value: str | Expr, k: int, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The k greatest values, copies included, as a struct with the fields top1 to topk."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= TOP_LIMIT:
        raise PlanError(
            f"top_k of {k!r} values says nothing.", remedy=f"Give a whole k from 1 to {TOP_LIMIT}."
        )
    return made("top_k", value, either(where, filter), k)


def count_distinct(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """How many different values there are; null is none."""
    return made("count_distinct", value, either(where, filter))


def quantile(value: str | Expr, q: float, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The least value that at least the share q of the values does not exceed; exact."""
    if not 0 <= q <= 1:
        error = PlanError(f"no quantile lies at {q}.", remedy="Give a share from 0 to 1, like 0.95.")
        raise error.at("quantile", here())
    return made("quantile", value, either(where, filter), q)


def percentile(
    value: str | Expr, percentage: float, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The value below which this share of the values lies, between the two nearest, as a double; exact.

    As Spark's: ``percentile("v", 0.5)`` is the median. `quantile` gives one of the values instead.
    """
    if isinstance(percentage, bool) or not isinstance(percentage, int | float) or not 0 <= percentage <= 1:
        error = PlanError(
            f"no percentile lies at {percentage!r}.", remedy="Give a share from 0 to 1, like 0.95."
        )
        raise error.at("percentile", here())
    return made("percentile", value, either(where, filter), float(percentage))


def median(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value in the middle, or the mean of the two there, as a double; exact."""
    return made("median", value, either(where, filter), 0.5)


def median_absolute_deviation(
    value: str | Expr, *, where: Condition = None, filter: Condition = None
) -> Aggregate:
    """The median distance of the values from their median, as a double; outliers hardly move it."""
    return made("median_absolute_deviation", value, either(where, filter))


def mode(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The value that comes most often; of several, the least."""
    return made("mode", value, either(where, filter))


def collect(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """All values in canonical order, copies included, as a list; null is none."""
    return made("collect", value, either(where, filter))


def collect_list(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The same as `collect`, by Spark's name."""
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
    """The texts, copies included, joined with a separator; null for none.

    They stand in order of ``order``, a column or several, nulls first; those that are equal there, or all
    without it, in their own. ``descending`` turns all of it around.
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
    """The same as `string_agg`."""
    return string_agg(value, separator, order=order, descending=descending, where=where, filter=filter)


def collect_set(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The different values in canonical order, as a list; null is none."""
    return made("collect_set", value, either(where, filter))


# Types.


def _collected(_: Aggregate, t: pa.DataType) -> pa.DataType:
    return pa.list_(t)


def _text(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    if isinstance(aggregate.option, tuple) and pa.types.is_struct(t):
        t = t.field(t.num_fields - 1).type
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return t
    raise refused(aggregate, t, "a text", remedy="Cast the column, for example col(...).cast('string').")


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


def _quantile(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    return picks.quantile(reading.part.gather(reading.at), len(reading.at), aggregate.option)


def _interpolated(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    return picks.interpolated(reading.part.gather(reading.at), len(reading.at), aggregate.option)


def _median(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    return picks.interpolated(reading.part.gather(reading.at), len(reading.at), 0.5)


def _joined(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    held, count = reading.part.gather(reading.at), len(reading.at)
    if not isinstance(aggregate.option, tuple):
        return picks.joined(held, count, aggregate.option)
    separator, descending = aggregate.option
    texts = held._replace(values=held.values.field(held.values.type.num_fields - 1))
    return picks.joined(picks.turned(texts) if descending else texts, count, separator)


def _different(_: Aggregate, reading: Reading) -> pa.Array:
    return reading.values()


def _deviation(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.deviation(reading.part.gather(reading.at), len(reading.at))


def _mode(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.most_frequent(reading.part.gather(reading.at), len(reading.at))


def _list(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.collected(reading.part.gather(reading.at), len(reading.at))


def _set(_: Aggregate, reading: InSlots) -> pa.Array:
    return picks.different(reading.part.gather(reading.at), len(reading.at))


define(AggregateKind("first", with_order, _first, always(TIMED_BAG)))
define(AggregateKind("last", with_order, _last, always(TIMED_BAG)))
define(AggregateKind("top_k", _top_fields, _top, always(BAG), threshold=_kth, shows_option=True))
define(
    AggregateKind(
        "count_distinct",
        whole,
        lambda _, held: held.values(),
        always(BAG),
        direction="up",
        counts_values=True,
    )
)
define(AggregateKind("quantile", with_order, _quantile, always(BAG), shows_option=True))
define(AggregateKind("percentile", as_double, _interpolated, always(BAG), shows_option=True))
define(AggregateKind("median", as_double, _median, always(BAG)))
define(AggregateKind("median_absolute_deviation", as_double, _deviation, always(BAG)))
define(AggregateKind("mode", with_order, _mode, always(BAG)))
define(AggregateKind("collect", _collected, _list, always(BAG)))
define(AggregateKind("string_agg", _text, _joined, always(BAG), shows_option=True))
define(AggregateKind("collect_set", _collected, _set, always(BAG)))
