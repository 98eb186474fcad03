"""Executes plans: queues, schedules, control channels, snapshots. Knows nothing of Spark."""

from caesura.runtime.publish import Publication
from caesura.runtime.query import Query
from caesura.runtime.schedule import BottomUp, LongestQueue, Schedule, Shuffled

__all__ = ["BottomUp", "LongestQueue", "Publication", "Query", "Schedule", "Shuffled"]
