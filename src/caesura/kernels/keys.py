"""One persistent hash table from 128-bit identities to dense numbers.

Numbers are given in order of first appearance, so arrays indexed by them stay dense; ``compact``
renumbers when keys die. The table is open addressing with linear probing; it lives as long as its
operator, so a key is encoded once, not once per page.

>>> import numpy as np
>>> table = KeyTable()
>>> h = np.array([5, 9, 5], np.uint64)
>>> table.encode(h, h)[0].tolist()
[0, 1, 0]
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64

I32 = np.ndarray[tuple[int], np.dtype[np.int32]]


@kernel
def place_keys(k1: U64, count: int, index: I32) -> None:
    """Fills an empty index with the keys numbered 0 to count."""
    mask = np.uint64(len(index) - 1)
    for number in range(count):
        at = k1[number] & mask
        while index[at] >= 0:
            at = (at + np.uint64(1)) & mask
        index[at] = number


@kernel
def encode_keys(h1: U64, h2: U64, index: I32, k1: U64, k2: U64, count: int, numbers: I64, fresh: I64) -> int:
    """Numbers every identity; ``fresh`` receives the rows that brought a new one."""
    mask = np.uint64(len(index) - 1)
    start = count
    for i in range(len(h1)):
        a = h1[i]
        b = h2[i]
        at = a & mask
        while True:
            number = index[at]
            if number < 0:
                index[at] = count
                k1[count] = a
                k2[count] = b
                fresh[count - start] = i
                numbers[i] = count
                count += 1
                break
            if k1[number] == a and k2[number] == b:
                numbers[i] = number
                break
            at = (at + np.uint64(1)) & mask
    return count


@kernel
def find_keys(h1: U64, h2: U64, index: I32, k1: U64, k2: U64, numbers: I64) -> None:
    """Numbers the identities that are known; -1 for the others."""
    mask = np.uint64(len(index) - 1)
    for i in range(len(h1)):
        at = h1[i] & mask
        numbers[i] = -1
        while index[at] >= 0:
            number = index[at]
            if k1[number] == h1[i] and k2[number] == h2[i]:
                numbers[i] = number
                break
            at = (at + np.uint64(1)) & mask


class KeyTable:
    """Identities to dense numbers, kept between pages."""

    def __init__(self) -> None:
        self.count = 0
        self.k1: U64 = np.empty(64, np.uint64)
        self.k2: U64 = np.empty(64, np.uint64)
        self._index: I32 = np.full(256, -1, np.int32)

    def encode(self, h1: U64, h2: U64) -> tuple[I64, I64]:
        """The number of each row's key, and the rows that brought new keys, in number order."""
        n = len(h1)
        self._reserve(n)
        numbers = np.empty(n, np.int64)
        fresh = np.empty(n, np.int64)
        before = self.count
        self.count = int(encode_keys(h1, h2, self._index, self.k1, self.k2, before, numbers, fresh))
        return numbers, fresh[: self.count - before]

    def find(self, h1: U64, h2: U64) -> I64:
        """The number of each row's key, or -1; adds nothing."""
        numbers = np.empty(len(h1), np.int64)
        find_keys(h1, h2, self._index, self.k1, self.k2, numbers)
        return numbers

    def since(self, first: int) -> tuple[U64, U64]:
        """The halves of the keys from this number on."""
        return self.k1[first : self.count], self.k2[first : self.count]

    def compact(self, keep: I64) -> None:
        """Forgets all keys but these (ascending); they are renumbered by position."""
        self.k1, self.k2 = (_roomy(half[keep], len(keep) + 64) for half in (self.k1, self.k2))
        self.count = len(keep)
        self._rebuild(self.count)

    def _reserve(self, more: int) -> None:
        wanted = self.count + more
        if wanted > len(self.k1):
            size = max(wanted, 2 * len(self.k1))
            self.k1, self.k2 = (_roomy(half[: self.count], size) for half in (self.k1, self.k2))
        if 2 * wanted > len(self._index):
            self._rebuild(wanted)

    def _rebuild(self, wanted: int) -> None:
        size = 256
        while size < 3 * wanted:
            size *= 2
        self._index = np.full(size, -1, np.int32)
        place_keys(self.k1, self.count, self._index)

    @property
    def nbytes(self) -> int:
        return self.k1.nbytes + self.k2.nbytes + self._index.nbytes


def _roomy(values: U64, size: int) -> U64:
    """The values in memory for so many; what lies behind them is not touched."""
    room = np.empty(size, np.uint64)
    room[: len(values)] = values
    return room
