"""Compiled loops that lay windows over sorted events, and pair windows with their members."""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import FIRST
from caesura.punctuation import INFINITY, MIN_TIME

NONE = np.zeros(0, np.int64)


@kernel
def join_ranges(group: I64, a: I64, b: I64, o_group: I64, o_a: I64, o_b: I64) -> int:
    """Ranges [a, b] sorted by (group, a): those that touch become one."""
    n = 0
    for i in range(len(group)):
        if n > 0 and o_group[n - 1] == group[i] and a[i] <= o_b[n - 1]:
            if b[i] > o_b[n - 1]:
                o_b[n - 1] = b[i]
        else:
            o_group[n] = group[i]
            o_a[n] = a[i]
            o_b[n] = b[i]
            n += 1
    return n


@kernel
def lay_snapshots(region: I64, time: I64, o_region: I64, o_start: I64, o_end: I64) -> int:
    """Windows between the neighbouring end points of each region, from points sorted by (region, time)."""
    n = 0
    for i in range(len(region) - 1):
        if region[i] == region[i + 1] and time[i] < time[i + 1]:
            o_region[n] = region[i]
            o_start[n] = time[i]
            o_end[n] = time[i + 1]
            n += 1
    return n


@kernel
def next_points(alive: Mask, group: I64, where: I64, le: I64, re: I64, last: I64, out: I64) -> None:
    """Lowers ``out`` to the first end point of a live row behind ``last``, per region."""
    for i in range(len(alive)):
        g = where[group[i]]
        if alive[i] and g >= 0:
            if last[g] < le[i] < out[g]:
                out[g] = le[i]
            elif last[g] < re[i] < out[g]:
                out[g] = re[i]


@kernel
def points_before(alive: Mask, group: I64, where: I64, le: I64, re: I64, first: I64, out: I64) -> None:
    """Raises ``out`` to the last end point of a live row before ``first``, per region."""
    for i in range(len(alive)):
        g = where[group[i]]
        if alive[i] and g >= 0:
            if out[g] < re[i] < first[g]:
                out[g] = re[i]
            elif out[g] < le[i] < first[g]:
                out[g] = le[i]


@kernel
def overlapping_rows(
    alive: Mask, group: I64, where: I64, le: I64, re: I64, lo: I64, hi: I64, owner: I64, row: I64
) -> int:
    """(region, row) of the live rows that start at ``hi`` or before and end at ``lo`` or after."""
    n = 0
    for i in range(len(alive)):
        g = where[group[i]]
        if alive[i] and g >= 0 and le[i] <= hi[g] and re[i] >= lo[g]:
            owner[n] = g
            row[n] = i
            n += 1
    return n


@kernel
def lay_counts(
    region: I64, time: I64, n: int, lo: I64, hi: I64, o_region: I64, o_start: I64, o_end: I64
) -> int:
    """Windows over n distinct points, from distinct points sorted by (region, time)."""
    made = 0
    for i in range(len(region)):
        last = i + n - 1
        r = region[i]
        if last < len(region) and region[last] == r and lo[r] <= time[i] <= hi[r]:
            o_region[made] = r
            o_start[made] = time[i]
            o_end[made] = time[last] + 1
            made += 1
    return made


@kernel
def lay_sessions(
    region: I64, le: I64, re: I64, gap: int, longest: int, o_region: I64, o_start: I64, o_end: I64, reach: I64
) -> int:
    """Sessions of events sorted by (region, le); ``reach`` receives their greatest ends, uncut."""
    n = 0
    for i in range(len(region)):
        joins = n > 0 and o_region[n - 1] == region[i]
        if joins:
            silent = reach[n - 1] <= INFINITY - gap and le[i] >= reach[n - 1] + gap
            endless = longest == 0 or o_start[n - 1] > INFINITY - longest
            joins = not silent and (endless or le[i] < o_start[n - 1] + longest)
        if not joins:
            o_region[n] = region[i]
            o_start[n] = le[i]
            reach[n] = re[i]
            n += 1
        elif re[i] > reach[n - 1]:
            reach[n - 1] = re[i]
    for k in range(n):
        o_end[k] = reach[k]
        if longest > 0 and o_start[k] <= INFINITY - longest and reach[k] > o_start[k] + longest:
            o_end[k] = o_start[k] + longest
    return n


@kernel
def pair_members(
    w_from: I64, start: I64, end: I64, region: I64, low: I64, high: I64, owner: I64, member: I64, fill: int
) -> int:
    """(window, event) for every event on [low, high) and every window of its region that it meets.

    ``w_from[r]`` is where the windows of region r begin; both their starts and their ends ascend.
    """
    count = 0
    for i in range(len(region)):
        a = w_from[region[i]]
        z = w_from[region[i] + 1]
        left = a
        right = z
        while left < right:
            middle = (left + right) >> 1
            if end[middle] <= low[i]:
                left = middle + 1
            else:
                right = middle
        while left < z and start[left] < high[i]:
            if fill:
                owner[count] = left
                member[count] = i
            count += 1
            left += 1
    return count


@kernel
def nth_before(group: I64, time: I64, t: I64, n: int, out: I64) -> None:
    """Per group, the n-th last distinct time below t, or the earliest; from (group, time) sorted."""
    i = 0
    for g in range(len(t)):
        first = i
        while i < len(group) and group[i] == g:
            i += 1
        place = i - 1
        while place >= first and time[place] >= t[g]:
            place -= 1
        seen = 0
        while place >= first and seen < n:
            if seen == 0 or time[place] != out[g]:
                out[g] = time[place]
                seen += 1
                if seen == n:
                    break
            place -= 1


@kernel
def tally_grid(place: I64, count: I64, tally: I64) -> None:
    """How many members each window has; a member is in ``count`` windows from ``place`` on."""
    for i in range(len(place)):
        for k in range(count[i]):
            tally[place[i] + k] += 1


@kernel
def fill_grid(place: I64, count: I64, at: I64, pick: I64) -> None:
    """Writes members to their windows, which begin at ``at``, in the order they come in."""
    for i in range(len(place)):
        for k in range(count[i]):
            w = place[i] + k
            pick[at[w]] = i
            at[w] += 1


@kernel
def span_grid(
    alive: Mask, group: I64, where: I64, le: I64, re: I64, reached: I64, lo: I64, hi: I64, size: int,
    hop: int, offset: int, owner: I64, row: I64, first: I64, count: I64,
) -> int:  # fmt: skip
    """The live rows with windows numbered [lo, hi) in the region of their group: the first, and how many.

    Neighbours often share windows, so a quotient is kept while it holds.
    """
    n = 0
    a_low = 0
    a_high = 0
    a = 0
    z_low = 0
    z_high = 0
    z = 0
    low = MIN_TIME + offset + size + 2 * hop
    for r in range(len(alive)):
        g = where[group[r]]
        if not alive[r] or g < 0:
            continue
        stop = re[r] if re[r] != INFINITY else reached[g]
        if stop <= FIRST:
            continue
        if min(le[r], stop) < low or max(le[r], stop) > INFINITY - hop:  # sums would leave 64 bits
            a = le[r] // hop + (le[r] % hop - offset - size) // hop
            z = (stop - 1) // hop + ((stop - 1) % hop - offset) // hop
            a_high, z_high = a_low, z_low
        else:
            t = le[r] - offset - size
            if t < a_low or t >= a_high:
                a = t // hop
                a_low = a * hop
                a_high = a_low + hop
            t = stop - 1 - offset
            if t < z_low or t >= z_high:
                z = t // hop
                z_low = z * hop
                z_high = z_low + hop
        begin = max(a + 1, lo[g])
        last = min(z + 1, hi[g])
        if last > begin:
            owner[n] = g
            row[n] = r
            first[n] = begin
            count[n] = last - begin if begin >= 0 or last <= begin + INFINITY else INFINITY
            n += 1
    return n


@kernel
def bound_grid(owner: I64, first: I64, count: I64, low: I64, high: I64) -> None:
    """The least window of each region, and the end of the greatest."""
    for i in range(len(owner)):
        g = owner[i]
        if count[i] > 0:
            low[g] = min(low[g], first[i])
            high[g] = max(high[g], first[i] + count[i])
