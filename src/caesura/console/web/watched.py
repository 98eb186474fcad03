"""What the pages show of a query: what every kind has, and what only some can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.events.item import Item
from caesura.plan import Node
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.plan_shape import PlanShape

if TYPE_CHECKING:
    from caesura.console.web.debugging import Stretch
    from caesura.console.web.own_page import OwnPage
    from caesura.console.web.speaking import Speaker
    from caesura.console.web.sql_page import EditedScript
    from caesura.console.web.times import TimeView
    from caesura.console.web.tracing import Tracer


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
    speaker: Speaker | None = None
    """Takes feedback, where the query does."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """The outputs of the plan, to be checked and explained, where it is known here."""
    tracer: Tracer | None = None
    """Traces rows of the sources through the plan, where these can be read again."""
    stretch: Stretch | None = None
    """Reads a stretch of its input again, to be looked into."""
    stream: str = ""
    """Where its stream is found, as a test names it; empty where that is not known."""
    script: EditedScript | None = None
    """Its script of SQL, where it has one that can be edited."""
    times: TimeView | None = None
    """Its output, arrivals, late rows, epochs and claims, where they can be seen."""
    note: str = ""
    """What is not shown, and how it would be."""
    pages: tuple[OwnPage, ...] = ()
    """Pages of the user's own."""
