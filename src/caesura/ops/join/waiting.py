"""Rows of a join's side that wait as they came, until a row of the other side may have their key.

Where one side is large and the other small, most rows meet nothing and go with the punctuation: nothing of
them is copied, hashed or linked. Which rows may meet a page is told by a filter of its keys, which may name
more than have one of them.

>>> def words(batch): return batch["id"].to_numpy()
>>> rows = WaitingRows(words, words)
>>> batch = pa.record_batch({"id": np.arange(20)})
>>> _ = rows.add(Page(np.zeros(20, np.int64), np.arange(1, 21), batch), 2)
>>> [some.page.take(at).rows() for some, at in rows.asked(pa.record_batch({"id": [3]}))], rows.count
([[(0, 4, None, (3,))]], 17)
>>> rows.drop(20), rows.count
([], 0)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from caesura.events.page import Page
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen

PAGE_ROWS = 4096
"""Pages of so many rows may wait."""
SHARE = 16
"""A page looks through the rows that wait if those are so many times as many as its own."""
LOOKS = 4
"""So many times the rows that wait are looked through; after that they are filed."""
MARKS = 16
"""A filter has so many places for each key."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel
def mark_words(words: I64, down: int, marked: Mask) -> None:
    """Marks the place of each word."""
    for i in range(len(words)):
        marked[(np.uint64(words[i]) * SPREAD) >> np.uint64(down)] = True


@kernel
def pick_marked(words: I64, down: int, marked: Mask, waits: Mask, rows: I64) -> int:
    """The rows that wait and whose words' places are marked; they wait no longer."""
    count = 0
    for i in range(len(words)):
        if waits[i] and marked[(np.uint64(words[i]) * SPREAD) >> np.uint64(down)]:
            rows[count] = i
            waits[i] = False
            count += 1
    return count


class WaitingPage:
    """A page, and which of its rows wait."""

    def __init__(self, page: Page, bound: int) -> None:
        self.page, self._bound = page, bound
        self._waits: Mask | None = None
        self.count = len(page)
        """How many wait, at most."""
        self.words: I64 | None = None
        self.numbers: I64 | None = None
        """The numbers of the rows' keys, if all of them have one."""

    @property
    def waits(self) -> Mask:
        """Which rows wait: nobody has to know before the first are asked for, or let go."""
        if self._waits is None:
            self._waits = self.page.ends_after(self._bound)
            self.count = int(np.count_nonzero(self._waits))
        return self._waits

    def drop(self, bound: int) -> None:
        """Rows that end at a bound or before it wait no longer."""
        later = self.page.ends_after(bound)
        self._waits = later if self._waits is None else self._waits & later
        self.count = int(np.count_nonzero(self._waits))

    def all(self) -> Taken:
        """All that wait, which wait no longer."""
        waits = self.waits
        return self, None if self.count == len(self.page) else np.flatnonzero(waits)

    def taken(self, rows: I64) -> Taken:
        """Some rows, which wait no longer."""
        self.count -= len(rows)
        return self, rows


Taken = tuple[WaitingPage, I64 | None]
"""Some rows of a page, by place; None for all."""


class WaitingRows:
    """Pages of one side, and functions that make words of the keys of rows here and on the other side."""

    def __init__(
        self, words: Callable[[pa.RecordBatch], I64], asking: Callable[[pa.RecordBatch], I64]
    ) -> None:
        self._words, self._asking = words, asking
        self._pages: list[WaitingPage] = []
        self._looks = 0

    @property
    def count(self) -> int:
        return sum(some.count for some in self._pages)

    def add(self, page: Page, bound: int) -> WaitingPage:
        """Takes the rows of a page that end after a bound."""
        self._pages.append(WaitingPage(page, bound))
        return self._pages[-1]

    def asked(self, payload: pa.RecordBatch) -> list[Taken]:
        """Takes out the rows that may have a key of these rows of the other side; all, if that is cheaper."""
        if not self._pages:
            return []
        if payload.num_rows * SHARE > self.count or self._looks >= LOOKS:
            return self.all()
        self._looks += 1
        down = 64 - max(8, (MARKS * payload.num_rows).bit_length())
        marked = np.zeros(1 << (64 - down), np.bool_)
        mark_words(frozen(self._asking(payload)), down, marked)
        found = []
        for some in self._pages:
            if some.words is None:
                some.words = self._words(some.page.payload)
            rows = np.empty(len(some.page), np.int64)
            picked = pick_marked(frozen(some.words), down, marked, some.waits, rows)
            if picked:
                found.append(some.taken(rows[:picked]))
        return found

    def all(self) -> list[Taken]:
        """Takes out all rows."""
        pages, self._pages, self._looks = self._pages, [], 0
        return [some.all() for some in pages if some.count]

    def drop(self, bound: int) -> list[Taken]:
        """Lets go of the rows that end at a bound or before it; takes out what little is left of a page."""
        left, rest = [], []
        for some in self._pages:
            some.drop(bound)
            if 4 * some.count >= len(some.page):
                left.append(some)
            elif some.count:
                rest.append(some.all())
        self._pages = left
        self._looks = self._looks if left else 0
        return rest
