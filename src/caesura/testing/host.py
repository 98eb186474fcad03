"""Where a plan runs when its laws are checked: the engine in this process, or any other host.

>>> from caesura.runtime import BottomUp
>>> embedded is not None and BottomUp().name
'bottom-up'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from caesura.events import Item
from caesura.events.chunks import Chunks
from caesura.plan import Counters, Node
from caesura.runtime import BottomUp, LongestQueue, Query, Schedule, Shuffled

OUT = "out"
Pace: TypeAlias = Literal["arrival", "passed", "watermark"]


class RunningPlan(Protocol):
    """What the laws ask of a running plan."""

    def feed(self, label: str, item: Item) -> None: ...
    def run(self) -> None: ...
    def take(self, output: str) -> Sequence[Item]: ...
    def counters(self) -> Mapping[str, Counters]: ...
    def snapshot(self) -> Chunks: ...
    def restore(self, chunks: Mapping[str, bytes]) -> None: ...


Host: TypeAlias = Callable[[Node, int, Pace], RunningPlan]
"""Starts a plan; the number picks a schedule: 0 bottom-up, 1 longest queue, else a random one."""


def embedded(node: Node, schedule: int, pace: Pace) -> RunningPlan:
    """The plan in this process."""
    return Query({OUT: node}, schedule=schedule_of(schedule), speculate=pace, patient=True)


def schedule_of(number: int) -> Schedule:
    """A schedule by number: 0 bottom-up, 1 longest queue, else a random one."""
    if number < 2:
        return LongestQueue() if number else BottomUp()
    return Shuffled(number)
