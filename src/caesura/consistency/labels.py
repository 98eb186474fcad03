"""What of the sources is in flight, by label: vectors, and multisets of the least active labels."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from caesura.events.labels import Vector


def raised(vector: Vector, by: Mapping[int, int]) -> None:
    """Lifts a vector to the component-wise maximum."""
    for k, number in by.items():
        if number > vector.get(k, 0):
            vector[k] = number


@dataclass
class InFlight:
    """Per source the multiset of the least active labels of the pages in flight.

    >>> flying = InFlight(1)
    >>> flying.add({0: 5}); flying.add({0: 3}); flying.remove({0: 3}); flying.least(0)
    5
    """

    sources: int
    heaps: list[list[int]] = field(init=False)
    counts: list[Counter[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.heaps = [[] for _ in range(self.sources)]
        self.counts = [Counter() for _ in range(self.sources)]

    def add(self, least: Mapping[int, int], times: int = 1) -> None:
        for k, number in least.items():
            if times and not self.counts[k][number]:
                heapq.heappush(self.heaps[k], number)
            self.counts[k][number] += times

    def remove(self, least: Mapping[int, int]) -> None:
        for k, number in least.items():
            self.counts[k][number] -= 1

    def least(self, source: int) -> int | None:
        """The least active label of a source in flight; None where nothing of it is."""
        heap, counts = self.heaps[source], self.counts[source]
        while heap and not counts[heap[0]]:
            del counts[heapq.heappop(heap)]
        return heap[0] if heap else None
