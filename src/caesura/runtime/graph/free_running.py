"""Lets sources be read between the rounds of a loop: input does not wait until the loop is at rest.

A round begins where a page is taken from an edge that leads back. Before it one batch may be read, so
that sources and loop take turns. What is in flight is bounded: nothing is read while the edges that lead
back hold as many items as an edge may, while an edge behind a source is full, or while a loop takes rows
back (what it is to add waits for that, and rows that go on being retracted would hold it for ever).

Law: the history is that of a query that reads only when nothing is in flight.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from caesura.fixpoint.operator import FlyingFixpoint
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.loops import Loop
from caesura.runtime.graph.source_reader import SourceReader


class FreeRunning:
    """Says when a source may be read although loops are at work."""

    def __init__(self, loops: Iterable[Loop], *, now: Callable[[], float] = time.monotonic) -> None:
        heads = [loop.head for loop in loops if loop.free]
        self._back = [head.around for head in heads if head.around is not None]
        self._heads = [h.operator for h in heads if isinstance(h.operator, FlyingFixpoint)]
        self._now = now
        self._has_read = False
        """Whether something was read since the last round began."""
        self._ask_at = 0.0
        """When sources that had nothing are asked again."""

    def may_read(self, edge: Edge, live: Sequence[SourceReader]) -> bool:
        """Whether a source is read before the next page of an edge is taken; if not, its round begins."""
        may = not self._has_read and self._now() >= self._ask_at and self._bounded(edge, live)
        self._has_read = False
        return may

    def _bounded(self, edge: Edge, live: Sequence[SourceReader]) -> bool:
        """Whether little enough is in flight."""
        if edge not in self._back or sum(len(e.items) for e in self._back) >= edge.capacity:
            return False
        if any(head.retracting for head in self._heads):
            return False
        return bool(live) and not any(reader.cell.blocked for reader in live)

    def asked(self, live: Sequence[SourceReader], *, found: bool) -> None:
        """Sources were asked; those that have nothing are left alone as long as a query at rest would."""
        self._has_read = found
        if not found:
            self._ask_at = self._now() + min(reader.seconds() for reader in live)
