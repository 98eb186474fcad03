"""`count`: rows, or the values that are not null."""

from __future__ import annotations

import pyarrow as pa

from caesura.expr import Expr, col
from caesura.ops.aggregate.kinds.record import (
    Aggregate,
    AggregateKind,
    Condition,
    PartialAggregate,
    define,
    either,
    made,
    whole,
)


def count(value: str | Expr | None = None, *, where: Condition = None, filter: Condition = None) -> Aggregate:
    """How many rows; with a column, how many of its values are not null."""
    return made("count", value, either(where, filter))


def _share(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate:
    return PartialAggregate(((name, one),), ((name, Aggregate("sum", col(name))),), col(name))


define(AggregateKind("count", whole, lambda _, reading: pa.array(reading.n), share=_share, direction="up"))
