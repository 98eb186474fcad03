"""Aggregation: over windows, over whole groups, and over what is alive."""

from caesura.ops.aggregate.alive import Alive
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling

__all__ = ["Aggregate", "Alive", "Totals", "Tumbling"]
