"""Rows in the order of (group, time), found in logarithmic time: neighbours, ranges, overlaps.

Sorted runs of doubling sizes: adding merges runs of like size, so a row is moved log n times in all.
Each run carries the greatest end of every aligned stretch of 2**k rows, so that a search for overlaps
skips what ended before. (The WindowIndex and EventIndex of StreamInsight, section V.C.)

>>> index = Ordered()
>>> index.add(np.array([0, 0]), np.array([5, 1]), np.array([0, 1]), np.array([9, 3]))
>>> live = np.ones(2, np.bool_)
>>> index.overlapping(np.array([0]), np.array([4]), np.array([6]), live)[1].tolist()
[0]
>>> index.before(np.array([0]), np.array([5]), live).tolist()
[1]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import INFINITY, MIN_TIME

LOWEST = -(2**63)


class SortedRun(NamedTuple):
    """Rows sorted by (group, time), and the greatest ends of aligned stretches, level by level."""

    group: I64
    time: I64
    row: I64
    top: I64
    at: I64
    """Where each level of ``top`` begins."""


@kernel
def seek(group: I64, time: I64, g: int, t: int) -> int:
    """The first place whose (group, time) is not below (g, t)."""
    low = 0
    high = len(group)
    while low < high:
        middle = (low + high) >> 1
        if group[middle] < g or (group[middle] == g and time[middle] < t):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def merge_runs(g1: I64, t1: I64, g2: I64, t2: I64, order: I64) -> None:
    """Places, in the first run and then (counted on) in the second, in sorted order."""
    i = 0
    j = 0
    n = len(g1)
    for k in range(len(order)):
        first = j >= len(g2)
        if not first and i < n:
            first = g1[i] < g2[j] or (g1[i] == g2[j] and t1[i] <= t2[j])
        if first:
            order[k] = i
            i += 1
        else:
            order[k] = n + j
            j += 1


@kernel
def build_tops(top: I64, at: I64) -> None:
    """Fills the levels above the first."""
    for k in range(1, len(at) - 1):
        size = at[k + 1] - at[k]
        below = at[k] - at[k - 1]
        for i in range(size):
            best = top[at[k - 1] + 2 * i]
            if 2 * i + 1 < below and top[at[k - 1] + 2 * i + 1] > best:
                best = top[at[k - 1] + 2 * i + 1]
            top[at[k] + i] = best


@kernel
def nearest_before(group: I64, time: I64, row: I64, live: Mask, g: I64, t: I64, out: I64) -> None:
    """Raises ``out`` to the greatest live time below t in each group."""
    for q in range(len(g)):
        place = seek(group, time, g[q], t[q]) - 1
        while place >= 0 and group[place] == g[q]:
            if live[row[place]]:
                if time[place] > out[q]:
                    out[q] = time[place]
                break
            place -= 1


@kernel
def nearest_after(group: I64, time: I64, row: I64, live: Mask, g: I64, t: I64, out: I64) -> None:
    """Lowers ``out`` to the least live time above t in each group."""
    for q in range(len(g)):
        if t[q] == INFINITY:
            continue
        place = seek(group, time, g[q], t[q] + 1)
        while place < len(group) and group[place] == g[q]:
            if live[row[place]]:
                if time[place] < out[q]:
                    out[q] = time[place]
                break
            place += 1


@kernel
def step_back(group: I64, time: I64, row: I64, live: Mask, g: I64, n: int, t: I64) -> None:
    """Lowers each t by so many live times of its group, or to the first there is."""
    for q in range(len(g)):
        place = seek(group, time, g[q], t[q]) - 1
        left = n
        while left > 0 and place >= 0 and group[place] == g[q]:
            if live[row[place]] and time[place] < t[q]:
                t[q] = time[place]
                left -= 1
            place -= 1


@kernel
def find_overlaps(
    run: SortedRun, live: Mask, g: I64, lo: I64, hi: I64, owner: I64, rows: I64, fill: int, count: int
) -> int:
    """Writes (or, with fill 0, counts) the live rows of each query with time <= hi and end >= lo."""
    for q in range(len(g)):
        place = seek(run.group, run.time, g[q], MIN_TIME)
        stop = seek(run.group, run.time, g[q] + 1, MIN_TIME)
        if hi[q] != INFINITY:
            stop = seek(run.group, run.time, g[q], hi[q] + 1)
        while place < stop:
            k = 0
            while k + 2 < len(run.at) and (place >> k) & 1 == 0 and place + (2 << k) <= stop:
                k += 1
            while k > 0 and run.top[run.at[k] + (place >> k)] >= lo[q]:
                k -= 1
            if k == 0 and run.top[place] >= lo[q]:
                if live[run.row[place]]:
                    if fill:
                        owner[count] = q
                        rows[count] = run.row[place]
                    count += 1
                place += 1
            else:
                place += 1 << k
    return count


@kernel
def find_between(
    run: SortedRun, live: Mask, g: I64, lo: I64, hi: I64, owner: I64, rows: I64, fill: int, count: int
) -> int:
    """Writes (or counts) the live rows of each query with lo <= time <= hi."""
    for q in range(len(g)):
        place = seek(run.group, run.time, g[q], lo[q])
        while place < len(run.group) and run.group[place] == g[q] and run.time[place] <= hi[q]:
            if live[run.row[place]]:
                if fill:
                    owner[count] = q
                    rows[count] = run.row[place]
                count += 1
            place += 1
    return count


@kernel
def find_edges(
    run: SortedRun, live: Mask, g: I64, limit: I64, sign: I64, owner: I64, rows: I64, fill: int, count: int
) -> int:
    """Writes (or counts) the first live rows of each group, or with sign -1 the last; all of equal times."""
    for q in range(len(g)):
        step = sign[q]
        place = seek(run.group, run.time, g[q], LOWEST) if step > 0 else 0
        if step < 0:
            place = seek(run.group, run.time, g[q] + 1, LOWEST) - 1
        taken = 0
        latest = LOWEST
        while 0 <= place < len(run.group) and run.group[place] == g[q]:
            if live[run.row[place]]:
                if taken >= limit[q] and run.time[place] != latest:
                    break
                latest = run.time[place]
                taken += 1
                if fill:
                    owner[count] = q
                    rows[count] = run.row[place]
                count += 1
            place += step
    return count


class Ordered:
    """An index of rows by (group, time); dead rows are passed over until the next rebuild."""

    def __init__(self) -> None:
        self.runs: list[SortedRun] = []

    def add(self, group: I64, time: I64, row: I64, end: I64 | None = None) -> None:
        """Adds rows; ``end`` is needed to find overlaps."""
        if len(row) == 0:
            return
        ends = time if end is None else end
        order = sorting(group, time)
        if order is not None:
            group, time, row, ends = group[order], time[order], row[order], ends[order]
        self.runs.append(_run(group, time, row, ends))
        while len(self.runs) > 1 and len(self.runs[-2].row) < 2 * len(self.runs[-1].row):
            second, first = self.runs.pop(), self.runs.pop()
            self.runs.append(_merged(first, second))

    def before(self, group: I64, t: I64, live: Mask) -> I64:
        """The greatest time below t in each group; MIN_TIME where there is none."""
        out = np.full(len(group), MIN_TIME, np.int64)
        for run in self.runs:
            nearest_before(run.group, run.time, run.row, live, group, t, out)
        return out

    def after(self, group: I64, t: I64, live: Mask) -> I64:
        """The least time above t in each group; INFINITY where there is none."""
        out = np.full(len(group), INFINITY, np.int64)
        for run in self.runs:
            nearest_after(run.group, run.time, run.row, live, group, t, out)
        return out

    def nth(self, group: I64, t: I64, n: int, live: Mask) -> I64:
        """The n-th time behind t in each group, below zero before it, or the last there is; else t."""
        if n < 0 and len(self.runs) == 1:
            run, t = self.runs[0], t.copy()
            step_back(run.group, run.time, run.row, live, group, -n, t)
            return t
        for _ in range(abs(n)):
            found = self.before(group, t, live) if n < 0 else self.after(group, t, live)
            there = found != (MIN_TIME if n < 0 else INFINITY)
            if not there.any():
                break
            t = np.where(there, found, t)
        return t

    def overlapping(self, group: I64, lo: I64, hi: I64, live: Mask) -> tuple[I64, I64]:
        """(query, row) of the rows that start at hi or before and end at lo or after."""
        return self._found(find_overlaps, group, lo, hi, live)

    def between(self, group: I64, lo: I64, hi: I64, live: Mask) -> tuple[I64, I64]:
        """(query, row) of the rows with a time in [lo, hi]."""
        return self._found(find_between, group, lo, hi, live)

    def edges(self, group: I64, limit: int, live: Mask, *, last: bool) -> tuple[I64, I64]:
        """(query, row) of rows among which the first so many of each group are, or the last."""
        sign = np.full(len(group), -1 if last else 1, np.int64)
        return self._found(find_edges, group, np.full(len(group), limit, np.int64), sign, live)

    def _found(self, find: object, group: I64, lo: I64, hi: I64, live: Mask) -> tuple[I64, I64]:
        assert callable(find)
        none = np.zeros(0, np.int64)
        total = 0
        for run in self.runs:
            total = find(run, live, group, lo, hi, none, none, 0, total)
        owner, rows = np.empty(total, np.int64), np.empty(total, np.int64)
        place = 0
        for run in self.runs:
            place = find(run, live, group, lo, hi, owner, rows, 1, place)
        return owner, rows


@kernel
def in_order(group: I64, time: I64) -> bool:
    """Whether rows come by (group, time)."""
    for i in range(1, len(group)):
        if group[i] < group[i - 1] or (group[i] == group[i - 1] and time[i] < time[i - 1]):
            return False
    return True


def sorting(group: I64, time: I64) -> I64 | None:
    """The places of (group, time) in order; None where they are in order already."""
    if len(group) < 2 or in_order(group, time):
        return None
    if group[0] == group[-1] and (group == group[0]).all():
        return np.argsort(time)
    low, high = int(time.min()), int(time.max(where=time != INFINITY, initial=MIN_TIME))
    span = high - low + 2
    if low == MIN_TIME or span <= 1 or span * (int(group.max()) + 1) >= INFINITY or group.min() < 0:
        return np.lexsort((time, group))
    return np.argsort(group * span + np.where(time == INFINITY, span - 1, time - low))


def _merged(a: SortedRun, b: SortedRun) -> SortedRun:
    if a.group[-1] < b.group[0] or (a.group[-1] == b.group[0] and a.time[-1] <= b.time[0]):
        tops = a.top[: len(a.row)], b.top[: len(b.row)]
        pairs = (a.group, b.group), (a.time, b.time), (a.row, b.row), tops
        return _run(*(np.concatenate(pair) for pair in pairs))
    order = np.empty(len(a.row) + len(b.row), np.int64)
    merge_runs(a.group, a.time, b.group, b.time, order)
    group = np.concatenate([a.group, b.group])[order]
    time = np.concatenate([a.time, b.time])[order]
    row = np.concatenate([a.row, b.row])[order]
    ends = np.concatenate([a.top[: len(a.row)], b.top[: len(b.row)]])[order]
    return _run(group, time, row, ends)


def _run(group: I64, time: I64, row: I64, ends: I64) -> SortedRun:
    sizes = [len(row)]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    top = np.empty(int(at[-1]), np.int64)
    top[: len(row)] = ends
    build_tops(top, at)
    return SortedRun(group, time, row, top, at)
