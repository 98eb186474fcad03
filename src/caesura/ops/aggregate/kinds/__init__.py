"""The aggregates that users write; each is a record (see `record`)."""

from caesura.ops.aggregate.kinds.extremes import max, min
from caesura.ops.aggregate.kinds.picked import (
    collect,
    collect_list,
    collect_set,
    count_distinct,
    first,
    last,
    median,
    median_absolute_deviation,
    mode,
    quantile,
    top_k,
)
from caesura.ops.aggregate.kinds.record import (
    KINDS,
    Aggregate,
    AggregateKind,
    directions,
    read_by,
    result_type,
)
from caesura.ops.aggregate.kinds.spread import stddev, variance
from caesura.ops.aggregate.kinds.sums import avg, count, sum

__all__ = [
    "KINDS",
    "Aggregate",
    "AggregateKind",
    "avg",
    "collect",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "directions",
    "first",
    "last",
    "max",
    "median",
    "median_absolute_deviation",
    "min",
    "mode",
    "quantile",
    "read_by",
    "result_type",
    "stddev",
    "sum",
    "top_k",
    "variance",
]
