"""The pass that reads rows of inserts and retracts: whether they make events, and which are retracts.

Most rows are inserts in the order of time, of which only starts and ends are compared. The others are listed,
and looked at by themselves.

>>> kinds, new = np.array([0, 0, 0, 0, 1], np.int8), np.array([9, 9, 8, 9, 3])
>>> le, re = np.array([1, 3, 5, 2, 3]), np.array([9, 9, 8, 9, 9])
>>> counts, tops, told = np.empty(5, np.int32), np.empty(1, np.int64), np.empty(TOLD, np.int64)
>>> strays, named = np.empty((3, 1), np.int64), np.empty((5, 1), np.int64)
>>> bool(read_changes(le, re, new, le, kinds, counts, strays, named, tops, told)), tops.tolist()
(True, [5])
>>> named[:4, 0].tolist()  # row 4 is a retract: its start, end and new end
[4, 3, 9, 3]
>>> find_events(le, re, counts, named, tops, told); int(named[4, 0])  # it takes row 1 away
1
"""

from __future__ import annotations

import numpy as np

from caesura.io.ingress.row_kernels import I8, INSERT, RETRACT
from caesura.io.ingress.run_kernels import I32, TOGETHER, Matrix, find_named
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, ONE, U8
from caesura.punctuation import INFINITY, MIN_TIME

BLOCK = 8 * TOGETHER
"""So many rows are looked at again while they are in the fastest memory."""
GONE, ASTRAY, LOW, HIGH, LAST, CROWDED, LATEST, BEHIND, LONGER = range(9)
"""What is told of rows: how many retracts there are, and rows out of order; the first and the last start, the
last end; whether too many rows start together; the latest time that a row tells of, and how far no start is
behind the latest time before it; whether one lives longer than a tick."""
TOLD = 9


@kernel
def read_changes(
    le: I64, re: I64, new: I64, advance: I64,
    kinds: I8, counts: I32, strays: Matrix, named: Matrix, tops: I64, told: I64,
) -> bool:  # fmt: skip
    """Whether all rows are sound; counts one version for each insert, and lists retracts.

    ``named`` receives the rows of retracts, their starts, ends and new ends; ``strays`` the rows of inserts
    that start before another row some way in front of them, their starts and ends, as many as there is room
    for; ``tops`` the latest start up to each `TOGETHER` rows. How far rows are behind is told as if those of
    a block told of their times at once; wrapped, where that is further than numbers go.
    """
    told[:] = 0
    told[LOW], told[HIGH], told[LAST], told[LATEST] = INFINITY, MIN_TIME, MIN_TIME, MIN_TIME
    room, marks = np.zeros((3, BLOCK + 1), np.int64), np.empty(BLOCK, np.uint8)
    bad = 0
    for begin in range(0, len(le), BLOCK):  # slices, so that the compiler sees that no index is below zero
        end = begin + BLOCK
        starts, ends, times, here = le[begin:end], re[begin:end], advance[begin:end], counts[begin:end]
        first, last, until, longer = INFINITY, told[LATEST], told[LAST], 0
        for i in range(len(starts)):
            here[i] = 1
            bad |= ends[i] <= starts[i]
            longer |= ends[i] != starts[i] + 1
            first = min(first, starts[i])
            last = max(last, times[i])
            until = max(until, ends[i])
        told[LOW], told[LATEST], told[LAST] = min(told[LOW], first), last, until
        told[BEHIND] = max(told[BEHIND], last - first)
        told[LONGER] |= longer
        mark_odd(kinds[begin:end], starts, tops[begin // TOGETHER : end // TOGETHER], marks, told)
        gone, astray = divide_odd(kinds[begin:end], marks, room)
        list_strays(begin, room[1, :astray], starts, ends, strays, told)
        mine = named[:, told[GONE] : told[GONE] + gone]
        bad |= list_retracts(begin, room[0, :gone], kinds, le, re, new, counts, mine)
        told[GONE] += gone
    return bad == 0 and told[LOW] > MIN_TIME and told[HIGH] < INFINITY


def find_events(le: I64, re: I64, counts: I32, named: Matrix, tops: I64, told: I64) -> None:
    """Adds to ``named`` the first row in front of each retract with the lifetime that it names: `find_named`.

    A kernel of its own, since the compiler would take twice as long for both as one.
    """
    count = named.shape[1]
    if count:
        rows, starts, ends, _, found = named
        who, since, hint = np.arange(count), np.zeros(count, np.int64), np.array([0, MIN_TIME])
        told[CROWDED] = find_named(tops, le, re, counts, starts, ends, rows, who, since, hint, found)


@kernel
def mark_odd(kinds: I8, starts: I64, tops: I64, marks: U8, told: I64) -> None:
    """Marks the rows of a block that are no inserts, or that start before one of a group before theirs."""
    high = told[HIGH]
    for group in range(len(tops)):
        begin = group * TOGETHER
        end = begin + TOGETHER
        some, times, out = kinds[begin:end], starts[begin:end], marks[begin:end]
        top = high
        for i in range(len(times)):
            top = max(top, times[i])
        for i in range(len(times)):
            out[i] = (some[i] != INSERT) | (times[i] < high)
        tops[group] = top
        high = top
    told[HIGH] = high


@kernel
def divide_odd(kinds: I8, marks: U8, room: Matrix) -> tuple[int, int]:
    """Lists the rows of a block that are marked: retracts, and inserts; gives how many there are of both."""
    odd, gone, astray = room[2], room[0], room[1]
    count, retracts, inserts = np.uint64(0), np.uint64(0), np.uint64(0)  # so that none is below zero
    for i in range(len(kinds)):
        odd[count] = i
        count += marks[i]
    for j in range(count):
        row = np.uint64(odd[j])
        gone[retracts] = row
        astray[inserts] = row
        insert = np.uint64(kinds[row] == INSERT)
        inserts += insert
        retracts += ONE - insert
    return np.int64(retracts), np.int64(inserts)  # type: ignore[return-value]


@kernel
def list_strays(begin: int, rows: I64, starts: I64, ends: I64, strays: Matrix, told: I64) -> None:
    """Lists inserts of a block that came out of order, with their lifetimes, while there is room."""
    before = told[ASTRAY]
    at, le, re = strays[0, before:], strays[1, before:], strays[2, before:]
    for j in range(min(len(rows), len(at))):
        row = np.uint64(rows[j])
        at[j], le[j], re[j] = begin + rows[j], starts[row], ends[row]
    told[ASTRAY] += len(rows)


@kernel
def list_retracts(
    begin: int, rows: I64, kinds: I8, le: I64, re: I64, new: I64, counts: I32, named: Matrix
) -> int:
    """Lists retracts of a block, of which no version is counted; gives whether one is unsound."""
    at, starts, ends, news = named[0], named[1], named[2], named[3]
    bad = 0
    for j in range(len(rows)):
        row = np.uint64(begin + rows[j])
        counts[row] = 0
        at[j], starts[j], ends[j], news[j] = begin + rows[j], le[row], re[row], new[row]
        bad |= (kinds[row] != RETRACT) | (new[row] == re[row]) | (new[row] < le[row])
    return bad
