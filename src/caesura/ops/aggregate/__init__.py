"""Aggregation: over windows, and over whole groups."""

from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling

__all__ = ["Aggregate", "Totals", "Tumbling"]
