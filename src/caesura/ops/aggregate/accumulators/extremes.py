"""Min and max, also when values are taken away again: a bag of the values of each slot.

Values become 64-bit words in their order (NaN last), so that a comparison is one of integers.
Insert-only input keeps one word per slot. Otherwise a slot's distinct values hang in a chain with
their counts, and the chain is walked again only when the extreme itself has gone. Texts and decimals, which
no such word holds, are kept in `leading` and `multiset`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import from_words, words
from caesura.events.identity import LOCAL, identity
from caesura.events.order import is_nested
from caesura.events.rows import RowState
from caesura.events.types import is_bytes, word_type
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, frozen, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, each_once
from caesura.ops.aggregate.accumulators.sums import Fields, Stateless, follow_slots, present

SIGN = np.uint64(1) << np.uint64(63)


def ranked(values: pa.Array) -> I64:
    """Words in the order of the values; NaN is the greatest, -0.0 equals 0.0."""
    word = ranked_as_they_lie(values)
    return word if word.flags.writeable else word.copy()


def ranked_as_they_lie(values: pa.Array) -> I64:
    """The same to read, whole numbers of 64 bits where Arrow has them."""
    t = values.type
    if pa.types.is_floating(t):
        wide = words(values).astype(np.float64) + 0.0
        bits = wide.view(np.int64)
        bits = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
        return np.where(np.isnan(wide), np.int64(0x7FF8000000000000), bits)
    if pa.types.is_uint64(t):
        return (np.ascontiguousarray(words(values)) ^ SIGN).view(np.int64)
    return words(values).astype(np.int64, copy=False)


def unranked(word: I64, valid: np.ndarray[Any, Any], t: pa.DataType) -> pa.Array:
    """The values that have these words."""
    if pa.types.is_floating(t):
        bits = np.where(word < 0, word ^ np.int64(0x7FFFFFFFFFFFFFFF), word)
        return from_words(bits.view(np.float64).astype(word_type(t)), valid, t)
    if pa.types.is_uint64(t):
        return from_words(word.view(np.uint64) ^ SIGN, valid, t)
    return from_words(word.astype(word_type(t), copy=False), valid, t)


def has_words(t: pa.DataType) -> bool:
    """Whether the order of a type fits into 64 bits."""
    return not is_bytes(t) and not pa.types.is_decimal(t) and not is_nested(t)


@kernel
def keep_extremes(at: I64, word: I64, sign: int, seen: I64, best: I64) -> None:
    """The least (sign 1) or greatest (sign -1) word per slot, of inserts only."""
    for i in range(len(at)):
        s = at[i]
        if seen[s] == 0 or (sign > 0 and word[i] < best[s]) or (sign < 0 and word[i] > best[s]):
            best[s] = word[i]
        seen[s] += 1


class Grows(Stateless):
    """The extreme of values that are never taken away: one word per slot."""

    def __init__(self, name: str, kind: str, t: pa.DataType) -> None:
        self.name, self.sign, self.type = name, 1 if kind == "min" else -1, t

    def fields(self) -> Fields:
        return {f"{self.name}_best": np.int64, f"{self.name}_seen": np.int64}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {
            f"{self.name}_best": np.zeros(count, np.int64),
            f"{self.name}_seen": np.zeros(count, np.int64),
        }

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, _, values = present(at, weights, values)
        seen, best = slots.get(f"{self.name}_seen"), slots.get(f"{self.name}_best")
        keep_extremes(at, frozen(ranked_as_they_lie(values)), self.sign, seen, best)

    def merge(self, slots: RowState, at: I64, other: Grows, others: RowState, rows: I64) -> None:
        seen, best = (others.get(f"{other.name}_{what}")[rows] for what in ("seen", "best"))
        some = np.flatnonzero(seen)
        counts = slots.get(f"{self.name}_seen")
        keep_extremes(at[some], best[some], self.sign, counts, slots.get(f"{self.name}_best"))
        add_weights(at[some], seen[some] - 1, counts)

    def value(self, slots: RowState, at: I64) -> pa.Array:
        seen = slots.get(f"{self.name}_seen")[at]
        return unranked(slots.get(f"{self.name}_best")[at], seen > 0, self.type)


@kernel
def chain(slot: I64, first: int, head: I64, follow: I64) -> None:
    """Hangs rows from ``first`` on into the chains of their slots."""
    for row in range(first, len(slot)):
        follow[row] = head[slot[row]]
        head[slot[row]] = row


@kernel
def walk_chains(at: I64, head: I64, follow: I64, n: I64, word: I64, sign: int, best: I64) -> None:
    """The row with the extreme word among the live ones of each slot; -1 where there is none."""
    for i in range(len(at)):
        found = -1
        row = head[at[i]]
        while row >= 0:
            if n[row] > 0:
                if found < 0:
                    found = row
                elif sign > 0:
                    if word[row] < word[found]:
                        found = row
                elif word[row] > word[found]:
                    found = row
            row = follow[row]
        best[at[i]] = found


@kernel
def update_best(at: I64, row: I64, n: I64, word: I64, sign: int, best: I64, stale: I64) -> None:
    """Lets touched rows take the lead of their slot; marks slots whose leader has gone."""
    for i in range(len(at)):
        s = at[i]
        r = row[i]
        if n[r] > 0:
            b = best[s]
            if b < 0 or n[b] <= 0:
                stale[s] = 1
            elif (sign > 0 and word[r] < word[b]) or (sign < 0 and word[r] > word[b]):
                best[s] = r
        elif best[s] == r or best[s] < 0:
            stale[s] = 1


class RetractableExtreme:
    """The extreme of numbers that may be taken away: counted distinct values in chains."""

    def __init__(self, name: str, kind: str, t: pa.DataType) -> None:
        self.name, self.sign, self.type = name, 1 if kind == "min" else -1, t
        self.rows = RowState({"slot": np.int64, "n": np.int64, "word": np.int64})
        self._table = KeyTable()
        self._follow = np.zeros(0, np.int64)
        self._compacted_size = 0

    def fields(self) -> Fields:
        return {f"{self.name}_best": np.int64, f"{self.name}_head": np.int64}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {
            f"{self.name}_best": np.full(count, -1, np.int64),
            f"{self.name}_head": np.full(count, -1, np.int64),
        }

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        word = ranked(values)
        ids = identity([pa.array(word)], len(at), LOCAL)
        row, fresh = self._table.encode(*mixed(ids, at))
        self._append(slots, at[fresh], word[fresh])
        add_weights(row, weights, self.rows.get("n"))
        some = each_once(row)
        self.rows.touch(some)
        self.rows.keep(some, self.rows.get("n")[some] > 0)
        stale = np.zeros(slots.size, np.int64)
        best = slots.get(f"{self.name}_best")
        update_best(at, row, self.rows.get("n"), self.rows.get("word"), self.sign, best, stale)
        self._walk(slots, np.flatnonzero(stale))
        if self.rows.size > 2 * self._compacted_size + 4096:
            self._tidy(slots)

    def _tidy(self, slots: RowState) -> None:
        """Gives back the room of values whose count is at zero."""
        self.rebuild(slots)
        self._compacted_size = self.rows.size

    def _append(self, slots: RowState, at: I64, word: I64) -> None:
        if len(at) == 0:
            return
        fields = {"slot": at, "n": np.zeros(len(at), np.int64), "word": word}
        first = self.rows.append(fields)
        if len(self._follow) < self.rows.size:
            self._follow = np.append(self._follow, np.full(max(64, self.rows.size), -1, np.int64))
        chain(self.rows.get("slot"), first, slots.get(f"{self.name}_head"), self._follow)

    def _walk(self, slots: RowState, stale: I64) -> None:
        if len(stale) == 0:
            return
        head, best = slots.get(f"{self.name}_head"), slots.get(f"{self.name}_best")
        word, n = self.rows.get("word"), self.rows.get("n")
        walk_chains(stale, head, self._follow, n, word, self.sign, best)

    def value(self, slots: RowState, at: I64) -> pa.Array:
        best = slots.get(f"{self.name}_best")[at]
        valid = best >= 0
        rows = np.maximum(best, 0)
        if self.rows.size == 0:
            return pa.nulls(len(at), self.type)
        return unranked(self.rows.get("word")[rows], valid, self.type)

    def free(self, slots: RowState, at: I64) -> None:
        return None

    def compact(self, keep: I64) -> None:
        follow_slots(self.rows, keep)

    def states(self) -> dict[str, RowState]:
        return {"bag": self.rows}

    def rebuild(self, slots: RowState) -> None:
        """Chains, table and leaders anew, from the live rows alone."""
        if self.rows.live < self.rows.size:
            self.rows.compact()
        self._follow = np.full(self.rows.size + 64, -1, np.int64)
        head = slots.get(f"{self.name}_head")
        head[:] = -1
        slots.get(f"{self.name}_best")[:] = -1
        slot = self.rows.get("slot")
        chain(slot, 0, head, self._follow)
        word = self.rows.get("word")
        ids = identity([pa.array(word)], self.rows.size, LOCAL)
        self._table = KeyTable()
        self._table.encode(*mixed(ids, slot))
        self._walk(slots, np.flatnonzero(slots.alive))
