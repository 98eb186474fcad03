"""A compiled query at work: pages in, the rows at which it answers and the values out.

The table-driven kernel runs any query; a specialised kernel of the same layout may take over at any
page, since both read and write the same registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import from_words
from caesura.expr import Expr
from caesura.kernels.hashing import I64, Mask
from caesura.qre.automaton import Automaton, automaton
from caesura.qre.bytecode import Tables, tables
from caesura.qre.columns import PageColumns, Reader, null_key
from caesura.qre.generation import Generated, generated
from caesura.qre.letters import Refinement
from caesura.qre.lowering import NotCompiled
from caesura.qre.query import Partition, Query
from caesura.qre.slots import KeySlots
from caesura.qre.table_kernel import run_tables
from caesura.qre.types import Record, Scalar, ValueType, to_arrow

CHUNK = 32_768
HOT = 1_000_000
Array = np.ndarray[Any, Any]


@dataclass
class Answers:
    """At which rows a query answered, and what."""

    rows: I64
    values: pa.Array


class Stage:
    """One pattern, for all keys of a partition or for the whole stream."""

    def __init__(self, query: Query, *, kernel: str = "auto") -> None:
        assert query.items is not None
        self.query = query
        self.by: tuple[tuple[str, Expr], ...] = query.by if isinstance(query, Partition) else ()
        body = query.body if isinstance(query, Partition) else query
        self.auto: Automaton = automaton(body)
        only = query.only if isinstance(query, Partition) else None
        self.once = int(not (isinstance(query, Partition) and query.again))
        self._only = None if only is None else self.auto.inputs.truth(only)
        if not self.auto.states:
            raise NotCompiled("a pattern whose threads stand in too many different ways")
        self.tables: Tables = tables(self.auto)
        self.reader = Reader(query.items)
        letters = self.auto.alphabet
        self.refinement = Refinement([m.truth for m in letters.minterms], len(letters.exprs))
        self.keys = KeySlots()
        self.kernel = kernel
        self.seen = 0
        self._open = 0
        self.left = np.zeros(1, np.int64)
        self._special: Generated | None = None
        self._room: tuple[I64, Array, Array] | None = None
        self.ri: I64 = np.zeros((0, 1), np.int64)
        self.rf: Array = np.zeros((0, 0), np.float64)
        self.rings: Array = np.zeros((0, 0, 0), np.int64)
        self._reserve(1)
        self.si = np.zeros(self.tables.scratch + 2, np.int64)
        self.sf = np.zeros(self.tables.scratch + 2, np.float64)
        self.si[: len(self.tables.consts_i)] = self.tables.consts_i
        self.sf[: len(self.tables.consts_f)] = self.tables.consts_f

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
        shape = (len(rings), size if rings else 0, max((r.size for r in rings), default=0))
        held = np.zeros(shape, np.uint8 if rings and all(r.bits for r in rings) else np.int64)
        if old:
            ri[:old], rf[:old] = self.ri, self.rf
            held[:, : self.rings.shape[1]] = self.rings
        self.ri, self.rf, self.rings = ri, rf, held

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answers:
        """Feeds a page in order."""
        page = self.reader.page(batch, le, re)
        rows = batch.num_rows
        arrays = self.auto.inputs.arrays(page)
        outs: list[tuple[I64, Array, Array]] = []
        keys = [page.column(e) for _, e in self.by]
        seen = self._seen(page)
        self._refuse_null_keys(page, keys, seen)
        special = self._specialised(rows)
        letters = None if special is not None else self._letters(page, seen)
        for lo in range(0, rows, CHUNK):
            hi = min(rows, lo + CHUNK)
            slots = self._slots(keys, lo, hi)
            if special is not None:
                outs.append(special.run(self, slots, arrays, lo, hi))
            else:
                assert letters is not None
                outs.append(self._interpreted(slots, letters, arrays, lo, hi))
            self._tidy()
        self.seen += rows
        return self._answers(outs)

    def _seen(self, page: PageColumns) -> Mask | None:
        only = self.query.only if isinstance(self.query, Partition) else None
        return None if only is None else page.mask(only)

    def _refuse_null_keys(self, page: PageColumns, keys: list[pa.Array], seen: Mask | None) -> None:
        for key in keys:
            if key.null_count:
                null = key.is_null().to_numpy(zero_copy_only=False)
                bad = np.flatnonzero(null if seen is None else null & seen)
                if len(bad):
                    raise null_key(int(bad[0]), page)

    def _specialised(self, rows: int) -> Generated | None:
        if self.kernel == "table" or (self.kernel == "auto" and self.seen + rows < HOT):
            return None
        if self._special is None:
            self._special = generated(self.auto, self.tables, bool(self.by), self._only, self.once)
        return self._special

    def _letters(self, page: PageColumns, seen: Mask | None) -> I64:
        masks = [page.mask(e) for e in self.auto.alphabet.exprs]
        letters = self.refinement.letters(masks, page.batch.num_rows)
        return letters if seen is None else np.where(seen, letters, -1)

    def _slots(self, keys: list[pa.Array], lo: int, hi: int) -> I64:
        if not self.by:
            return _ZEROS[: hi - lo]
        slots = self.keys.encode([k.slice(lo, hi - lo) for k in keys], hi - lo)
        self._reserve(self.keys.count)
        return slots

    def _interpreted(
        self, slots: I64, letters: I64, arrays: list[Array], lo: int, hi: int
    ) -> tuple[I64, Array, Array]:
        t = self.tables
        size = hi - lo
        whole, real, consts = self.gathered(arrays, lo, hi)
        places = 2 * len(t.out_kinds)
        out_row, out_i, out_f = self.buffers(places)
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
            self.si,
            self.sf,
            t.out_place,
            out_row,
            out_i,
            out_f,
            self.left,
            self.once,
        )
        return out_row[:n] + lo, out_i[:, :n].copy(), out_f[:, :n].copy()

    def gathered(self, arrays: list[Array], lo: int, hi: int) -> tuple[Array, Array, I64]:
        """A chunk's columns side by side, whole numbers and doubles, and how many constants there are."""
        t = self.tables
        whole = np.zeros((len(t.columns_i), hi - lo), np.int64)
        real = np.zeros((len(t.columns_f), hi - lo), np.float64)
        for into, names in ((whole, t.columns_i), (real, t.columns_f)):
            for j, number in enumerate(names):
                into[j] = arrays[number][lo:hi]
        return whole, real, np.array([len(t.consts_i), len(t.consts_f)], np.int64)

    def buffers(self, places: int) -> tuple[I64, Array, Array]:
        """Room for one chunk's answers, used again and again."""
        if self._room is None:
            shape = (places, CHUNK)
            self._room = (np.empty(CHUNK, np.int64), np.empty(shape, np.int64), np.empty(shape, np.float64))
        return self._room

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
        self._compact(open_, count)

    def _compact(self, kept: I64, count: int) -> None:
        size = max(len(kept) + 1, min(len(self.ri), 4 * len(kept) + 1024))
        for name in ("ri", "rf"):
            old = getattr(self, name)
            new = np.zeros((size, old.shape[1]), old.dtype)
            new[: len(kept)] = old[kept]
            setattr(self, name, new)
        rings = np.zeros(
            (self.rings.shape[0], size if len(self.auto.rings) else 0, self.rings.shape[2]), self.rings.dtype
        )
        rings[:, : len(kept)] = self.rings[:, kept] if len(self.auto.rings) else rings[:, :0]
        self.rings = rings

    def _answers(self, outs: list[tuple[I64, Array, Array]]) -> Answers:
        rows = np.concatenate([o[0] for o in outs]) if outs else np.zeros(0, np.int64)
        places = range(2 * len(self.tables.out_kinds))
        whole = [np.concatenate([o[1][j] for o in outs]) if outs else np.zeros(0, np.int64) for j in places]
        real = [np.concatenate([o[2][j] for o in outs]) if outs else np.zeros(0) for j in places]
        leaves = [(real if kind == "f" else whole)[2 * j] for j, kind in enumerate(self.tables.out_kinds)]
        flags = [whole[2 * j + 1] for j in range(len(leaves))]
        return Answers(rows, self.arrow(self.auto.type, leaves, flags, len(rows)))

    def arrow(self, t: ValueType, leaves: list[Array], flags: list[Array], rows: int) -> pa.Array:
        """Registers' values as an Arrow column of a type; takes them off the lists."""
        if isinstance(t, Record):
            if not t.fields:
                return pa.array([{}] * rows, pa.struct([]))
            parts = [self.arrow(inner, leaves, flags, rows) for _, inner in t.fields]
            return pa.StructArray.from_arrays(parts, names=[n for n, _ in t.fields])
        data, there = leaves.pop(0), flags.pop(0) != 0
        arrow = to_arrow(t)
        if isinstance(t, Scalar) and pa.types.is_null(t.type):
            return pa.nulls(rows, t.type)
        if isinstance(t, Scalar) and pa.types.is_string(t.type):
            texts = (
                self.auto.inputs.texts.decode(np.where(there, data, 0)) if rows else pa.array([], pa.string())
            )
            return texts if there.all() else pa.compute.if_else(pa.array(there), texts, None)
        if pa.types.is_boolean(arrow):
            return pa.array(data != 0, mask=~there)
        if pa.types.is_date32(arrow):
            data = data.astype(np.int32)
        return from_words(np.ascontiguousarray(data), there, arrow)

    @property
    def nbytes(self) -> int:
        """Bytes of state: registers, rings and keys."""
        return int(self.ri.nbytes + self.rf.nbytes + self.rings.nbytes + self.keys.nbytes)


_ZEROS = np.zeros(CHUNK, np.int64)
