"""What the page of time shows: the changes of an output, how rows arrived, late rows, epochs, claims.

Whoever watches a query answers these; what it cannot know it leaves empty, with a note that says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from caesura.consistency import Claim
from caesura.events.item import Item
from caesura.punctuation import MIN_TIME

MAX_CHANGES = 2_000
"""So many of the last changes of an output are looked at."""


@dataclass(frozen=True)
class OutputRows:
    """The last changes of an output, the oldest first."""

    items: tuple[Item, ...]
    schema: pa.Schema
    time: pa.DataType | None = None
    definite: int = MIN_TIME
    """The time up to which the output is definite."""
    fixed_ends: bool = False
    """Whether the end of a row never changes, so that it is final once its start is."""
    note: str = ""


@dataclass(frozen=True)
class LateExcerpt:
    """Some of the late rows of a source, and how many there are to page through."""

    rows: pa.Table | None
    kept: int = 0
    refused: int = 0
    """How many were refused in all."""
    note: str = ""


@dataclass(frozen=True)
class Bin:
    """How many rows lay so far behind."""

    label: str
    admitted: int = 0
    late: int = 0


class Arrival(NamedTuple):
    """A source at a moment: what it had read, and how far it had come."""

    at: float
    """Seconds since 1970."""
    rows: int
    late: int
    latest: int
    promised: int


@dataclass(frozen=True)
class SeenEpoch:
    """An epoch that was written: how long it took, by parts, and what it wrote."""

    number: int
    at: float = 0.0
    """When it was done, in seconds since 1970; 0 where nobody knows."""
    seconds: float = 0.0
    rows: int | None = None
    """How many rows the sources had given by then."""
    late: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    """What it spent its seconds on."""
    written: Mapping[str, int] = field(default_factory=dict)
    """Rows by output."""


class TimeView(Protocol):
    """A query, as the page of time sees it; every call is from a thread of the server."""

    def outputs(self) -> Sequence[str]: ...
    def sources(self) -> Sequence[str]: ...
    def changes(self, output: str, /) -> OutputRows: ...
    def arrivals(self, source: str, /) -> Sequence[Arrival]: ...
    def lateness(self, source: str, /) -> Sequence[Bin]: ...
    def late(self, source: str, first: int, count: int, /) -> LateExcerpt: ...
    def epochs(self) -> Sequence[SeenEpoch]: ...
    def claims(self) -> Sequence[Claim]: ...
