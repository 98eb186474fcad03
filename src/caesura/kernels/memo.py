"""What was found lately, in front of a slower search: whole-number keys to the numbers they got.

A memo may forget at any time, so it is never wrong to clear it; whoever renumbers must. A page is
looked through once: of rows with the same unknown key, only the first is searched for.

>>> memo = Memo()
>>> keys, parts = np.array([7, 8, 7, 8]), np.array([0, 0, 1, 0])
>>> numbers, missed = memo.recall(keys, parts); missed.tolist()
[0, 1, 2]
>>> memo.learn(keys, parts, numbers, missed, np.array([5, 6, 9])); numbers.tolist()
[5, 6, 9, 6]
>>> memo.recall(keys, parts)[0].tolist(), len(memo.recall(keys, parts)[1])
([5, 6, 9, 6], 0)
>>> memo.renumber(np.array([5, 6])); memo.recall(keys, parts)[0].tolist()
[0, 1, -2, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, frozen
from caesura.plain_arrays import plain_numbers

MIN_BITS, MAX_BITS = 8, 13
"""A memo has room for two to the power of so many keys; two that meet push each other out."""
SPREAD, TURN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
NEVER = -1
MAX_SMALL = 1 << 18
"""Keys below this are places in a table."""
SIGNED = (pa.int64(), pa.int32(), pa.int16(), pa.int8())


@kernel
def recall_numbers(keys: I64, parts: I64, known: I64, down: int, numbers: I64, missed: I64) -> int:
    """Numbers the keys that are known; ``missed`` receives the first row of each other key.

    The rest of its rows point to it: -2 for the first that was missed, -3 for the second.
    """
    count = 0
    for i in range(len(keys)):
        at = (np.uint64(keys[i]) * SPREAD + np.uint64(parts[i]) * TURN) >> np.uint64(down)
        if known[at, 2] == NEVER or known[at, 0] != keys[i] or known[at, 1] != parts[i]:
            known[at, 0] = keys[i]
            known[at, 1] = parts[i]
            known[at, 2] = -2 - count
            missed[count] = i
            count += 1
        numbers[i] = known[at, 2]
    return count


@kernel
def learn_numbers(
    keys: I64, parts: I64, missed: I64, found: I64, known: I64, down: int, numbers: I64
) -> None:
    """Writes down what was found for the rows that were missed; a key without number stays unknown."""
    for m in range(len(missed)):
        i = missed[m]
        at = (np.uint64(keys[i]) * SPREAD + np.uint64(parts[i]) * TURN) >> np.uint64(down)
        known[at, 0] = keys[i]
        known[at, 1] = parts[i]
        known[at, 2] = found[m] if found[m] >= 0 else NEVER
    for i in range(len(numbers)):
        if numbers[i] <= -2:
            numbers[i] = found[-2 - numbers[i]]


@kernel
def recall_small(keys: I64, known: I64, numbers: I64, missed: I64) -> int:
    """What `recall_numbers` does, for keys that are places in a table; -1 if one is not."""
    count = 0
    for i in range(len(keys)):
        if keys[i] < 0 or keys[i] >= len(known):
            for m in range(count):
                known[keys[missed[m]]] = NEVER
            return -1
        if known[keys[i]] == NEVER:
            known[keys[i]] = -2 - count
            missed[count] = i
            count += 1
        numbers[i] = known[keys[i]]
    return count


@kernel
def learn_small(keys: I64, missed: I64, found: I64, known: I64, numbers: I64) -> None:
    """What `learn_numbers` does, for keys that are places in a table."""
    for m in range(len(missed)):
        known[keys[missed[m]]] = found[m] if found[m] >= 0 else NEVER
    for i in range(len(numbers)):
        if numbers[i] <= -2:
            numbers[i] = found[-2 - numbers[i]]


class Memo:
    """(key, part) of recent rows, each with its number."""

    def __init__(self) -> None:
        self._bits = MIN_BITS
        self._known: I64 = np.full((1 << MIN_BITS, 3), NEVER, np.int64)

    def recall(self, keys: I64, parts: I64) -> tuple[I64, I64]:
        """The numbers of the rows that are known, and the rows to search for; `learn` must follow."""
        numbers, missed = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        count = recall_numbers(keys, parts, self._known, 64 - self._bits, numbers, missed)
        return numbers, missed[:count]

    def learn(self, keys: I64, parts: I64, numbers: I64, missed: I64, found: I64) -> None:
        """Takes what was found for the rows that were missed, and completes the numbers with it."""
        if len(missed):
            learn_numbers(keys, parts, missed, found, self._known, 64 - self._bits, numbers)
        bits = self._bits
        while bits < MAX_BITS and 8 * len(missed) > 1 << bits:
            bits = min(MAX_BITS, bits + 3)
        if bits > self._bits:
            self._bits = bits
            self._known = np.full((1 << self._bits, 3), NEVER, np.int64)

    @property
    def largest(self) -> bool:
        """Whether it has as many places as it ever has."""
        return self._bits == MAX_BITS

    def renumber(self, keep: I64) -> None:
        """Takes over new numbers: what was ``keep[n]`` is n, and the rest is gone."""
        numbers = self._known[:, 2]
        new = np.full(max(int(keep.max(initial=-1)), int(numbers.max())) + 2, NEVER, np.int64)
        new[keep] = np.arange(len(keep))
        self._known[:, 2] = new[numbers]  # the last place says that NEVER stays so

    def clear(self) -> None:
        """Forgets everything, because numbers have changed."""
        self._known[:, 2] = NEVER


class Register:
    """Numbers of whole-number keys: those of small keys in a table, which forgets none, others in a memo.

    >>> some, keys = Register(), np.array([7, 8, 7])
    >>> numbers, missed = some.recall(keys)
    >>> some.learn(keys, numbers, missed, np.array([0, 1])); some.recall(keys)[0].tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        self._small: I64 = np.full(0, NEVER, np.int64)
        self._memo = Memo()

    def recall(self, keys: I64) -> tuple[I64, I64]:
        """The numbers of the rows that are known, and the rows to search for; `learn` must follow."""
        numbers, missed = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        count = recall_small(frozen(keys), self._small, numbers, missed)
        if count < 0 and self._grow(int(keys.max())):
            count = recall_small(frozen(keys), self._small, numbers, missed)
        if count < 0:
            return self._memo.recall(frozen(keys), np.zeros(len(keys), np.int64))
        return numbers, missed[:count]

    def _grow(self, largest: int) -> bool:
        """Makes room for small keys up to this one; False where there is, or it is none."""
        if not len(self._small) <= largest < MAX_SMALL:
            return False
        grown = np.full(min(MAX_SMALL, max(64, 2 * largest + 2)), NEVER, np.int64)
        grown[: len(self._small)] = self._small
        self._small = grown
        return True

    def learn(self, keys: I64, numbers: I64, missed: I64, found: I64) -> None:
        """Takes what was found for the rows that were missed, and completes the numbers with it."""
        if len(missed) == 0:
            return
        if int(keys.max()) < MAX_SMALL and int(keys.min()) >= 0:
            learn_small(frozen(keys), missed, found, self._small, numbers)
        else:
            self._memo.learn(frozen(keys), np.zeros(len(keys), np.int64), numbers, missed, found)

    def clear(self) -> None:
        """Forgets everything, because numbers have changed."""
        self._small.fill(NEVER)
        self._memo.clear()


def whole_numbers(columns: Sequence[pa.Array], count: int) -> I64 | None:
    """One column of whole numbers without nulls as an array; zeros for no column; None for all else."""
    if not columns:
        return np.zeros(count, np.int64)
    column = columns[0]
    if len(columns) > 1 or column.type not in SIGNED or column.null_count:
        return None
    values: I64 = plain_numbers(column).astype(np.int64, copy=False)
    return values
