"""What the pages show of a query: what every kind has, and what only some can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from caesura.events.item import Item
from caesura.punctuation import Pattern
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.plan_shape import PlanShape


@dataclass(frozen=True)
class SeenRows:
    """The last rows that left a step since somebody looked."""

    items: tuple[Item, ...]
    schema: pa.Schema
    time: pa.DataType | None = None
    note: str = ""
    """Why there are none, or not all."""


@dataclass(frozen=True)
class StateTable:
    """The first rows that a step holds, of one of its tables."""

    name: str
    rows: pa.Table
    count: int


class Speaker(Protocol):
    """Whoever takes feedback for a query, in words."""

    def outputs(self) -> list[str]: ...
    def speak(self, intent: str, pattern: Pattern, output: str | None, /) -> str: ...
    def withdraw(self, number: int, /) -> str: ...
    def standing(self) -> list[str]: ...


@dataclass(frozen=True)
class Watched:
    """A query, as the pages see it."""

    name: str
    shape: PlanShape
    figures: Callable[[], Figures]
    about: str = ""
    """Where it runs, in words."""
    rows: Callable[[int], SeenRows] | None = None
    """The last rows that left a step, by its number."""
    late: Callable[[], Mapping[str, pa.Table]] | None = None
    """Rows that were refused, with reasons, by source."""
    speaker: Speaker | None = None
    parts: Mapping[str, object] = field(default_factory=dict)
