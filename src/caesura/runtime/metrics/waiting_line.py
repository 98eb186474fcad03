"""A line on the terminal while a query takes its time: what is read, how fast, how long it still takes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from caesura.io.sources.source import Source
from caesura.waiting import TaskProgress, Tell, pauses, teller

if TYPE_CHECKING:
    from caesura.plan import Node
    from caesura.runtime.query.query import Query


class WaitingLine:
    """Looks at a query between its steps; the line goes when the query comes to rest."""

    def __init__(self, query: Query, tell: Tell, what: str = "running", total: int | None = None) -> None:
        self._readers = list(query.parts.readers.values())
        self._tell = tell
        self._progress = TaskProgress(what, total, "rows")
        self._before = 0 if total is None else self._rows()
        """What was read before there was anything to show, where the total is of what is read now."""
        self._next = self._progress.began + pauses()[0]
        self._shown = False

    def look(self) -> None:
        """Called by the thread that runs the query, between two steps."""
        now = time.monotonic()
        if now < self._next:
            return
        if not self._shown:
            self._progress.total = self._progress.total or known_rows(r.node for r in self._readers)
            self._shown = True
        self._next = now + pauses()[1]
        self._progress.done = self._rows() - self._before
        self._tell(self._progress.text())

    def _rows(self) -> int:
        return sum(reader.cell.operator.counters.rows_in for reader in self._readers)

    def update(self) -> None:
        """Called by the thread that runs the query, when it stops working: the line goes."""
        if self._shown:
            self._tell("")
            self._shown = False


def watched(query: Query, screen: TextIO | None = None) -> Query:
    """A query with a line on the terminal, where there is one."""
    tell = teller(screen)
    if tell is not None:
        query.runner.onlookers.append(WaitingLine(query, tell))
    return query


@contextmanager
def reading_line(query: Query, what: str, rows: int) -> Iterator[None]:
    """Within, a line on the terminal, where there is one, says how many of so many rows were read."""
    tell, onlookers = teller(), list(query.runner.onlookers)
    line = None if tell is None else WaitingLine(query, tell, what, rows)
    if line is not None:
        query.runner.onlookers.append(line)
    yield
    if line is not None:
        line.update()
    query.runner.onlookers[:] = onlookers


def known_rows(nodes: Iterable[Node]) -> int | None:
    """How many rows there are to read, where all sources know without reading."""
    total = 0
    for node in nodes:
        if not isinstance(node, Source) or (ends := node.reader.latest()) is None:
            return None
        total += sum(ends.values()) - sum(node.reader.earliest().values())
    return total
