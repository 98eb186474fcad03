"""Which windows a change touches, and what those windows are and hold now.

A region is a group and a range of window starts [lo, hi). Outside of it no window changes: end points
that did not change stay where they are. Everything is found through the ordered indexes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.errors import StreamError
from caesura.events.page import Page
from caesura.kernels.grid import PIECES_LIMIT, Lattice, spread, tally
from caesura.kernels.hashing import I64
from caesura.kernels.ticks import later
from caesura.ops.aggregate.shape import check_pieces
from caesura.ops.ordered import Ordered, sorting
from caesura.ops.windows import layout
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.frames import Count, Frame, Grid, Session, Snapshot, inside
from caesura.punctuation import INFINITY, MIN_TIME


class Regions(NamedTuple):
    """Ranges of window starts, [lo, hi), each of one group."""

    group: I64
    lo: I64
    hi: I64


class Laid(NamedTuple):
    """Windows of some regions with their members, sorted by window."""

    region: I64
    start: I64
    end: I64
    owner: I64
    row: I64


def changed(frame: Frame, page: Page, *, reads_ends: bool, timed: bool, reached: I64) -> tuple[I64, I64, I64]:
    """(row, first, last) of the time that each row of a page changes; without rows that change nothing."""
    was, now = page.re, page.re
    moved = np.zeros(len(page), np.bool_)
    if page.re_new is not None and page.retracts is not None:
        moved = page.retracts & (page.re_new > page.le)
        now = np.where(page.retracts, np.maximum(page.re_new, page.le), page.re)
    every = np.arange(len(page))
    match frame:
        case Session():
            return every, np.full(len(page), MIN_TIME), np.full(len(page), INFINITY)
        case Count(by="start"):
            rows = every if timed else np.flatnonzero(~moved)
            return rows, page.le[rows], page.le[rows]
        case Count():
            low, high = np.where(moved, np.minimum(was, now), was), np.where(moved, np.maximum(was, now), was)
            high = np.where(high == INFINITY, low, high)
            rows = np.flatnonzero(low != INFINITY)
            return rows, low[rows], high[rows]
    if isinstance(frame, Grid):
        was, now = (np.where(t == INFINITY, np.maximum(reached, page.le), t) for t in (was, now))
    low = np.where(moved & (not reads_ends), np.minimum(was, now), page.le)
    return every, low, np.maximum(was, now)


def joined(group: I64, a: I64, b: I64) -> tuple[I64, I64, I64]:
    """The ranges [a, b] of each group, those that touch as one."""
    order = sorting(group, a)
    if order is not None:
        group, a, b = group[order], a[order], b[order]
    out = tuple(np.empty(len(group), np.int64) for _ in range(3))
    n = layout.join_ranges(group, a, b, *out)
    return out[0][:n], out[1][:n], out[2][:n]


def affected(
    frame: Frame, events: WindowEvents, group: I64, a: I64, b: I64, *, dense: bool = False
) -> Regions:
    """The starts of the windows that a change on [a, b] touches; ``dense`` is as for `lay`."""
    live = events.rows.alive
    after = later(b, 1)
    match frame:
        case Grid():
            return Regions(group, later(a, 1 - frame.size), b)
        case Snapshot():
            if dense:
                before = np.full(len(group), MIN_TIME, np.int64)
                layout.points_before(*events.placed(group), a, before)
            else:
                before = np.maximum(events.starts.before(group, a, live), events.ends.before(group, a, live))
            return Regions(group, np.where(before == MIN_TIME, a, before), after)
        case Count():
            index = events.starts if frame.by == "start" else events.ends
            return Regions(group, _steps(index, group, a, frame.n - 1, live, back=True), after)
    return Regions(group, a, b)


def _steps(
    index: Ordered,
    group: I64,
    t: I64,
    n: int,
    live: np.ndarray[tuple[int], np.dtype[np.bool_]],
    *,
    back: bool,
) -> I64:
    """The n-th distinct time before (or after) t, or the last there is."""
    for _ in range(n):
        new = index.before(group, t, live) if back else index.after(group, t, live)
        new = np.where(new == (MIN_TIME if back else INFINITY), t, new)
        if (new == t).all():
            break
        t = new
    return t


def lay(frame: Frame, events: WindowEvents, regions: Regions, reached: I64, *, dense: bool = False) -> Laid:
    """The windows of some regions and their members; ``reached`` bounds events that never end, per region.

    ``dense`` says that there is at most one region per group, and that most events may lie in them.
    """
    match frame:
        case Grid():
            return _lay_grid(frame, events, regions, reached, dense)
        case Snapshot():
            windows, owner, row = _lay_snapshot(events, regions)
        case Count():
            windows, owner, row = _lay_count(frame, events, regions)
        case Session():
            windows, owner, row = _lay_session(frame, events, regions)
    low, high = inside(frame, events.rows.get("le")[row], events.rows.get("re")[row])
    return _paired(regions, windows, owner, row, low, high)


def scanned(events: WindowEvents, group: I64, lo: I64, hi: I64) -> tuple[I64, I64]:
    """(region, row) of the live rows that overlap their group's region; looks at every row."""
    owner, row = (np.empty(events.rows.live, np.int64) for _ in range(2))
    n = layout.overlapping_rows(*events.placed(group), lo, hi, owner, row)
    return owner[:n], row[:n]


def _spanned(
    grid: Lattice, events: WindowEvents, group: I64, reached: I64, lo: I64, hi: I64
) -> tuple[I64, I64, I64, I64]:
    """(region, row, first window, how many) of every live row with windows in its group's region."""
    owner, row, first, count = (np.empty(events.rows.size, np.int64) for _ in range(4))
    n = layout.span_grid(
        *events.placed(group), reached, lo, hi, grid.size, grid.hop, grid.offset, owner, row, first, count
    )
    return owner[:n], row[:n], first[:n], count[:n]


def _lay_grid(frame: Grid, events: WindowEvents, regions: Regions, reached: I64, dense: bool) -> Laid:
    grid = frame.grid
    begin, stop = grid.begin(regions.lo), grid.begin(regions.hi)
    if dense:
        owner, row, first, count = _spanned(grid, events, regions.group, reached, begin, stop)
    else:
        until = later(regions.hi, frame.size)
        owner, row = events.starts.overlapping(regions.group, regions.lo, until, events.rows.alive)
        le, re = events.rows.get("le")[row], events.rows.get("re")[row]
        re = np.where(re == INFINITY, reached[owner], re)
        first = np.maximum(grid.first(le), begin[owner])
        final = np.minimum(grid.begin(re), stop[owner])
        count, _ = tally(first, final)
    total = int(count.sum(dtype=np.float64))
    check_pieces(total, frame.size)
    region, number, window, pick = _by_window(owner, first, count, len(begin), total)
    start = grid.start(number)
    return Laid(region, start, grid.close(start), window, row[pick])


def _by_window(owner: I64, first: I64, count: I64, regions: int, total: int) -> tuple[I64, I64, I64, I64]:
    """(region, number) of windows with members; (window, member) of all of these, in order."""
    low, high = np.full(regions, INFINITY), np.full(regions, MIN_TIME)
    layout.bound_grid(owner, first, count, low, high)
    low = np.where(low < high, low, 0)
    width = np.maximum(high, low) - low
    if width.sum() > 4 * total + 1024:
        return _by_sorting(owner, first, count, total)
    begin = np.cumsum(width) - width
    place = (begin - low)[owner] + first
    tally = np.zeros(int(width.sum()), np.int64)
    layout.tally_grid(place, count, tally)
    pick = np.empty(total, np.int64)
    layout.fill_grid(place, count, np.cumsum(tally) - tally, pick)
    there = np.flatnonzero(tally)
    region = np.repeat(np.arange(regions), width)[there]
    window = np.repeat(np.arange(len(there)), tally[there])
    return region, there - begin[region] + low[region], window, pick


def _by_sorting(owner: I64, first: I64, count: I64, total: int) -> tuple[I64, I64, I64, I64]:
    """The same, for windows few and far between."""
    pick, number = spread(first, count)
    order = np.lexsort((number, owner[pick]))
    pick, number = pick[order], number[order]
    region = owner[pick]
    new = np.ones(total, np.bool_)
    new[1:] = (region[1:] != region[:-1]) | (number[1:] != number[:-1])
    return region[new], number[new], np.cumsum(new) - 1, pick


def last_point(events: WindowEvents, regions: Regions, *, dense: bool) -> I64:
    """The end point that closes each region's last snapshot."""
    last = np.where(regions.hi == INFINITY, INFINITY, regions.hi - 1)
    if not dense:
        live = events.rows.alive
        ends = (index.after(regions.group, last, live) for index in (events.starts, events.ends))
        return np.minimum(*ends)
    end = np.full(len(last), INFINITY, np.int64)
    layout.next_points(*events.placed(regions.group), last, end)
    return end


def around(events: WindowEvents, regions: Regions, *, dense: bool = False) -> tuple[I64, I64, I64]:
    """The end point that closes each region's last snapshot, and (region, row) of the events that matter."""
    end = last_point(events, regions, dense=dense)
    if dense:
        return end, *scanned(events, regions.group, regions.lo, end)
    return end, *events.starts.overlapping(regions.group, regions.lo, end, events.rows.alive)


def _lay_snapshot(events: WindowEvents, regions: Regions) -> tuple[tuple[I64, I64, I64], I64, I64]:
    end, owner, row = around(events, regions)
    le, re = events.rows.get("le")[row], events.rows.get("re")[row]
    region, time = np.concatenate([owner, owner]), np.concatenate([le, re])
    inside = (time >= regions.lo[region]) & (time <= end[region])
    region, time = region[inside], time[inside]
    order = np.lexsort((time, region))
    out = tuple(np.empty(len(order), np.int64) for _ in range(3))
    n = layout.lay_snapshots(region[order], time[order], *out)
    return (out[0][:n], out[1][:n], out[2][:n]), owner, row


def _lay_count(frame: Count, events: WindowEvents, regions: Regions) -> tuple[tuple[I64, I64, I64], I64, I64]:
    live = events.rows.alive
    index = events.starts if frame.by == "start" else events.ends
    last = np.where(regions.hi == INFINITY, INFINITY, regions.hi - 1)
    end = np.where(
        last >= INFINITY - 1, INFINITY - 1, _steps(index, regions.group, last, frame.n - 1, live, back=False)
    )
    end = np.minimum(end, INFINITY - 1)
    owner, row = index.between(regions.group, regions.lo, end, live)
    time = events.rows.get("le" if frame.by == "start" else "re")[row]
    order = np.lexsort((time, owner))
    region, point = owner[order], time[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (region[1:] != region[:-1]) | (point[1:] != point[:-1])
    out = tuple(np.empty(len(order), np.int64) for _ in range(3))
    n = layout.lay_counts(region[new], point[new], frame.n, regions.lo, last, *out)
    return (out[0][:n], out[1][:n], out[2][:n]), owner, row


def _lay_session(
    frame: Session, events: WindowEvents, regions: Regions
) -> tuple[tuple[I64, I64, I64], I64, I64]:
    live = events.rows.alive
    whole = np.full(len(regions.group), MIN_TIME), np.full(len(regions.group), INFINITY)
    owner, row = events.starts.between(regions.group, *whole, live)
    region, start, end, _ = sessions(frame, owner, events.rows.get("le")[row], events.rows.get("re")[row])
    return (region, start, end), owner, row


def sessions(frame: Session, owner: I64, le: I64, re: I64) -> tuple[I64, I64, I64, I64]:
    """(owner, start, end, greatest end of a member) of the sessions of each owner's events."""
    order = np.lexsort((re, le, owner))
    out = tuple(np.empty(len(order), np.int64) for _ in range(4))
    n = layout.lay_sessions(owner[order], le[order], re[order], frame.gap, frame.longest or 0, *out)
    return out[0][:n], out[1][:n], out[2][:n], out[3][:n]


def _paired(
    regions: Regions, windows: tuple[I64, I64, I64], owner: I64, row: I64, low: I64, high: I64
) -> Laid:
    """Windows within their regions that have members, and those members."""
    region, start, end = windows
    begins = np.searchsorted(region, np.arange(len(regions.group) + 1))
    total = layout.pair_members(begins, start, end, owner, low, high, layout.NONE, layout.NONE, 0)
    if total > PIECES_LIMIT:
        raise StreamError(
            f"the windows that one page touches hold {total:,} members in all.",
            remedy="Group by a column, take smaller windows, or bound the lifetimes with set_duration.",
        )
    window, member = np.empty(total, np.int64), np.empty(total, np.int64)
    layout.pair_members(begins, start, end, owner, low, high, window, member, 1)
    keep = (start >= regions.lo[region]) & (start < regions.hi[region])
    keep &= np.bincount(window, minlength=len(start)) > 0
    number = np.cumsum(keep) - 1
    some = keep[window]
    window, member = number[window[some]], member[some]
    order = np.argsort(window, kind="stable")
    return Laid(region[keep], start[keep], end[keep], window[order], row[member[order]])
