"""Errands for the thread that runs a query: others ask, it does them between two of its steps.

>>> errands = Errands()
>>> waiting = errands.leave(lambda: 6 * 7)
>>> errands.look()
>>> waiting.result(timeout=1)
42
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from caesura.errors import StreamError
from caesura.plan import here

T = TypeVar("T")
WAIT = 0.5
"""Seconds that somebody waits for a query between two of its steps."""
RESTING = 0.02
"""Seconds for one that was not at work when somebody asked last."""
MAX_WAITING = 64


class Errands:
    """What others ask of a query, in order."""

    def __init__(self) -> None:
        self._todo: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._asked: dict[str, Future[Any]] = {}
        """What was asked for and not waited for, by name."""
        self.at_work = False
        """Whether the query was at work when somebody asked last."""

    def look(self) -> None:
        """Called by the thread that runs the query, between two steps."""
        if self._todo:
            self.update()

    def update(self) -> None:
        """Called by the thread that runs the query, when it stops working for a while."""
        while self._todo:
            future, errand = self._todo.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(errand())
                except Exception as error:  # noqa: BLE001  whoever asked is told
                    future.set_exception(error)
        self.at_work = True

    def leave(self, errand: Callable[[], T]) -> Future[T]:
        """Called by any thread: has something done when the query is next at work."""
        if len(self._todo) >= MAX_WAITING:
            raise StreamError(
                f"{MAX_WAITING} requests wait for the query already, and it does not run.",
                remedy="Let it run, or step it; then ask again.",
            ).at("console", here())
        future: Future[T] = Future()
        self._todo.append((future, errand))
        return future

    def ask(self, name: str, errand: Callable[[], T]) -> T | None:
        """Called by any thread: what comes of an errand; None where the query is not at work now.

        Then it stays, and whoever asks for the same again waits for that one.
        """
        future = self._asked.pop(name, None) or self.leave(errand)
        try:
            found: T = future.result(timeout=WAIT if self.at_work else RESTING)
        except TimeoutError:
            self.at_work, self._asked[name] = False, future
            return None
        return found
