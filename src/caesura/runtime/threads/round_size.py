"""How many rows the threads work on at once: few at first, so that all have work soon, then more.

A round has its price, whatever its rows: Python on one thread, windows that change hands. Where that counts,
rounds grow; where the rows themselves cost the most, small ones keep what they need in the caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from caesura.events import Item, Page
from caesura.runtime.graph.source_reader import SourceReader

FIRST_ROWS, ROUND_ROWS, MOST_ROWS = 1 << 19, 1 << 20, 1 << 22
"""Of the first round, of others, and of those that gain by being large."""
MOST_BYTES = 1 << 27
"""Rows that are wide make no round larger than this."""
GROWTH = 4
FEW = 16
"""With this part of its rows a round is one; pages that were read are put together, which copies them."""


class RoundSize:
    """The size of the next round of some sources."""

    def __init__(self, readers: Iterable[SourceReader]) -> None:
        self.rows = FIRST_ROWS
        self._readers = list(readers)
        self._free = [reader for reader in self._readers if reader.limit is None]
        """Those that give as many rows at once as there are."""
        self._limit()

    def _limit(self) -> None:
        for reader in self._free:
            reader.limit = self.rows

    def go_on(self, count: int) -> bool:
        """Whether a round of so many rows has room for what comes next, or too few to be one."""
        more = max((reader.waiting for reader in self._readers if not reader.done), default=0)
        return count < self.rows // FEW or count + more <= self.rows > count

    def follow(self, read: Mapping[str, Sequence[Item]], *, gains: bool) -> None:
        """Sets the size of the next round, after this one."""
        pages = [item for items in read.values() for item in items if isinstance(item, Page)]
        count, size = sum(map(len, pages)), sum(page.nbytes for page in pages)
        most = min(MOST_ROWS, MOST_BYTES * count // size) if gains and count else ROUND_ROWS
        self.rows = max(ROUND_ROWS, min(GROWTH * self.rows, most))
        self._limit()
