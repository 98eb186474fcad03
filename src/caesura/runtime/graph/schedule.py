"""Which cell works next. A schedule changes latency and memory, never a history.

>>> BottomUp().name
'bottom-up'
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from caesura.runtime.graph.edge import Edge


class Schedule(Protocol):
    """Picks among the edges whose next item can be taken."""

    @property
    def name(self) -> str: ...

    def pick(self, ready: Sequence[Edge]) -> Edge: ...


class BottomUp:
    """The cell nearest to the output first: results leave before new input is taken."""

    name = "bottom-up"

    def pick(self, ready: Sequence[Edge]) -> Edge:
        return max(ready, key=_depth)


def _depth(edge: Edge) -> int:
    return edge.target.depth if edge.target is not None else -1


class LongestQueue:
    """The longest queue first, round robin among equals."""

    name = "longest queue"

    def __init__(self) -> None:
        self._turn = 0

    def pick(self, ready: Sequence[Edge]) -> Edge:
        self._turn += 1
        longest = max(len(edge.items) for edge in ready)
        some = [edge for edge in ready if len(edge.items) == longest]
        return some[self._turn % len(some)]


class Shuffled:
    """A random cell, by seed: for tests that hunt for schedules that matter."""

    name = "shuffled"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, ready: Sequence[Edge]) -> Edge:
        return self._random.choice(ready)
