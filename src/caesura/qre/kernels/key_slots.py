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
from caesura.events.identity import LOCAL, identity
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, VALUE, Mask, sip_word
from caesura.kernels.keys import KeyTable

NONE: Mask = np.zeros(0, np.bool_)
NOT: U64 = np.zeros(0, np.uint64)


@kernel
def home(key: Any, scatter: U64, mask: int) -> Any:
    """The place of a key: its low bits, or those of its hash under a secret."""
    if len(scatter) == 0:
        return key & mask
    return np.int64(sip_word(scatter[0], scatter[1], np.uint64(key), VALUE)[0]) & mask


@kernel
def place_ints(keys: I64, count: int, index: Any, scatter: U64) -> None:
    """Fills an empty index with the keys numbered 0 to count."""
    mask = len(index) - 1
    for number in range(count):
        at = home(keys[number], scatter, mask)
        while index[at] >= 0:
            at = (at + 1) & mask
        index[at] = number


@kernel
def encode_ints(
    values: Any, skip: Any, lo: int, index: Any, scatter: U64, keys: I64, count: int, limit: int, numbers: I64
) -> Any:
    """Numbers keys from row lo on; stops when ``limit`` are known, or when low bits crowd the table.

    Gives (rows done, keys known, whether it is crowded).
    """
    mask = len(index) - 1
    probes = 0
    skips = len(skip) > 0
    for i in range(lo, len(values)):
        if skips and skip[i]:
            numbers[i] = -1
            continue
        key = np.int64(values[i])
        if probes > 2 * (i - lo) + 64 and len(scatter) == 0:
            return i, count, True
        at = home(key, scatter, mask)
        while True:
            number = index[at]
            if number < 0:
                if count >= limit:
                    return i, count, False
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
    return len(values), count, False


class IntKeys:
    """Whole-number keys to dense numbers; open addressing, rebuilt when keys go.

    Neighbouring numbers lie side by side (their low bits are their place) until that crowds the table:
    then they are scattered, in a way that nobody who supplies keys can know.
    """

    def __init__(self, expected: int = 0) -> None:
        self.count = 0
        self.keys: I64 = np.empty(expected + 256, np.int64)
        self.scatter = NOT
        self._resize(_room_for(2 * expected))

    def _resize(self, size: int) -> None:
        self.index = np.full(size, -1, np.int32)
        place_ints(self.keys, self.count, self.index, self.scatter)

    def encode(self, values: np.ndarray[Any, Any], skip: Mask = NONE) -> I64:
        numbers = np.empty(len(values), np.int64)
        at = 0
        while at < len(values):
            room = min(len(self.keys), len(self.index) // 2)
            at, self.count, crowded = encode_ints(
                values, skip, at, self.index, self.scatter, self.keys, self.count, room, numbers
            )
            if crowded:
                self.scatter = np.array(LOCAL.start, np.uint64)
                self._resize(len(self.index))
            elif at < len(values):
                self.keys = np.append(self.keys[: self.count], np.empty(self.count + 256, np.int64))
                self._resize(2 * len(self.index))
        return numbers

    def keep(self, numbers: I64) -> None:
        self.keys = np.append(self.keys[numbers], np.empty(len(numbers) + 256, np.int64))
        self.count = len(numbers)
        self._resize(_room_for(4 * self.count))

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.index.nbytes)


def _room_for(places: int) -> int:
    return max(1024, 1 << (places - 1).bit_length())


class KeySlots:
    """Key columns to rows; the columns' own values are not held."""

    def __init__(self) -> None:
        self._ints: IntKeys | None = None
        self._table: KeyTable | None = None
        self._secret = LOCAL.copied()

    @staticmethod
    def of(columns: Sequence[pa.Array]) -> KeySlots:
        """Slots for these keys, which all differ, in this order."""
        made = KeySlots()
        if columns and len(columns[0]):
            if _whole(columns):
                made._ints = IntKeys(len(columns[0]))
            made.encode(columns, len(columns[0]))
        return made

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
        if _whole(columns) and self._table is None:
            self._ints = self._ints or IntKeys()
            return self._ints.encode(words(columns[0])), np.zeros(0, np.int64)
        self._table = self._table or KeyTable()
        return self._table.encode(*identity(columns, rows, self._secret))

    def encode_some(self, columns: Sequence[pa.Array], skip: Mask) -> tuple[I64, pa.RecordBatch | None]:
        """The row number of each item's key, -1 where skipped; and the keys that are new, in order."""
        before = self.count
        if _whole(columns) and self._table is None:
            self._ints = self._ints or IntKeys()
            numbers = self._ints.encode(words(columns[0]), skip)
            fresh = self._ints.keys[before : self._ints.count]
            new = [pa.array(fresh.astype(columns[0].type.to_pandas_dtype()))]
        else:
            own = np.flatnonzero(~skip)
            some = [c.take(pa.array(own)) for c in columns]
            self._table = self._table or KeyTable()
            numbers = np.full(len(skip), -1, np.int64)
            numbers[own], first = self._table.encode(*identity(some, len(own), self._secret))
            new = [c.take(pa.array(first)) for c in some]
        if self.count == before:
            return numbers, None
        return numbers, pa.RecordBatch.from_arrays(new, names=[str(i) for i in range(len(new))])

    def whole(self) -> I64:
        """The keys by number, if they are whole numbers."""
        return self._ints.keys[: self._ints.count] if self._ints is not None else np.zeros(0, np.int64)

    def keep(self, numbers: I64) -> None:
        """Forgets all keys but these (ascending); they are numbered by position."""
        if self._ints is not None:
            self._ints.keep(numbers)
        if self._table is not None:
            self._table.compact(numbers)

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in (self._ints, self._table) if t is not None)


def _whole(columns: Sequence[pa.Array]) -> bool:
    """Whether keys are whole numbers."""
    return len(columns) == 1 and bool(pa.types.is_integer(columns[0].type))
