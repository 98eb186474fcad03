"""How far output may promise: the earliest window that may still change, per group.

With c the CTI of a group, a window is fixed when no legal future changes it:

     grid          it ends at c or before
     snapshot      it ends before c: at c a border may still move
     count         its n end points lie before c
     session       c is a gap past its last end, or past its greatest length
     reads ends    besides, every member ends before c (no right clipping, section V.F)

Rows are stamped from their window's start on, so the output CTI is the start of the earliest window
that is not fixed, or one that may still come. Windows that end by c alone (points) promise more.
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import later
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.frames import Count, Frame, Grid, Session, Snapshot
from caesura.ops.windows.layout import nth_before
from caesura.ops.windows.regions import sessions
from caesura.punctuation import INFINITY, MIN_TIME


def to_come(frame: Frame, c: I64) -> tuple[I64, I64]:
    """The least start and the least end of windows that events from c on may make or change."""
    known = (c == INFINITY) | (c == MIN_TIME)
    t = np.where(known, 0, c)
    match frame:
        case Grid():
            start = frame.grid.start(frame.grid.first(t))
            end = frame.grid.close(start)
        case Snapshot():
            start, end = t, t + 1
        case Count(by="end"):  # an event that starts at c ends later
            start, end = later(t, 1), later(t, 2)
        case _:
            start, end = t, t + 1
    return np.where(known, c, start), np.where(known, c, end)


def holds(frame: Frame, events: WindowEvents, groups: I64, c: I64, *, reads_ends: bool) -> tuple[I64, I64]:
    """Per group, the least start and the least end of the windows that may still change."""
    start, end = to_come(frame, c)
    if isinstance(frame, Grid) and not reads_ends:
        return start, end
    if isinstance(frame, Snapshot):
        hold_snapshots(*events.placed(groups), c, reads_ends, start, end)
        return start, end
    rows = events.rows
    live = np.flatnonzero(rows.alive)
    owner = np.searchsorted(groups, events.group.view[live])
    le, re = rows.get("le")[live], rows.get("re")[live]
    open_ = (re >= c[owner]) & (le < c[owner]) & (c[owner] != INFINITY)
    match frame:
        case Grid():
            _hold_grid(frame, owner[open_], le[open_], re[open_], c, start, end)
        case Count():
            if frame.by == "end":
                start[owner[open_]] = np.minimum(start, c)[owner[open_]]
                end[owner[open_]] = np.minimum(end, c + 1)[owner[open_]]
            point = le if frame.by == "start" else re
            _hold_count(frame, owner, point, le, open_ & (reads_ends and frame.by == "start"), c, start, end)
        case Session():
            _hold_session(frame, owner, le, re, c, start, end, reads_ends)
    return start, end


@kernel
def hold_snapshots(
    alive: Mask, group: I64, where: I64, le: I64, re: I64, c: I64, reads_ends: bool, start: I64, end: I64
) -> None:
    """Where an event lasts to c or longer, the snapshot from the last border before c on is open."""
    border = np.full(len(c), MIN_TIME, np.int64)
    spans = np.zeros(len(c), np.bool_)
    for i in range(len(alive)):
        if not alive[i]:
            continue
        g = where[group[i]]
        if c[g] == INFINITY or le[i] >= c[g]:
            continue
        border[g] = max(border[g], le[i])
        if re[i] < c[g]:
            border[g] = max(border[g], re[i])
        elif reads_ends:
            start[g] = min(start[g], le[i])
            end[g] = min(end[g], le[i] + 1)
        else:
            spans[g] = True
    for g in range(len(c)):
        if spans[g]:
            start[g] = border[g]
            end[g] = c[g]


def _hold_grid(frame: Grid, owner: I64, le: I64, re: I64, c: I64, start: I64, end: I64) -> None:
    first = frame.grid.start(frame.grid.first(le))
    there = first < np.minimum(re, c[owner])
    np.minimum.at(start, owner[there], first[there])
    np.minimum.at(end, owner[there], frame.grid.close(first[there]))


def _hold_count(
    frame: Count,
    owner: I64,
    point: I64,
    le: I64,
    open_: np.ndarray[tuple[int], np.dtype[np.bool_]],
    c: I64,
    start: I64,
    end: I64,
) -> None:
    """The windows that lack points before c; and, where ends are read, those with a member that lasts."""
    if frame.n < 2 and not open_.any():
        return
    order = np.lexsort((point, owner))
    if frame.n > 1:
        finite = np.where(c == INFINITY, MIN_TIME, c)
        nth_before(owner[order], point[order], finite, frame.n - 1, start)
    if open_.any():
        first = np.full(len(c), INFINITY)
        np.minimum.at(first, owner[open_], le[open_])
        some = first < INFINITY
        reach = first.copy()
        if frame.n > 1:
            nth_before(owner[order], point[order], np.where(some, first, MIN_TIME), frame.n - 1, reach)
        start[some] = np.minimum(start, reach)[some]
        end[some] = np.minimum(end, reach + 1)[some]


def _hold_session(
    frame: Session, owner: I64, le: I64, re: I64, c: I64, start: I64, end: I64, reads_ends: bool
) -> None:
    begun = le < c[owner]  # an event from c on may vanish again
    whose, first, last, reach = sessions(frame, owner[begun], le[begun], re[begun])
    bound = c[whose]
    quiet = later(reach, frame.gap)
    if frame.longest is not None:
        quiet = np.minimum(quiet, later(first, frame.longest))
    waits = bound < quiet
    if reads_ends:
        waits |= reach >= bound
    waits &= bound != INFINITY
    np.minimum.at(start, whose[waits], first[waits])
    np.minimum.at(end, whose[waits], np.minimum(last, bound)[waits])


BEGUN, REACHED, PASSED = 0, 1, 2
"""A row goes once its start, or its end, lies before the first open window; REACHED: or where that begins."""


@kernel
def unneeded(
    alive: Mask, group: I64, where: I64, le: I64, re: I64, start: I64, c: I64, goes: int, out: I64
) -> int:
    """The live rows that no window needs from each group's ``start`` on, and none that comes from c on."""
    n = 0
    for i in range(len(alive)):
        if not alive[i]:
            continue
        g = where[group[i]]
        if goes == BEGUN:
            gone = le[i] < start[g]
        else:
            gone = re[i] < c[g] and (re[i] < start[g] or (goes == REACHED and re[i] == start[g]))
        if gone or c[g] == INFINITY:
            out[n] = i
            n += 1
    return n


def settled(frame: Frame, events: WindowEvents, groups: I64, c: I64, start: I64, *, early: bool) -> I64:
    """The rows to let go of where windows from ``start`` on are open; ``early``: those that began before."""
    goes = BEGUN if early else REACHED if isinstance(frame, Grid) else PASSED
    out = np.empty(events.rows.live, np.int64)
    return out[: unneeded(*events.placed(groups), start, c, goes, out)]
