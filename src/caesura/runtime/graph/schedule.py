"""Which cell works next. A schedule changes latency and memory, never a history.

>>> BottomUp().name
'bottom-up'
>>> schedule_of("round robin").name
'round robin'
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from caesura.errors import PlanError
from caesura.plan import here
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge

ScheduleName = Literal["bottom-up", "round robin", "longest queue", "proportional"]


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


class RoundRobin:
    """Each queue in turn, one item at a time: the one that was served longest ago."""

    name = "round robin"

    def __init__(self) -> None:
        self._turn = 0
        self._served: dict[Edge, int] = {}

    def pick(self, ready: Sequence[Edge]) -> Edge:
        self._turn += 1
        chosen = min(ready, key=lambda edge: self._served.get(edge, 0))
        self._served[chosen] = self._turn
        return chosen


class Proportional:
    """Each step in turn, for as many items as waited for it when its turn began (section 6)."""

    name = "proportional"

    def __init__(self) -> None:
        self._turns = RoundRobin()
        self._cell: Cell | None = None
        self._left = 0

    def pick(self, ready: Sequence[Edge]) -> Edge:
        own = [edge for edge in ready if edge.target is self._cell]
        if self._left <= 0 or not own:
            self._cell = self._turns.pick(ready).target
            own = [edge for edge in ready if edge.target is self._cell]
            self._left = sum(len(edge.items) for edge in own)
        self._left -= 1
        return max(own, key=lambda edge: len(edge.items))


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


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    BottomUp.name: BottomUp,
    RoundRobin.name: RoundRobin,
    LongestQueue.name: LongestQueue,
    Proportional.name: Proportional,
}


def schedule_of(given: Schedule | str | None) -> Schedule:
    """The schedule of a name, or one that was made already; results leave first where none is given."""
    if given is None:
        return BottomUp()
    if not isinstance(given, str):
        return given
    if given not in SCHEDULES:
        raise PlanError(f"there is no schedule '{given}'.", remedy=f"Take one of {', '.join(SCHEDULES)}.").at(
            "schedule", here()
        )
    return SCHEDULES[given]()
