"""Which files hold the rows that were read: rows of a folder are counted over its files by name.

A file that is put between those that were read, or taken from among them, moves every row behind it to
another number. So how far a folder was read is saved with the files that this was, and compared.

>>> some = PassedFiles()
>>> some.add("a.csv", 0), some.add("b.csv", 2), some.add("c.csv", 4)
(None, None, None)
>>> differs(some.up_to(3), ["a.csv", "b.csv", "new.csv"])
False
>>> differs(some.up_to(3), ["a.csv", "aa.csv", "b.csv"]), differs(some.up_to(3), ["b.csv"])
(True, True)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import islice

FILES, NAMES = "files", "names"


class PassedFiles:
    """The files that reading has come by, each with the number of its first row."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._hashes: list[int] = []

    def add(self, name: str, start: int) -> None:
        """The next file."""
        self._starts.append(start)
        self._hashes.append(_chained(self._hashes[-1] if self._hashes else 0, name))

    def up_to(self, offset: int) -> dict[str, int]:
        """The files that hold the rows before an offset: how many, and a hash of their names."""
        count = bisect_left(self._starts, offset)
        return {FILES: count, NAMES: self._hashes[count - 1]} if count else {}


def differs(passed: Mapping[str, int], names: Iterable[str]) -> bool:
    """Whether the first of some files, in reading order, are others than those that were read."""
    count, made = 0, 0
    for name in islice(names, passed.get(FILES, 0)):
        count, made = count + 1, _chained(made, name)
    return (count, made) != (passed.get(FILES, 0), passed.get(NAMES, 0))


def _chained(before: int, name: str) -> int:
    digest = blake2b(before.to_bytes(8, "big") + name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
