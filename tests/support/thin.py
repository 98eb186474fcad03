"""Which of many drawn cases run in `make test`: every value of a parameter, as far as the share goes.

A search that goes through all its cases takes minutes; ``@pytest.mark.thin(4)`` keeps one in four.
`make soak` runs all of them, and so does naming a test (``file::test`` or ``-k``) or ``--whole``.
`make quick` (``--quick``) takes one test in four, with one case.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path

import pytest

LEAST = 3
"""So many cases a search keeps whatever its share."""


def thinned(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """What runs and what is left to the long form, each in the order of collection."""
    searches: dict[tuple[str, int], dict[str, Mapping[str, str]]] = defaultdict(dict)
    for item in items:
        marker = item.get_closest_marker("thin")
        if marker and isinstance(item, pytest.Function):
            values = {name: str(value) for name, value in item.callspec.params.items()}
            searches[item.nodeid.partition("[")[0], *marker.args][item.nodeid] = values
    left = {name for (_, share), cases in searches.items() for name in cases.keys() - kept(cases, share)}
    return [i for i in items if i.nodeid not in left], [i for i in items if i.nodeid in left]


def kept(cases: Mapping[str, Mapping[str, str]], share: int) -> set[str]:
    """One in so many: first those with a value not seen yet, of parameters whose values all have room."""
    room = max(LEAST, -(-len(cases) // share))
    drawn = sorted(cases, key=_digest)
    values: dict[str, set[str]] = defaultdict(set)
    for given in cases.values():
        for parameter, value in given.items():
            values[parameter].add(value)
    unseen = {(p, v) for p, all_of_it in values.items() if len(all_of_it) <= room for v in all_of_it}
    first: list[str] = []
    for name in drawn:
        if shown := unseen & set(cases[name].items()):
            unseen -= shown
            first.append(name)
    others = [name for name in drawn if name not in first]
    return {*first, *others[: max(0, room - len(first))]}


ONE_IN = 4
"""Of so many tests `make quick` runs one, and of its cases one."""
STARTS = re.compile(r"^import subprocess|pytester", re.MULTILINE)


def quickened(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """A cross-section of all rooms: no test that is marked slow, none of a file that starts processes."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("slow") and not _starts_processes(item.path):
            cases[item.nodeid.partition("[")[0]].append(item)
    drawn = [name for name in cases if _digest(name)[0] % ONE_IN == 0]
    return [min(cases[name], key=lambda item: _digest(item.nodeid)) for name in drawn]


@cache
def _starts_processes(file: Path) -> bool:
    return bool(STARTS.search(file.read_text()))


def _digest(name: str) -> bytes:
    return blake2b(name.encode()).digest()
