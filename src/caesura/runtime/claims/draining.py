"""Draining: an item enters when the one before it has gone through the whole plan; each state is a claim."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from caesura.consistency import Draining
from caesura.consistency.token import token
from caesura.events import Item, Page
from caesura.runtime.claims.claiming import Claiming, CountedReader
from caesura.runtime.graph.emitter import Emitter


class DrainClaims(Claiming):
    """Lets one item in at a time."""

    def __init__(self, mode: Draining, *args: Any) -> None:
        super().__init__(mode, *args)
        self._queue: deque[tuple[Emitter, Item, bool]] = deque()
        """Items that wait to be let in; and whether all rows that were read have then entered."""
        self._open = False
        """Whether something has entered since the last claim."""
        self._number = 0

    def feed(self, label: str, item: Item) -> None:
        self._queue.extend((self.emitters[label], part, True) for part in _single(item))

    def turn(self, reader: CountedReader, emitter: Emitter) -> None:
        self.read(reader, emitter, 1)

    def let_in(self, emitter: Emitter, items: list[Item]) -> None:
        parts = [part for item in items for part in _single(item)]
        last = max((n for n, part in enumerate(parts) if isinstance(part, Page)), default=0)
        self._queue.extend((emitter, part, n >= last) for n, part in enumerate(parts))

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "number": self._number}

    def remember(self, meta: Mapping[str, Any]) -> None:
        super().remember(meta)
        self._number = meta["number"]

    def pull(self) -> bool:
        if self._open and any(cell.flush() for cell in self.graph.cells):
            return True
        if self._open:
            self._open = False
            self._number += 1
            output = {name: view.rows for name, view in self.views.items()}
            prefix = self.prefixes()
            for view in self.views.values():
                view.append(token(self._number, prefix))
            self.claim(self._number, prefix, output)
        if self._queue:
            emitter, item, self._open = self._queue.popleft()
            emitter.send([item])
            return True
        return super().pull()


def _single(item: Item) -> list[Item]:
    if not isinstance(item, Page) or len(item) <= 1:
        return [item]
    return [item.slice(row, 1) for row in range(len(item))]
