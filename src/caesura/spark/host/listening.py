"""What our queries say to a listener of Spark's: rows and promises, where Spark counts packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from caesura.runtime.metrics.status import Status

if TYPE_CHECKING:
    from caesura.spark.host.running import SparkQuery

RUNNING: WeakValueDictionary[str, SparkQuery] = WeakValueDictionary()
"""The queries that this process has started, by Spark's id."""


class StatusListener(StreamingQueryListener):
    """Calls a function with the name and the status of each of our queries, behind each of its epochs.

    Parameters
    ----------
    told
        Called with the query's name and its `Status`, in a thread of Spark's, which logs what it raises.

    Examples
    --------
    On Spark: ``spark.streams.addListener(caesura.spark.StatusListener(lambda name, status: ...))``. Queries
    that are not ours, and those that another process has started, are passed over.

    >>> StatusListener(print).onQueryStarted(None)
    """

    def __init__(self, told: Callable[[str, Status], None]) -> None:
        self._told = told

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known of a query that has just begun."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Tells how the query stands, if it is one of ours."""
        query = RUNNING.get(str(event.progress.id))
        if query is not None:
            self._told(query.name, query.status())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing is left to be told: `SparkQuery.wait` says how it ended."""
