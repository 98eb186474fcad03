"""The loops that look through the versions of a page for those that retracts name.

Rows mostly come in the order of time, and of those that do the ones that start at a time lie side by side:
`find_named` goes there. Rows that came out of order are few, or all are asked whether a retract names their
lifetime (`scan_run`).

>>> le, re, counts = np.array([1, 3, 3, 5]), np.array([9, 4, 9, 8]), np.ones(4, np.int32)
>>> named_le, named_re, nothing = np.array([3, 4]), np.array([9, 5]), np.zeros(0, np.int64)
>>> who, since, hint, found = np.arange(2), np.zeros(2, np.int64), np.array([0, 0]), np.empty(2, np.int64)
>>> bool(find_named(le[3:], le, re, counts, named_le, named_re, nothing, who, since, hint, found))
False
>>> found.tolist()  # the first retract may mean row 2, the second names no lifetime that is there
[2, -1]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, U64, Mask

FREE = -1
SIX = np.uint64(6)
LAST_SIX = np.uint64(63)
ONE = np.uint64(1)
HALF = np.uint64(32)
U64One = np.uint64

FEW = 8
"""So many blocks are looked at together, or one by one, before steps grow."""
TOGETHER = 32
"""Of so many rows the latest start up to them is kept."""
MAX_BLOCKS = 32
"""So many times `TOGETHER` rows that start together are looked at for one retract."""
TOO_MANY = -2
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
def first_equal(times: I64, time: int) -> int:
    """Where a time is first, or how many others there are."""
    count = len(times)
    first = count
    for k in range(count):  # to the end, for a wrong guess would wait for memory
        first = min(first, k if times[k] == time else count)
    return first


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
    find_blocks(tops, named_le, who, hint, found)
    for j in range(len(who)):
        if found[j] < 0:
            continue
        w, first = who[j], found[j] * TOGETHER
        time = named_le[w]
        stop = rows[w] if len(rows) > 0 else len(le)
        end = min(stop, first + TOGETHER)
        i = max(first, since[w])
        i += first_equal(le[i:end], time)
        if i < end and re[i] == named_re[w] and counts[i] != 0:
            found[j] = i
            continue
        found[j] = look_on(tops, le, re, counts, time, named_re[w], i, stop)
        if found[j] == TOO_MANY:
            return TOO_MANY
    return 0


@kernel
def look_on(tops: I64, le: I64, re: I64, counts: I32, time: int, until: int, i: int, stop: int) -> int:
    """The first version with a lifetime from a row on, in whose block starts have come as far; or -1.

    Gives TOO_MANY where too many rows start together.
    """
    first = i // TOGETHER
    at = first
    while i < stop and (at == 0 or tops[at - 1] <= time):
        if at == first + MAX_BLOCKS:
            return TOO_MANY
        end = min(stop, (at + 1) * TOGETHER)
        i += first_equal(le[i:end], time)
        if i < end:
            if re[i] == until and counts[i] != 0:
                return i
            i += 1
        at = i // TOGETHER
    return -1


@kernel
def find_blocks(tops: I64, named_le: I64, who: I64, hint: I64, found: I64) -> None:
    """The block in which the versions that some retracts name begin; -1 for none."""
    near, latest = hint[0], hint[1]
    for j in range(len(who)):
        time = named_le[who[j]]
        found[j] = near
        if time >= latest and time <= tops[near]:
            latest = time
            continue
        if time > tops[len(tops) - 1]:
            found[j] = -1
            continue
        block = near
        if time >= latest and near + FEW < len(tops):
            for k in range(FEW):  # to the end, as a wrong guess takes longer
                block += tops[near + k] < time
        if block == near + FEW or time < latest or near + FEW >= len(tops):
            block = find_block(tops, time, near)
        if time >= latest:
            near, latest = block, time
        found[j] = block
    hint[0], hint[1] = near, latest


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
