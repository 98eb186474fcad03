"""Aggregation: over windows, and over whole groups."""

from caesura.ops.aggregate.kinds import (
    Aggregate,
    avg,
    collect,
    count,
    count_distinct,
    first,
    last,
    max,
    median,
    min,
    quantile,
    stddev,
    sum,
    top_k,
    variance,
)
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling

__all__ = [
    "Aggregate",
    "Totals",
    "Tumbling",
    "avg",
    "collect",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "median",
    "min",
    "quantile",
    "stddev",
    "sum",
    "top_k",
    "variance",
]
