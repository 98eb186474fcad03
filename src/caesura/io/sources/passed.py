"""Which files hold the rows that were read: rows of a folder are counted over its files by name.

A file that is put between those that were read, taken from among them, or written anew with other rows,
moves every row behind it to another number. So how far a folder was read is saved with the files that this
was, each with its size and the time it was written, and compared.

>>> some = PassedFiles()
>>> for name, start in (("a.csv", 0), ("b.csv", 2), ("c.csv", 4)):
...     some.add(name, start, (10, 1))
>>> displaced(some.up_to(3), {"a.csv": (10, 1), "b.csv": (10, 1), "new.csv": (10, 9)})
''
>>> displaced(some.up_to(3), {"a.csv": (10, 1), "aa.csv": (10, 1), "b.csv": (10, 1)})
'files were put before those that were read, or some of these are gone'
>>> displaced(some.up_to(3), {"a.csv": (10, 1), "b.csv": (12, 9)})
"'b.csv' was written anew after it was read"
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from hashlib import blake2b
from itertools import islice

import pyarrow as pa

from caesura.events.content import column_key

FILES, NAMES, STATES, NEWEST = "files", "names", "states", "newest"
BEFORE, BYTES, PART = "before", "bytes", "part"
"""What is known of a log: the states of the files before it, how much was read of it, and a hash of that."""
ROWS, COLUMN = "rows", "column"
BLOCK = 1 << 16
"""So many rows of a table in memory are hashed at a time."""
FileState = tuple[int, int] | None
"""The size of a file and when it was written; None of one that need not stay as it is."""
SHOWN = 3
"""So many files are named at most."""


class PassedFiles:
    """The files that reading has come by, each with the number of its first row."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._hashes: list[int] = []
        self._files: list[tuple[str, FileState]] = []
        self._states: list[tuple[int, int]] = []
        """Per file a hash of the states up to it, and when the newest of them was written."""

    def add(self, name: str, start: int, state: FileState) -> None:
        """The next file."""
        self._starts.append(start)
        self._hashes.append(_chained(self._hashes[-1] if self._hashes else 0, name))
        self._add_state(name, state)

    def set_aside(self) -> None:
        """The file that came last need not stay as it is: none of its rows was read."""
        name, _ = self._files.pop()
        self._states.pop()
        self._add_state(name, None)

    def _add_state(self, name: str, state: FileState) -> None:
        self._states.append(_with_state(self._states[-1] if self._states else (0, 0), name, state))
        self._files.append((name, state))

    def up_to(self, offset: int) -> dict[str, int]:
        """The files that hold the rows before an offset: how many, and hashes of their names and states."""
        count = bisect_left(self._starts, offset)
        if not count:
            return {}
        states, newest = self._states[count - 1]
        return {FILES: count, NAMES: self._hashes[count - 1], STATES: states, NEWEST: newest}

    def before_last(self, offset: int) -> int:
        """A hash of the states of these files but the last."""
        count = bisect_left(self._starts, offset)
        return self._states[count - 2][0] if count > 1 else 0

    def last_up_to(self, offset: int) -> tuple[str, FileState]:
        """The last of these files; without a name where there is none."""
        count = bisect_left(self._starts, offset)
        return self._files[count - 1] if count else ("", None)


class PassedRows:
    """What the first rows of a table in memory hold, column by column, counted on from block to block.

    >>> table, other = pa.table({"id": [7, 8, 9]}), pa.table({"id": [7, 8, 5]})
    >>> PassedRows(table).up_to(2) == PassedRows(other).up_to(2)
    True
    >>> PassedRows(table).differ(PassedRows(other).up_to(3))
    True
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._blocks: dict[str, list[int]] = {}
        """Per column a hash of all blocks up to each."""

    def up_to(self, offset: int) -> dict[str, int]:
        """A hash of each column before an offset."""
        names = self._table.schema.names
        return (
            {f"{COLUMN} {name}": self._of(name, offset) for name in names} | {ROWS: offset} if offset else {}
        )

    def differ(self, passed: Mapping[str, int]) -> bool:
        """Whether rows that were read hold something else now, in the columns that are read still."""
        count = passed.get(ROWS, 0)
        now = self.up_to(count) if count <= self._table.num_rows else {}
        return any(now[name] != passed[name] for name in now if name in passed)

    def _of(self, name: str, offset: int) -> int:
        column, known = self._table.column(name), self._blocks.setdefault(name, [0])
        while len(known) * BLOCK <= offset:
            known.append(_chained(known[-1], column_key(column.slice((len(known) - 1) * BLOCK, BLOCK))))
        whole, rest = divmod(offset, BLOCK)
        return _chained(known[whole], column_key(column.slice(whole * BLOCK, rest))) if rest else known[whole]


def displaced(
    passed: Mapping[str, int], there: Mapping[str, FileState], *, last_may_grow: bool = False
) -> str:
    """Why the first of some files, in reading order, are others than those that were read, if they are.

    What was saved by a version that kept names only says nothing of states.
    """
    names, states = 0, (0, 0)
    first = list(islice(there.items(), passed.get(FILES, 0)))
    for name, _ in first:
        names = _chained(names, name)
    if (len(first), names) != (passed.get(FILES, 0), passed.get(NAMES, 0)):
        return "files were put before those that were read, or some of these are gone"
    first = first[:-1] if last_may_grow else first
    for name, state in first:
        states = _with_state(states, name, state)
    if passed.get(BEFORE if last_may_grow else STATES, states[0]) == states[0]:
        return ""
    newer = [name for name, state in first if state is not None and state[1] > passed.get(NEWEST, 0)]
    if not newer:
        return "a file that was read was written anew, or has another size"
    return written_anew(newer)


def written_anew(names: list[str]) -> str:
    """What is said of files that are others than when they were read.

    >>> written_anew(["a.csv", "b.csv", "c.csv", "d.csv"])
    "'a.csv', 'b.csv', 'c.csv' and 1 more were written anew after they were read"
    """
    shown = ", ".join(f"'{name}'" for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{shown}{more} {'was' if len(names) == 1 else 'were'} written anew after {_it(names)} read"


def names_only(passed: Mapping[str, int]) -> dict[str, int]:
    """What holds also where all files are read once more: which they are, and not what they hold."""
    return {name: at for name, at in passed.items() if name not in (STATES, NEWEST, BEFORE, BYTES, PART)}


def _it(names: list[str]) -> str:
    return "it was" if len(names) == 1 else "they were"


def _with_state(before: tuple[int, int], name: str, state: FileState) -> tuple[int, int]:
    chain, newest = before
    return _chained(chain, f"{name}\0{state}"), newest if state is None else max(newest, state[1])


def _chained(before: int, name: str) -> int:
    return hash_of(before.to_bytes(8, "big") + name.encode())


def small_hash(text: str) -> int:
    """A text, such as the id of a table or topic, as a number that stands among offsets."""
    return hash_of(text.encode())


def hash_of(data: bytes) -> int:
    """Bytes as a number that stands among offsets."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1
