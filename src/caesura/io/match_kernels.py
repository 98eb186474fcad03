"""The loops that pair each retract with the event version it names.

A version is (payload, LE, RE) under a 128-bit key. Retracts are few, so most versions are only looked at
once, by `pick_wanted`: does a retract at hand, or a waiting one, name it? The few that one does name are
gathered into a small table, on which `match_events` goes through inserts and retracts in their order. An
insert brings a version, a retract takes one away and brings the next; a retract that finds none waits,
and is released right behind the row that brings its version.

All tables are int64 matrices with the key in the first two columns; an index slot holds 31 bits of the key
as a tag and 32 bits of row number. Equal keys lie behind each other in the order they came.

>>> table = np.array([[5, 6, 1, 0]])
>>> slots = np.full(8, FREE, np.int64)
>>> place(slots, table, 0)
>>> int(find_version(slots, table, 5, 6)), int(find_version(slots, table, 5, 7))
(0, -1)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from caesura.events.page import KEPT
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, M1, M3, M4, U64, Mask, scramble

FREE = -1
LOW = 0xFFFFFFFF
TAG = 0x7FFFFFFF
BITS = 1 << 18

K1, K2 = 0, 1
COUNT, BEGIN = 2, 3
"""Columns of a version: how many there are, and where they start if they were adjusted."""
SYNC, NEW, BRINGS, WAITS, START = 2, 3, 4, 5, 6
"""Columns of a retract: sync time, new end, the version it brings, whether it waits, its event's start."""
ROW, WHAT, CTI = 0, 1, 2
"""Columns of an event: its row, the version it brings (a retract j as -1 - j), the bound before it."""

Matrix = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


@kernel
def version_keys(h1: U64, h2: U64, le: I64, re: I64, re_new: I64, k1: I64, k2: I64, ends: I64) -> None:
    """The key of the version each row brings: its payload's identity with a start and an end.

    A retract brings the version that ends at its new end; an empty ``re_new`` means inserts only.
    """
    for i in range(len(le)):
        end = re[i] if len(re_new) == 0 or re_new[i] == KEPT else re_new[i]
        ends[i] = end
        k1[i] = np.int64(scramble(h1[i] + np.uint64(le[i]) * M3 + np.uint64(end) * M1))
        k2[i] = np.int64(scramble((h2[i] ^ np.uint64(le[i])) * M4 + np.uint64(end) * M3))


@kernel
def place(slots: I64, table: Matrix, row: int) -> None:
    """Puts a row of a table into an index, behind others with the same key."""
    mask = len(slots) - 1
    at = table[row, K2] & mask
    while slots[at] != FREE:
        at = (at + 1) & mask
    slots[at] = ((table[row, K1] >> 33 & TAG) << 32) | row


@kernel
def place_distinct(slots: I64, table: Matrix) -> None:
    """Puts the rows of a table into an index, equal keys once: many may name the same version."""
    mask = len(slots) - 1
    for row in range(len(table)):
        tag = table[row, K1] >> 33 & TAG
        at = table[row, K2] & mask
        while slots[at] != FREE:
            if slots[at] >> 32 == tag and table[slots[at] & LOW, K2] == table[row, K2]:
                break
            at = (at + 1) & mask
        if slots[at] == FREE:
            slots[at] = (tag << 32) | row


@kernel
def pick_wanted(slots: I64, table: Matrix, k1: I64, k2: I64, first: int, sure: I64, picked: I64) -> int:
    """The numbers from ``first`` on that the table names, and the ``sure`` ones; gives how many.

    Nearly all are named by none: a bit per possible name, in fast memory, tells most of them.
    """
    mask = len(slots) - 1
    count = 0
    next_sure = 0
    named = np.zeros(BITS >> 6, np.uint64)
    for row in range(len(table)):
        bit = table[row, K2] >> 24 & (BITS - 1)
        named[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    for number in range(first, len(k2)):
        if next_sure < len(sure) and sure[next_sure] == number:
            next_sure += 1
            picked[count] = number
            count += 1
            continue
        bit = k2[number] >> 24 & (BITS - 1)
        if named[bit >> 6] >> np.uint64(bit & 63) & np.uint64(1) == 0:
            continue
        at = k2[number] & mask
        while slots[at] != FREE:
            same = slots[at] >> 32 == (k1[number] >> 33 & TAG)
            if same and table[slots[at] & LOW, K2] == k2[number]:
                picked[count] = number
                count += 1
                break
            at = (at + 1) & mask
    return count


@kernel
def look_up(slots: I64, k1: I64, k2: I64, alive: Mask, table: Matrix, picked: I64) -> int:
    """The numbers of the indexed versions that the table names; gives how many there are."""
    mask = len(slots) - 1
    count = 0
    for row in range(len(table)):
        at = table[row, K2] & mask
        while slots[at] != FREE:
            number = slots[at] & LOW
            if alive[number] and k2[number] == table[row, K2] and k1[number] == table[row, K1]:
                if count == len(picked):
                    return -1
                picked[count] = number
                count += 1
            at = (at + 1) & mask
    return count


@kernel
def index_versions(
    slots: I64, k1: I64, k2: I64, counts: I32, begin: I64, alive: Mask, first: int, gone: I64
) -> int:
    """Indexes the versions from ``first`` on; one that equals another adds to its count, and goes."""
    mask = len(slots) - 1
    dead = 0
    for number in range(first, len(k1)):
        if not alive[number]:
            continue
        at = k2[number] & mask
        while slots[at] != FREE:
            other = slots[at] & LOW
            same = alive[other] and k2[other] == k2[number] and k1[other] == k1[number]
            if same and (len(begin) == 0 or begin[other] == begin[number]):
                counts[other] += counts[number]
                gone[dead] = number
                dead += 1
                break
            at = (at + 1) & mask
        if slots[at] == FREE:
            slots[at] = ((k1[number] >> 33 & TAG) << 32) | number
    return dead


@kernel
def find_version(slots: I64, versions: Matrix, a: int, b: int) -> int:
    """The version with this key that is there, or -1; of several the one that starts first."""
    mask = len(slots) - 1
    at = b & mask
    best = -1
    while slots[at] != FREE:
        row = slots[at] & LOW
        there = versions[row, K2] == b and versions[row, K1] == a and versions[row, COUNT] > 0
        if there and (best < 0 or versions[row, BEGIN] < versions[best, BEGIN]):
            best = row
        at = (at + 1) & mask
    return best


@kernel
def find_waiting(slots: I64, retracts: Matrix, a: int, b: int, cti: int) -> int:
    """The first waiting retract that names this version and may still come, or -1."""
    mask = len(slots) - 1
    at = b & mask
    while slots[at] != FREE:
        row = slots[at] & LOW
        same = retracts[row, K2] == b and retracts[row, K1] == a
        if same and retracts[row, WAITS] == 1 and retracts[row, SYNC] >= cti:
            return row  # type: ignore[no-any-return]
        at = (at + 1) & mask
    return -1


@kernel
def bring(slots: I64, versions: Matrix, row: int, count: int) -> None:
    """Makes a version present: as more of an equal one with the same start, or on its own."""
    mask = len(slots) - 1
    at = versions[row, K2] & mask
    while slots[at] != FREE:
        other = slots[at] & LOW
        same = versions[other, K2] == versions[row, K2] and versions[other, K1] == versions[row, K1]
        if same and versions[other, BEGIN] == versions[row, BEGIN]:
            versions[row, COUNT] = 0
            versions[other, COUNT] += count
            return
        at = (at + 1) & mask
    versions[row, COUNT] = count
    place(slots, versions, row)


@kernel
def pair(slots: I64, versions: Matrix, retracts: Matrix, row: int) -> int:
    """Pairs a retract with its version; gives the version it brings, -1 for none, -2 if it finds none."""
    found = find_version(slots, versions, retracts[row, K1], retracts[row, K2])
    if found < 0:
        return -2
    versions[found, COUNT] -= 1
    retracts[row, START] = max(retracts[row, START], versions[found, BEGIN])
    if retracts[row, NEW] <= retracts[row, START]:
        return -1
    brought = retracts[row, BRINGS]
    versions[brought, BEGIN] = versions[found, BEGIN]
    bring(slots, versions, brought, 1)
    return brought  # type: ignore[no-any-return]


@kernel
def match_events(
    events: Matrix,
    versions: Matrix,
    present: int,
    retracts: Matrix,
    waiting: int,
    freed: Matrix,
    slots: I64,
    waits: I64,
) -> int:
    """Goes through events in order; ``freed`` receives (row, retract released behind it); gives how many.

    The first ``present`` versions are there already, and the first ``waiting`` retracts wait already.
    """
    for version in range(present):
        bring(slots, versions, version, versions[version, COUNT])
    for retract in range(waiting):
        place(waits, retracts, retract)
    count = 0
    for e in range(len(events)):
        version = events[e, WHAT]
        if version >= 0:
            bring(slots, versions, version, 1)
        else:
            retract = -1 - version
            version = pair(slots, versions, retracts, retract)
            if version == -2:
                retracts[retract, WAITS] = 1
                place(waits, retracts, retract)
        while version >= 0:
            found = find_waiting(
                waits, retracts, versions[version, K1], versions[version, K2], events[e, CTI]
            )
            if found < 0:
                break
            retracts[found, WAITS] = 0
            freed[count, 0] = events[e, ROW]
            freed[count, 1] = found
            count += 1
            version = pair(slots, versions, retracts, found)
    return count
