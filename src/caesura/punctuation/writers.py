"""Promises of several writers of one lane: one holds in the lane once every writer has given it.

Writers that share a log, such as the buckets of a query that write to the partitions of a topic, each speak
for their own rows. A writer names how many of them there are, and how many lanes it wrote to.

>>> promises = WriterPromises()
>>> promises.held(0, WriterPromise(Pattern.before(20), writer=0, writers=2, lanes=1))
()
>>> promises.held(0, WriterPromise(Pattern.before(10), writer=1, writers=2, lanes=1))
(Pattern(time < 10),)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from caesura.punctuation.alignment import Alignment
from caesura.punctuation.pattern import Pattern


class WriterPromise(NamedTuple):
    """A promise of one of several writers, about its own rows."""

    pattern: Pattern
    writer: int
    writers: int
    lanes: int
    """How many lanes the writer had rows for; it gives the promise in each of them."""

    def to_json(self) -> list[Any]:
        return [self.pattern.to_json(), self.writer, self.writers, self.lanes]


GivenPromise = Pattern | WriterPromise
"""A promise found in a lane: about all rows of the lane, or about those of one writer."""


def promise_from_json(data: Any) -> GivenPromise:
    """What `to_json` of either gave."""
    if isinstance(data, list):
        pattern, writer, writers, lanes = data
        return WriterPromise(Pattern.from_json(pattern), int(writer), int(writers), int(lanes))
    return Pattern.from_json(data)


class WriterPromises:
    """What the writers of each lane have promised so far."""

    def __init__(self) -> None:
        self._lanes: dict[int, Alignment] = {}

    def held(self, lane: int, promise: GivenPromise) -> tuple[Pattern, ...]:
        """The promises that hold for a whole lane because of one that was given in it.

        Where the number of writers changes, what held still does; the new ones begin with nothing.
        """
        if isinstance(promise, Pattern):
            return (promise,)
        aligned = self._lanes.get(lane)
        if aligned is None or len(aligned.origins) != promise.writers:
            aligned = self._lanes[lane] = Alignment(range(promise.writers))
        return aligned.add(promise.writer, promise.pattern)

    def to_json(self) -> list[Any]:
        return [[lane, aligned.to_json()] for lane, aligned in self._lanes.items()]

    @staticmethod
    def from_json(data: list[Any]) -> WriterPromises:
        """What `to_json` gave."""
        made = WriterPromises()
        made._lanes = {lane: Alignment.from_json(aligned) for lane, aligned in data}
        return made
