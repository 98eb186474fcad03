"""Subsets of an ordered line, kept as the sorted places where membership changes.

A cut `(v, 0)` lies before v, a cut `(v, 1)` behind it; `low` says whether the line starts inside the set.
So [1, 5) is `False, ((1, 0), (5, 0))`, and a complement only turns `low` round.

>>> union(False, ((1, 0), (5, 0)), False, ((5, 0), (7, 1)))
(False, ((1, 0), (7, 1)))
>>> covers(True, ((9, 0),), False, ((1, 0), (5, 0)))
True
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

Cut = tuple[Any, int]
Cuts = tuple[Cut, ...]

SPLICE_UP_TO = 8  # up to so many cuts are spliced into the other set by slices; more are merged in one walk


def spans(low: bool, cuts: Cuts) -> Iterator[tuple[Cut | None, Cut | None]]:
    """The stretches inside the set, as (start, end); None where it has no end.

    >>> list(spans(True, ((3, 0), (5, 0))))
    [(None, (3, 0)), ((5, 0), None)]
    """
    at = 0
    if low:
        yield None, (cuts[0] if cuts else None)
        at = 1
    while at < len(cuts):
        yield cuts[at], (cuts[at + 1] if at + 1 < len(cuts) else None)
        at += 2


def member(low: bool, cuts: Cuts, value: Any) -> bool:
    """Whether one value is inside."""
    return low ^ bool(bisect_right(cuts, (value, 0)) & 1)


def union(low: bool, cuts: Cuts, other_low: bool, other: Cuts) -> tuple[bool, Cuts]:
    """Both sets together; adding few cuts to many costs copies of slices, no walk."""
    if len(other) > len(cuts):
        low, cuts, other_low, other = other_low, other, low, cuts
    if len(other) > SPLICE_UP_TO:
        return _merge(low, cuts, other_low, other)
    for start, end in spans(other_low, other):
        low, cuts = _splice(low, cuts, start, end)
    return low, cuts


def intersect(low: bool, cuts: Cuts, other_low: bool, other: Cuts) -> tuple[bool, Cuts]:
    """What lies in both: the complement of the union of the complements."""
    outside, result = union(not low, cuts, not other_low, other)
    return not outside, result


def covers(low: bool, cuts: Cuts, other_low: bool, other: Cuts) -> bool:
    """Whether every stretch of the other set lies within one stretch of this one."""
    for start, end in spans(other_low, other):
        first = 0 if start is None else bisect_right(cuts, start)
        if not low ^ bool(first & 1):
            return False
        if (len(cuts) if end is None else bisect_left(cuts, end)) != first:
            return False
    return True


def intersects(low: bool, cuts: Cuts, other_low: bool, other: Cuts) -> bool:
    """Whether the two sets share a place."""
    if len(other) > len(cuts):
        low, cuts, other_low, other = other_low, other, low, cuts
    for start, end in spans(other_low, other):
        first = 0 if start is None else bisect_right(cuts, start)
        if low ^ bool(first & 1):
            return True
        if (len(cuts) if end is None else bisect_left(cuts, end)) > first:
            return True
    return False


def _splice(low: bool, cuts: Cuts, start: Cut | None, end: Cut | None) -> tuple[bool, Cuts]:
    first = 0 if start is None else bisect_left(cuts, start)
    last = len(cuts) if end is None else bisect_right(cuts, end)
    middle: list[Cut] = []
    if start is not None and not low ^ bool(first & 1):
        middle.append(start)
    if end is not None and not low ^ bool(last & 1):
        middle.append(end)
    return low or start is None, cuts[:first] + tuple(middle) + cuts[last:]


def _merge(low: bool, cuts: Cuts, other_low: bool, other: Cuts) -> tuple[bool, Cuts]:
    out: list[Cut] = []
    i = j = 0
    here, there = low, other_low
    inside = here or there
    while i < len(cuts) and j < len(other):
        x, y = cuts[i], other[j]
        cut = min(x, y)
        if x == cut:
            here, i = not here, i + 1
        if y == cut:
            there, j = not there, j + 1
        if (here or there) != inside:
            inside = not inside
            out.append(cut)
    if i < len(cuts) and not there:
        out.extend(cuts[i:])
    if j < len(other) and not here:
        out.extend(other[j:])
    return low or other_low, tuple(out)
