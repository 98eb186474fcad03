"""Aggregation: over windows, and over whole groups."""

from caesura.ops.aggregate.functions import Aggregate, avg, count, max, min, sum
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling

__all__ = ["Aggregate", "Totals", "Tumbling", "avg", "count", "max", "min", "sum"]
