"""`count`: rows, or the values that are not null."""

from __future__ import annotations

import pyarrow as pa

from caesura.expr import Expr, col
from caesura.ops.aggregate.kinds.record import Aggregate, AggregateKind, PartialAggregate, define, made, whole


def count(value: str | Expr | None = None, *, where: Expr | None = None) -> Aggregate:
    """How many rows; with a column, how many of its values are not null."""
    return made("count", value, where)


def _share(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate:
    return PartialAggregate(((name, one),), ((name, Aggregate("sum", col(name))),), col(name))


define(AggregateKind("count", whole, lambda _, reading: pa.array(reading.n), share=_share, direction="up"))
