"""Searching where conditions depend on what is matched so far: FIRST and LAST of variables, aggregates.

A search tries the preferred way first, and goes back where it leads nowhere. What failed once at a step and a
row fails again where the conditions behind it read the same of the match; it is not tried twice. Where time
and the number of the match play no part, that holds for later searches of the group too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caesura.errors import StreamError
from caesura.kernels.hashing import I64, Mask
from caesura.ops.match.pattern import BEGIN, END, ROW, SPLIT
from caesura.ops.match.search import Found, SearchRules, Segments, next_start

STEPS_PER_ROW = 10_000
"""So many steps for each row that it could take are more than a search should need."""


@dataclass(slots=True)
class Matched:
    """A row that was matched, behind others, with what conditions know of the match up to it."""

    before: Matched | None
    row: int
    step: int
    variable: int
    known: object
    place: int = 0


class Conditions(Protocol):
    """What is asked of a row beyond the tests of rows alone."""

    forgets: bool
    """Whether what failed in a search may succeed in the next one."""

    def begin(self, low: int, high: int, number: int) -> None:
        """Before a search in rows of a group, for the match of this number."""

    def take(self, path: Matched | None, at: int, step: int, variable: int) -> Matched | None:
        """The path with one more row; None where the condition of its variable does not hold."""

    def key(self, step: int, at: int, path: Matched | None) -> Hashable | None:
        """What a failure here depends on; None where it is not worth remembering."""


@dataclass
class DependentSearch:
    """Searches the rows of groups, one start after the other."""

    segments: Segments
    rules: SearchRules
    tests: Mask
    conditions: Conditions
    le: I64
    numbers: I64
    """How many matches each group has had before."""

    def __post_init__(self) -> None:
        self._steps = self.rules.code.tolist()
        self._passed = self.tests.tolist()
        self._failed: set[Hashable] = set()

    def found(self) -> Found:
        """All matches of all groups."""
        reach = np.full(len(self.le), -1, np.int64)
        matches: list[tuple[int, int, int]] = []
        row: list[int] = []
        step: list[int] = []
        code = self.rules.code
        for group in range(len(self.segments.low)):
            self._failed.clear()
            at, number = int(self.segments.start[group]), int(self.numbers[group])
            while at < self.segments.high[group]:
                path, reach[at] = self._search(at, group, number + 1)
                if path is None:
                    at += 1
                    continue
                matches.append((group, at, len(row)))
                number += 1
                rows = np.array([one.row for one in path], np.int64)
                variable = np.array([one.variable for one in path], np.int64)
                row += rows.tolist()
                step += [one.step for one in path]
                at = next_start(at, len(rows), rows, variable, 0, self.rules.skip, self.rules.target)
        found = np.array(matches, np.int64).reshape(-1, 3)
        steps = np.array(step, np.int64)
        first = np.append(found[:, 2], len(row))
        return Found(
            found[:, 0], found[:, 1], first, np.array(row, np.int64), code[1][steps], code[3][steps], reach
        )

    def _search(self, start: int, group: int, number: int) -> tuple[list[Matched] | None, int]:
        """The rows of the preferred match, or None; and the furthest row that was looked at."""
        kinds, firsts, seconds, _ = self._steps
        low, high, begin = (
            int(each[group]) for each in (self.segments.low, self.segments.high, self.segments.begin)
        )
        self.conditions.begin(low, high, number)
        if self.rules.within >= 0 or self.conditions.forgets:
            self._failed.clear()
        last, ahead = self._last(start, high), self.rules.ahead
        stack: list[tuple[int, int, Matched | None]] = [(len(kinds) - 1, start, None)]
        tried: list[Hashable] = []
        reach, left = start, STEPS_PER_ROW * (high - start + 1)
        while stack:
            step, at, path = stack.pop()
            left -= 1
            if left < 0:
                raise _endless(high - start)
            key = self.conditions.key(step, at, path)
            if key is not None:
                if key in self._failed:
                    continue
                self._failed.add(key)
                tried.append(key)
            kind = kinds[step]
            if kind == SPLIT:
                stack.append((seconds[step], at, path))
                stack.append((firsts[step], at, path))
            elif kind == ROW:
                reach = max(reach, min(at + ahead, high))
                if at < last and self._passed[at][firsts[step]]:
                    taken = self.conditions.take(path, at, step, firsts[step])
                    if taken is not None:
                        stack.append((seconds[step], at + 1, taken))
            elif kind == BEGIN:
                if at == begin:
                    stack.append((firsts[step], at, path))
            elif kind == END:
                reach = high
                if at == high:
                    stack.append((firsts[step], at, path))
            else:
                self._failed.difference_update(tried)  # those on the way did not fail
                return listed(path), reach
        return None, reach

    def _last(self, start: int, high: int) -> int:
        """Behind the last row that a match from a row may take."""
        if self.rules.within < 0:
            return high
        limit = int(self.le[start]) + self.rules.within
        return start + int(np.searchsorted(self.le[start:high], limit, side="right"))


def listed(path: Matched | None) -> list[Matched]:
    """The rows of a path, the first one first."""
    found = []
    while path is not None:
        found.append(path)
        path = path.before
    return found[::-1]


def merging(steps: list[list[int]]) -> list[bool]:
    """By step, whether several ways lead there."""
    return [
        count > 1
        for count in np.bincount([to for each in followers(steps) for to in each], minlength=len(steps[0]))
    ]


def followers(steps: list[list[int]]) -> list[tuple[int, ...]]:
    """By step, those that may come next."""
    made: list[tuple[int, ...]] = []
    for kind, first, second in zip(*steps[:3], strict=True):
        ways = {SPLIT: (first, second), ROW: (second,), BEGIN: (first,), END: (first,)}
        made.append(ways.get(kind, ()))
    return made


def asked_behind(steps: list[list[int]], asks: dict[int, frozenset[int]]) -> list[frozenset[int]]:
    """By step, all that conditions ask there or behind it, where ``asks`` has it by variable."""
    following = followers(steps)
    found = [
        asks.get(first, frozenset()) if kind == ROW else frozenset[int]()
        for kind, first in zip(steps[0], steps[1], strict=True)
    ]
    before: list[frozenset[int]] = []
    while before != found:
        before = found
        found = [own.union(*(found[to] for to in ways)) for own, ways in zip(found, following, strict=True)]
    return found


def _endless(rows: int) -> StreamError:
    return StreamError(
        f"a search over {rows:,} rows was not done after {STEPS_PER_ROW * (rows + 1):,} steps: "
        "its conditions depend on what is matched, and there are too many ways to match.",
        remedy="Say how long a match may be: WITHIN, or {1,9} for + and *; or ask rows alone, as PREV does.",
    )
