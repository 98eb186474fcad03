"""What leaves one output of a query that makes claims: items, and a token wherever a claim holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from caesura.consistency.token import is_token, number_of
from caesura.events import Item, Page
from caesura.punctuation import Punctuation


class View:
    """One output; held back until a claim covers it, where that is asked for."""

    def __init__(self, name: str, *, held: bool, arrived: Callable[[View, Item], None]) -> None:
        self.name = name
        self.rows = 0
        self._held = held
        self._arrived = arrived
        self.ready: deque[Item] = deque()
        self._waiting: list[Item] = []

    def append(self, item: Item) -> None:
        """Takes an item that leaves the plan."""
        if isinstance(item, Page):
            self.rows += 0 if item.settled else len(item)
            self._keep(item if item.tags is None else replace(item, tags=None))
        else:
            self._keep(bare(item))
        self._arrived(self, item)

    def _keep(self, item: Item) -> None:
        (self._waiting if self._held else self.ready).append(item)

    def release(self, number: int) -> None:
        """Lets go of everything up to the token of a claim."""
        for place, item in enumerate(self._waiting):
            if is_token(item) and number_of(item) == number:
                self.ready += self._waiting[: place + 1]
                del self._waiting[: place + 1]
                return

    def take(self) -> list[Item]:
        """What may be seen since the last call."""
        items = list(self.ready)
        self.ready.clear()
        return items


def bare(item: Punctuation) -> Punctuation:
    """A punctuation without what only the runtime reads."""
    note = tuple(n for n in item.note if n[0] not in ("label", "prefix"))
    return item if len(note) == len(item.note) else Punctuation(item.pattern, item.intent, note)
