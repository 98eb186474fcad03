"""The registers of all keys of a pattern: a row for each key, found by a table or by the key's low bits.

Rows are given back when keys rest; rings, the memory of sliding windows, go with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caesura.events.columns import words
from caesura.expr import Expr
from caesura.kernels.hashing import I64
from caesura.qre.compiler.automaton import PatternAutomaton
from caesura.qre.compiler.texts import Texts
from caesura.qre.engine.program import Program
from caesura.qre.kernels.key_slots import KeySlots
from caesura.qre.kernels.register_rows import (
    MAX_ROWS_PER_KEY,
    MIN_ROWS,
    in_use,
    lay_out,
    move_rows,
    moved,
    size_for,
    unclaimed,
)

SHALLOW = 4096
"""Where every key has a ring, it is so deep at first, and deeper only as items come."""
Array = np.ndarray[Any, Any]
F64 = npt.NDArray[np.float64]
NO_RINGS: Array = np.zeros((0, 0, 0), np.float64)


@dataclass
class RegisterState:
    """What is saved of the registers of an automaton."""

    ri: I64
    rf: F64
    rings: Array
    seen: int
    known: list[list[int]] | None
    texts: pa.RecordBatch


class Registers:
    """What threads hold, by key."""

    free = 0
    """The state of a row that is nobody's."""
    base = 0
    """The first row that a key may have."""
    auto: PatternAutomaton
    program: Program
    by: tuple[tuple[str, Expr], ...]
    keys: KeySlots
    rows: I64 | None
    """Per row of registers its key, while rows are found by the keys' low bits."""
    sparse: bool
    ri: I64
    rf: Array
    rings: Array
    seen: int
    _since: int

    def _reserve(self, rows: int) -> None:
        """Registers for this many keys, kept as they are; new keys stand at the start."""
        t = self.program.tables
        old = len(self.ri)
        if old >= rows:
            return
        size = max(rows, 2 * old)
        ri = np.zeros((size, 1 + len(t.registers_i)), np.int64)
        rf = np.zeros((size, len(t.registers_f)), np.float64)
        rings = self.auto.rings
        deep = self.rings.shape[2] if old else min(self.deepest, SHALLOW if self.by else self.deepest)
        shape = (len(rings), size if rings else 0, deep)
        held = np.zeros(shape, np.uint8 if rings and all(r.bits for r in rings) else np.int64)
        if old:
            ri[:old], rf[:old] = self.ri, self.rf
            held[:, : self.rings.shape[1]] = self.rings
        self.ri, self.rf, self.rings = ri, rf, held

    @property
    def deepest(self) -> int:
        """The size of the largest window."""
        return max((r.size for r in self.auto.rings), default=0)

    def _deepen(self, items: int) -> None:
        """Makes rings as deep as so many items need that may be in a window."""
        deep, needed = self.rings.shape[2], min(self.deepest, items + 2)
        if deep >= needed:
            return
        grown = np.zeros((*self.rings.shape[:2], min(self.deepest, max(needed, 2 * deep))), self.rings.dtype)
        grown[:, :, :deep] = self.rings
        self.rings = grown

    def forget_texts(self, *, now: bool = False) -> None:
        """Lets go of texts that no thread holds, if there are many, or to be saved; not within a page."""
        texts = self.auto.inputs.texts
        if not now and not texts.grown:
            return
        names = [name.split("@")[0] for name in self.program.tables.registers_i]
        places = [self.ri[:, 1 + j] for j, name in enumerate(names) if name in self.auto.coded]
        places += [self.rings[j] for j, ring in enumerate(self.auto.rings) if ring.coded]
        texts.sweep(self.ri[:, 0] > 0, places)

    # Rows by the keys' low bits.

    def _may_direct(self, keys: list[pa.Array]) -> bool:
        return len(keys) == 1 and not self.sparse and bool(pa.types.is_integer(keys[0].type))

    def _direct(self, keys: list[pa.Array]) -> Array | None:
        """The key column, if its low bits are to tell the rows."""
        if not self._may_direct(keys):
            return None
        if self.rows is None:
            known = self.keys.whole()
            open_ = np.flatnonzero(self.ri[self.base : self.base + len(known), 0] != self.free)
            if not self._spread(known[open_], open_ + self.base):
                self.sparse = True
                return None
            self._forget_keys()
        own = words(keys[0])
        return own.view(np.int64) if own.dtype == np.uint64 else own

    def shrink(self, rows: int) -> None:
        """Now and then gives memory back, when few keys are open."""
        self._since += rows
        if self.rows is None or self._since < len(self.rows) or len(self.rows) <= MIN_ROWS + 1:
            return
        self._since = 0
        open_ = self._open_rows()
        if MAX_ROWS_PER_KEY * len(open_) < len(self.rows):
            self._spread(self.rows[open_], open_)

    def _open_rows(self) -> I64:
        return np.flatnonzero(self.ri[self.base :, 0] != self.free) + self.base

    def _forget_keys(self) -> None:
        self.keys = KeySlots()

    def _known_keys(self, keys: I64) -> None:
        """Numbers keys anew, in this order."""
        self.keys.encode([pa.array(keys)], len(keys))

    def _widen(self, key: int) -> None:
        """Makes room for a key whose row another has: more rows, or a table of keys from now on."""
        assert self.rows is not None
        if self._doubled():
            return
        open_ = self._open_rows()
        keys = self.rows[open_]
        if self._spread(np.append(keys, key), np.append(open_, -1)):
            return
        self.sparse, self.rows = True, None
        self._forget_keys()
        self._known_keys(keys)
        self._moved(open_, np.arange(len(keys)) + self.base, len(keys) + 1 + self.base)

    def _doubled(self) -> bool:
        """Doubles the rows, if a good part of them is in use and keys stay apart."""
        assert self.rows is not None
        size = len(self.rows) - self.base
        if 4 * in_use(self.ri, self.base, self.free) < size:
            return False
        rows = np.empty(2 * size + self.base, np.int64)
        rows[: self.base] = ~np.arange(-self.base, 0)
        ri, rf = (np.zeros((len(rows), held.shape[1]), held.dtype) for held in (self.ri, self.rf))
        rings = np.zeros((len(self.rings), len(rows), self.rings.shape[2]), self.rings.dtype)
        own = (self.rows, self.ri, self.rf, self.rings)
        if not lay_out(*own, self.base, self.free, rows, ri, rf, rings):
            return False
        self.ri, self.rf, self.rings = ri, rf, rings
        self._follow(self.rows, len(rows))
        self.rows = rows
        return True

    def _follow(self, keys: I64, size: int) -> None:
        """What else names rows, after they were doubled."""

    def _spread(self, keys: I64, old: I64) -> bool:
        """Lays keys' registers (from old rows, -1: none) out by low bits, if that keeps them apart."""
        size = size_for(keys)
        if size is None:
            return False
        new = (keys & (size - 1)) + self.base
        there = old >= 0
        self._moved(old[there], new[there], size + self.base)
        self.rows = unclaimed(size, self.base)
        self.rows[new[there]] = keys[there]
        return True

    def _moved(self, old: I64, new: I64, size: int) -> None:
        """Registers in other rows."""
        first = np.full(size, self.free, np.int64)
        first[new] = self.ri[old, 0]
        self.ri, self.rf = moved(self.ri, old, new, size), moved(self.rf, old, new, size)
        self.ri[:, 0] = first
        if len(self.auto.rings):
            rings = np.zeros((len(self.rings), size, self.rings.shape[2]), self.rings.dtype)
            for ring, fresh in zip(self.rings, rings, strict=True):
                move_rows(ring, old, new, fresh)
            self.rings = rings

    @property
    def real(self) -> Array:
        """The rings' memory as doubles."""
        return self.rings.view(np.float64) if self.rings.dtype == np.int64 else NO_RINGS

    # State.

    def _registers(self, used: int) -> dict[str, Any]:
        """The fields of `RegisterState`, of the rows up to here."""
        self.forget_texts(now=True)
        held = {"ri": self.ri[:used], "rf": self.rf[:used], "rings": self.rings[:, :used]}
        return {**held, "seen": self.seen, "known": self.program.known, "texts": self.auto.inputs.texts.all()}

    def _take_registers(self, state: RegisterState) -> None:
        self.ri, self.rf, self.rings, self.seen = state.ri, state.rf, state.rings, state.seen
        self.auto.inputs.texts = Texts.of(state.texts)
        self.program.known = state.known

    @property
    def _used(self) -> int:
        """Behind this row of registers there is nothing."""
        return len(self.ri) if self.rows is not None else max(1, self.base + self.keys.count)
