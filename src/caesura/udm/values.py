"""What user-defined modules see of time: an event with its lifetime, and the window around it.

>>> Event(2, 5, 1.5).duration, Window(0, 10).duration
(3, 10)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Event(Generic[P]):
    """A payload that lives on [start, end); times are ticks."""

    start: int
    end: int
    payload: P

    @property
    def duration(self) -> int:
        """How long it lives, in ticks."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Window:
    """The window that a module is called for: [start, end) in ticks.

    A module that serves many windows at once is given one with an array of starts and one of ends.
    """

    start: int
    end: int

    @property
    def duration(self) -> int:
        """How long it is, in ticks."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"
