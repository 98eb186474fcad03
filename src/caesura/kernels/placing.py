"""Rows that go straight to their cells: filtered, looked up by a small key, windowed and counted in one pass.

>>> places = Places()
>>> keys, le = np.array([7, 8, 7, 7]), np.array([1, 2, 3, 12])
>>> places.place(None, keys, le, le + 1, 0, 10, NO_ROWS), places.unknown.tolist()
(2, [0, 1])
>>> places.learn(keys[places.unknown], np.array([0, 1]), 2)
>>> places.place(None, keys, le, le + 1, 0, 10, NO_ROWS)
0
>>> places.found()  # of each cell its group, its window, and how many rows it got
(array([0, 1, 0]), array([0, 0, 1]), array([2, 1, 1]))
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.kernels.memo import MAX_SMALL
from caesura.punctuation import INFINITY, MIN_TIME

NO_ROWS: I64 = np.zeros(0, np.int64)
NO_RETRACTS: Mask = np.zeros(0, np.bool_)
UNKNOWN, ASKED = -1, -2
UNFIT, NO_ROOM, NO_WINDOW = -1, -2, -3
"""A row that the pass is not made for; a key beyond the table; more windows than there is room for."""
AGAIN = -2
"""Room was made, and what was placed before these rows must be placed again."""
MAX_WINDOWS = 128
"""Of a page; windows are looked for one by one when rows change from one to another."""
MAX_CELLS = 1 << 20
RETRACTED = 1 << 32
"""What one retract adds to the number of rows of a cell."""
FEW_WINDOWS = 4
"""Room is made for so many at first, or so many times as many as a page has, up to a cell for each row."""


@kernel
def pick_rows(mask: Mask, out: I64) -> int:
    """The numbers of the rows where a mask is true, without a branch that is guessed wrong."""
    count = 0
    for i in range(len(mask)):
        out[count] = i
        count += mask[i]
    return count


@kernel
def place_rows(
    picked: I64, whole: bool, keys: I64, le: I64, re: I64, offset: int, every: int,
    group_of: I64, groups: int, windows: I64, counts: I64, used: I64, unknown: I64, seen: I64,
    cells: I64, retracts: Mask,
) -> int:  # fmt: skip
    """Counts the rows of each (window, group); gives how many keys have no group yet, or what stops it.

    ``picked`` are the rows, unless all are; an empty ``re`` says that all are points. ``windows`` receives
    those that occur, ``used`` the cells in the order in which rows met them, ``seen`` how many there are of
    both, and were before these rows. ``cells``, where it has room, receives the cell of each row. Those
    marked as ``retracts``, where that is not empty, are counted apart: in multiples of `RETRACTED`.
    """
    low, high, base, missing = 0, 0, 0, 0
    known, taken = seen[0], seen[1]
    count = len(keys) if whole else len(picked)
    for n in range(count):
        i = n if whole else picked[n]
        t = le[i]
        if t < low or t >= high:
            if t < MIN_TIME + 2 * every or t > INFINITY - 2 * every:
                return UNFIT
            number = (t - offset) // every
            low = number * every + offset
            high = low + every
            at = known - 1
            while at >= 0 and windows[at] != number:
                at -= 1
            if at < 0:
                if known == len(windows):
                    return NO_WINDOW
                windows[known] = number
                at = known
                known += 1
            base = at * groups
        if len(re) > 0 and re[i] > high:
            return UNFIT
        key = keys[i]
        if key < 0 or key >= len(group_of):
            return NO_ROOM
        group = group_of[key]
        if group < 0:
            if group == UNKNOWN:
                group_of[key] = ASKED
                unknown[missing] = i
                missing += 1
            continue
        cell = base + group
        if counts[cell] == 0:
            used[taken] = cell
            taken += 1
        counts[cell] += RETRACTED if len(retracts) > 0 and retracts[i] else 1
        if len(cells) > 0:
            cells[n] = cell
    seen[0], seen[1] = known, taken
    return missing


class Places:
    """The groups of small keys, and room to count the rows of each window and group."""

    def __init__(self) -> None:
        self.groups = 0
        self._group_of: I64 = np.full(1024, UNKNOWN, np.int64)
        self._windows: I64 = np.empty(MAX_WINDOWS, np.int64)
        self._counts: I64 = np.zeros(0, np.int64)
        self._used: I64 = np.empty(0, np.int64)
        self._unknown: I64 = np.empty(0, np.int64)
        self._seen: I64 = np.zeros(2, np.int64)
        self.missing = 0
        self._signed = False

    def place(
        self,
        rows: I64 | None,
        keys: I64,
        le: I64,
        re: I64,
        offset: int,
        every: int,
        cells: I64,
        retracts: Mask = NO_RETRACTS,
        *,
        more: bool = False,
    ) -> int:
        """How many keys of some rows, or of all, have no group yet; UNFIT where rows must go their usual way.

        Those keys are in `unknown`; `learn` or `forget` must follow. ``retracts`` marks those.
        With ``more``, the rows join those that were placed last, all of which are gone unless it gives 0.
        """
        self._signed = len(retracts) > 0
        if not more:
            self._seen[:] = 0
        if len(self._unknown) < len(le):
            self._unknown = np.empty(len(le), np.int64)
        most = self._most_windows
        while True:
            windows = self._windows[: min(most, len(self._counts) // self.groups) if self.groups else most]
            self.missing = place_rows(
                NO_ROWS if rows is None else rows, rows is None, frozen(keys), frozen(le), frozen(re),
                offset, every, self._group_of, self.groups, windows, self._counts, self._used,
                self._unknown, self._seen, cells, frozen(retracts),
            )  # fmt: skip
            if self.missing > 0:
                self._counts[self.used] = 0
            if self.missing < 0:
                self._counts.fill(0)
                self._group_of[self._group_of == ASKED] = UNKNOWN  # nobody will be asked
            if self.missing == NO_WINDOW and len(windows) < most:
                self._make_room(4 * len(windows))
            elif self.missing == NO_ROOM and len(self._group_of) < MAX_SMALL:
                self._widen(16 * len(self._group_of))
            else:
                return max(self.missing, UNFIT)
            if more:
                return AGAIN

    def _widen(self, keys: int) -> None:
        """Makes room for the groups of so many keys, as far as they are small."""
        grown = np.full(min(MAX_SMALL, keys), UNKNOWN, np.int64)
        grown[: len(self._group_of)] = self._group_of
        self._group_of = grown

    @property
    def unknown(self) -> I64:
        """The first row of each key that has no group yet."""
        return self._unknown[: max(0, self.missing)]

    @property
    def windows(self) -> I64:
        """The windows that occurred."""
        return self._windows[: self._seen[0]]

    @property
    def used(self) -> I64:
        """The cells that rows were brought to."""
        return self._used[: self._seen[1]]

    @property
    def room(self) -> int:
        """Below which number they all are."""
        return int(self._seen[0]) * self.groups

    @property
    def cell_count(self) -> int:
        """How many cells rows were brought to."""
        return int(self._seen[1])

    def knows(self, keys: I64) -> Mask:
        """Which of these keys, all of which were met, have a group."""
        known: Mask = self._group_of[keys] >= 0
        return known

    def learn(self, keys: I64, groups: I64, count: int) -> None:
        """Takes the groups of some keys; there are so many groups now."""
        most = int(keys.max(initial=0))
        if most >= len(self._group_of):
            self._widen(max(16 * len(self._group_of), most + 1))
        self._group_of[keys] = groups
        self.groups = count
        most = min(FEW_WINDOWS * int(self._seen[0]), len(self._unknown) // max(1, count))
        self._make_room(max(FEW_WINDOWS, int(self._seen[0]), most))

    @property
    def _most_windows(self) -> int:
        return min(MAX_WINDOWS, max(1, MAX_CELLS // max(1, self.groups)))

    def _make_room(self, windows: int) -> None:
        """Makes cells for so many windows of all groups, and some more."""
        room = min(windows, self._most_windows) * self.groups
        if len(self._counts) < room:
            self._counts, self._used = np.zeros(2 * room, np.int64), np.empty(2 * room, np.int64)

    def forget(self) -> None:
        """No key has a group."""
        self.groups = 0
        self._group_of.fill(UNKNOWN)

    def found(self) -> tuple[I64, I64, I64]:
        """Group, window and number of rows of each cell, less its retracts, in the order of their coming."""
        used = self.used
        counts = self._counts[used]
        self._counts[used] = 0
        if self._signed:
            counts = counts % RETRACTED - counts // RETRACTED
        window, group = np.divmod(used, max(1, self.groups))
        return group, self._windows[window], counts

    def numbered(self, cells: I64) -> I64:
        """The place of each row's cell among those that were found."""
        return self.named(np.arange(self._seen[1]))[cells]

    def named(self, numbers: I64) -> I64:
        """By cell, the numbers that those have which were found; of the others, nothing is known."""
        named = np.empty(len(self._counts), np.int64)
        named[self.used] = numbers
        return named
