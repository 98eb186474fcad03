"""The loop that pairs each retract with the event version it names.

A version is (payload, LE, RE) under a 128-bit key, and has a number. Retracts are few: so not every
version is indexed, only those that a retract at hand or a waiting one wants, and those that lived long.
An index slot holds 31 bits of the key as a tag and 32 bits of number. `match_rows` takes rows in their
order: an insert brings a version, a retract takes one away and brings the next. A retract that finds no
version waits, and is released right behind the row that brings it.

>>> key, ones = np.array([5], np.uint64), np.ones(1, np.int64)
>>> versions = Versions(np.full(8, FREE, np.int64), key, key, ones, ones)
>>> place_keys(versions.slots, key, key, 0, np.ones(1, np.bool_))
>>> bool(find_version(versions, key[0], key[0]) >= 0)
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, M1, M3, M4, S33, U64, Mask, scramble

FREE = -1
GONE = -2
LOW = 0xFFFFFFFF
ONE = np.uint64(1)
LOOSE = -1
"""The count of a version that is there once and not indexed."""

OUT, DEAD, TOUCHED, WAITING, PLACED = 0, 1, 2, 3, 4
"""Places in the tally: rows out, versions dead, versions changed, retracts waiting, slots used."""


class Versions(NamedTuple):
    """The event versions there are, by number."""

    slots: I64
    k1: U64
    k2: U64
    counts: I64
    begin: I64
    """Where a version starts, if late rows are adjusted; else empty, for it is the LE it is named by."""


class Held(NamedTuple):
    """Retracts by number: those that wait, then all of the rows at hand; the index finds both."""

    slots: I64
    w1: U64
    w2: U64
    sync: I64
    new: I64
    le: I64
    entry: I64
    """The number of the version that the retract brings, -1 for none."""
    waits: Mask


class Out(NamedTuple):
    """What comes of the rows: what leaves (row, or held retract h as -1 - h), what died or changed."""

    row: I64
    le: I64
    dead: I64
    touched: I64
    tally: I64


@kernel
def version_keys(h1: U64, h2: U64, le: I64, re: I64, k1: U64, k2: U64) -> None:
    """The key of each row's version: its payload's identity with a start and an end."""
    for i in range(len(le)):
        start = np.uint64(le[i])
        end = np.uint64(re[i])
        k1[i] = scramble(h1[i] + start * M3 + end * M1)
        k2[i] = scramble((h2[i] ^ start) * M4 + end * M3)


@kernel
def place_key(index: I64, a: np.uint64, b: np.uint64, number: int) -> None:
    """Puts a number into an index, behind others with the same key."""
    mask = np.uint64(len(index) - 1)
    at = b & mask
    while index[at] != FREE:
        at = (at + ONE) & mask
    index[at] = (np.int64(a >> S33) << 32) | number


@kernel
def place_keys(index: I64, k1: U64, k2: U64, first: int, alive: Mask) -> None:
    """Puts the numbers from ``first`` on that live into an index, in their order."""
    for number in range(first, len(alive)):
        if alive[number]:
            place_key(index, k1[number], k2[number], number)


@kernel
def find_version(versions: Versions, a: np.uint64, b: np.uint64) -> np.int64:
    """The slot of the first indexed version with this key, or -1."""
    index = versions.slots
    mask = np.uint64(len(index) - 1)
    tag = np.int64(a >> S33)
    at = b & mask
    while index[at] != FREE:
        slot = index[at]
        if slot >= 0 and slot >> 32 == tag:
            number = slot & LOW
            if versions.k1[number] == a and versions.k2[number] == b:
                return np.int64(at)
        at = (at + ONE) & mask
    return np.int64(-1)


@kernel
def wanted(held: Held, a: np.uint64, b: np.uint64) -> bool:
    """Whether any retract, waiting or at hand, names this version."""
    index = held.slots
    mask = np.uint64(len(index) - 1)
    tag = np.int64(a >> S33)
    at = b & mask
    while index[at] != FREE:
        slot = index[at]
        if slot >= 0 and slot >> 32 == tag and held.w2[slot & LOW] == b:
            return True
        at = (at + ONE) & mask
    return False


@kernel
def find_waiting(held: Held, a: np.uint64, b: np.uint64, cti: int) -> np.int64:
    """The slot of the first waiting retract that names this version and may still come, or -1."""
    index = held.slots
    mask = np.uint64(len(index) - 1)
    at = b & mask
    while index[at] != FREE:
        slot = index[at]
        if slot >= 0:
            number = slot & LOW
            same = held.w1[number] == a and held.w2[number] == b
            if same and held.waits[number] and held.sync[number] >= cti:
                return np.int64(at)
        at = (at + ONE) & mask
    return np.int64(-1)


@kernel
def note(values: I64, tally: I64, place: int, value: int) -> None:
    """Appends to one of the lists of an Out."""
    values[tally[place]] = value
    tally[place] += 1


@kernel
def index_version(versions: Versions, number: int, out: Out) -> None:
    """Makes a version findable: as one more of an equal one with the same start, or in a slot of its own."""
    index = versions.slots
    mask = np.uint64(len(index) - 1)
    a = versions.k1[number]
    b = versions.k2[number]
    tag = np.int64(a >> S33)
    at = b & mask
    moved = len(versions.begin) > 0
    while index[at] != FREE:
        slot = index[at]
        if slot >= 0 and slot >> 32 == tag:
            other = slot & LOW
            same = versions.k1[other] == a and versions.k2[other] == b
            if same and (not moved or versions.begin[other] == versions.begin[number]):
                versions.counts[other] += 1
                note(out.touched, out.tally, TOUCHED, other)
                note(out.dead, out.tally, DEAD, number)
                return
        at = (at + ONE) & mask
    index[at] = (tag << 32) | number
    versions.counts[number] = 1
    out.tally[PLACED] += 1
    note(out.touched, out.tally, TOUCHED, number)


@kernel
def index_loose(versions: Versions, held: Held, first: int, end: int, every: bool, out: Out) -> None:
    """Indexes the loose versions in a range that a retract at hand wants, or every one."""
    for number in range(first, end):
        if versions.counts[number] == LOOSE and (
            every or wanted(held, versions.k1[number], versions.k2[number])
        ):
            index_version(versions, number, out)


@kernel
def take_version(versions: Versions, slot: np.int64, out: Out) -> int:
    """Takes one away from the version in a slot; gives its number."""
    number = versions.slots[slot] & LOW
    versions.counts[number] -= 1
    if versions.counts[number] == 0:
        versions.slots[slot] = GONE
        note(out.dead, out.tally, DEAD, number)
    else:
        note(out.touched, out.tally, TOUCHED, number)
    return number  # type: ignore[no-any-return]


@kernel
def match_rows(
    retract: Mask, starts: I64, cti: I64, base: int, first: int, versions: Versions, held: Held, out: Out
) -> None:
    """Pairs rows with versions in order; row i brings version base + i, the j-th retract is first + j."""
    mine = first - 1
    moved = len(versions.begin) > 0
    for i in range(len(retract)):
        number = base + i
        start = starts[i]
        if retract[i]:
            mine += 1
            slot = find_version(versions, held.w1[mine], held.w2[mine])
            if slot < 0:
                held.waits[mine] = True
                out.tally[WAITING] += 1
                if held.entry[mine] < 0:
                    note(out.dead, out.tally, DEAD, number)
                continue
            taken = take_version(versions, slot, out)
            start = versions.begin[taken] if moved else start
        at = out.tally[OUT]
        out.row[at] = i
        out.le[at] = start
        out.tally[OUT] = at + 1
        if retract[i] and held.new[mine] <= start:
            note(out.dead, out.tally, DEAD, number)
            continue
        if moved:
            versions.begin[number] = start
        versions.counts[number] = LOOSE
        if wanted(held, versions.k1[number], versions.k2[number]):
            index_version(versions, number, out)
            if out.tally[WAITING] > 0:
                release(number, cti[i], versions, held, out)


@kernel
def release(number: int, cti: int, versions: Versions, held: Held, out: Out) -> None:
    """Lets waiting retracts go behind the version they want, and those that want what they bring."""
    moved = len(versions.begin) > 0
    while True:
        a = versions.k1[number]
        b = versions.k2[number]
        found = find_waiting(held, a, b, cti)
        if found < 0:
            return
        retract = held.slots[found] & LOW
        held.waits[retract] = False
        out.tally[WAITING] -= 1
        taken = take_version(versions, find_version(versions, a, b), out)
        start = versions.begin[taken] if moved else held.le[retract]
        at = out.tally[OUT]
        out.row[at] = -1 - retract
        out.le[at] = start
        out.tally[OUT] = at + 1
        number = held.entry[retract]
        if held.new[retract] <= start:
            if number >= 0:
                note(out.dead, out.tally, DEAD, number)
            return
        if moved:
            versions.begin[number] = start
        index_version(versions, number, out)
