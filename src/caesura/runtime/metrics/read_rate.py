"""How fast a query reads."""

from __future__ import annotations

import time


class ReadRate:
    """How many rows are read a second, from one look to the next that finds more."""

    def __init__(self, rows: int = 0) -> None:
        self._rows, self._at, self._rate = rows, time.monotonic(), 0.0

    def of(self, rows: int) -> float:
        """The rate, now that so many rows have been read."""
        now = time.monotonic()
        if rows != self._rows:
            self._rate = max(0, rows - self._rows) / max(1e-9, now - self._at)
            self._rows, self._at = rows, now
        return self._rate
