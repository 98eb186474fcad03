"""A compiled query at work: pages in, the rows at which it answers and the values out.

The table-driven kernel runs any query; a specialised kernel of the same layout may take over at any
page, since both read and write the same registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import ColumnStore, words
from caesura.expr import Expr
from caesura.kernels.hashing import I64, Mask
from caesura.qre.automaton import Automaton, automaton
from caesura.qre.bytecode import Tables, tables
from caesura.qre.columns import PageColumns, Reader, null_key
from caesura.qre.generation import Form, Generated, generated
from caesura.qre.letters import Refinement
from caesura.qre.packing import column_of, packed, unpacked
from caesura.qre.query import Partition, Query
from caesura.qre.rows import LEAST, SPARSE, in_use, lay_out, move_rows, moved, size_for, unclaimed
from caesura.qre.slots import KeySlots
from caesura.qre.table_kernel import run_tables
from caesura.qre.types import ValueType

CHUNK = 32_768
HOT = 1_000_000
MOST_KNOWN = 50_000
SHALLOW = 4096
"""Where every key has a ring, it is so deep at first, and deeper only as items come."""
Array = np.ndarray[Any, Any]
NOTHING: I64 = np.zeros(0, np.int64)
NO_LOG: I64 = np.zeros((2, 4), np.int64)
NO_RINGS: Array = np.zeros((0, 0, 0), np.float64)
NO_FLOATS: Array = np.zeros(0, np.float64)
_ZEROS = np.zeros(CHUNK, np.int64)


@dataclass
class Answers:
    """At which rows a query answered, and what."""

    rows: I64
    values: pa.Array


class Stage:
    """One pattern, for all keys of a partition or for the whole stream."""

    free = 0
    """The state of a row that is nobody's."""
    base = 0
    """The first row that a key may have."""

    def __init__(self, query: Query, *, kernel: str = "auto") -> None:
        assert query.items is not None
        self.query = query
        self.by: tuple[tuple[str, Expr], ...] = query.by if isinstance(query, Partition) else ()
        body = query.body if isinstance(query, Partition) else query
        self.auto: Automaton = self._automaton(body)
        only = query.only if isinstance(query, Partition) else None
        self.once = int(not query.again) if isinstance(query, Partition) else 2
        self._only = None if only is None else self.auto.inputs.truth(only)
        self.tables: Tables = tables(self.auto)
        self.reader = Reader(query.items)
        letters = self.auto.alphabet
        self.refinement = Refinement([m.truth for m in letters.minterms], len(letters.exprs))
        self.keys = KeySlots()
        self.types: list[pa.DataType] = []
        """The types of the keys' columns, once there is a page."""
        self.named: ColumnStore | None = None
        """The keys by number, where they are no whole numbers."""
        self.kernel = kernel
        self.seen = 0
        self._open = 0
        self.left = 0
        """How many items led out of the language."""
        self.work: I64 = np.zeros(2, np.int64)
        """The most instructions that the table-driven kernel ran for one item, and the row it reached."""
        self.gone: I64 = NOTHING
        """The rows of the last page at which they did."""
        self.rows: I64 | None = None
        """Per row of registers its key, while rows are found by the keys' low bits."""
        self.sparse = False
        self._since = 0
        self._special: Generated | None = None
        self.ri: I64 = np.zeros((0, 1), np.int64)
        self.rf: Array = np.zeros((0, 0), np.float64)
        self.rings: Array = np.zeros((0, 0, 0), np.int64)
        self._reserve(1)
        self._scratch()

    def _automaton(self, body: Query) -> Automaton:
        return automaton(body)[0]

    def _scratch(self) -> None:
        """Places for what a step works out, behind the constants."""
        self.si = np.zeros(self.tables.scratch + 2, np.int64)
        self.sf = np.zeros(self.tables.scratch + 2, np.float64)
        self.si[: len(self.tables.consts_i)] = self.tables.consts_i
        self.sf[: len(self.tables.consts_f)] = self.tables.consts_f

    # States that are made as they are needed.

    def _expand(self, state: int) -> None:
        """Makes a state known to the kernel."""
        self.auto.making.expand(state)
        self.tables.grow(self.auto)
        self._scratch()

    @property
    def known(self) -> list[list[int]] | None:
        """The states by number, where numbers depend on the stream."""
        return [sorted(s.positions) for s in self.auto.states] if self.auto.grows else None

    @known.setter
    def known(self, states: list[list[int]] | None) -> None:
        if states is not None:
            self.auto.making.begin([frozenset(s) for s in states])
            self.tables = tables(self.auto)
            self._expand(0)

    def _forget_states(self) -> None:
        """Numbers anew the states that keys are in, once there are very many."""
        if not self.auto.grows or len(self.auto.states) <= MOST_KNOWN:
            return
        states = self.auto.states
        used = np.unique(np.append([0, 1], self.ri[:, 0]))
        used = used[used >= 0]
        again = [sorted(states[number].positions) for number in used.tolist()]
        live = self.ri[:, 0] >= 0
        self.ri[live, 0] = np.searchsorted(used, self.ri[live, 0])
        self.known = again

    def _reserve(self, rows: int) -> None:
        """Registers for this many keys, kept as they are; new keys stand at the start."""
        t = self.tables
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

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answers:
        """Feeds a page in order."""
        page = self.reader.page(batch, le, re)
        rows = batch.num_rows
        keys = [page.column(e) for _, e in self.by]
        seen = self._seen(page)
        self._refuse_null_keys(page, keys, seen)
        self.types = [key.type for key in keys]
        keys = packed(keys)
        self._deepen(self.seen + rows)
        special = self._specialised(rows)
        self.gone = NOTHING
        if special is not None:
            form = special.form(self._may_direct(keys), page)
            arrays = self.auto.inputs.arrays(page, special.reads(form))
            answers = self._fast(special, form, keys, arrays, rows)
        else:
            answers = self._slow(keys, self._letters(page, seen()), self.auto.inputs.arrays(page), rows)
        self.seen += rows
        self.left += len(self.gone)
        self._forget_states()
        return answers

    def _slow(self, keys: list[pa.Array], letters: I64, arrays: list[Array], rows: int) -> Answers:
        """By the kernel that runs every query, a piece at a time."""
        outs = []
        for lo in range(0, rows, CHUNK):
            hi = min(rows, lo + CHUNK)
            slots, at = self._slots(keys, lo, hi), lo
            while at < hi:
                out, reached = self._interpreted(slots[at - lo :], letters, arrays, at, hi)
                outs.append(out)
                if reached < hi:
                    self._expand(int(self.ri[slots[reached - lo], 0]))
                at = reached
            self._tidy()
        return self._answers(outs)

    def _fast(
        self, special: Generated, form: Form, keys: list[pa.Array], arrays: list[Array], rows: int
    ) -> Answers:
        """By the query's own kernel, which finds rows itself where keys are whole numbers."""
        outs = special.outs(rows)
        meta, left = np.zeros(1, np.int64), np.zeros(rows + 1, np.int64)
        by = self._direct(keys)
        if by is not None:
            self._by_low_bits(special.function(form), by, [meta, left, *outs, *arrays], rows)
        at = int(self._reached) if by is not None else 0
        while at < rows:
            hi = min(rows, at + CHUNK) if self.by else rows
            slots = self._slots(keys, at, hi)
            rest = (NOTHING, self.ri, self.rf, self.rings, meta, left, *outs, *arrays)
            special.function(Form(False, form.dense))(at, hi, np.uint64(at), slots, *rest)
            self._tidy()
            at = hi
        self.gone = left[1 : left[0] + 1].copy()
        taken, leaves, flags = special.columns(outs, int(meta[0]))
        return Answers(taken, self.arrow(self.auto.type, leaves, flags, len(taken)))

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

    def _by_low_bits(self, run: Any, by: Array, rest: list[Array], rows: int) -> None:
        """Runs until the page is done, or keys fall on one row and no number of rows keeps them apart."""
        at = 0
        while self.rows is not None:
            at = run(at, rows, np.uint64(0), by, self.rows, self.ri, self.rf, self.rings, *rest)
            if at == rows:
                break
            self._widen(int(by[at]))
        self._reached = at
        self.shrink(rows)

    def shrink(self, rows: int) -> None:
        """Now and then gives memory back, when few keys are open."""
        self._since += rows
        if self.rows is None or self._since < len(self.rows) or len(self.rows) <= LEAST + 1:
            return
        self._since = 0
        open_ = self._open_rows()
        if SPARSE * len(open_) < len(self.rows):
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

    def _seen(self, page: PageColumns) -> Callable[[], Mask | None]:
        only = self.query.only if isinstance(self.query, Partition) else None
        return lambda: None if only is None else page.mask(only)

    def _refuse_null_keys(
        self, page: PageColumns, keys: list[pa.Array], seen: Callable[[], Mask | None]
    ) -> None:
        for key in keys:
            if key.null_count:
                null = key.is_null().to_numpy(zero_copy_only=False)
                own = seen()
                bad = np.flatnonzero(null if own is None else null & own)
                if len(bad):
                    raise null_key(int(bad[0]), page)

    def _specialised(self, rows: int) -> Generated | None:
        if self.rows is None and self._cold(rows):
            return None
        if self._special is None:
            self._special = generated(self.auto, self.tables, bool(self.by), self._only, self.once)
        return self._special

    def _cold(self, rows: int) -> bool:
        return self.kernel == "table" or (self.kernel == "auto" and self.seen + rows < HOT)

    def _letters(self, page: PageColumns, seen: Mask | None) -> I64:
        masks = [page.mask(e) for e in self.auto.alphabet.exprs]
        letters = self.refinement.letters(masks, page.batch.num_rows)
        return letters if seen is None else np.where(seen, letters, -1)

    def _slots(self, keys: list[pa.Array], lo: int, hi: int) -> I64:
        if not self.by:
            return _ZEROS[: hi - lo] if hi - lo <= CHUNK else NOTHING
        some = [k.slice(lo, hi - lo) for k in keys]
        slots, fresh = self.keys.numbered(some, hi - lo)
        if len(fresh):
            self._store([k.take(pa.array(fresh)) for k in some])
        self._reserve(self.keys.count)
        return slots

    def _store(self, fresh: list[pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays(fresh, names=[str(i) for i in range(len(fresh))])
        if self.named is None:
            self.named = ColumnStore(batch.schema)
        self.named.append(batch)

    def close(self, covered: Callable[[list[pa.Array]], Mask]) -> None:
        """Lets go of the keys that a promise covers: no item of theirs comes any more."""
        open_ = self._open_rows()
        if len(open_):
            self.ri[open_[covered(self._keys_of(open_))], 0] = self.free

    def _keys_of(self, rows: I64) -> list[pa.Array]:
        if self.rows is not None:
            return unpacked(self.rows[rows], self.types)
        if self.named is not None:
            return list(self.named.take(rows).columns)
        return unpacked(self.keys.whole()[rows], self.types)

    def _interpreted(
        self, slots: I64, letters: I64, arrays: list[Array], lo: int, hi: int
    ) -> tuple[tuple[I64, Array, Array], int]:
        t = self.tables
        size = hi - lo
        whole, real, consts = self.gathered(arrays, lo, hi)
        places = 2 * len(t.out_kinds)
        out_row = np.empty(size, np.int64)
        out_i, out_f = np.empty((places, size), np.int64), np.empty((places, size), np.float64)
        left = np.zeros(size + 1, np.int64)
        n = run_tables(
            size,
            slots,
            letters[lo:hi],
            whole,
            real,
            consts,
            t.code,
            t.steps,
            t.resting,
            self.ri,
            self.rf,
            self.rings,
            self.real,
            self.si,
            self.sf,
            t.out_place,
            out_row,
            out_i,
            out_f,
            left,
            self.work,
            self.once,
            *self._log(size, lo),
        )
        self.gone = np.append(self.gone, left[1 : left[0] + 1] + lo)
        self._read(int(self.work[1]))
        return (out_row[:n] + lo, out_i[:, :n].copy(), out_f[:, :n].copy()), lo + int(self.work[1])

    def _read(self, rows: int) -> None:
        """So many rows of the last piece were read."""

    def _log(self, size: int, lo: int) -> tuple[Array, ...]:
        """Where the kernel writes what is worked out later, and the states that it passes: nowhere."""
        return NO_LOG, NO_LOG[0], NO_FLOATS, NO_LOG[1], NOTHING

    def gathered(self, arrays: list[Array], lo: int, hi: int) -> tuple[Array, Array, I64]:
        """A chunk's columns side by side, whole numbers and doubles, and how many constants there are."""
        t = self.tables
        whole = np.zeros((len(t.columns_i), hi - lo), np.int64)
        real = np.zeros((len(t.columns_f), hi - lo), np.float64)
        for into, names in ((whole, t.columns_i), (real, t.columns_f)):
            for j, number in enumerate(names):
                into[j] = arrays[number][lo:hi]
        return whole, real, np.array([len(t.consts_i), len(t.consts_f), int(self.auto.grows)], np.int64)

    def _tidy(self) -> None:
        """Gives back the rows of keys that stand at the start, once they are the most."""
        count = self.keys.count
        if count < 1024 or count < 2 * self._open:
            return
        open_ = np.flatnonzero(self.ri[:count, 0] != 0)
        self._open = len(open_)
        if 2 * len(open_) > count:
            return
        self.keys.keep(open_)
        if self.named is not None:
            self.named.compact(open_)
        self._moved(open_, np.arange(len(open_)), min(len(self.ri), 4 * len(open_) + 1024))

    def _answers(self, outs: list[tuple[I64, Array, Array]]) -> Answers:
        rows = np.concatenate([o[0] for o in outs]) if outs else np.zeros(0, np.int64)
        places = range(2 * len(self.tables.out_kinds))
        whole = [np.concatenate([o[1][j] for o in outs]) if outs else np.zeros(0, np.int64) for j in places]
        real = [np.concatenate([o[2][j] for o in outs]) if outs else np.zeros(0) for j in places]
        leaves = [(real if kind == "f" else whole)[2 * j] for j, kind in enumerate(self.tables.out_kinds)]
        flags: list[Array | None] = [whole[2 * j + 1] != 0 for j in range(len(leaves))]
        return Answers(rows, self.arrow(self.auto.type, leaves, flags, len(rows)))

    def arrow(self, t: ValueType, leaves: list[Array], flags: list[Array | None], rows: int) -> pa.Array:
        """Registers' values as a column of a type, taken off the lists; without flags all are there."""
        return column_of(t, leaves, flags, rows, self.auto.inputs.texts)

    @property
    def real(self) -> Array:
        """The rings' memory as doubles."""
        return self.rings.view(np.float64) if self.rings.dtype == np.int64 else NO_RINGS

    @property
    def nbytes(self) -> int:
        """Bytes of state: registers, rings and keys."""
        rows = 0 if self.rows is None else self.rows.nbytes
        rows += 0 if self.named is None else self.named.nbytes
        texts = self.auto.inputs.texts.nbytes
        return int(self.ri.nbytes + self.rf.nbytes + self.rings.nbytes + self.keys.nbytes + rows + texts)

    @property
    def held(self) -> int:
        """How many keys hold state."""
        return len(self._open_rows()) if self.by else 0
