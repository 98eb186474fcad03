"""The oracle of row patterns: every way to match from a row, in the order that the standard prefers.

What conditions and measures say is asked of functions; the ways are listed one after the other, and the first
one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from caesura.ops.match.pattern import (
    Alternatives,
    Anchor,
    Concat,
    Excluded,
    Permute,
    Repeat,
    RowPattern,
    RowVariable,
)
from caesura.testing.oracles.aggregates import grouped
from caesura.testing.oracles.rows import Payload, Row, Rows
from caesura.testing.oracles.top import sortable

Path = tuple[tuple[int, str, bool], ...]
"""The rows of a match by number, their variables, and whether they are left out of what is shown."""


@dataclass(frozen=True)
class OracleSearch:
    """The rows of a group in order, and what holds for them."""

    rows: Rows
    holds: Callable[[Rows, Path, int], bool]
    """Whether the last row of a path may be there, in the match of this number."""
    within: int | None = None


def matched(
    rows: Rows,
    keys: Sequence[str],
    pattern: RowPattern,
    holds: Callable[[Rows, Path, int], bool],
    measure: Callable[[Rows, Path, int, int], Payload],
    *,
    shown: str = "one",
    skip: str = "past last row",
    target: Sequence[str] = (),
    within: int | None = None,
    order: Sequence[str] = (),
) -> Rows:
    """The matches of all groups, each as one row or all of its rows; `measure` reads those up to a place."""
    made: Rows = []
    for group in grouped(rows, keys):
        ordered = sorted(group, key=lambda row: _order(row, order))
        search = OracleSearch(ordered, holds, within)
        at, number = 0, 0
        unmatched = set(range(len(ordered)))
        while at < len(ordered):
            path = next(_ways(pattern, search, at, (), number + 1, hidden=False), None)
            if path is None:
                at += 1
                continue
            number += 1
            unmatched -= {row for row, _, _ in path} or {at}
            made += _shown(ordered, path, at, number, keys, measure, shown)
            at = _next(path, at, skip, target)
        if shown == "all with unmatched":
            nothing = dict.fromkeys(measure([], (), 0, 0))
            made += [(*ordered[i][:2], {**ordered[i][2], **nothing}) for i in sorted(unmatched)]
    return made


def _order(row: Row, order: Sequence[str]) -> tuple[Any, ...]:
    values = [row[2][name] for name in order] + list(row[2].values())
    return (row[0], [sortable(value) for value in values], row[1])


def _ways(
    node: RowPattern, search: OracleSearch, start: int, path: Path, number: int, *, hidden: bool
) -> Iterator[Path]:
    """All ways to match a part behind a path, the preferred one first."""
    at = start + len(path)

    def ways(part: RowPattern, path: Path, hidden: bool = hidden) -> Iterator[Path]:
        return _ways(part, search, start, path, number, hidden=hidden)

    match node:
        case RowVariable(name):
            longer = (*path, (at, name, hidden))
            there = at < len(search.rows) and _in_time(search, start, at)
            if there and search.holds(search.rows, longer, number):
                yield longer
        case Anchor(side):
            if at == (0 if side == "^" else len(search.rows)):
                yield path
        case Concat(parts):
            if parts:
                for first in ways(parts[0], path):
                    yield from ways(Concat(parts[1:]), first)
            else:
                yield path
        case Alternatives(parts):
            for part in parts:
                yield from ways(part, path)
        case Permute(parts):
            yield from ways(Alternatives(tuple(Concat(order) for order in permutations(parts))), path)
        case Excluded(part):
            yield from ways(part, path, True)
        case Repeat():
            yield from _rounds(node, path, 0, ways)
        case _:
            yield path


def _rounds(
    node: Repeat, path: Path, done: int, ways: Callable[[RowPattern, Path], Iterator[Path]]
) -> Iterator[Path]:
    if done >= node.low and not node.greedy:
        yield path
    if node.high is None or done < node.high:
        for longer in ways(node.part, path):
            if len(longer) == len(path) and done >= node.low:
                yield longer  # an empty round is the last
            else:
                yield from _rounds(node, longer, done + 1, ways)
    if done >= node.low and node.greedy:
        yield path


def _in_time(search: OracleSearch, start: int, at: int) -> bool:
    return search.within is None or search.rows[at][0] - search.rows[start][0] <= search.within


def _shown(
    rows: Rows,
    path: Path,
    at: int,
    number: int,
    keys: Sequence[str],
    measure: Callable[[Rows, Path, int, int], Payload],
    shown: str,
) -> Rows:
    if shown == "one":
        le, re, payload = rows[path[-1][0] if path else at]
        own = {name: payload[name] for name in keys}
        return [(le, re, {**own, **measure(rows, path, len(path), number)})]
    if not path:
        le, re, payload = rows[at]
        empty: Rows = [(le, re, {**payload, **measure(rows, path, 0, number)})]
        return [] if shown == "all without empty" else empty
    return [
        (*rows[row][:2], {**rows[row][2], **measure(rows, path, upto, number)})
        for upto, (row, _, hidden) in enumerate(path, 1)
        if not hidden
    ]


def _next(path: Path, at: int, skip: str, target: Sequence[str]) -> int:
    found = [row for row, variable, _ in path if variable in target]
    if not path or skip == "next row":
        return at + 1
    if skip == "past last row":
        return path[-1][0] + 1
    place = (found[0] if skip == "first" else found[-1]) if found else at
    return max(place, at + 1)
