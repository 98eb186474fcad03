"""Modules of all eight kinds, each with the plain computation that it must agree with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from caesura.testing.oracles.windows import Rows
from caesura.udm import Event, Module, Window, uda, udo

MOST = 50


@dataclass
class Found:
    """A row that operators give."""

    w: int


def weight(start: int, end: int, value: int | None) -> int:
    """A value by how long it lives, within reason."""
    return (value or 0) * min(end - start, MOST)


@uda(time_bound=True)
def spread(values: list[int | None]) -> int:
    """The distance between the greatest and the least value."""
    some = [v for v in values if v is not None]
    return max(some, default=0) - min(some, default=0)


@uda(time_bound=True)
class Total:
    """The sum of values, kept by adding and removing."""

    def init(self) -> list[int]:
        return [0]

    def add(self, state: list[int], value: int | None) -> None:
        state[0] += value or 0

    def remove(self, state: list[int], value: int | None) -> None:
        state[0] -= value or 0

    def compute(self, state: list[int]) -> int:
        return state[0]


@uda(time_bound=True)
def weighted(events: list[Event[int]], window: Window) -> int:
    """The sum of values by how long they live; and where the window starts."""
    return sum(weight(e.start, e.end, e.payload) for e in events) + window.start


@uda(time_bound=True)
class Weighing:
    """The same, kept by adding and removing; states are values."""

    def init(self) -> int:
        return 0

    def add(self, state: int, event: Event[int]) -> int:
        return state + weight(event.start, event.end, event.payload)

    def remove(self, state: int, event: Event[int]) -> int:
        return state - weight(event.start, event.end, event.payload)

    def compute(self, state: int, window: Window) -> int:
        return state + window.start


@udo(time_bound=True)
def greatest(values: list[int | None]) -> list[Found]:
    """The two greatest values, if they are positive."""
    return [Found(v) for v in sorted((v or 0 for v in values), reverse=True)[:2] if v > 0]


@udo(time_bound=True)
class Different:
    """Every value once."""

    def init(self) -> Counter[int]:
        return Counter()

    def add(self, state: Counter[int], value: int | None) -> None:
        state[value or 0] += 1

    def remove(self, state: Counter[int], value: int | None) -> None:
        state[value or 0] -= 1

    def compute(self, state: Counter[int]) -> list[Found]:
        return [Found(v) for v, n in sorted(state.items()) if n > 0]


@udo(time_bound=True)
def lasting(events: list[Event[int]], window: Window) -> list[Event[Found]]:
    """Values with the lifetimes that they came with."""
    return [Event(e.start, e.end, Found(e.payload or 0)) for e in events]


@udo(time_bound=True)
class Keeping:
    """The same, kept by adding and removing."""

    def init(self) -> Counter[Any]:
        return Counter()

    def add(self, state: Counter[Any], event: Event[int]) -> None:
        state[event] += 1

    def remove(self, state: Counter[Any], event: Event[int]) -> None:
        state[event] -= 1

    def compute(self, state: Counter[Any]) -> list[Event[Found]]:
        return [Event(e.start, e.end, Found(e.payload or 0)) for e in state.elements()]


@uda(mergeable=True)
class Merging:
    """A sum whose states merge; what merges is changed, so nobody else may hold it."""

    def init(self) -> list[int]:
        return [0]

    def add(self, state: list[int], value: int) -> None:
        state[0] += value or 0

    def remove(self, state: list[int], value: int) -> None:
        state[0] -= value or 0

    def merge(self, state: list[int], other: list[int]) -> None:
        state[0] += other[0]

    def compute(self, state: list[int]) -> int:
        return state[0]


def _values(members: Rows) -> list[int]:
    return [p["v"] or 0 for _, _, p in members]


def plain(name: str, members: Rows, start: int, end: int) -> Rows:
    """What each module must give for a window."""
    some = [p["v"] for _, _, p in members if p["v"] is not None]
    if name == "spread":
        return [(start, end, {"w": max(some, default=0) - min(some, default=0)})]
    if name in ("Total", "Merging"):
        return [(start, end, {"w": sum(some)})]
    if name in ("weighted", "Weighing"):
        return [(start, end, {"w": sum(weight(a, b, p["v"]) for a, b, p in members) + start})]
    if name == "greatest":
        return [(start, end, {"w": v}) for v in sorted(_values(members))[-2:] if v > 0]
    if name == "Different":
        return [(start, end, {"w": v}) for v in set(_values(members))]
    return [(a, b, {"w": p["v"] or 0}) for a, b, p in members]


MODULES: dict[str, Module] = {
    m.name: m for m in (spread, Total, weighted, Weighing, greatest, Different, lasting, Keeping)
}
