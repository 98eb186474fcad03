"""What the pages show of a query: what every kind has, and what only some can tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from caesura.events.item import Item
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
class Watched:
    """A query, as the pages see it."""

    name: str
    shape: PlanShape
    figures: Callable[[], Figures]
    about: str = ""
    """Where it runs, in words."""
    rows: Callable[[int], SeenRows] | None = None
    """The last rows that left a step, by its number."""
