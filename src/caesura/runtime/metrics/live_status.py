"""How a query in this process stands, for other threads: only the thread that runs it looks at its steps."""

from __future__ import annotations

import threading
from collections.abc import Callable

from caesura.runtime.metrics.status import Status

WAIT = 0.5
"""Seconds that a reader waits for a query between two of its steps."""


class LiveStatus:
    """The last status that the running thread has made; it makes one when somebody asks."""

    def __init__(self, make: Callable[[], Status]) -> None:
        self._make = make
        self._last = make()
        self._asked, self._made = threading.Event(), threading.Event()

    def look(self) -> None:
        """Called by the thread that runs the query, between two steps."""
        if self._asked.is_set():
            self.update()

    def update(self) -> None:
        """Called by the thread that runs the query, when it stops working for a while."""
        self._last = self._make()
        self._asked.clear()
        self._made.set()

    def read(self) -> Status:
        """Called by any thread: the status now, or the last one where the query is not at work."""
        self._made.clear()
        self._asked.set()
        self._made.wait(WAIT)
        return self._last
