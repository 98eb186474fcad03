"""The loops that pair each retract with the event version it names.

A version is (payload, LE, RE) under a 128-bit key. Retracts are few, so most versions are never hashed
(`run_kernels` finds those that one may name). They are gathered into a small table, on which `match_events`
goes through inserts and retracts in their order. An insert brings a version, a retract takes one away and
brings the next; a retract that finds none waits, and is released right behind the row that brings its
version.

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

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, sip_pair

FREE = -1
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
