"""Keys to rows of registers: each key is encoded once, and a key that rests gives its row back.

Whole-number keys go through a table of their own, other keys through their 128-bit identity.

>>> slots = KeySlots()
>>> slots.encode([pa.array([7, 9, 7])], 3).tolist()
[0, 1, 0]
>>> slots.keep(np.array([1])); slots.encode([pa.array([7, 9])], 2).tolist()
[1, 0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.events.identity import identity
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable

NONE: Mask = np.zeros(0, np.bool_)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def place_ints(keys: I64, count: int, index: Any, shift: Any) -> None:
    """Fills an empty index with the keys numbered 0 to count."""
    mask = len(index) - 1
    for number in range(count):
        at = keys[number] & mask if shift == 0 else np.int64((np.uint64(keys[number]) * GOLDEN) >> shift)
        while index[at] >= 0:
            at = (at + 1) & mask
        index[at] = number


@kernel
def encode_ints(
    values: Any, skip: Any, lo: int, index: Any, shift: Any, keys: I64, count: int, most: int, numbers: I64
) -> Any:
    """Numbers keys from row lo on; stops when ``most`` are known. Gives (rows done, keys known, probes)."""
    mask = len(index) - 1
    probes = 0
    skips = len(skip) > 0
    for i in range(lo, len(values)):
        if skips and skip[i]:
            numbers[i] = -1
            continue
        key = np.int64(values[i])
        at = key & mask if shift == 0 else np.int64((np.uint64(key) * GOLDEN) >> shift)
        while True:
            number = index[at]
            if number < 0:
                if count >= most:
                    return i, count, probes
                index[at] = count
                keys[count] = key
                numbers[i] = count
                count += 1
                break
            if keys[number] == key:
                numbers[i] = number
                break
            at = (at + 1) & mask
            probes += 1
    return len(values), count, probes


class IntKeys:
    """Whole-number keys to dense numbers; open addressing, rebuilt when keys go.

    Neighbouring numbers lie side by side (their low bits are their place) until that crowds the table:
    then they are scattered.
    """

    def __init__(self) -> None:
        self.count = 0
        self.keys: I64 = np.empty(256, np.int64)
        self.scattered = False
        self._resize(1024)

    def _resize(self, size: int) -> None:
        self.index = np.full(size, -1, np.int32)
        self.shift = np.uint64(65 - size.bit_length() if self.scattered else 0)
        place_ints(self.keys, self.count, self.index, self.shift)

    def encode(self, values: np.ndarray[Any, Any], skip: Mask = NONE) -> I64:
        numbers = np.empty(len(values), np.int64)
        at = 0
        while at < len(values):
            room = min(len(self.keys), len(self.index) // 2)
            before = at
            at, self.count, probes = encode_ints(
                values, skip, at, self.index, self.shift, self.keys, self.count, room, numbers
            )
            if not self.scattered and probes > 2 * (at - before) + 64:
                self.scattered = True
                self._resize(len(self.index))
            if at < len(values):
                self.keys = np.append(self.keys[: self.count], np.empty(self.count + 256, np.int64))
                self._resize(2 * len(self.index))
        return numbers

    def keep(self, kept: I64) -> None:
        self.keys = np.append(self.keys[kept], np.empty(len(kept) + 256, np.int64))
        self.count = len(kept)
        size = 1024
        while size < 4 * self.count:
            size *= 2
        self._resize(size)

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.index.nbytes)


class KeySlots:
    """Key columns to rows; the columns' own values are not kept."""

    def __init__(self) -> None:
        self._ints: IntKeys | None = None
        self._table: KeyTable | None = None

    @property
    def count(self) -> int:
        """How many keys are known."""
        some = self._ints or self._table
        return some.count if some is not None else 0

    def encode(self, columns: Sequence[pa.Array], rows: int) -> I64:
        """The row number of each item's key."""
        return self.numbered(columns, rows)[0]

    def numbered(self, columns: Sequence[pa.Array], rows: int) -> tuple[I64, I64]:
        """The row number of each item's key, and the rows of keys that are new and no whole numbers."""
        whole = len(columns) == 1 and pa.types.is_integer(columns[0].type)
        if whole and self._table is None:
            self._ints = self._ints or IntKeys()
            return self._ints.encode(words(columns[0])), np.zeros(0, np.int64)
        self._table = self._table or KeyTable()
        return self._table.encode(*identity(columns, rows))

    def encode_some(self, columns: Sequence[pa.Array], skip: Mask) -> tuple[I64, pa.RecordBatch | None]:
        """The row number of each item's key, -1 where skipped; and the keys that are new, in order."""
        before = self.count
        whole = len(columns) == 1 and pa.types.is_integer(columns[0].type)
        if whole and self._table is None:
            self._ints = self._ints or IntKeys()
            numbers = self._ints.encode(words(columns[0]), skip)
            fresh = self._ints.keys[before : self._ints.count]
            new = [pa.array(fresh.astype(columns[0].type.to_pandas_dtype()))]
        else:
            own = np.flatnonzero(~skip)
            some = [c.take(pa.array(own)) for c in columns]
            self._table = self._table or KeyTable()
            numbers = np.full(len(skip), -1, np.int64)
            numbers[own], first = self._table.encode(*identity(some, len(own)))
            new = [c.take(pa.array(first)) for c in some]
        if self.count == before:
            return numbers, None
        return numbers, pa.RecordBatch.from_arrays(new, names=[str(i) for i in range(len(new))])

    def whole(self) -> I64:
        """The keys by number, if they are whole numbers."""
        return self._ints.keys[: self._ints.count] if self._ints is not None else np.zeros(0, np.int64)

    def keep(self, kept: I64) -> None:
        """Forgets all keys but these (ascending); they are numbered by position."""
        if self._ints is not None:
            self._ints.keep(kept)
        if self._table is not None:
            self._table.compact(kept)

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in (self._ints, self._table) if t is not None)

    def save(self) -> dict[str, list[int]]:
        """What must survive a restart."""
        if self._ints is not None:
            return {"ints": self._ints.keys[: self._ints.count].tolist()}
        if self._table is not None:
            halves = (self._table.k1, self._table.k2)
            return {f"k{i}": h[: self._table.count].tolist() for i, h in enumerate(halves, 1)}
        return {}

    def load(self, saved: dict[str, list[int]]) -> None:
        """Takes back what `save` gave."""
        self._ints = self._table = None
        if "ints" in saved:
            self._ints = IntKeys()
            self._ints.encode(np.array(saved["ints"], np.int64))
        elif "k1" in saved:
            self._table = KeyTable()
            self._table.encode(np.array(saved["k1"], np.uint64), np.array(saved["k2"], np.uint64))
