"""The definite punctuation that has left a step, filed when somebody asks for it."""

from __future__ import annotations

from caesura.punctuation import TIME, Pattern, Promises

MAX_UNFILED = 64
"""So many patterns are kept as they came before they are filed."""


class GivenPunctuation:
    """Promises that take each new one cheaply: mostly one that follows soon covers it."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self._unfiled: list[Pattern] = []

    @property
    def promises(self) -> Promises:
        """All that was given."""
        for pattern in self._unfiled:
            self._promises.add(pattern)
        self._unfiled.clear()
        return self._promises

    def add(self, pattern: Pattern) -> None:
        """Notes what leaves."""
        bound = pattern.time_bound if pattern.attributes == (TIME,) else None
        if bound is not None:
            self._promises.advance(bound)
            ends = [(other[TIME].last, other) for other in self._unfiled]
            self._unfiled = [other for end, other in ends if end is None or end >= bound]
            return
        for at in range(len(self._unfiled) - 1, max(-1, len(self._unfiled) - 3), -1):
            if pattern.covers(self._unfiled[at]):
                self._unfiled[at] = pattern
                return
        self._unfiled.append(pattern)
        if len(self._unfiled) > MAX_UNFILED:
            _ = self.promises
