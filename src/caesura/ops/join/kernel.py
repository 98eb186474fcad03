"""The loops of a join: probing chains, taking rows out by value, cutting lifetimes into pieces."""

from __future__ import annotations

from caesura.events.page import NO_NEW_END
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask
from caesura.punctuation import INFINITY, MIN_TIME

REMOVED = MIN_TIME
"""The end of a row that was taken out: it overlaps nothing."""
FRESH = -2


@kernel
def probe(
    key: I64,
    le: I64,
    re: I64,
    re_new: I64,
    head: I64,
    follow: I64,
    o_le: I64,
    o_re: I64,
    resume: I64,
    out_row: I64,
    out_other: I64,
    out_le: I64,
    out_re: I64,
    out_new: I64,
) -> int:
    """Meets each row with the other side's rows of its key; writes the change that each pair makes.

    Stops when the output is full; ``resume`` holds where to
    go on: (row, link), the link FRESH at a row's start.
    """
    out = 0
    room = len(out_row)
    i = resume[0]
    link = resume[1]
    n = len(key)
    while i < n:
        if link == FRESH:
            link = head[key[i]] if 0 <= key[i] < len(head) else -1
        while link >= 0:
            if out == room:
                resume[0] = i
                resume[1] = link
                return out
            start = max(le[i], o_le[link])
            end = min(re[i], o_re[link])
            new = NO_NEW_END
            if re_new[i] != NO_NEW_END:
                after = max(start, min(re_new[i], o_re[link]))
                before = max(start, end)
                if before == after:
                    link = follow[link]
                    continue
                if before == start:
                    end = after
                else:
                    end = before
                    new = after
            if start < end:
                out_row[out] = i
                out_other[out] = link
                out_le[out] = start
                out_re[out] = end
                out_new[out] = new
                out += 1
            link = follow[link]
        link = FRESH
        i += 1
    resume[0] = n
    resume[1] = FRESH
    return out


@kernel
def meet_inserts(
    key: I64,
    le: I64,
    re: I64,
    head: I64,
    follow: I64,
    o_le: I64,
    o_re: I64,
    resume: I64,
    rows: I64,
    links: I64,
    out_row: I64,
    out_other: I64,
    out_le: I64,
    out_re: I64,
) -> int:
    """What `probe` does for inserts: gives how many pairs it wrote. With an empty ``re`` rows are points.

    Of a stretch of rows, those whose keys the other side has are found first, with the first of its rows for
    each; others are written over, so that there is no branch to guess. ``resume`` holds where to go on: the
    end of the stretch, the place in it and how many are there. Lifetimes have no room where nobody asks.
    """
    out = 0
    room = len(out_row) - 1  # the last place is only scratch
    base, at, count = resume[0], resume[1], resume[2]
    while True:
        for n in range(at, count):
            i = rows[n]
            link = links[n]
            start = le[i]
            end = re[i] if len(re) > 0 else start + 1
            while link >= 0:
                if out == room:
                    links[n] = link
                    resume[0], resume[1], resume[2] = base, n, count
                    return out
                begin = max(start, o_le[link])
                stop = min(end, o_re[link])
                out_row[out] = i
                out_other[out] = link
                if len(out_le) > 0:
                    out_le[out] = begin
                    out_re[out] = stop
                out += begin < stop
                link = follow[link]
        if base == len(key):
            resume[0], resume[1], resume[2] = base, count, count
            return out
        first, base = base, min(len(key), base + len(rows) - 1)
        at, count = 0, 0
        for i in range(first, base):
            link = head[key[i]] if 0 <= key[i] < len(head) else -1
            rows[count] = i
            links[count] = link
            count += link >= 0


@kernel
def outlive(alive: Mask, ends: I64, bound: int, rows: I64) -> tuple[int, int]:
    """The live rows that end after a bound; gives how many, and how many of them end at all."""
    count, ending = 0, 0
    for i in range(len(ends)):
        rows[count] = i
        later = alive[i] and ends[i] > bound
        count += later
        ending += later and ends[i] < INFINITY
    return count, ending


@kernel
def move_and_link(rows: I64, le: I64, re: I64, key: I64, head: I64, follow: I64) -> None:
    """The named rows, ascending, one behind the other at the beginning, and linked by key."""
    head[:] = -1
    for n in range(len(rows)):
        i = rows[n]
        own = key[i]
        le[n], re[n], key[n] = le[i], re[i], own
        follow[n] = head[own]
        head[own] = n


@kernel
def look_up(
    key: I64, le: I64, re: I64, re_new: I64, head: I64, follow: I64, o_le: I64, o_re: I64, out_other: I64
) -> bool:
    """Whether each row meets one row of the other side, all its life long; ``out_other`` says which.

    Then the pairs live as the page's rows do. Stops at the first row that does not. With an empty ``re`` rows
    are points.
    """
    for i in range(len(key)):
        link = head[key[i]] if 0 <= key[i] < len(head) else -1
        end = re[i] if len(re) > 0 else le[i] + 1
        if link < 0 or follow[link] >= 0 or o_le[link] > le[i] or o_re[link] < end:
            return False
        if len(re_new) > 0 and re_new[i] > o_re[link]:
            return False
        out_other[i] = link
    return True


@kernel
def retract_rows(
    at: I64,
    key: I64,
    h1: U64,
    h2: U64,
    le: I64,
    re: I64,
    re_new: I64,
    head: I64,
    follow: I64,
    s_h1: U64,
    s_h2: U64,
    s_le: I64,
    s_re: I64,
    found: I64,
) -> int:
    """Changes the ends of stored rows by value, in order; ``found`` is -1 where no row is stored.

    ``at`` names the page rows that are retracts. A row that goes gets the end REMOVED. Gives how many stored
    rows were looked at.
    """
    looked = 0
    for n in range(len(at)):
        i = at[n]
        found[n] = -1
        if key[i] < 0:
            continue
        link = head[key[i]]
        while link >= 0:
            if s_h1[link] == h1[i] and s_re[link] == re[i] and s_le[link] == le[i] and s_h2[link] == h2[i]:
                s_re[link] = re_new[i] if re_new[i] > le[i] else REMOVED
                found[n] = link
                break
            link = follow[link]
            looked += 1
    return looked


@kernel
def pieces(
    owner: I64,
    c_le: I64,
    c_re: I64,
    le: I64,
    re: I64,
    bound: I64,
    opened: I64,
    covered: bool,
    o_row: I64,
    o_le: I64,
    o_re: I64,
) -> int:
    """Maximal intervals where each row is covered, or is not.

    Covers are sorted by (owner, LE). Row r is looked at from max(LE, bound) on; ``opened[r]`` is the
    start of its piece that is up just before its bound, or REMOVED.
    """
    out = 0
    i = 0
    n = len(owner)
    for r in range(len(le)):
        begin = max(le[r], bound[r])
        start = opened[r]
        if start == REMOVED and not covered:
            start = begin
        reach = begin
        while i < n and owner[i] == r:
            a = max(c_le[i], begin)
            b = min(c_re[i], re[r])
            i += 1
            if a >= b:
                continue
            if not covered:
                if start < a:
                    o_row[out], o_le[out], o_re[out] = r, start, a
                    out += 1
                reach = max(reach, b)
                start = reach
            elif start != REMOVED and a <= reach:
                reach = max(reach, b)
            else:
                if start != REMOVED:
                    o_row[out], o_le[out], o_re[out] = r, start, reach
                    out += 1
                start = a
                reach = b
        end = reach if covered else re[r]
        if start != REMOVED and start < end:
            o_row[out], o_le[out], o_re[out] = r, start, end
            out += 1
    return out
