"""A query of this process on the pages: the thread that runs it is asked, between two of its steps."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from caesura.console.web.embedded_times import LOOKS_FOR, EmbeddedTimes
from caesura.console.web.watched import SeenRows, Watched
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.runtime.inspect.trace import Trace
from caesura.runtime.metrics.errands import Errands
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.plan_shape import shape_of_query
from caesura.runtime.metrics.served import timed

if TYPE_CHECKING:
    from caesura.console.web.own_page import OwnPage
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.query.query import Query
    from caesura.runtime.query.recording import Recording

MAX_ROWS = 100
"""So many of the last rows of an edge are kept while somebody looks."""
TRACED = 2_000
"""So many rows of each lane are read again to be traced."""
HEARD_WITHIN = 3.0
"""Seconds that whoever gives feedback waits for the query to hear it."""


class LastRows:
    """A tap that keeps the last rows and punctuation that left a step."""

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self._rows = 0
        self.looked = time.monotonic()

    def append(self, item: Item, /) -> None:
        if not isinstance(item, Page):
            if self.items and not isinstance(self.items[-1], Page):
                self.items.pop()  # a promise that a later one makes superfluous
            self.items.append(item)
            return
        page = item if len(item) <= MAX_ROWS else item.slice(len(item) - MAX_ROWS, MAX_ROWS)
        self.items.append(page)
        self._rows += len(page)
        while self._rows > MAX_ROWS:
            first = self.items.popleft()
            if isinstance(first, Page):
                over = self._rows - MAX_ROWS
                self._rows -= len(first)
                if over < len(first):
                    self.items.appendleft(first.slice(over, len(first) - over))
                    self._rows += len(first) - over


class EmbeddedWatch:
    """Looks at a query from other threads; costs it nothing while nobody looks."""

    def __init__(self, query: Query, name: str) -> None:
        self._query, self._name, self._began = query, name, time.time()
        self._errands = Errands()
        self._status = query.status()
        self._shape = shape_of_query(query)
        cells = query.parts.cells
        self._cells: dict[int, Cell] = dict(enumerate(cells[mark] for mark in cells))
        self._taps: dict[int, LastRows] = {}
        self._seen: dict[int, tuple[Item, ...]] = {}
        """What was last seen of each step that somebody looks at."""
        self._claims, self._standing = 0, query.feedback()
        self._times = EmbeddedTimes(query, self._errands)
        self._ends = self._query.read_to()
        """How far each source was read when the query was last seen."""
        query.runner.onlookers.append(self)

    def watched(self, pages: Sequence[OwnPage] = ()) -> Watched:
        """The query, for the pages."""
        about = "in this process"
        nodes = self._query.outputs
        return Watched(
            self._name,
            self._shape,
            self.figures,
            about,
            self.rows,
            self,
            nodes,
            tracer=self.trace,
            stretch=self.stretch,
            times=self._times,
            pages=tuple(pages),
        )

    def trace(self, rows: str, assumed: str) -> Trace:
        """Follows rows through the plan, over the last that its sources gave, read again from there."""
        return self.stretch().trace(rows, assume=assumed or None)

    def stretch(self) -> Recording:
        """The last rows that its sources gave, read again; what was recorded, where it was asked to."""
        self._errands.ask("status", self._read)
        if self._query.recording is not None:
            return self._query.recording
        (output, *_) = self._query.outputs
        return self._query.stretch(output, self._ends, TRACED)

    def outputs(self) -> list[str]:
        """The outputs that feedback can be given on."""
        return list(self._query.outputs)

    def speak(self, intent: str, rows: str, output: str) -> str:
        """Gives feedback as a text of SQL, when the query is next between two steps."""
        query, where = self._query, output or None
        ways: dict[str, Callable[[], object]] = {
            "assume": lambda: query.assume(rows, output=where),
            "desire": lambda: query.desire(rows, output=where),
            "demand": lambda: query.demand(rows, output=where),
        }
        return self._said(ways[intent], "Said.")

    def withdraw(self, number: int) -> str:
        """Takes feedback back."""
        return self._said(lambda: self._query.withdraw(number), f"#{number} is withdrawn.")

    def standing(self) -> list[str]:
        """The feedback that stands."""
        self._errands.ask("status", self._read)
        return self._standing

    def _said(self, errand: Callable[[], object], done: str) -> str:
        waiting = self._errands.leave(errand)
        try:
            waiting.result(timeout=HEARD_WITHIN)
        except TimeoutError:
            return "The query is not at work now; it hears this when it is."
        return done

    def look(self) -> None:
        """Called by the thread that runs the query, between two steps."""
        self._errands.look()

    def update(self) -> None:
        """Called by the thread that runs the query, when it stops working for a while."""
        self._errands.update()
        self._read()
        self._times.rest()

    def _read(self) -> None:
        self._status, self._ends = self._query.status(), self._query.read_to()
        self._claims, self._standing = len(self._query.claims), self._query.feedback()
        for number, tap in [*self._taps.items()]:
            if time.monotonic() - tap.looked > LOOKS_FOR:
                self._cells[number].taps.remove(tap)
                del self._taps[number]
                self._seen.pop(number, None)

    def figures(self) -> Figures:
        """How the query stands now, or stood when it was last at work."""
        self._errands.ask("status", self._read)
        query = self._query
        readers = query.parts.readers.values()
        return Figures(
            self._name,
            self._status,
            active=not readers or not all(reader.done for reader in readers),
            timed=timed(query.outputs.values()),
            began=self._began,
            starts=getattr(query, "starts", 1),
            claims=None if query.claiming is None else self._claims,
        )

    def rows(self, number: int) -> SeenRows:
        """The last rows that left a step since somebody looks at it."""
        cell = self._cells[number]
        self._errands.ask(f"rows {number}", lambda: self._rows_of(number))
        note = "" if self._errands.at_work else "The query is not at work now."
        return SeenRows(self._seen.get(number, ()), cell.node.schema, cell.node.time, note)

    def _rows_of(self, number: int) -> None:
        tap = self._taps.get(number)
        if tap is None:
            tap = self._taps[number] = LastRows()
            self._cells[number].taps.append(tap)
        tap.looked = time.monotonic()
        self._seen[number] = tuple(tap.items)
