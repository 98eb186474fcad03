"""What leaves one output of a query that makes claims: items, and a token wherever a claim holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from caesura.consistency.token import is_token, number_of
from caesura.events import Item, Page
from caesura.io.sinks.rows import rows_table
from caesura.punctuation import Punctuation


class View:
    """One output; held back until a claim covers it, where that is asked for."""

    def __init__(self, name: str, *, held: bool, arrived: Callable[[View, Item], None]) -> None:
        self.name = name
        self.rows = 0
        self.taken = 0
        """How many of them were taken."""
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
        self.taken += sum(len(item) for item in items if isinstance(item, Page) and not item.settled)
        return items


def bare(item: Punctuation) -> Punctuation:
    """A punctuation without what only the runtime reads."""
    note = tuple(n for n in item.note if n[0] not in ("label", "prefix"))
    return item if len(note) == len(item.note) else Punctuation(item.pattern, item.intent, note)


def marked_rows(items: list[Item], schema: pa.Schema, time: pa.DataType, first: int = 0) -> pa.Table:
    """Items as rows, with the number of each in the output and the first claim that covers it.

    Null stands where none does yet; reminders of rows that have become final have no number of their own.
    """
    covers: list[pa.Array] = []
    numbers: list[int | None] = []
    waiting = 0
    for item in items:
        if isinstance(item, Page):
            waiting += len(item)
            numbers += [None] * len(item) if item.settled else range(first + 1, first + 1 + len(item))
            first += 0 if item.settled else len(item)
        elif is_token(item):
            covers.append(pa.array([number_of(item)] * waiting, pa.int64()))
            waiting = 0
    covers.append(pa.nulls(waiting, pa.int64()))
    rows = rows_table(items, schema, time).add_column(0, "claim", pa.chunked_array(covers))
    return rows.add_column(0, "row", pa.array(numbers, pa.int64()))
