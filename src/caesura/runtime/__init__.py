"""Executes plans: queues, schedules, control channels, snapshots. Knows nothing of Spark."""

from caesura.misuse import checked_methods
from caesura.runtime.publish import Publication
from caesura.runtime.query import Query
from caesura.runtime.schedule import BottomUp, LongestQueue, Schedule, Shuffled

checked_methods(Query)

__all__ = ["BottomUp", "LongestQueue", "Publication", "Query", "Schedule", "Shuffled"]
