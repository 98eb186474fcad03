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
    """Whether some value is true; nulls do not count, and of none it is null."""
    return made("bool_or", value, either(where, filter))


def any(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The same as `bool_or`."""
    return bool_or(value, where=where, filter=filter)


def some(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The same as `bool_or`."""
    return bool_or(value, where=where, filter=filter)


def bool_and(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """Whether every value is true; nulls do not count, and of none it is null."""
    return made("bool_and", value, either(where, filter))


def all(value: str | Expr, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """The same as `bool_and`."""
    return bool_and(value, where=where, filter=filter)


def _truth(aggregate: Aggregate, t: pa.DataType) -> pa.DataType:
    if pa.types.is_boolean(t):
        return t
    raise refused(aggregate, t, "a condition", remedy="Compare it, for example col(...) > 0.")


define(AggregateKind("bool_or", _truth, greatest, state_of("max", GREATEST), share, "up"))
define(AggregateKind("bool_and", _truth, least, state_of("min", LEAST), share, "down"))
