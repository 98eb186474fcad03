"""A stretch from one promise of the sources to the next: what every step said in between, and what it holds.

Rows are read one at a time. A piece ends where a source has made a promise, and everything that follows from
it has passed through the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from caesura.events import Item, Page
from caesura.io.sources.source import Source
from caesura.misuse import checked_methods
from caesura.runtime.inspect.choice import ListedRows
from caesura.runtime.inspect.trace import (
    MAX_ROWS,
    EventTap,
    Now,
    TracedEvent,
    drawn,
    feed_one_by_one,
    read_one_by_one,
)
from caesura.runtime.query.query import Query
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.result import query_of

SHOWN = 8
"""So many events of a step are printed; of more, the first."""


@dataclass(frozen=True)
class StepState:
    """One step, between two promises of the sources."""

    step: str
    does: str
    columns: list[str]
    events: list[TracedEvent]
    """What left it."""
    promises: list[str]
    """What it promised."""
    state_rows: int
    """What it holds at the end."""

    @property
    def quiet(self) -> bool:
        """Whether nothing left it."""
        return not self.events and not self.promises

    @property
    def said(self) -> str:
        """What left it and what it holds, in words."""
        parts = [f"{len(self.events)} event{'s' * (len(self.events) != 1)}"] if self.events else []
        parts += [f"promises {promise}" for promise in self.promises]
        parts += [f"holds {self.state_rows} row{'s' * (self.state_rows != 1)}"] if self.state_rows else []
        return "; ".join(parts) or "nothing"

    def lines(self) -> Iterator[str]:
        does = f" ({self.does})" if self.does else ""
        yield f"step '{self.step}'{does}: {self.said}"
        yield from drawn(self.events[:SHOWN])
        if len(self.events) > SHOWN:
            yield f"  ... {len(self.events) - SHOWN} more"

    def to_json(self) -> dict[str, Any]:
        events = [event.to_json(self.columns) for event in self.events]
        return {
            "step": self.step,
            "events": events,
            "promises": self.promises,
            "state_rows": self.state_rows,
        }


@checked_methods
@dataclass(frozen=True)
class PunctuationStep:
    """What happened up to a promise of the sources."""

    number: int
    """Counted from 1."""
    promises: list[str]
    """What the sources promised at its end; nothing where the stretch ends without a promise."""
    rows: list[str]
    """The rows that were read."""
    steps: list[StepState]

    def __str__(self) -> str:
        head = f"{self.number}: {'; '.join(self.promises) or 'no promise'}"
        read = f"read: {', '.join(self.rows) or 'nothing'}"
        return "\n".join([head, read, *(line for step in self.steps for line in step.lines())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """The piece as plain values, for programs.

        Returns
        -------
        dict
            Its number, promises and rows, and by step what left it and what it holds.

        Examples
        --------
        >>> import caesura as cz
        >>> pieces = cz.from_rows([{"ts": 3, "id": 7}], time="ts").replay().step_through()
        >>> pieces[0].to_json()["rows"]
        ["row 0 of 'read'"]
        """
        own = {"number": self.number, "promises": self.promises, "rows": self.rows}
        return own | {"steps": [step.to_json() for step in self.steps]}


@dataclass
class _StepTap(EventTap):
    """Takes events and promises of a step; a source's promises end a piece."""

    def __post_init__(self) -> None:
        self.promises: list[str] = []

    def append(self, item: Item) -> None:
        super().append(item)
        if isinstance(item, Page):
            return
        self.promises.append(str(item.pattern))
        if not self.node.inputs and isinstance(self.now, _Pieces):
            self.now.promised.append(f"'{self.node.fed or self.node.step}' promises {item.pattern}")


class _Pieces(Now):
    """Cuts what happens into pieces, each time a row is reached behind a promise."""

    def __init__(self) -> None:
        super().__init__()
        self.query: Query | None = None
        self.taps: dict[str, _StepTap] = {}
        self.promised: list[str] = []
        self.rows: list[str] = []
        self.made: list[PunctuationStep] = []

    def reach(self, row: str) -> None:
        if self.promised:
            self.cut()
        super().reach(row)
        if row.startswith("row "):
            self.rows.append(row)

    def cut(self) -> None:
        """Ends a piece, if anything has happened."""
        if not (self.promised or self.rows or any(t.events or t.promises for t in self.taps.values())):
            return
        assert self.query is not None
        held = self.query.counters()
        steps = [self._state(label, tap, held[label].state_rows) for label, tap in self.taps.items()]
        self.made.append(PunctuationStep(len(self.made) + 1, self.promised, self.rows, steps))
        self.promised, self.rows = [], []
        for tap in self.taps.values():
            tap.events, tap.promises = [], []

    @staticmethod
    def _state(label: str, tap: _StepTap, held: int) -> StepState:
        does = "" if isinstance(tap.node, Source) else tap.node.describe()
        return StepState(label, does, list(tap.node.schema.names), tap.events, tap.promises, held)


def step_through(recording: Recording) -> list[PunctuationStep]:
    """The pieces of a stretch."""
    pieces = _Pieces()
    nothing = ListedRows(frozenset())
    plan, _ = read_one_by_one(recording.plan(), nothing, pieces, MAX_ROWS)
    query = pieces.query = query_of(plan, "changes", None, None)
    for cell in query.graph.cells:
        pieces.taps[cell.label] = _StepTap(cell.node, pieces)
        cell.taps.append(pieces.taps[cell.label])
    query.run()
    feed_one_by_one(query, nothing, recording.fed, pieces, keeps=True)
    pieces.cut()
    return pieces.made
