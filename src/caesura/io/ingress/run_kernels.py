"""The loops that look through the versions of a page for those that retracts name.

Rows mostly come in the order of time, and of those that do the ones that start at a time lie side by side:
`find_named` goes there. Rows that came out of order are few, or all are asked whether a retract names their
lifetime (`scan_run`).

>>> le, re, new = np.array([1, 3, 5, 2, 3]), np.array([9, 9, 8, 9, 9]), np.array([NO_NEW_END] * 4 + [3])
>>> counts, told, tops = np.empty(5, np.int32), np.empty(6, np.int64), np.empty(1, np.int64)
>>> strays, named = np.empty((3, 6), np.int64), np.empty((5, 6), np.int64)
>>> open_run(le, re, new, counts, strays, named, tops, told)
>>> strays[:, 0].tolist(), tops.tolist()  # row 3 starts at 2, before row 2 does
([3, 2, 9], [5])
>>> named[:, 0].tolist()  # row 4 takes row 1 away
[4, 3, 9, 3, 1]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from caesura.events.page import NO_NEW_END
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, U64, Mask
from caesura.punctuation import INFINITY, MIN_TIME

FREE = -1
SIX = np.uint64(6)
LAST_SIX = np.uint64(63)
ONE = np.uint64(1)
HALF = np.uint64(32)
U64One = np.uint64

BLOCK = 1024
"""So many rows are looked at again while they are in the fastest memory."""
FEW = 8
"""So many blocks are looked at together, or one by one, before steps grow."""
TOGETHER = 8
"""Of so many rows the latest start up to them is kept."""
MAX_BLOCKS = 128
"""So many times `TOGETHER` rows that start together are looked at for one retract."""
TOO_MANY = -1
MAX_TRIES = 16
"""So many retracts of the same lifetime are looked at for a version; `match_events` finds the rest."""

I32 = npt.NDArray[np.int32]
Matrix = npt.NDArray[np.int64]


@kernel
def find_block(tops: I64, time: int, near: int) -> int:
    """The first block in which starts have come as far as a time, as they do; looked for from one near it."""
    step, low, high = 1, near - 1, near
    while tops[high] < time:
        low = high
        step += step * (high > near + FEW)
        high = min(high + step, len(tops) - 1)
    while low >= 0 and tops[low] >= time:
        high = low
        step *= 2
        low = max(low - step, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if tops[middle] < time:
            low = middle
        else:
            high = middle
    return high


@kernel
def find_named(
    tops: I64, le: I64, re: I64, counts: I32, named_le: I64, named_re: I64, rows: I64, who: I64, since: I64,
    hint: I64, found: I64,
) -> int:  # fmt: skip
    """The first version with the lifetime that each of some retracts names, from a row on; -1 for none.

    ``rows`` are those of the retracts, where the versions are of their own page; else it is empty. Of rows
    out of order only some are looked at. ``hint`` keeps the latest start that was looked for, and its block.
    Gives TOO_MANY where too many rows start together.
    """
    near, latest = hint[0], hint[1]
    for j in range(len(who)):
        w = who[j]
        time = named_le[w]
        found[j] = -1
        if time > tops[len(tops) - 1]:
            continue
        block = near
        if time >= latest and near + FEW < len(tops):
            for k in range(FEW):  # to the end, as a wrong guess takes longer
                block += tops[near + k] < time
        if block == near + FEW or time < latest or near + FEW >= len(tops):
            block = find_block(tops, time, near)
        if time >= latest:
            near, latest = block, time
        stop = rows[w] if len(rows) > 0 else len(le)
        i = max(block * TOGETHER, since[w])
        at = i // TOGETHER
        until = at + MAX_BLOCKS
        while i < stop and (at == block or tops[at - 1] <= time):
            if at == until:
                return TOO_MANY
            end = min(stop, (at + 1) * TOGETHER)
            first = end
            for k in range(end - 1, i - 1, -1):  # to the end, for a wrong guess would wait for memory
                first = k if (le[k] == time) & (re[k] == named_re[w]) & (counts[k] != 0) else first
            if first < end:
                found[j] = first
                break
            i = end
            at += 1
    hint[0], hint[1] = near, latest
    return 0


@kernel
def open_run(
    le: I64, re: I64, re_new: I64, counts: I32, strays: Matrix, named: Matrix, tops: I64, told: I64
) -> None:
    """Counts one version for each insert, and tells of all rows what looking for events asks for.

    ``named`` receives the rows of retracts, their starts, ends and new ends, and the first row in front of
    each that has the lifetime it names (see `find_named`); ``strays`` the rows of inserts that start before
    another row in front of them, their starts and ends (both have room for one more than there are); ``tops``
    the latest start up to each `TOGETHER` rows; ``told`` how many retracts and strays there are, the first
    and the last start, the last end, and whether too many rows start together. An empty ``re_new`` means
    inserts only.
    """
    room = new_room(len(le), told)
    for begin in range(0, len(le), BLOCK):
        open_block(begin, begin + BLOCK, le, re, re_new, counts, strays, named, tops, room, told)


@kernel
def new_room(rows: int, told: I64) -> Matrix:
    """Room for `open_block`, which has told of nothing yet."""
    told[0], told[1], told[2], told[3], told[4], told[5] = 0, 0, INFINITY, MIN_TIME, MIN_TIME, 0
    room = np.zeros((4, min(BLOCK, max(2, rows))), np.int64)
    for i in range(room.shape[1]):
        room[1, i] = i
    room[3, 1] = MIN_TIME
    return room


@kernel
def open_block(
    begin: int, end: int, le: I64, re: I64, re_new: I64, counts: I32, strays: Matrix, named: Matrix,
    tops: I64, room: Matrix, told: I64,
) -> None:  # fmt: skip
    """Does what `open_run` does, with the next rows, while they are in the fastest memory."""
    starts, ends, news, here = le[begin:end], re[begin:end], re_new[begin:end], counts[begin:end]
    course = room[0]
    found, astray, low, high, last = told[0], told[1], told[2], told[3], told[4]
    for i in range(len(starts)):  # slices, so that the compiler sees that no index is below zero
        here[i] = 1
        last = max(last, ends[i])
        low = min(low, starts[i])
    for i in range(len(news)):
        here[i] = news[i] == NO_NEW_END
    gone, out = named[0, found:], strays[0, astray:]
    count, strayed = 0, 0
    for i in range(len(starts)):
        gone[count] = i
        out[strayed] = i
        count += 1 - here[i]
        strayed += here[i] & (starts[i] < high)
        high = max(high, starts[i])
        course[i] = high
    for j in range(count):
        i = gone[j]
        named[0, found + j], named[1, found + j] = begin + i, starts[i]
        named[2, found + j], named[3, found + j] = ends[i], news[i]
    for j in range(strayed):
        i = out[j]
        strays[0, astray + j] = begin + i
        strays[1, astray + j], strays[2, astray + j] = starts[i], ends[i]
    some = tops[begin // TOGETHER : end // TOGETHER]
    for i in range(len(some)):
        some[i] = course[min(i * TOGETHER + TOGETHER, len(starts)) - 1]
    told[0], told[1], told[2], told[3], told[4] = found + count, astray + strayed, low, high, last
    if count > 0 and told[5] == 0:
        mine, known = named[:, found : found + count], tops[: end // TOGETHER]
        told[5] = find_named(
            known, le, re, counts, mine[1], mine[2], mine[0], room[1, :count], room[2], room[3], mine[4]
        )


@kernel
def take_found(
    who: I64, found: I64, same: Mask, counts: I32, since: I64, used: I64, again: I64, left: I64
) -> tuple[int, int, int]:
    """Has retracts take the versions that were found, where payloads are the same and one is still there.

    ``again`` receives those that look on behind, ``left`` those for which nothing was found.
    """
    took, more, gone = 0, 0, 0
    for j in range(len(who)):
        if found[j] < 0:
            left[gone] = who[j]
            gone += 1
        elif same[j] and counts[found[j]] > 0:
            counts[found[j]] -= 1
            used[took] = found[j]
            took += 1
        else:
            since[who[j]] = found[j] + 1
            again[more] = who[j]
            more += 1
    return took, more, gone


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
    where: I64,
    picked: I64,
    whom: I64,
) -> int:
    """The rows that are there and whose lifetime some retract names, and which; gives how many there are.

    ``where`` says where rows have their counts, unless it is empty. Most rows end at the bits, without a
    branch to guess.
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
        if counts[where[i] if len(where) > 0 else i] == 0:
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
def compare_rows(mine: I64, at: I64, theirs: I64, rows: I64, same: Mask) -> None:
    """Keeps the mark of each row whose value equals that of another."""
    for c in range(len(at)):
        same[c] &= mine[at[c]] == theirs[rows[c]]


@kernel
def compare_texts(
    offsets: I32, mine: U8, at: I64, their_offsets: I32, theirs: U8, rows: I64, same: Mask
) -> None:
    """Keeps the mark of each row whose text equals that of another."""
    for c in range(len(at)):
        a, b = offsets[at[c]], their_offsets[rows[c]]
        size = offsets[at[c] + 1] - a
        if not same[c] or their_offsets[rows[c] + 1] - b != size:
            same[c] = False
            continue
        left, right = mine[a : a + size], theirs[b : b + size]
        differ = 0
        for k in range(len(left)):  # to the end, for that takes a few instructions
            differ += left[k] != right[k]
        same[c] = differ == 0


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
