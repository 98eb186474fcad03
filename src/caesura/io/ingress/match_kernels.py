"""The loops that pair each retract with the event version it names.

A version is (payload, LE, RE) under a 128-bit key. Retracts are few, so most versions are never hashed:
`scan_run` asks of each only whether a retract at hand, or a waiting one, names its lifetime. The few that
one may name are gathered into a small table, on which `match_events` goes through inserts and retracts in
their order. An insert brings a version, a retract takes one away and brings the next; a retract that finds
none waits, and is released right behind the row that brings its version.

Tables are int64 matrices with the key in the first two columns; an index slot holds a row number. Equal
keys lie behind each other in the order they came.

>>> table = np.array([[5, 6, 1, 0]])
>>> slots = np.full(8, FREE, np.int32)
>>> place(slots, table, 0)
>>> int(find_version(slots, table, 5, 6)), int(find_version(slots, table, 5, 7))
(0, -1)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from caesura.events.page import NO_NEW_END
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, sip_pair
from caesura.punctuation import INFINITY, MIN_TIME

FREE = -1
SIX = np.uint64(6)
LAST_SIX = np.uint64(63)
ONE = np.uint64(1)
HALF = np.uint64(32)
U64One = np.uint64

MAX_TRIES = 16
"""So many retracts of the same lifetime are looked at for a version; `match_events` finds the rest."""

K1, K2 = 0, 1
COUNT, BEGIN = 2, 3
"""Columns of a version: how many there are, and where they start if they were adjusted."""
SYNC, NEW, WAITS, START = 2, 3, 4, 5
"""Columns of a retract: sync time, new end, whether it waits, its event's start."""

Matrix = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


@kernel
def version_keys(h1: U64, h2: U64, le: I64, end: I64, k1: I64, k2: I64) -> None:
    """The key of each version: its payload's identity with a start and an end."""
    for i in range(len(le)):
        first, second = sip_pair(h1[i], h2[i], np.uint64(le[i]), np.uint64(end[i]))
        k1[i] = np.int64(first)
        k2[i] = np.int64(second)


@kernel
def open_run(le: I64, re: I64, re_new: I64, counts: I32, span: I64, rows: I64, retracts: Matrix) -> int:
    """Counts one version for each insert; gives the first and the last start, and the last end, in ``span``.

    Retracts are told apart: their rows, starts, ends and new ends; gives how many there are. An empty
    ``re_new`` means inserts only.
    """
    found = 0
    low = INFINITY
    high = MIN_TIME
    last = MIN_TIME
    for i in range(len(le)):
        if len(re_new) > 0 and re_new[i] != NO_NEW_END:
            counts[i] = 0
            rows[found] = i
            retracts[0, found] = le[i]
            retracts[1, found] = re[i]
            retracts[2, found] = re_new[i]
            found += 1
            continue
        counts[i] = 1
        low = min(low, le[i])
        high = max(high, le[i])
        last = max(last, re[i])
    span[0] = low
    span[1] = high
    span[2] = last
    return found


@kernel
def mark_starts(le: I64, shift: int, bits: U64) -> None:
    """Sets the bit of each start: neighbours in time lie side by side, as rows mostly come."""
    last = np.int64(len(bits) * 64 - 1)
    for i in range(len(le)):
        bit = np.uint64((le[i] >> shift) & last)
        bits[bit >> SIX] |= ONE << (bit & LAST_SIX)


@kernel
def slot_of(k1: U64One, k2: U64One, le: U64One, re: U64One) -> int:
    """Where a lifetime is looked for first: products with two secret odd numbers, of which high bits count.

    The index lives as long as one page is looked at, and shows to nobody.
    """
    mixed = (le ^ k2) * (k1 | ONE)
    mixed = ((mixed ^ (mixed >> HALF)) + re) * (k2 | ONE)
    return np.int64(mixed >> HALF)  # type: ignore[return-value]


@kernel
def place_lifetimes(slots: I32, start: U64, le: I64, re: I64, follow: I64) -> int:
    """Puts the numbers of lifetimes into an index, equal ones once; ``follow`` leads from one to the next.

    ``start`` is the key of their hash, so that nobody can aim at places. Gives how many were there already.
    """
    doubled = 0
    mask = len(slots) - 1
    for row in range(len(le)):
        at = slot_of(start[0], start[1], np.uint64(le[row]), np.uint64(re[row])) & mask
        while slots[at] != FREE:
            first = slots[at]
            if le[first] == le[row] and re[first] == re[row]:
                follow[row] = follow[first]
                follow[first] = row
                doubled += 1
                break
            at = (at + 1) & mask
        if slots[at] == FREE:
            slots[at] = row
            follow[row] = -1
    return doubled


@kernel
def scan_run(
    bits: U64,
    shift: int,
    slots: I32,
    start: U64,
    named_le: I64,
    named_re: I64,
    le: I64,
    re: I64,
    counts: I32,
    picked: I64,
    whom: I64,
) -> int:
    """The rows that are there and whose lifetime some retract names, and which; gives how many there are.

    Most rows end at the bits, without a branch to guess.
    """
    some = np.int64(0)
    last = np.int64(len(bits) * 64 - 1)
    for i in range(len(le)):
        bit = np.uint64((le[i] >> shift) & last)
        picked[some] = i
        some += np.int64(bits[bit >> SIX] >> (bit & LAST_SIX) & ONE)
    mask = len(slots) - 1
    count = 0
    for j in range(some):
        i = picked[j]
        if counts[i] == 0:
            continue
        at = slot_of(start[0], start[1], np.uint64(le[i]), np.uint64(re[i])) & mask
        while slots[at] != FREE:
            if named_le[slots[at]] == le[i] and named_re[slots[at]] == re[i]:
                picked[count] = i
                whom[count] = slots[at]
                count += 1
                break
            at = (at + 1) & mask
    return count


@kernel
def compare_rows(mine: I64, at: I64, theirs: I64, rows: I64, whom: I64, same: Mask) -> None:
    """Keeps the mark of each candidate whose value equals that of the retract which may name it."""
    for c in range(len(at)):
        same[c] &= mine[at[c]] == theirs[rows[whom[c]]]


@kernel
def pair_same(picked: I64, whom: I64, same: Mask, rows: I64, done: Mask, used: I64) -> int:
    """What `pair_up` does, where no two retracts have the same lifetime and payloads are compared already."""
    count = 0
    for c in range(len(picked)):
        w = whom[c]
        if same[c] and not done[w] and (len(rows) == 0 or picked[c] < rows[w]):
            done[w] = True
            used[count] = picked[c]
            count += 1
    return count


@kernel
def pair_up(
    picked: I64,
    whom: I64,
    c1: I64,
    c2: I64,
    k1: I64,
    k2: I64,
    follow: I64,
    rows: I64,
    done: Mask,
    used: I64,
) -> int:
    """Gives each retract an equal version that came before it, as far as these go; gives how many got one.

    ``rows`` are those of the retracts, where the versions are of their own page; else it is empty.
    """
    count = 0
    for c in range(len(picked)):
        w = whom[c]
        tries = 0
        while w >= 0 and tries < MAX_TRIES:
            same = not done[w] and k2[w] == c2[c] and k1[w] == c1[c]
            if same and (len(rows) == 0 or picked[c] < rows[w]):
                done[w] = True
                used[count] = picked[c]
                count += 1
                break
            w = follow[w]
            tries += 1
    return count


@kernel
def place(slots: I32, table: Matrix, row: int) -> None:
    """Puts a row of a table into an index, behind others with the same key."""
    mask = len(slots) - 1
    at = table[row, K2] & mask
    while slots[at] != FREE:
        at = (at + 1) & mask
    slots[at] = row


@kernel
def place_distinct(slots: I32, table: Matrix) -> None:
    """Puts the rows of a table into an index, equal keys once: many may name the same version."""
    mask = len(slots) - 1
    for row in range(len(table)):
        at = table[row, K2] & mask
        while slots[at] != FREE:
            other = slots[at]
            if table[other, K2] == table[row, K2] and table[other, K1] == table[row, K1]:
                break
            at = (at + 1) & mask
        if slots[at] == FREE:
            slots[at] = row


@kernel
def pick_wanted(slots: I32, table: Matrix, k1: I64, k2: I64, counts: I32, picked: I64) -> int:
    """The rows that are there and that the table names by their key; gives how many there are."""
    mask = len(slots) - 1
    count = 0
    for row in range(len(k2)):
        if counts[row] == 0:
            continue
        at = k2[row] & mask
        while slots[at] != FREE:
            if table[slots[at], K2] == k2[row] and table[slots[at], K1] == k1[row]:
                picked[count] = row
                count += 1
                break
            at = (at + 1) & mask
    return count


@kernel
def look_up(slots: I32, k1: I64, k2: I64, alive: Mask, table: Matrix, picked: I64) -> int:
    """The numbers of the indexed versions that the table names; gives how many there are."""
    mask = len(slots) - 1
    count = 0
    for row in range(len(table)):
        at = table[row, K2] & mask
        while slots[at] != FREE:
            number = slots[at]
            if alive[number] and k2[number] == table[row, K2] and k1[number] == table[row, K1]:
                if count == len(picked):
                    return -1
                picked[count] = number
                count += 1
            at = (at + 1) & mask
    return count


@kernel
def index_versions(
    slots: I32, k1: I64, k2: I64, counts: I32, begin: I64, alive: Mask, first: int, dead_rows: I64
) -> int:
    """Indexes the versions from ``first`` on; one that equals another adds to its count, and goes."""
    mask = len(slots) - 1
    dead = 0
    for number in range(first, len(k1)):
        if not alive[number]:
            continue
        at = k2[number] & mask
        while slots[at] != FREE:
            other = slots[at]
            same = alive[other] and k2[other] == k2[number] and k1[other] == k1[number]
            if same and (len(begin) == 0 or begin[other] == begin[number]):
                counts[other] += counts[number]
                dead_rows[dead] = number
                dead += 1
                break
            at = (at + 1) & mask
        if slots[at] == FREE:
            slots[at] = number
    return dead


@kernel
def find_version(slots: I32, versions: Matrix, a: int, b: int) -> int:
    """The version with this key that is there, or -1; of several the one that starts first."""
    mask = len(slots) - 1
    at = b & mask
    best = -1
    while slots[at] != FREE:
        row = slots[at]
        there = versions[row, K2] == b and versions[row, K1] == a and versions[row, COUNT] > 0
        if there and (best < 0 or versions[row, BEGIN] < versions[best, BEGIN]):
            best = row
        at = (at + 1) & mask
    return best


@kernel
def find_waiting(slots: I32, retracts: Matrix, a: int, b: int, cti: int) -> int:
    """The first waiting retract that names this version and may still come, or -1."""
    mask = len(slots) - 1
    at = b & mask
    while slots[at] != FREE:
        row = slots[at]
        same = retracts[row, K2] == b and retracts[row, K1] == a
        if same and retracts[row, WAITS] == 1 and retracts[row, SYNC] >= cti:
            return row  # type: ignore[no-any-return]
        at = (at + 1) & mask
    return -1


@kernel
def bring(slots: I32, versions: Matrix, row: int, count: int) -> None:
    """Makes a version present: as more of an equal one with the same start, or on its own."""
    mask = len(slots) - 1
    at = versions[row, K2] & mask
    while slots[at] != FREE:
        other = slots[at]
        same = versions[other, K2] == versions[row, K2] and versions[other, K1] == versions[row, K1]
        if same and versions[other, BEGIN] == versions[row, BEGIN]:
            versions[row, COUNT] = 0
            versions[other, COUNT] += count
            return
        at = (at + 1) & mask
    versions[row, COUNT] = count
    place(slots, versions, row)


@kernel
def pair(slots: I32, versions: Matrix, retracts: Matrix, row: int, brings: int) -> int:
    """Pairs a retract with its version; gives the version it brings, -1 for none, -2 if it finds none."""
    found = find_version(slots, versions, retracts[row, K1], retracts[row, K2])
    if found < 0:
        return -2
    versions[found, COUNT] -= 1
    retracts[row, START] = max(retracts[row, START], versions[found, BEGIN])
    if retracts[row, NEW] <= retracts[row, START]:
        return -1
    versions[brings, BEGIN] = versions[found, BEGIN]
    bring(slots, versions, brings, 1)
    return brings


@kernel
def match_events(
    inserts: I64,
    changes: I64,
    cti: I64,
    versions: Matrix,
    retracts: Matrix,
    freed: Matrix,
    slots: I32,
    waits: I32,
) -> int:
    """Goes through a page's rows in order; ``freed`` gets (row, retract released behind it); gives how many.

    ``inserts`` and ``changes`` are rows of the page, ascending; ``cti`` is the bound before each row, or
    empty: then -1 is given as soon as a bound matters, because a retract waits. The versions are those that
    are there already, those of the inserts, and those that the retracts would bring; the retracts are those
    that wait already, and those of the changes.
    """
    known = len(versions) - len(retracts)
    version = known - len(inserts)
    retract = len(retracts) - len(changes)
    for old in range(version):
        bring(slots, versions, old, versions[old, COUNT])
    for old in range(retract):
        place(waits, retracts, old)
    waiting = retract
    count = 0
    i = 0
    j = 0
    while i < len(inserts) or j < len(changes):
        if j == len(changes) or (i < len(inserts) and inserts[i] < changes[j]):
            row = inserts[i]
            brought = version + i
            bring(slots, versions, brought, 1)
            i += 1
        else:
            row = changes[j]
            brought = pair(slots, versions, retracts, retract + j, known + retract + j)
            if brought == -2:
                retracts[retract + j, WAITS] = 1
                place(waits, retracts, retract + j)
                waiting += 1
                if len(cti) == 0:
                    return -1
            j += 1
        while brought >= 0 and waiting > 0:
            found = find_waiting(waits, retracts, versions[brought, K1], versions[brought, K2], cti[row])
            if found < 0:
                break
            retracts[found, WAITS] = 0
            waiting -= 1
            freed[count, 0] = row
            freed[count, 1] = found
            count += 1
            brought = pair(slots, versions, retracts, found, known + found)
    return count
