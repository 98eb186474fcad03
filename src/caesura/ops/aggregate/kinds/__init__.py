"""The aggregates that users write; each is a record (see `record`)."""

from caesura.ops.aggregate.kinds.approximate import approx_count_distinct
from caesura.ops.aggregate.kinds.collected import collect, collect_list, collect_set, listagg, string_agg
from caesura.ops.aggregate.kinds.extremes import max, min
from caesura.ops.aggregate.kinds.pairs import corr, covar_pop, covar_samp, max_by, min_by
from caesura.ops.aggregate.kinds.picked import count_distinct, first, last, top_k
from caesura.ops.aggregate.kinds.ranks import median, median_absolute_deviation, mode, percentile, quantile
from caesura.ops.aggregate.kinds.record import (
    KINDS,
    Aggregate,
    AggregateKind,
    directions,
    read_by,
    result_field,
    result_type,
)
from caesura.ops.aggregate.kinds.spread import stddev, variance
from caesura.ops.aggregate.kinds.sums import avg, count, sum
from caesura.ops.aggregate.kinds.truths import all, any, bool_and, bool_or, some

__all__ = [
    "KINDS",
    "Aggregate",
    "AggregateKind",
    "all",
    "any",
    "approx_count_distinct",
    "avg",
    "bool_and",
    "bool_or",
    "collect",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_distinct",
    "covar_pop",
    "covar_samp",
    "directions",
    "first",
    "last",
    "listagg",
    "max",
    "max_by",
    "median",
    "median_absolute_deviation",
    "min",
    "min_by",
    "mode",
    "percentile",
    "quantile",
    "read_by",
    "result_field",
    "result_type",
    "some",
    "stddev",
    "string_agg",
    "sum",
    "top_k",
    "variance",
]
