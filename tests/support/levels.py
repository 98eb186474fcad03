"""The levels of consistency by the letter: every prefix is tried.

>>> a, b = CausedRow("ak", ("right", 1)), CausedRow("bk", ("right", 1))
>>> update_complete([a, b], []), update_complete([a], [b])
(True, False)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

Channel = str
Prefix = dict[Channel, int]
Query = Callable[[Mapping[Channel, Sequence[Any]]], Sequence[Hashable]]
"""From the events of each channel to the result, from scratch."""


@dataclass(frozen=True)
class CausedRow:
    """A row of the output, and the input event that set it off: its channel, and its number there from 1."""

    row: Hashable
    active: tuple[Channel, int]


def prefixes(lengths: Mapping[Channel, int]) -> Iterator[Prefix]:
    """Every way to take a prefix of every channel."""
    for ends in product(*(range(n + 1) for n in lengths.values())):
        yield dict(zip(lengths, ends, strict=True))


def update_complete(before: Sequence[CausedRow], after: Sequence[CausedRow]) -> bool:
    """Definition 1: no event that set off a row of the output sets off another one later."""
    return not {d.active for d in before} & {d.active for d in after}


def prefix_update_complete(
    before: Sequence[CausedRow], after: Sequence[CausedRow], lengths: Mapping[Channel, int]
) -> Prefix | None:
    """Definition 2: the output is all, and only, what this prefix's events set off; None for no prefix."""
    for prefix in prefixes(lengths):
        of_prefix = [d for d in (*before, *after) if d.active[1] <= prefix[d.active[0]]]
        if Counter(of_prefix) == Counter(before):
            return prefix
    return None


def prefix_consistent(
    state: Sequence[Hashable], given: Mapping[Channel, Sequence[Any]], query: Query
) -> Prefix | None:
    """Definition 3: the output is the query's on this prefix; None for no prefix."""
    for prefix in prefixes({channel: len(events) for channel, events in given.items()}):
        if Counter(query({c: given[c][:n] for c, n in prefix.items()})) == Counter(state):
            return prefix
    return None


def synchronised(
    state: Sequence[Hashable],
    given: Mapping[Channel, Sequence[Any]],
    query: Query,
    time: Callable[[Any], int],
) -> int | None:
    """Definition 4: the output is the query's on what each channel has before this time t; None for no t."""
    times = sorted({time(e) for events in given.values() for e in events})
    for t in [*times, *(times[-1:] and [times[-1] + 1])]:
        cut = {c: [e for e in events if time(e) < t] for c, events in given.items()}
        whole = all(cut[c] == list(given[c][: len(cut[c])]) for c in given)
        if whole and Counter(query(cut)) == Counter(state):
            return t
    return None
