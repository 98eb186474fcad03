"""What a step keeps, and which punctuation lets it go: a rule that contracts and people can read.

>>> left = Holding("left rows", rows_of=0, needs=(Need(1, ("id",)),))
>>> print(left)
left rows, until input 2 promises on id or time, past their ends
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Until = Literal["start", "end", "forever"]
"""How far a promise must reach: past a row's start, past its end, or over all time."""

OWN = -1
"""The port of a source's own promises."""


@dataclass(frozen=True)
class Need:
    """A promise that must come on an input; it may name these columns, and time."""

    port: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Holding:
    """One kind of state: it goes when every need is met for its rows."""

    what: str
    rows_of: int
    """The input whose events make it; their lifetimes count."""
    needs: tuple[Need, ...]
    until: Until = "end"
    endless: bool = False
    """Whether only events that never end are kept."""
    holds_back: bool = False
    """Whether output punctuation on time waits for it."""
    size: int = 0
    """How many ticks past its events' ends it stays open, for example a window's size."""
    one_per: tuple[str, ...] | None = None
    """Columns such that, of events that never end, at most the last one per value stays; None for no such."""
    each: int = 1
    """How many rows of state one event may make."""
    struck: bool = False
    """Whether feedback that covers it frees it as well."""
    ends_final: bool = False
    """Whether it waits for the end of a row as it stands, also of one that grows as events come."""
    why: str = ""
    """Why no punctuation short of the end frees it, in users' words; empty where some does."""

    def __str__(self) -> str:
        reach = {"start": "past their starts", "end": "past their ends", "forever": "for all time"}[
            self.until
        ]
        asked = " and ".join(
            f"input {need.port + 1} promises on {' or '.join([*need.columns, 'time'])}" for need in self.needs
        )
        kept = f"{self.what} that never end" if self.endless else self.what
        return f"{kept}, until {asked}, {reach}"
