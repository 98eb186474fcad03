"""A line on the terminal while a query takes its time: what is read, how fast, how long it still takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from caesura.io.sources.source import Source

if TYPE_CHECKING:
    from caesura.plan import Node
    from caesura.runtime.query.query import Query

FIRST = 2.0
"""Seconds after which the line is shown: whoever waits for less needs none."""
EVERY = 0.25


class WaitingLine:
    """Looks at a query between its steps; the line goes when the query comes to rest."""

    def __init__(self, query: Query, screen: TextIO) -> None:
        self._readers = list(query.parts.readers.values())
        self._screen = screen
        self._began = time.monotonic()
        self._next = self._began + FIRST
        self._total: int | None = None
        self._shown = False

    def look(self) -> None:
        """Called by the thread that runs the query, between two steps."""
        now = time.monotonic()
        if now < self._next:
            return
        if not self._shown:
            self._total, self._shown = known_rows(reader.node for reader in self._readers), True
        self._next = now + EVERY
        rows = sum(reader.cell.operator.counters.rows_in for reader in self._readers)
        self._screen.write(f"\r\x1b[K{progress_text(rows, self._total, now - self._began)}")
        self._screen.flush()

    def update(self) -> None:
        """Called by the thread that runs the query, when it stops working: the line goes."""
        if self._shown:
            self._screen.write("\r\x1b[K")
            self._screen.flush()
            self._shown = False


_elsewhere = ContextVar("caesura_progress_elsewhere", default=False)


@contextmanager
def shown_elsewhere() -> Iterator[None]:
    """Within, whoever called shows by other means that it takes its time."""
    before = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(before)


def watched(query: Query, screen: TextIO | None = None) -> Query:
    """A query with a line on the terminal, where there is one."""
    screen = screen or sys.stderr
    if screen is not None and screen.isatty() and not _elsewhere.get():
        query.runner.onlookers.append(WaitingLine(query, screen))
    return query


def known_rows(nodes: Iterable[Node]) -> int | None:
    """How many rows there are to read, where all sources know without reading."""
    total = 0
    for node in nodes:
        if not isinstance(node, Source) or (ends := node.reader.latest()) is None:
            return None
        total += sum(ends.values()) - sum(node.reader.earliest().values())
    return total


def progress_text(rows: int, total: int | None, seconds: float) -> str:
    """What the line says.

    >>> progress_text(1_500_000, 6_000_000, 10.0)
    'running: 1,500,000 of 6,000,000 rows (25 %), 150,000 a second, about 30 s to go'
    >>> progress_text(1_500_000, None, 10.0)
    'running: 1,500,000 rows, 150,000 a second, 10 s so far'
    """
    rate = rows / seconds
    if not total or rows == 0 or rows > total:
        return f"running: {rows:,} rows, {rate:,.0f} a second, {seconds:.0f} s so far"
    left = (total - rows) / rate
    share = f"{rows:,} of {total:,} rows ({100 * rows // total} %)"
    return f"running: {share}, {rate:,.0f} a second, about {left:.0f} s to go"
