"""The first n of each group along time: rows come and go, and a tree counts those before each one.

Rows of a group stand in their order, best first. Whoever comes or goes moves at most one other row over
the edge, which the tree finds in logarithmic time; ranks are read off anew where something changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask

NOT_SHOWN = -(2**63)


class Course(NamedTuple):
    """Rows of groups in order, and when they come and go."""

    at: I64
    """Where the rows of each group begin, and where the last ones end."""
    tie: I64
    """Equal for rows of a group that are equal in the order."""
    event_at: I64
    """Where the comings and goings of each group begin, and where the last ones end."""
    time: I64
    row: I64
    """Which row comes or goes, counted over all groups."""
    sign: I64


class Scratch(NamedTuple):
    """Per row: the tree, whether it is shown and since when, its ranks; and rows to look at."""

    tree: I64
    shown: I64
    since: I64
    number: I64
    rank: I64
    dense: I64
    some: I64


class Stretches(NamedTuple):
    """Where rows are among the first: row, from, to, and their ranks there."""

    row: I64
    le: I64
    re: I64
    number: I64
    rank: I64
    dense: I64


@kernel
def tree_add(tree: I64, base: int, size: int, place: int, by: int) -> None:
    """Adds to the count at a place, counted from 0."""
    i = place + 1
    while i <= size:
        tree[base + i - 1] += by
        i += i & -i


@kernel
def tree_before(tree: I64, base: int, place: int) -> int:
    """How many there are before a place."""
    total = 0
    i = place
    while i > 0:
        total += tree[base + i - 1]
        i -= i & -i
    return total


@kernel
def tree_find(tree: I64, base: int, size: int, which: int) -> int:
    """The place of the one with this number, counted from 1."""
    place = 0
    step = 1
    while step * 2 <= size:
        step *= 2
    while step > 0:
        if place + step <= size and tree[base + place + step - 1] < which:
            place += step
            which -= tree[base + place - 1]
        step >>= 1
    return place


@kernel
def follow_first(
    course: Course,
    n: int,
    from_time: I64,
    to_time: I64,
    work: Scratch,
    short: Mask,
    out: Stretches,
    fill: int,
) -> int:
    """Writes (or, with fill 0, counts) the stretches on which rows are among the first n.

    ``short`` says of a group that fewer than n rows were alive at some time before ``to_time``.
    """
    tree, shown, since, _, _, _, touched = work
    made = 0
    for g in range(len(course.at) - 1):
        base = course.at[g]
        size = course.at[g + 1] - base
        total = 0
        i = course.event_at[g]
        stop = course.event_at[g + 1]
        short[g] = from_time[g] < to_time[g] and (i == stop or course.time[i] > from_time[g])
        while i < stop:
            t = course.time[i]
            count = 0
            while i < stop and course.time[i] == t:
                row = course.row[i]
                place = row - base
                other = -1
                if course.sign[i] > 0:
                    enters = tree_before(tree, base, place) < n
                    tree_add(tree, base, size, place, 1)
                    total += 1
                    if enters:
                        shown[row] = 1
                        if total > n:
                            other = base + tree_find(tree, base, size, n + 1)
                            shown[other] = 0
                else:
                    tree_add(tree, base, size, place, -1)
                    total -= 1
                    if shown[row] == 1:
                        shown[row] = 0
                        if total >= n:
                            other = base + tree_find(tree, base, size, n)
                            shown[other] = 1
                touched[count] = row
                count += 1
                if other >= 0:
                    touched[count] = other
                    count += 1
                i += 1
            for k in range(count):
                row = touched[k]
                if shown[row] == 1 and since[row] == NOT_SHOWN:
                    since[row] = t
                elif shown[row] == 0 and since[row] != NOT_SHOWN:
                    if fill:
                        out.row[made] = row
                        out.le[made] = since[row]
                        out.re[made] = t
                    made += 1
                    since[row] = NOT_SHOWN
            if total < n and t < to_time[g]:
                short[g] = True
    return made


@kernel
def follow_ranks(
    course: Course,
    n: int,
    wanted: int,
    from_time: I64,
    to_time: I64,
    work: Scratch,
    short: Mask,
    out: Stretches,
    fill: int,
) -> int:
    """The same with ranks: a stretch ends where one that is wanted (bits 1, 2, 4 of ``wanted``) changes."""
    tree, seen, since, number, rank, dense, held = work
    made = 0
    stamp = 0
    for g in range(len(course.at) - 1):
        base = course.at[g]
        size = course.at[g + 1] - base
        total = 0
        before = 0
        i = course.event_at[g]
        stop = course.event_at[g + 1]
        short[g] = from_time[g] < to_time[g] and (i == stop or course.time[i] > from_time[g])
        while i < stop:
            t = course.time[i]
            while i < stop and course.time[i] == t:
                tree_add(tree, base, size, course.row[i] - base, course.sign[i])
                total += course.sign[i]
                i += 1
            stamp += 1
            now = min(n, total)
            tie = -1
            r = 0
            d = 0
            for k in range(now):
                row = base + tree_find(tree, base, size, k + 1)
                if course.tie[row] != tie:
                    tie = course.tie[row]
                    r = k + 1
                    d += 1
                a = k + 1 if wanted & 1 else 0
                b = r if wanted & 2 else 0
                c = d if wanted & 4 else 0
                seen[row] = stamp
                if since[row] != NOT_SHOWN and number[row] == a and rank[row] == b and dense[row] == c:
                    continue
                if since[row] != NOT_SHOWN:
                    if fill:
                        out.row[made] = row
                        out.le[made] = since[row]
                        out.re[made] = t
                        out.number[made] = number[row]
                        out.rank[made] = rank[row]
                        out.dense[made] = dense[row]
                    made += 1
                since[row] = t
                number[row] = a
                rank[row] = b
                dense[row] = c
            for k in range(before):
                row = held[base + k]
                if seen[row] != stamp:
                    if fill:
                        out.row[made] = row
                        out.le[made] = since[row]
                        out.re[made] = t
                        out.number[made] = number[row]
                        out.rank[made] = rank[row]
                        out.dense[made] = dense[row]
                    made += 1
                    since[row] = NOT_SHOWN
            for k in range(now):
                held[base + k] = base + tree_find(tree, base, size, k + 1)
            before = now
            if total < n and t < to_time[g]:
                short[g] = True
    return made


def stretches(course: Course, n: int, wanted: int, from_time: I64, to_time: I64) -> tuple[Stretches, Mask]:
    """Where rows are among the first n of their group; and the groups that had fewer at some time."""
    size = len(course.tie)
    short = np.zeros(len(course.at) - 1, np.bool_)
    made = 0
    out = _room(0)
    for fill in (0, 1):
        out = _room(made)
        per_row = (np.zeros(size, np.int64) for _ in range(6))
        work = Scratch._make([*per_row, np.empty(2 * len(course.time), np.int64)])
        work.since[:] = NOT_SHOWN
        if wanted:
            made = follow_ranks(course, n, wanted, from_time, to_time, work, short, out, fill)
        else:
            made = follow_first(course, n, from_time, to_time, work, short, out, fill)
    return out, short


def together(owner: I64, tie: I64, le: I64, re: I64, n: int, wanted: int) -> Stretches | None:
    """The same where all rows of a group begin and end together, as in windows: one for each of the first n.

    Rows are by group and in order; None where one begins or ends at another time.
    """
    every = np.arange(len(owner))
    begins = np.ones(len(owner), np.bool_)
    begins[1:] = owner[1:] != owner[:-1]
    first = np.maximum.accumulate(np.where(begins, every, 0))
    if (le != le[first]).any() or (re != re[first]).any():
        return None
    differs = begins.copy()
    differs[1:] |= tie[1:] != tie[:-1]
    count: I64 = np.cumsum(differs)
    row = np.flatnonzero(every - first < n)
    none = np.zeros(len(row), np.int64)
    number = (every - first + 1)[row] if wanted & 1 else none
    rank = (np.maximum.accumulate(np.where(differs, every, 0)) - first + 1)[row] if wanted & 2 else none
    dense = (count - count[first] + 1)[row] if wanted & 4 else none
    return Stretches(row, le[row], re[row], number, rank, dense)


def _room(size: int) -> Stretches:
    return Stretches(*(np.zeros(size, np.int64) for _ in range(6)))
