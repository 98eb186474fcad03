"""Executes plans: queues, schedules, control channels, snapshots. Knows nothing of Spark."""

from caesura.misuse import checked_methods
from caesura.runtime.graph.publication import Publication
from caesura.runtime.graph.schedule import (
    BottomUp,
    LongestQueue,
    Proportional,
    RoundRobin,
    Schedule,
    ScheduleName,
    Shuffled,
)
from caesura.runtime.query.query import Query
from caesura.runtime.query.recording import Recording

checked_methods(Query)

__all__ = [
    "BottomUp",
    "LongestQueue",
    "Proportional",
    "Publication",
    "Query",
    "Recording",
    "RoundRobin",
    "Schedule",
    "ScheduleName",
    "Shuffled",
]
