"""The kernels of a loop that keeps one row per key: who is best when, and what must go or come.

Time is cut at every end point of a key's rows. On each piece the best candidate is the one with the
least value, then the least depth; a row of the loop stays there if it is that best candidate and if
some derivation of it is less deep than the row itself, which no cycle through the row can be.
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64

NONE = -1


@kernel
def find(parent: I64, i: int) -> int:
    """The first piece from i on that nobody has taken."""
    root = i
    while parent[root] != root:
        root = parent[root]
    while parent[i] != root:
        after = parent[i]
        parent[i] = root
        i = after
    return root


@kernel
def place(times: I64, low: int, high: int, t: int) -> int:
    """The position of t among sorted distinct times."""
    while low < high:
        mid = (low + high) // 2
        if times[mid] < t:
            low = mid + 1
        else:
            high = mid
    return low


@kernel
def lay_best(
    c_from: I64,
    c_row: I64,
    c_depth: I64,
    c_le: I64,
    c_re: I64,
    s_from: I64,
    s_row: I64,
    s_depth: I64,
    s_le: I64,
    s_re: I64,
    bound: I64,
    adding: bool,
    o_group: I64,
    o_source: I64,
    o_depth: I64,
    o_le: I64,
    o_re: I64,
) -> tuple[int, bool]:
    """The rows that each key's loop rows become; and whether any of them lost something.

    Candidates of key g are c_from[g] to c_from[g + 1], best first; ``row`` numbers payloads. Rows of
    the loop are s_from[g] to s_from[g + 1]. Nothing before bound[g] changes. Without ``adding`` rows
    only shrink; with it, candidates are taken where no row is, each as long as it lives. ``source``
    names the row whose payload each one has: a candidate i, or a row of the loop as -2 - i.
    """
    out = 0
    lost = False
    for g in range(len(bound)):
        c0 = c_from[g]
        c1 = c_from[g + 1]
        s0 = s_from[g]
        s1 = s_from[g + 1]
        limit = bound[g]
        size = 2 * (c1 - c0 + s1 - s0)
        if size == 0:
            continue
        times = np.empty(size, np.int64)
        n = 0
        for i in range(c0, c1):
            times[n] = max(c_le[i], limit)
            times[n + 1] = max(c_re[i], limit)
            n += 2
        for i in range(s0, s1):
            times[n] = max(s_le[i], limit)
            times[n + 1] = max(s_re[i], limit)
            n += 2
        times = np.unique(times)
        pieces = len(times) - 1
        best = np.full(pieces + 1, NONE, np.int64)
        free = np.arange(pieces + 2)
        for i in range(c0, c1):
            if max(c_le[i], limit) >= c_re[i]:
                continue
            at = find(free, place(times, 0, pieces, max(c_le[i], limit)))
            while at < pieces and times[at] < c_re[i]:
                best[at] = i
                free[at] = at + 1
                at = find(free, at)
        held = np.full(pieces + 1, NONE, np.int64)
        for i in range(s0, s1):
            if max(s_le[i], limit) >= s_re[i]:
                # It ended before the bound, or at it: it stays as it is.
                o_group[out] = g
                o_source[out] = -2 - i
                o_depth[out] = s_depth[i]
                o_le[out] = s_le[i]
                o_re[out] = s_re[i]
                out += 1
                continue
            at = place(times, 0, pieces, max(s_le[i], limit))
            while at < pieces and times[at] < s_re[i]:
                b = best[at]
                if b != NONE and c_row[b] == s_row[i] and c_depth[b] < s_depth[i]:
                    held[at] = i
                else:
                    lost = True
                    held[at] = -2 - i
                at += 1
        row = np.int64(NONE)
        source = np.int64(0)
        depth = np.int64(0)
        start = np.int64(0)
        for at in range(pieces):
            h = held[at]
            r = np.int64(NONE)
            d = np.int64(0)
            origin = np.int64(0)
            begin = times[at]
            if h >= 0:
                r = s_row[h]
                d = s_depth[h]
                origin = -2 - h
                if times[at] == limit and s_le[h] < limit:
                    begin = s_le[h]
            elif h <= -2:
                # Taken away from here on; what lies before the bound stays.
                h = -2 - h
                if times[at] == limit and s_le[h] < limit:
                    o_group[out] = g
                    o_source[out] = -2 - h
                    o_depth[out] = s_depth[h]
                    o_le[out] = s_le[h]
                    o_re[out] = limit
                    out += 1
            if r == NONE and adding and held[at] == NONE and best[at] != NONE:
                r = c_row[best[at]]
                d = c_depth[best[at]] + 1
                origin = best[at]
            if row != NONE and (r == NONE or origin != source):
                o_group[out] = g
                o_source[out] = source
                o_depth[out] = depth
                o_le[out] = start
                o_re[out] = times[at]
                out += 1
                row = np.int64(NONE)
            if r != NONE and row == NONE:
                row = r
                source = origin
                depth = d
                start = begin
        if row != NONE:
            o_group[out] = g
            o_source[out] = source
            o_depth[out] = depth
            o_le[out] = start
            o_re[out] = times[pieces]
            out += 1
    return out, lost


@kernel
def furthest(row: I64, re: I64) -> None:
    """Of rows sorted by (row, LE): each end becomes the furthest so far of its payload."""
    for i in range(1, len(row)):
        if row[i] == row[i - 1]:
            re[i] = max(re[i], re[i - 1])
