"""Windows that slide over panes: each pane enters once, leaves once, and no window is summed anew.

The panes of a group hang in a chain, ordered by time. `plan_slide` says what happens to a group's
running values, step by step; each kind of running value then follows that plan in one compiled pass.

     panes      0 1 2 3 4        windows of 3 panes, every 2
     steps      enter 0 1 2, give window 0, leave 0 1, enter 3 4, give window 1 ...

Sums and counts take back what leaves. Extremes cannot: they keep, for every pane of the older part,
the extreme from it to the end of that part, and one extreme for the younger part (two stacks); when
the older part is used up, the younger becomes it. So every pane is looked at twice, however long windows are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64
from caesura.ops.aggregate.accumulators.exact import F64, FULL, I32, SPAN, round_digits
from caesura.ops.aggregate.accumulators.sums import wrap_of
from caesura.punctuation.time import INFINITY, MIN_TIME

ENTER = 0
LEAVE = 1
GIVE = 2
RUNNING = 9
"""The limbs of a running float sum, until one does not fit."""


@kernel
def find_panes(
    le: I64, offset: int, length: int, group: I64, last: I64, pane: I64, at: I64, missed: I64
) -> int:
    """The slot of each point where its pane is the last one its group used.

    ``last`` has (pane, slot) per group; ``missed`` receives the points whose slot must be looked up, and
    ``pane`` the panes of those; -1 - k stands for the slot of the k-th of them.
    """
    misses = 0
    now = 0
    low = 0
    high = 0
    for i in range(len(le)):
        if le[i] < MIN_TIME + offset + length:
            now = le[i] // length + (le[i] % length - offset) // length
            high = low
        elif le[i] - offset < low or le[i] - offset >= high:
            now = (le[i] - offset) // length
            low = now * length
            high = low + length if low <= INFINITY - length else INFINITY
        g = group[i]
        if last[g, 0] != now:
            last[g, 0] = now
            last[g, 1] = -1 - misses
            missed[misses] = i
            pane[misses] = now
            misses += 1
        at[i] = last[g, 1]
    return misses


@kernel
def settle_slots(at: I64, slots: I64, group: I64, last: I64) -> None:
    """Puts the slots that were looked up in the places that wait for them."""
    for i in range(len(at)):
        if at[i] < 0:
            at[i] = slots[-1 - at[i]]
            last[group[i], 1] = at[i]


@kernel
def recall_panes(group: I64, pane: I64, last: I64, at: I64, missed: I64) -> int:
    """The slot of each pane where it is the last one its group used; ``missed`` receives the others."""
    misses = 0
    for i in range(len(group)):
        g = group[i]
        at[i] = last[g, 1]
        missed[misses] = i
        misses += last[g, 0] != pane[i]
    return misses


@kernel
def note_panes(missed: I64, slots: I64, group: I64, pane: I64, at: I64, last: I64) -> None:
    """Puts the slots that were looked up in their places, and notes that their groups used them last."""
    for k in range(len(missed)):
        i = missed[k]
        at[i] = slots[k]
        last[group[i], 0] = pane[i]
        last[group[i], 1] = slots[k]


@kernel
def link_panes(fresh: I64, group: I64, w: I64, ahead: I64, behind: I64, ends: I64) -> None:
    """Hangs new panes into their chains; ``ends`` has (first, next to enter, last) per group."""
    for i in range(len(fresh)):
        r = fresh[i]
        g = group[r]
        before = ends[g, 2]
        after = -1
        while before >= 0 and w[before] > w[r]:
            after = before
            before = -1 if before == ends[g, 0] else behind[before]  # what has left hangs on behind
        behind[r] = before
        ahead[r] = after
        if before >= 0:
            ahead[before] = r
        else:
            ends[g, 0] = r
        if after >= 0:
            behind[after] = r
        else:
            ends[g, 2] = r
        if ends[g, 1] == after:
            ends[g, 1] = r


@kernel
def plan_slide(
    first: int, hop: int, size: int, least: int, due: I64, done: I64, w: I64, ahead: I64, ends: I64,
    kind: I64, who: I64, row: I64, window: I64, limit: int, counts: I64,
) -> int:  # fmt: skip
    """Plans the windows that are due, from group ``first`` on; gives the group to go on with.

    None is before ``least``, which may begin before the first pane that there can be.
    ``counts`` receives how many steps and how many windows were planned; it stops at ``limit`` windows.
    """
    steps = 0
    given = 0
    for g in range(first, len(done)):
        while True:
            front = ends[g, 0]
            cursor = ends[g, 1]
            j = done[g] + 1
            if front == cursor:
                if cursor < 0:
                    break
                j = max(j, least, w[cursor] // hop + (w[cursor] % hop - size) // hop + 1)
            if j > due[g]:
                break
            if given == limit:
                counts[0] = steps
                counts[1] = given
                return g
            begin = MIN_TIME
            follow = (j + 1) * hop if j < INFINITY // hop else INFINITY
            until = follow + (size - hop) if follow <= INFINITY - (size - hop) else INFINITY
            if j > least:
                begin = j * hop
            while front != cursor and w[front] < begin:
                kind[steps] = LEAVE
                who[steps] = g
                row[steps] = front
                steps += 1
                front = ahead[front]
            while cursor >= 0 and w[cursor] < until:
                kind[steps] = ENTER
                who[steps] = g
                row[steps] = cursor
                steps += 1
                cursor = ahead[cursor]
            if front != cursor:
                kind[steps] = GIVE
                who[steps] = g
                row[steps] = front
                steps += 1
                window[given] = j
                given += 1
            done[g] = j
            while front != cursor and w[front] < follow:
                kind[steps] = LEAVE
                who[steps] = g
                row[steps] = front
                steps += 1
                front = ahead[front]
            if front < 0:
                ends[g, 2] = -1
            ends[g, 0] = front
            ends[g, 1] = cursor
    counts[0] = steps
    counts[1] = given
    return len(done)


@kernel
def slide_counts(kind: I64, who: I64, row: I64, number: I64, running: I64, out: I64) -> None:
    """Running counts."""
    given = 0
    for i in range(len(kind)):
        if kind[i] == ENTER:
            running[who[i]] += number[row[i]]
        elif kind[i] == LEAVE:
            running[who[i]] -= number[row[i]]
        else:
            out[given] = running[who[i]]
            given += 1


@kernel
def slide_wide(
    kind: I64, who: I64, row: I64, low: U64, high: I64, wraps: I64, r_low: U64, r_high: I64, r_wraps: I64,
    o_low: U64, o_high: I64, o_wraps: I64,
) -> None:  # fmt: skip
    """Running 128-bit sums; how often they have wrapped is kept where ``r_wraps`` has room for it."""
    given = 0
    may_wrap = len(r_wraps) > 0
    for i in range(len(kind)):
        g = who[i]
        r = row[i]
        if kind[i] == ENTER:
            before = r_low[g]
            was = r_high[g]
            r_low[g] = before + low[r]
            r_high[g] += high[r]
            if r_low[g] < before:
                r_high[g] += 1
            if may_wrap:
                r_wraps[g] += wrap_of(was, high[r], r_high[g]) + (wraps[r] if len(wraps) else 0)
        elif kind[i] == LEAVE:
            before = r_low[g]
            was = r_high[g]
            r_low[g] = before - low[r]
            r_high[g] -= high[r]
            if r_low[g] > before:
                r_high[g] -= 1
            if may_wrap:
                r_wraps[g] += wrap_of(was, ~high[r], r_high[g]) - (wraps[r] if len(wraps) else 0)
        else:
            o_low[given] = r_low[g]
            o_high[given] = r_high[g]
            if may_wrap:
                o_wraps[given] = r_wraps[g]
            given += 1


@kernel
def slide_floats(
    kind: I64, who: I64, row: I64, at: I64, limbs: I64, base: I32, full: I64, wide: I64, running: I64,
    r_base: I32, out: F64,
) -> bool:  # fmt: skip
    """Running exact float sums, rounded where they are given; false at a pane that needs more limbs.

    ``at`` holds the next step and the windows given so far, so that it can go on.
    """
    width = running.shape[1]
    some_full = len(wide) > 0
    digits = np.zeros(width + 1, np.int64)
    for i in range(at[0], len(kind)):
        g = who[i]
        r = row[i]
        if kind[i] == GIVE:
            for k in range(width):
                digits[k] = running[g, k]
            out[at[1]] = round_digits(digits, max(0, r_base[g]))
            at[1] += 1
            continue
        sign = 1 if kind[i] == ENTER else -1
        if some_full and full[r] >= 0:
            if width < FULL:
                at[0] = i
                return False
            for k in range(FULL):
                running[g, k] += sign * wide[full[r], k]
        elif base[r] >= 0:
            if r_base[g] < 0:
                r_base[g] = 0 if width == FULL else max(0, min(base[r] - 2, FULL - width))
            place = base[r] - r_base[g]
            if place < 0 or place + SPAN > width:
                at[0] = i
                return False
            for k in range(SPAN):
                running[g, place + k] += sign * limbs[r, k]
    at[0] = len(kind)
    return True


@kernel
def slide_odd(kind: I64, who: I64, row: I64, odd: I64, running: I64, out: F64) -> None:
    """Lets NaN and infinities in a window take the place of its sum."""
    given = 0
    for i in range(len(kind)):
        g = who[i]
        if kind[i] == GIVE:
            if running[g, 0] > 0 or (running[g, 1] > 0 and running[g, 2] > 0):
                out[given] = np.nan
            elif running[g, 1] > 0:
                out[given] = np.inf
            elif running[g, 2] > 0:
                out[given] = -np.inf
            given += 1
            continue
        sign = 1 if kind[i] == ENTER else -1
        for k in range(3):
            running[g, k] += sign * odd[row[i], k]


@kernel
def slide_extremes(
    kind: I64, who: I64, row: I64, best: I64, seen: I64, w: I64, behind: I64, least: bool, none: int,
    front: I64, back: I64, last: I64, flip: I64, out: I64,
) -> None:  # fmt: skip
    """Running extremes by two stacks: ``last`` pane entered, ``flip`` where the younger part begins."""
    given = 0
    for i in range(len(kind)):
        g = who[i]
        r = row[i]
        if kind[i] == ENTER:
            if seen[r] > 0 and ((best[r] < back[g]) == least) and best[r] != back[g]:
                back[g] = best[r]
            last[g] = r
        elif kind[i] == GIVE:
            if w[r] >= flip[g]:  # the older part is used up
                pane = last[g]
                flip[g] = w[pane] + 1
                back[g] = none
                found = none
                while True:
                    if seen[pane] > 0 and ((best[pane] < found) == least) and best[pane] != found:
                        found = best[pane]
                    front[pane] = found
                    if pane == r:
                        break
                    pane = behind[pane]
            out[given] = front[r]
            if ((back[g] < front[r]) == least) and back[g] != front[r]:
                out[given] = back[g]
            given += 1


def renumbered(places: I64, new: I64) -> I64:
    """Row numbers after a compaction; -1 stays, and what is gone becomes -1."""
    return np.where(places >= 0, new[np.maximum(places, 0)], -1)


def resized(array: Any, count: int, fill: Any) -> Any:
    """An array with room for so many groups."""
    if len(array) >= count:
        return array
    more = np.full((max(count, 2 * len(array)) - len(array), *array.shape[1:]), fill, array.dtype)
    return np.concatenate([array, more])
