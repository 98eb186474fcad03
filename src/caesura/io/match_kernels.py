"""The loop that pairs each retract with the event version it names.

A version is (payload, LE, RE) under a 128-bit key; versions are numbered, and an index of 64-bit slots
finds them: 31 bits of the key as a tag, 32 bits of number. `match_rows` takes rows in their order:
an insert brings a version, a retract takes one away and brings the next. A retract that finds no version
is held, and released right behind the row that brings it.

>>> key, none = np.array([5], np.uint64), np.zeros(1, np.int64)
>>> versions = Versions(np.full(8, FREE, np.int64), key, key, none, none)
>>> place_keys(versions.index, key, key, np.ones(1, np.bool_))
>>> find_version(versions, key[0], key[0]) >= 0
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.events.page import KEPT
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, M1, M3, M4, S33, U64, Mask, scramble

FREE = -1
GONE = -2
LOW = 0xFFFFFFFF
ONE = np.uint64(1)

OUT, DEAD, TOUCHED, WAITING = 0, 1, 2, 3
"""Places in the tally: rows out, versions dead, versions changed, retracts held."""


class Versions(NamedTuple):
    """The event versions there are, by number."""

    index: I64
    k1: U64
    k2: U64
    count: I64
    begin: I64
    """Where a version starts; after its LE if it was adjusted."""


class Held(NamedTuple):
    """Retracts by number: those held before, then all of the rows at hand."""

    index: I64
    w1: U64
    w2: U64
    sync: I64
    new: I64
    entry: I64
    """The number of the version that the retract brings, -1 for none."""
    waits: Mask


class Out(NamedTuple):
    """What comes of the rows: what leaves (row, or held retract h as -1 - h), what died or changed."""

    row: I64
    le: I64
    new: I64
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
def place_keys(index: I64, k1: U64, k2: U64, alive: Mask) -> None:
    """Fills an empty index with the numbers that live, in their order."""
    for number in range(len(alive)):
        if alive[number]:
            place_key(index, k1[number], k2[number], number)


@kernel
def find_version(versions: Versions, a: np.uint64, b: np.uint64) -> int:
    """The slot of the first version with this key, or -1."""
    index = versions.index
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
def find_held(held: Held, a: np.uint64, b: np.uint64, cti: int) -> int:
    """The slot of the first held retract that wants this version and may still come, or -1."""
    index = held.index
    mask = np.uint64(len(index) - 1)
    tag = np.int64(a >> S33)
    at = b & mask
    while index[at] != FREE:
        slot = index[at]
        if slot >= 0 and slot >> 32 == tag:
            number = slot & LOW
            if held.w1[number] == a and held.w2[number] == b and held.sync[number] >= cti:
                return np.int64(at)
        at = (at + ONE) & mask
    return np.int64(-1)


@kernel
def note(values: I64, tally: I64, place: int, value: int) -> None:
    """Appends to one of the lists of an Out."""
    values[tally[place]] = value
    tally[place] += 1


@kernel
def bring_version(versions: Versions, number: int, start: int, out: Out) -> None:
    """Makes a version present: one more of an equal one (same start too), or a new one."""
    index = versions.index
    mask = np.uint64(len(index) - 1)
    a = versions.k1[number]
    b = versions.k2[number]
    tag = np.int64(a >> S33)
    at = b & mask
    while index[at] != FREE:
        slot = index[at]
        if slot >= 0 and slot >> 32 == tag:
            other = slot & LOW
            if versions.k1[other] == a and versions.k2[other] == b and versions.begin[other] == start:
                versions.count[other] += 1
                note(out.touched, out.tally, TOUCHED, other)
                note(out.dead, out.tally, DEAD, number)
                return
        at = (at + ONE) & mask
    index[at] = (tag << 32) | number
    versions.count[number] = 1
    versions.begin[number] = start


@kernel
def take_version(versions: Versions, slot: int, out: Out) -> int:
    """Takes one away from the version in a slot; gives where it starts."""
    number = versions.index[slot] & LOW
    versions.count[number] -= 1
    if versions.count[number] == 0:
        versions.index[slot] = GONE
        note(out.dead, out.tally, DEAD, number)
    else:
        note(out.touched, out.tally, TOUCHED, number)
    return versions.begin[number]  # type: ignore[no-any-return]


@kernel
def emit(out: Out, row: int, start: int, new: int) -> None:
    """Lets a row leave."""
    at = out.tally[OUT]
    out.row[at] = row
    out.le[at] = start
    out.new[at] = new
    out.tally[OUT] = at + 1


@kernel
def match_rows(
    retract: Mask, starts: I64, cti: I64, base: int, first: int, versions: Versions, held: Held, out: Out
) -> None:
    """Pairs rows with versions in order; row i brings version base + i, the j-th retract is first + j."""
    mine = first - 1
    for i in range(len(retract)):
        number = base + i
        start = starts[i]
        if retract[i]:
            mine += 1
            slot = find_version(versions, held.w1[mine], held.w2[mine])
            if slot < 0:
                held.waits[mine] = True
                place_key(held.index, held.w1[mine], held.w2[mine], mine)
                out.tally[WAITING] += 1
                if held.entry[mine] < 0:
                    note(out.dead, out.tally, DEAD, number)
                continue
            start = take_version(versions, slot, out)
            emit(out, i, start, max(held.new[mine], start))
            if held.new[mine] <= start:
                note(out.dead, out.tally, DEAD, number)
                continue
        else:
            emit(out, i, start, KEPT)
        bring_version(versions, number, start, out)
        if out.tally[WAITING] > 0:
            release(number, cti[i], versions, held, out)


@kernel
def release(number: int, cti: int, versions: Versions, held: Held, out: Out) -> None:
    """Lets held retracts go behind the version they want, and those that want what they bring."""
    while True:
        a = versions.k1[number]
        b = versions.k2[number]
        found = find_held(held, a, b, cti)
        if found < 0:
            return
        retract = held.index[found] & LOW
        held.index[found] = GONE
        held.waits[retract] = False
        out.tally[WAITING] -= 1
        start = take_version(versions, find_version(versions, a, b), out)
        new = held.new[retract]
        emit(out, -1 - retract, start, max(new, start))
        number = held.entry[retract]
        if new <= start:
            if number >= 0:
                note(out.dead, out.tally, DEAD, number)
            return
        bring_version(versions, number, start, out)
