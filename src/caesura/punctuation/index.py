"""Patterns kept so that those which may meet a given one are found without looking at all.

A pattern that fixes some payload attribute to one value is filed under that value; the rest are few, since
promises coalesce, and are always looked at. Iteration follows insertion, never a hash.

>>> index = PatternIndex()
>>> index.add(Pattern(id=1)); index.add(Pattern(id=2))
>>> [str(p) for p in index.near(Pattern(id=2, speed=3))]
['id = 2']
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from caesura.punctuation.pattern import Items, Pattern
from caesura.punctuation.time import TIME

_Key = tuple[str, Items]


class PatternIndex:
    """A set of patterns, no two of which differ in one attribute only."""

    def __init__(self) -> None:
        self._all: dict[Pattern, None] = {}
        self._loose: dict[Pattern, None] = {}
        self._filed: dict[str, dict[tuple[str, Any], dict[Pattern, None]]] = {}
        self._partners: dict[_Key, Pattern] = {}
        self._on_one = 0
        """How many constrain one attribute only."""

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Pattern]:
        return iter(self._all)

    @property
    def each_on_one(self) -> bool:
        """Whether each constrains one attribute only."""
        return self._on_one == len(self._all)

    def add(self, pattern: Pattern) -> None:
        """Keep a pattern."""
        self._on_one += len(pattern.items()) == 1 and pattern not in self._all
        self._all[pattern] = None
        self._drawer(pattern)[pattern] = None
        for key in _keys(pattern):
            self._partners[key] = pattern

    def discard(self, pattern: Pattern) -> None:
        """Forget a pattern that is kept."""
        del self._all[pattern]
        self._on_one -= len(pattern.items()) == 1
        drawer = self._drawer(pattern)
        del drawer[pattern]
        anchor = _anchor(pattern)
        if anchor is not None and not drawer:
            del self._filed[anchor[0]][anchor[1]]
        for key in _keys(pattern):
            del self._partners[key]

    def partner(self, pattern: Pattern) -> tuple[str, Pattern] | None:
        """A kept pattern that differs in one attribute only, and which one that is."""
        for key in _keys(pattern):
            found = self._partners.get(key)
            if found is not None:
                return key[0], found
        return None

    def alone(self, name: str) -> Pattern | None:
        """The kept pattern that constrains this attribute only; there is one at most."""
        return self._partners.get((name, ()))

    def near(self, pattern: Pattern) -> Iterator[Pattern]:
        """The kept patterns that may share an item with this one (and perhaps some that do not)."""
        yield from list(self._loose)
        for name, drawers in self._filed.items():
            values = pattern[name]
            if values.is_point:
                yield from list(drawers.get((values.kind, values.point), ()))
                continue
            members = values.members(len(drawers))
            some = (
                drawers if members is None else [(values.kind if m is not None else "", m) for m in members]
            )
            yield from [kept for at in some for kept in drawers.get(at, ())]

    def _drawer(self, pattern: Pattern) -> dict[Pattern, None]:
        anchor = _anchor(pattern)
        if anchor is None:
            return self._loose
        return self._filed.setdefault(anchor[0], {}).setdefault(anchor[1], {})


def _keys(pattern: Pattern) -> Iterator[_Key]:
    items = pattern.items()
    for at, (name, _) in enumerate(items):
        yield name, items[:at] + items[at + 1 :]


def _anchor(pattern: Pattern) -> tuple[str, tuple[str, Any]] | None:
    for name, values in pattern.items():
        if name != TIME and values.is_point:
            return name, (values.kind, values.point)
    return None
