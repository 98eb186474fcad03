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
STOPPED = -1
LINE = 8
"""The words of a cache line."""
LONGEST_PAUSE = 64
"""So many pages are taken the general way before the next try."""


# The words of a group, and of each of its places behind them; what a row is ordered by comes last.
COUNT, LAST = 0, 1
"""How many rows are shown, and, if there are some, when that last changed."""
GROUP = 2
ROW, START, SINCE, SENT, TIE = 0, 1, 2, 3, 4
"""The row; when it began; since when it has stood there or, without ranks, been shown; its stretch.

That is its number among those sent, or -1. The last tells apart rows that are alike in all that comes before.
"""
PLACE = 5


class RunShape(NamedTuple):
    """How groups lie in words: n places each, a place and a group in so many; and whether ranks count."""

    n: int
    place: int
    group: int
    ranked: int


class Arrivals(NamedTuple):
    """Rows in order of time: group, start, what they are ordered by, and what tells ties apart."""

    slot: I64
    le: I64
    keys: I64
    tie: I64
    """Empty where no two rows of a group begin together."""


class Moves(NamedTuple):
    """Stretches that ended or began: row, from, to, rank; the one sent before; where its place lies."""

    row: I64
    le: I64
    re: I64
    number: I64
    sent: I64
    entry: I64

    def some(self, count: int) -> Moves:
        """The first so many."""
        return Moves(*(values[:count] for values in self))

    def take(self, at: I64) -> Moves:
        """Some of them."""
        return Moves(*(values[at] for values in self))


@kernel
def end_stretch(words: I64, at: int, number: int, t: int, out: Moves, made: int) -> int:
    """Writes down that a row leaves its place, unless nobody has seen it there."""
    if words[at + SENT] < 0 and words[at + SINCE] == t:
        return made
    out.row[made] = words[at + ROW]
    out.le[made] = words[at + SINCE]
    out.re[made] = t
    out.number[made] = number
    out.sent[made] = words[at + SENT]
    out.entry[made] = -1
    return made + 1


@kernel
def place_of(words: I64, base: int, size: int, count: int, keys: I64, i: int, t: int, tie: int) -> int:
    """Where a row goes among those of its group; STOPPED where one is equal to it in everything."""
    width = size - PLACE
    place = count
    while place > 0:
        at = base + (place - 1) * size
        side = 0
        for k in range(width):
            a = keys[i * width + k]
            b = words[at + PLACE + k]
            if a != b:
                side = -1 if a < b else 1
                break
        if side == 0 and words[at + START] == t:
            if tie == words[at + TIE]:
                return STOPPED
            side = -1 if tie < words[at + TIE] else 1
        if side >= 0:
            break
        place -= 1
    return place


@kernel
def follow_page(words: I64, shape: RunShape, rows: Arrivals, first: int, out: Moves) -> int:
    """Takes rows, numbered from ``first`` on; gives how many moves there were.

    It is STOPPED by a row that comes before a change of its group, and by one that is there already.
    """
    n, size, group, ranked = shape
    slot, le, keys, ties = rows
    made = 0
    for i in range(len(slot)):
        g = slot[i] * group
        t = le[i]
        tie = ties[i] if len(ties) else 0
        count = words[g + COUNT]
        if count > 0 and t < words[g + LAST]:
            return STOPPED
        base = g + GROUP
        place = place_of(words, base, size, count, keys, i, t, tie)
        if place == STOPPED:
            return STOPPED
        if place >= n:
            continue
        if count == n:
            made = end_stretch(words, base + (n - 1) * size, n, t, out, made)
        else:
            words[g + COUNT] = count + 1
        for k in range(min(count, n - 1), place, -1):
            at = base + k * size
            if ranked:
                made = end_stretch(words, at - size, k, t, out, made)
            for word in range(size):
                words[at + word] = words[at - size + word]
            if ranked:
                words[at + SINCE] = t
                words[at + SENT] = -1
        at = base + place * size
        words[at + ROW] = first + i
        words[at + START] = t
        words[at + SINCE] = t
        words[at + SENT] = -1
        words[at + TIE] = tie
        for k in range(size - PLACE):
            words[at + PLACE + k] = keys[i * (size - PLACE) + k]
        words[g + LAST] = t
    return made


@kernel
def open_stretches(words: I64, shape: RunShape, slots: I64, out: Moves, made: int) -> int:
    """Writes down the rows of these groups that are shown and were not sent."""
    for i in range(len(slots)):
        g = slots[i] * shape.group
        for k in range(words[g + COUNT]):
            at = g + GROUP + k * shape.place
            if words[at + SENT] >= 0:
                continue
            out.row[made] = words[at + ROW]
            out.le[made] = words[at + SINCE]
            out.re[made] = INFINITY
            out.number[made] = k + 1
            out.sent[made] = -1
            out.entry[made] = at
            made += 1
    return made


class Running:
    """What is shown now: the places of all groups."""

    def __init__(self, n: int, width: int, *, ranked: bool) -> None:
        size = PLACE + width
        self._shape = RunShape(n, size, GROUP + n * size, int(ranked))
        self._words = np.zeros((0, self._shape.group), np.int64)
        self.latest = MIN_TIME
        """When a group changed last."""

    @property
    def _places(self) -> I64:
        """The places of each group."""
        places: I64 = self._words[:, GROUP:].reshape(len(self._words), self._shape.n, self._shape.place)
        return places

    def reach(self, groups: int) -> None:
        """Makes room for so many groups."""
        held = len(self._words)
        if groups <= held:
            return
        known = self._words
        self._words = aligned_zeros(max(groups, 2 * held, 16), self._shape.group)
        self._words[:held] = known

    def fill(self, slot: I64, row: I64, start: I64, since: I64, sent: I64, keys: I64) -> None:
        """Takes what is shown, by group and in order."""
        self._words[:, COUNT] = np.bincount(slot, minlength=len(self._words))
        place = np.arange(len(slot)) - np.searchsorted(slot, slot)
        tie = np.zeros(len(slot), np.int64)
        self._places[slot, place] = np.column_stack([row, start, since, sent, tie, keys])

    def changed_at(self, slot: I64, time: I64) -> None:
        """Takes the times at which groups changed."""
        last = np.full(len(self._words), MIN_TIME)
        np.maximum.at(last, slot, time)
        self._words[:, LAST] = last
        self.latest = int(time.max(initial=self.latest))

    def begun_since(self, slots: I64, time: int) -> tuple[I64, I64, I64, I64, I64]:
        """Of these groups the rows that began at a time or later: group, place, row, start, order."""
        places = self._places[slots]
        shown = np.arange(self._shape.n) < self._words[slots, COUNT][:, None]
        at, place = np.nonzero(shown & (places[:, :, START] >= time))
        found = places[at, place]
        return slots[at], place, found[:, ROW], found[:, START], found[:, PLACE:]

    def tell_apart(self, slot: I64, place: I64, tie: I64) -> None:
        """Notes what tells rows at these places from those that are alike."""
        self._places[slot, place, TIE] = tie

    def follow(self, rows: Arrivals, first: int, touched: I64) -> Moves | None:
        """Takes rows in order of time; None where one changes the past, and then all is to be filled anew."""
        shape = self._shape
        room = (shape.n if shape.ranked else 1) + 1
        out = Moves(*(np.empty(room * len(rows.le) + shape.n * len(touched), np.int64) for _ in range(6)))
        words = self._words.reshape(-1)
        made = follow_page(words, shape, Arrivals(*map(frozen, rows)), first, out)
        if made == STOPPED:
            return None
        self.latest = max(self.latest, int(rows.le[-1]))
        return out.some(open_stretches(words, shape, touched, out, made))

    def settle(self, entry: I64, row: I64, sent: I64) -> None:
        """Notes under which numbers the rows and stretches at these places are kept."""
        words = self._words.reshape(-1)
        words[entry + ROW] = row
        words[entry + SENT] = sent

    def renumber(self, rows: I64 | None, sent: I64 | None) -> None:
        """Follows compactions, given old numbers by new."""
        shown = np.arange(self._shape.n) < self._words[:, COUNT][:, None]
        for word, keep in ((ROW, rows), (SENT, sent)):
            if keep is not None:
                places = self._places[:, :, word]
                places[shown] = inverse(keep)[places[shown]]


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


def aligned_zeros(rows: int, width: int) -> I64:
    """Rows of words that begin where a cache line does: a group of 64 bytes then lies in one."""
    words = np.zeros(rows * width + LINE, np.int64)
    begin = -(words.ctypes.data // words.itemsize) % LINE
    return words[begin : begin + rows * width].reshape(rows, width)


def inverse(keep: I64) -> I64:
    """New numbers by old; the last, which -1 finds, is -1."""
    new = np.full(int(keep.max(initial=-1)) + 2, -1, np.int64)
    new[keep] = np.arange(len(keep))
    return new
