"""The first bytes of a file, as if it ended there; and what tells that a file still begins with them.

>>> import tempfile
>>> log = Place.of(tempfile.mkdtemp()) / "clicks.csv"
>>> log.put(b"t,id\\n1,7\\n2,8")
>>> part = FirstPart(log.storage, log.path, length=whole_lines(log, log.size))
>>> part.size, part.open().read()
(9, b't,id\\n1,7\\n')
>>> known = part_of(log, 9)
>>> log.put(b"t,id\\n1,7\\n2,80\\n3,9\\n")
>>> part_of(log, 9) == known
True
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from caesura.io.places import Place
from caesura.io.places.storage import StoredEntry
from caesura.io.sources.passed import BYTES, PART, hash_of

BLOCK = 1 << 16
"""So many bytes are read at a time, and compared at each end of what was read."""


@dataclass(frozen=True)
class FirstPart(Place):
    """A file of which so many bytes are there, whatever else has come behind them."""

    length: int

    def entry(self) -> StoredEntry | None:
        found = super().entry()
        return None if found is None else replace(found, size=min(found.size, self.length))

    def open(self) -> Any:
        return io.BufferedReader(FirstBytes(_opened(self), self.length), BLOCK)


class FirstBytes(io.RawIOBase):
    """A file that ends after so many bytes."""

    def __init__(self, file: Any, length: int) -> None:
        self._file, self._left = file, length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._file.readinto(memoryview(buffer)[: self._left]))
        self._left -= count
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def may_grow(name: str) -> bool:
    """Whether a file may be appended to: what is packed is written once."""
    return not name.endswith(".gz")


def whole_lines(file: Place, size: int) -> int:
    """How many of its first bytes are whole lines."""
    with _opened(file) as opened:
        end = size
        while end:
            start = max(0, end - BLOCK)
            opened.seek(start)
            newline = opened.read(end - start).rfind(b"\n")
            if newline >= 0:
                return int(start + newline + 1)
            end = start
    return 0


def part_of(file: Place, length: int) -> dict[str, int]:
    """How many bytes of a file were read, and a hash of them, or of both ends where they are many."""
    with _opened(file) as opened:
        begin = opened.read(min(length, BLOCK))
        opened.seek(max(0, length - BLOCK))
        end = opened.read(length - max(0, length - BLOCK))
    return {BYTES: length, PART: hash_of(length.to_bytes(8, "big") + begin + end)}


def lines_of(file: Place, size: int) -> dict[str, int]:
    """The same of a file of which all was read; nothing of one that ends within a line."""
    return part_of(file, size) if may_grow(file.name) and whole_lines(file, size) == size else {}


def begins_with(file: Place, known: Mapping[str, int]) -> bool:
    """Whether a file still begins with what was read of it."""
    length = known[BYTES]
    return file.size >= length and part_of(file, length)[PART] == known[PART]


def _opened(file: Place) -> Any:
    """A file of bytes, wherever it lies."""
    return file.storage.open(file.path) if file.local is None else file.local.open("rb")
