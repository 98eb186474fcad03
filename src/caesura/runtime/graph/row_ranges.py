"""The rows of a page in ranges, each placed by itself and, where there are threads, on one of its own.

What the ranges found is put together in their order, so that nothing shows how the page was cut.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from caesura.events.page import Page
from caesura.kernels.grid import Lattice
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.placing import NO_RETRACTS, NO_ROWS, Places, pick_rows

MIN_ROWS, MAX_ROWS = 1 << 15, 1 << 19
"""A range of fewer rows is not worth another thread; others may wait for one of more."""


class Learned(NamedTuple):
    """The groups of keys that came for the first time, and how many groups there were then."""

    keys: I64
    numbers: I64
    groups: int


class RowRange:
    """Some rows of a page that lie behind each other, and room to place them."""

    def __init__(self) -> None:
        self.places = Places()
        self.start = 0
        self.rows: I64 | None = None
        """Those that pass the filter, counted from the start; None for all."""
        self.signed = False
        """Whether there may be retracts among them."""
        self.cells: I64 = NO_ROWS
        self.missing = 0
        self._count = 0
        self._learned = 0
        """How many of the lessons of all ranges it has had."""

    @property
    def passed(self) -> int:
        return self._count if self.rows is None else len(self.rows)

    @property
    def positions(self) -> I64:
        """Where its rows that pass are in the page."""
        rows = np.arange(self._count) if self.rows is None else self.rows
        return rows + self.start

    def learn(self, lessons: list[Learned]) -> None:
        """Takes what ranges have learned since it last did; nothing is placed in it then."""
        for lesson in lessons[self._learned :]:
            self.places.learn(*lesson)
        self._learned = len(lessons)

    def unknown(self, keys: I64) -> I64:
        """The rows of the page whose keys have no group yet, each key once."""
        rows = self.places.unknown + self.start
        return rows[~self.places.knows(keys[rows])]

    def forget(self) -> None:
        """No key has a group."""
        self._learned = 0
        self.places.forget()

    def pick(
        self, page: Page, start: int, stop: int, test: Callable[[Page], Mask] | None, *, inserts: bool
    ) -> None:
        """Takes a range of a page, and of it the rows that pass the filter, or the inserts among them."""
        self.start, self._count, self.rows = start, stop - start, None
        self.signed = page.has_retracts and not inserts
        mask = None
        if test is not None:
            mask = test(page if self._count == len(page) else page.slice(start, self._count))
        if page.retracts is not None and inserts:
            came = ~page.retracts[start:stop]
            mask = came if mask is None else mask & came
        if mask is not None:
            picked = np.empty(self._count + 1, np.int64)
            self.rows = picked[: pick_rows(mask, picked)]

    def place(self, page: Page, keys: I64, grid: Lattice, *, points: bool, numbered: bool) -> None:
        """Brings the rows that pass to their cells; ``missing`` says how many keys have no group yet."""
        part = slice(self.start, self.start + self._count)
        self.cells = np.empty(self.passed, np.int64) if numbered else NO_ROWS
        ends = NO_ROWS if points else page.re[part]
        retracts = page.retracts[part] if self.signed and page.retracts is not None else NO_RETRACTS
        times = page.le[part], ends, grid.offset, grid.hop
        self.missing = self.places.place(self.rows, keys[part], *times, self.cells, retracts)


class RowRanges:
    """The ranges of pages, and the threads that work on them."""

    def __init__(self) -> None:
        self._threads: Executor | None = None
        self._count = 1
        """How many threads there are."""
        self._all = [RowRange()]
        self._lessons: list[Learned] = []
        self.used = self._all
        """Those of the page at hand."""

    def divide(self, threads: Executor, count: int) -> None:
        """Has pages worked on by so many threads."""
        self._threads, self._count = threads, count

    def cut(self, rows: int) -> list[tuple[RowRange, int, int]]:
        """The ranges of a page of so many rows, with their starts and ends."""
        most = max(self._count, rows // MAX_ROWS) if self._count > 1 else 1
        count = max(1, min(most, rows // MIN_ROWS))
        self._all += [RowRange() for _ in range(count - len(self._all))]
        self.used = self._all[:count]
        for one in self.used:
            one.learn(self._lessons)
        ends = [rows * (i + 1) // len(self.used) for i in range(len(self.used))]
        return list(zip(self.used, [0, *ends[:-1]], ends, strict=True))

    def each(self, work: Callable[..., None], *args: tuple[object, ...]) -> None:
        """Does something with every range, or whatever else stands in the tuples."""
        if self._threads is None or len(args) < 2:
            for some in args:
                work(*some)
            return
        others = [self._threads.submit(work, *some) for some in args[1:]]
        work(*args[0])
        for other in others:
            other.result()

    def teach(self, one: RowRange, lesson: Learned) -> None:
        """Has a range learn, and all others before they are used again."""
        self._lessons.append(lesson)
        one.learn(self._lessons)

    def learn(self, one: RowRange) -> None:
        """Has a range, which must be placed anew, learn what others did."""
        one.learn(self._lessons)

    def forget(self) -> None:
        """No key has a group."""
        self._lessons = []
        for one in self._all:
            one.forget()

    def empty(self) -> None:
        """Nothing was placed."""
        for one in self.used:
            if one.missing == 0:
                one.places.found()

    def found(self) -> tuple[I64, I64, I64]:
        """Group, window and number of rows of each cell of each range; the ranges are empty again."""
        parts = [one.places.found() for one in self.used]
        if len(parts) == 1:
            return parts[0]
        group, window, count = (np.concatenate(some) for some in zip(*parts, strict=True))
        return group, window, count

    def numbered(self) -> I64:
        """The place of each row's cell among those that are found; asked for before they are."""
        first, made = 0, []
        for one in self.used:
            made.append(one.places.numbered(one.cells) + first)
            first += one.places.cell_count
        return made[0] if len(made) == 1 else np.concatenate(made)

    def rows(self) -> I64 | None:
        """The rows of the page that passed; None for all."""
        if all(one.rows is None for one in self.used):
            return None
        parts = [one.positions for one in self.used]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
