"""Kernels of sketches and sliding windows over a column of values: an answer per value."""

from __future__ import annotations

from typing import Any

from caesura.kernels import kernel

Array = Any


@kernel
def running_rank(places: Array, counts: Array, pointer: Array, q: float, out: Array) -> None:
    """Counts each place and gives the place of rank ceil(q n) after it.

    ``pointer`` holds (place of the answer, values before that place, values in all).
    """
    at = pointer[0]
    below = pointer[1]
    total = pointer[2]
    for i in range(len(places)):
        p = places[i]
        counts[p] += 1
        total += 1
        if p < at:
            below += 1
        rank = int(q * total)
        if rank < q * total:
            rank += 1
        if rank < 1:
            rank = 1
        while below >= rank:
            at -= 1
            below -= counts[at]
        while below + counts[at] < rank:
            below += counts[at]
            at += 1
        out[i] = at
    pointer[0] = at
    pointer[1] = below
    pointer[2] = total


@kernel
def exact_rank(values: Array, held: Array, size: int, q: float, out: Array) -> int:
    """Keeps all values in order, NaN on top, and gives the one of rank ceil(q n) after each."""
    for i in range(len(values)):
        v = values[i]
        lo = 0
        hi = size
        while lo < hi:
            mid = (lo + hi) // 2
            if held[mid] <= v or v != v:
                lo = mid + 1
            else:
                hi = mid
        for j in range(size, lo, -1):
            held[j] = held[j - 1]
        held[lo] = v
        size += 1
        rank = int(q * size)
        if rank < q * size:
            rank += 1
        out[i] = held[max(rank, 1) - 1]
    return size


@kernel
def count_events(
    hits: Array, window: int, ends: Array, heads: Array, sizes: Array, meta: Array, out: Array
) -> None:
    """Datar's exponential histogram: level l holds groups of 2**l events, by their newest position.

    ``ends[l]`` is a ring of positions, ``heads[l]`` its oldest, ``sizes[l]`` how many; ``meta`` is
    (position, events in all groups, highest level in use).
    """
    per = ends.shape[1] - 1
    now = meta[0]
    total = meta[1]
    top = meta[2]
    width = ends.shape[1]
    for i in range(len(hits)):
        now += 1
        while top >= 0 and sizes[top] > 0 and ends[top, heads[top]] <= now - window:
            heads[top] = (heads[top] + 1) % width
            sizes[top] -= 1
            total -= 1 << top
            while top > 0 and sizes[top] == 0:
                top -= 1
        if hits[i]:
            total += 1
            level = 0
            position = now
            while True:
                ends[level, (heads[level] + sizes[level]) % width] = position
                sizes[level] += 1
                if level > top:
                    top = level
                if sizes[level] <= per:
                    break
                position = ends[level, (heads[level] + 1) % width]
                heads[level] = (heads[level] + 2) % width
                sizes[level] -= 2
                level += 1
        out[i] = float(total - (1 << top) + 1) if total > 0 else 0.0
    meta[0] = now
    meta[1] = total
    meta[2] = top


@kernel
def slide(
    values: Array,
    there: Array,
    window: int,
    op: int,
    ring: Array,
    seen: Array,
    back: Array,
    meta: Array,
    out: Array,
    found: Array,
) -> None:
    """Two stacks in one ring: min (0), max (1) or sum (2) of the last ``window`` values that are not null.

    ``ring`` holds values behind the turn and, before it, folds of all from there to the turn; ``seen``
    counts what they fold. ``back`` folds what came after the turn: (fold, count). ``meta`` is (oldest,
    held, distance from the oldest to the turn).
    """
    oldest = meta[0]
    held = meta[1]
    front = meta[2]
    size = len(ring)
    for i in range(len(values)):
        at = (oldest + held) % size
        ring[at] = values[i]
        seen[at] = 1 if there[i] else 0
        held += 1
        if there[i]:
            back[0] = values[i] if back[1] == 0 else joined(back[0], values[i], op)
            back[1] += 1
        if held > window:
            if front == 0:
                front = held
                for j in range(held - 2, -1, -1):
                    here = (oldest + j) % size
                    after = (here + 1) % size
                    if seen[after] > 0:
                        ring[here] = ring[after] if seen[here] == 0 else joined(ring[here], ring[after], op)
                        seen[here] += seen[after]
                back[1] = 0
            oldest = (oldest + 1) % size
            held -= 1
            front -= 1
        count = int(back[1])
        value = back[0]
        if front > 0 and seen[oldest] > 0:
            value = ring[oldest] if count == 0 else joined(ring[oldest], value, op)
            count += seen[oldest]
        out[i] = value
        found[i] = count
    meta[0] = oldest
    meta[1] = held
    meta[2] = front


@kernel
def joined(a: float, b: float, op: int) -> float:
    """The fold of two values; NaN is above every number."""
    if op == 2:
        return a + b
    less = a < b or (b != b and a == a)
    if op == 0:
        return a if less else b
    return b if less else a
