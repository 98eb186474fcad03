"""The first rows of every group as they are now, for rows that only begin and come in order of time.

Then nothing of the past changes: a row that does not come among the first when it comes never will, and
one that does pushes others down. A page takes one pass, in which a row that is pushed out again at the same
instant leaves no trace. All of this follows from the stretches that were sent, and is not saved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, frozen
from caesura.punctuation import INFINITY, MIN_TIME

MOST_PLACES = 16
"""Groups have a place for each of the first n, up to this n."""
TIED = -1
LONGEST_PAUSE = 64
"""So many pages are taken the general way before the next try."""


# The words of a group, and of a place of it; what its row is ordered by comes behind them.
COUNT, LAST = 0, 1
GROUP = 2
ROW, START, SINCE, SENT = 0, 1, 2, 3
PLACE = 4


class Current(NamedTuple):
    """What is shown now, each group and each place in words that lie together."""

    groups: I64
    """Per group how many rows are shown, and when it last changed."""
    places: I64
    """The row; when it began; since when it has stood there or, without ranks, been shown; its stretch.

    That is its number among those sent, or -1.
    """


class Moves(NamedTuple):
    """Stretches that ended or began: row, from, to, rank; the one sent before; the place where one lasts."""

    row: I64
    le: I64
    re: I64
    number: I64
    sent: I64
    entry: I64

    def some(self, count: int) -> Moves:
        """The first so many."""
        return Moves(*(values[:count] for values in self))


@kernel
def end_stretch(places: I64, at: int, number: int, t: int, out: Moves, made: int) -> int:
    """Writes down that a row leaves its place, unless nobody has seen it there."""
    if places[at + SENT] < 0 and places[at + SINCE] == t:
        return made
    out.row[made] = places[at + ROW]
    out.le[made] = places[at + SINCE]
    out.re[made] = t
    out.number[made] = number
    out.sent[made] = places[at + SENT]
    out.entry[made] = -1
    return made + 1


@kernel
def place_of(places: I64, base: int, size: int, count: int, keys: I64, i: int, t: int) -> int:
    """Where a row goes among those of its group; TIED where only its values could tell."""
    width = size - PLACE
    place = count
    while place > 0:
        at = base + (place - 1) * size
        side = 0
        for k in range(width):
            a = keys[i * width + k]
            b = places[at + PLACE + k]
            if a != b:
                side = -1 if a < b else 1
                break
        if side == 0 and places[at + START] == t:
            return TIED
        if side >= 0:
            break
        place -= 1
    return place


@kernel
def follow_page(
    now: Current, n: int, ranked: int, slot: I64, le: I64, keys: I64, size: int, first: int, out: Moves
) -> int:
    """Takes rows in order of time, numbered from ``first`` on; gives how many moves there were, or TIED."""
    groups, places = now
    made = 0
    for i in range(len(slot)):
        g = slot[i] * GROUP
        t = le[i]
        base = slot[i] * n * size
        count = groups[g + COUNT]
        place = place_of(places, base, size, count, keys, i, t)
        if place == TIED:
            return TIED
        if place >= n:
            continue
        if count == n:
            made = end_stretch(places, base + (n - 1) * size, n, t, out, made)
        else:
            groups[g + COUNT] = count + 1
        for k in range(min(count, n - 1), place, -1):
            at = base + k * size
            if ranked:
                made = end_stretch(places, at - size, k, t, out, made)
            for word in range(size):
                places[at + word] = places[at - size + word]
            if ranked:
                places[at + SINCE] = t
                places[at + SENT] = -1
        at = base + place * size
        places[at + ROW] = first + i
        places[at + START] = t
        places[at + SINCE] = t
        places[at + SENT] = -1
        for k in range(size - PLACE):
            places[at + PLACE + k] = keys[i * (size - PLACE) + k]
        groups[g + LAST] = t
    return made


@kernel
def open_stretches(now: Current, n: int, size: int, slots: I64, out: Moves, made: int) -> int:
    """Writes down the rows of these groups that are shown and were not sent."""
    groups, places = now
    for i in range(len(slots)):
        for k in range(groups[slots[i] * GROUP + COUNT]):
            at = (slots[i] * n + k) * size
            if places[at + SENT] >= 0:
                continue
            out.row[made] = places[at + ROW]
            out.le[made] = places[at + SINCE]
            out.re[made] = INFINITY
            out.number[made] = k + 1
            out.sent[made] = -1
            out.entry[made] = slots[i] * n + k
            made += 1
    return made


class Running:
    """The places of all groups."""

    def __init__(self, n: int, width: int, *, ranked: bool) -> None:
        self._n, self._size, self._ranked = n, PLACE + width, int(ranked)
        self._groups = np.zeros((0, GROUP), np.int64)
        self._places = np.zeros((0, self._size), np.int64)

    def reach(self, groups: int) -> None:
        """Makes room for so many groups."""
        held = len(self._groups)
        if groups <= held:
            return
        size = max(groups, 2 * held, 16)
        known, self._groups = self._groups, np.zeros((size, GROUP), np.int64)
        self._groups[:, LAST] = MIN_TIME
        self._groups[:held] = known
        shown, self._places = self._places, np.zeros((size * self._n, self._size), np.int64)
        self._places[:, [ROW, SENT]] = -1
        self._places[: len(shown)] = shown

    def fill(self, slot: I64, row: I64, start: I64, since: I64, sent: I64, keys: I64) -> None:
        """Takes what is shown, by group and in order."""
        self._groups[:, COUNT] = np.bincount(slot, minlength=len(self._groups))
        entry = slot * self._n + np.arange(len(slot)) - np.searchsorted(slot, slot)
        self._places[entry] = np.column_stack([row, start, since, sent, keys])

    def changed_at(self, slot: I64, time: I64) -> None:
        """Notes times at which groups changed."""
        np.maximum.at(self._groups[:, LAST], slot, time)

    def in_order(self, slot: I64, le: I64) -> bool:
        """Whether no group has changed after one of these times."""
        return bool((le >= self._groups[slot, LAST]).all())

    def follow(self, slot: I64, le: I64, keys: I64, first: int, touched: I64) -> Moves | None:
        """Takes rows in order of time; None where a tie is left, and then all is to be filled anew."""
        per_row = self._n if self._ranked else 1
        room = (per_row + 1) * len(slot) + self._n * len(touched)
        out = Moves(*(np.empty(room, np.int64) for _ in range(6)))
        now = Current(self._groups.reshape(-1), self._places.reshape(-1))
        flat = np.ascontiguousarray(keys).reshape(-1)
        made = follow_page(now, self._n, self._ranked, slot, frozen(le), frozen(flat), self._size, first, out)
        if made == TIED:
            return None
        return out.some(open_stretches(now, self._n, self._size, touched, out, made))

    def settle(self, moves: Moves, row: I64, sent: I64) -> None:
        """Notes under which numbers the rows and stretches of these moves are kept."""
        lasts = moves.entry >= 0
        self._places[moves.entry[lasts], ROW] = row[lasts]
        self._places[moves.entry[lasts], SENT] = sent[lasts]

    def renumber(self, rows: I64 | None, sent: I64 | None) -> None:
        """Follows compactions, given old numbers by new."""
        for word, keep in ((ROW, rows), (SENT, sent)):
            if keep is not None:
                self._places[:, word] = inverse(keep)[self._places[:, word]]


class Pause:
    """How long not to try, after rows came that change the past: longer each time."""

    def __init__(self) -> None:
        self._pages, self._next = 0, 1

    def over(self) -> bool:
        """Whether to try; counts a page."""
        self._pages -= 1
        return self._pages < 0

    def longer(self) -> None:
        """It did not work."""
        self._pages, self._next = self._next, min(2 * self._next, LONGEST_PAUSE)

    def shorter(self) -> None:
        """It worked."""
        self._next = max(1, self._next // 2)


def inverse(keep: I64) -> I64:
    """New numbers by old; the last, which -1 finds, is -1."""
    new = np.full(int(keep.max(initial=-1)) + 2, -1, np.int64)
    new[keep] = np.arange(len(keep))
    return new
