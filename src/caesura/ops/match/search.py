"""Searching rows for matches: from each start the preferred way first, and back where it leads nowhere.

Where conditions look at rows alone, a step of the program that failed at a row fails there for every search;
it is not tried again, so that all searches of a group take time linear in rows times steps. With a limit on
the time of a match the start matters, and only one search remembers what failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.ops.match.pattern import BEGIN, END, ROW, SPLIT

I32 = npt.NDArray[np.int32]
PAST_LAST, NEXT_ROW, TO_FIRST, TO_LAST = range(4)
"""Where the next search begins."""


class Segments(NamedTuple):
    """Groups of rows in order: from where up to where, the first search of each, and each one's first row."""

    low: I64
    high: I64
    start: I64
    begin: I64
    """Where the group begins; -1 where its first rows are gone."""


class SearchRules(NamedTuple):
    """What a search goes by: the steps, the time of a match, how far rows are read ahead, what follows it."""

    code: I64
    within: int
    """A match takes no longer than this; -1 for no limit."""
    ahead: int
    skip: int
    target: Mask
    """By variable, whether the search after a match begins at one of its rows."""


@dataclass
class Found:
    """Matches in the order in which they were found, and their rows."""

    owner: I64
    begin: I64
    """Where the search of each match began."""
    first: I64
    """Where the rows of each match begin in the three below, and one more where the last ones end."""
    row: I64
    variable: I64
    hidden: I64
    reach: I64
    """By row, the furthest row that the search looked at which began there; -1 where none did."""


@kernel
def next_start(start: int, count: int, row: I64, variable: I64, at: int, skip: int, target: Mask) -> int:
    """Where to go on behind a match whose ``count`` rows stand from ``at`` on."""
    if count == 0 or skip == NEXT_ROW:
        return start + 1
    if skip == PAST_LAST:
        return int(row[at + count - 1]) + 1
    found = -1
    for i in range(at, at + count):
        if target[variable[i]] and (found < 0 or skip == TO_LAST):
            found = int(row[i])
    if found <= start:
        return start + 1
    return found


@kernel
def search_from(
    start: int,
    low: int,
    high: int,
    begin: int,
    code: I64,
    within: int,
    ahead: int,
    tests: Mask,
    le: I64,
    memo: I32,
    out: I64,
) -> None:
    """One search: (furthest row looked at, length or -1, last step) into ``out``.

    The memo has, for each row and step, 0 or two more than the step that led there.
    """
    size = code.shape[1]
    stack = np.empty((64, 3), np.int64)
    depth = 1
    stack[0, 0] = size - 1
    stack[0, 1] = start
    stack[0, 2] = -1
    reach = start
    while depth > 0:
        depth -= 1
        step = stack[depth, 0]
        at = stack[depth, 1]
        cell = (at - low) * size + step
        if memo[cell] != 0:
            continue
        memo[cell] = stack[depth, 2] + 2
        if depth + 2 > len(stack):
            larger = np.empty((2 * len(stack), 3), np.int64)
            larger[:depth] = stack[:depth]
            stack = larger
        kind = code[0, step]
        following = -1
        if kind == SPLIT:
            stack[depth, 0] = code[2, step]
            stack[depth, 1] = at
            stack[depth, 2] = step
            depth += 1
            following = code[1, step]
        elif kind == ROW:
            reach = max(reach, min(at + ahead, high))
            if at < high and tests[at, code[1, step]]:
                apart = le[at] - le[start]
                if within < 0 or 0 <= apart <= within:
                    following = code[2, step]
        elif kind == BEGIN:
            if at == begin:
                following = code[1, step]
        elif kind == END:
            reach = high
            if at == high:
                following = code[1, step]
        else:
            out[0] = reach
            out[1] = at - start
            out[2] = step
            return
        if following >= 0:
            stack[depth, 0] = following
            stack[depth, 1] = at + 1 if kind == ROW else at
            stack[depth, 2] = step
            depth += 1
    out[0] = reach
    out[1] = -1


@kernel
def write_path(start: int, low: int, code: I64, memo: I32, out: I64, row: I64, part: I64, at: int) -> None:
    """Writes the rows of the match that was found, and forgets its steps: they did not fail."""
    size = code.shape[1]
    step = out[2]
    place = start + out[1]
    while True:
        cell = (place - low) * size + step
        before = memo[cell] - 2
        memo[cell] = 0
        if before < 0:
            break
        if code[0, before] == ROW:
            place -= 1
            row[at + place - start] = place
            part[at + place - start] = before
        step = before


@kernel
def find_matches(
    low: I64,
    high: I64,
    first: I64,
    begin: I64,
    code: I64,
    within: int,
    ahead: int,
    skip: int,
    target: Mask,
    tests: Mask,
    le: I64,
    memo: I32,
    found: I64,
    row: I64,
    part: I64,
    variable: I64,
    reach: I64,
    state: I64,
) -> None:
    """All matches of all groups; ``state`` has the group, the next start, matches and rows so far.

    Where there is no room for a match it comes back before it, to be called with more.
    """
    size = code.shape[1]
    out = np.zeros(3, np.int64)
    while state[0] < len(low):
        group = state[0]
        lo = low[group]
        hi = high[group]
        while state[1] < hi:
            start = state[1]
            search_from(start, lo, hi, begin[group], code, within, ahead, tests, le, memo, out)
            count = out[1]
            reach[start] = out[0]
            if count >= 0:
                if state[2] >= len(found) or state[3] + count > len(row):
                    memo[: (hi - lo + 1) * size] = 0
                    return
                write_path(start, lo, code, memo, out, row, part, state[3])
                for i in range(state[3], state[3] + count):
                    variable[i] = code[1, part[i]]
                found[state[2], 0] = group
                found[state[2], 1] = start
                found[state[2], 2] = state[3]
                state[1] = next_start(start, count, row, variable, state[3], skip, target)
                state[2] += 1
                state[3] += count
            else:
                state[1] = start + 1
            if within >= 0:
                memo[(start - lo) * size : (min(out[0] + 1, hi) - lo + 1) * size] = 0
        memo[: (hi - lo + 1) * size] = 0
        state[0] += 1
        if state[0] < len(low):
            state[1] = first[state[0]]


def found_by_rows(segments: Segments, rules: SearchRules, tests: Mask, le: I64) -> Found:
    """The matches of groups whose conditions are known for every row and variable."""
    code, size = rules.code, rules.code.shape[1]
    longest = int((segments.high - segments.low).max(initial=0))
    memo = np.zeros((longest + 1) * size, np.int32)
    reach = np.full(len(le), -1, np.int64)
    state = np.array([0, segments.start[0] if len(segments.start) else 0, 0, 0], np.int64)
    room = len(le) + 16
    search: Any = find_matches
    found = np.empty((room, 3), np.int64)
    row, part, variable = (np.empty(room, np.int64) for _ in range(3))
    while state[0] < len(segments.low):
        search(*segments, *rules, tests, le, memo, found, row, part, variable, reach, state)
        if state[0] < len(segments.low):
            found = np.concatenate([found, np.empty_like(found)])
            row, part, variable = (
                np.concatenate([a, np.empty(max(len(a), longest), np.int64)]) for a in (row, part, variable)
            )
    matches, rows = int(state[2]), int(state[3])
    return Found(
        found[:matches, 0],
        found[:matches, 1],
        np.append(found[:matches, 2], rows),
        row[:rows],
        variable[:rows],
        code[3][part[:rows]],
        reach,
    )
