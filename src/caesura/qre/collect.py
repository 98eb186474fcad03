"""A map-collect at work: one automaton for all keys, registers per key, maps out.

It stands at the top of a query, or under `iter_last`, where every map begins anew. Operations applied
to the maps run on the maps, which are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caesura.events.columns import ColumnStore
from caesura.kernels.hashing import I64
from caesura.qre.checking import letters_of
from caesura.qre.collect_kernel import SHARED, run_collect
from caesura.qre.collect_source import generated_collect
from caesura.qre.generation import Generated
from caesura.qre.lowering import NotCompiled
from caesura.qre.minterms import Alphabet
from caesura.qre.operations import ExprOp
from caesura.qre.positions import bits, positions
from caesura.qre.query import MapCollect, Query, Split
from caesura.qre.regex import Star
from caesura.qre.slots import KeySlots
from caesura.qre.stage import CHUNK, HOT, Array, Stage

MOST_RATES = 1000


@dataclass
class Maps:
    """Maps as rows: map j came at ``rows[j]`` and has the entries from ``starts[j]`` on."""

    rows: I64
    starts: I64
    keys: pa.RecordBatch
    values: pa.Array


def core(query: Query) -> tuple[MapCollect, bool] | None:
    """The map-collect that a query is, and whether it begins anew after each map."""
    if isinstance(query, MapCollect):
        return query, False
    match query:
        case Split(parts=(skip, MapCollect() as inner), op=ExprOp(expr=expr)) if str(expr) == "_1":
            return (inner, True) if skip.rate == Star(inner.rate) else None
    return None


class CollectStage(Stage):
    """The registers of all keys of a map-collect."""

    def __init__(self, query: Query, *, kernel: str = "auto") -> None:
        found = core(query)
        if found is None:
            raise NotCompiled("a map_collect inside split, iter, or_ or combine")
        self.node, self.again = found
        body = self.node.body
        object.__setattr__(body, "items", self.node.items)
        super().__init__(body, kernel=kernel)
        self._sync = self.auto.inputs.truth(self.node.sync)
        self.by = self.node.by
        self.rate = _rate(self.node, self.again)
        schema = pa.schema([(name, pa.array([], t).type) for name, t in self._key_types()])
        self.key_store = ColumnStore(schema)
        self.active: I64 = np.zeros(64, np.int64)
        self.meta: I64 = np.zeros(4, np.int64)
        self.ri[:, 0] = SHARED
        self.ri[0, 0] = 0
        self.keys = KeySlots()

    def _key_types(self) -> list[tuple[str, pa.DataType]]:
        from caesura.expr import type_of

        assert self.node.items is not None
        schema = self.node.items.schema
        return [(n, type_of(e, schema, time=self.node.items.time)) for n, e in self.by]

    def _grow(self, rows: int) -> None:
        before = len(self.ri)
        self._reserve(rows)
        self.ri[before:, 0] = SHARED
        if len(self.active) < len(self.ri):
            self.active = np.append(self.active, np.zeros(len(self.ri) - len(self.active), np.int64))

    def collect(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Maps:
        """Feeds a page in order."""
        page = self.reader.page(batch, le, re)
        rows = batch.num_rows
        arrays = self.auto.inputs.arrays(page)
        synced = page.mask(self.node.sync)
        keys = [page.column(e) for _, e in self.by]
        self._refuse_null_keys(page, keys, ~synced)
        special = self._specialised(rows)
        letters = None if special is not None else self._letters(page, None)
        outs: list[tuple[Array, ...]] = []
        for lo in range(0, rows, CHUNK):
            hi = min(rows, lo + CHUNK)
            slots = self._encoded(keys, synced[lo:hi], lo, hi)
            if special is not None:
                outs += self._fast(special, slots, arrays, lo, hi)
            else:
                assert letters is not None
                outs += self._chunk(slots, letters, synced, arrays, lo, hi)
            self._drop_shared()
        self.seen += rows
        return self._maps(outs)

    def _encoded(self, keys: list[pa.Array], synced: Array, lo: int, hi: int) -> I64:
        """Per row its key's slot; slot 0 is nobody's."""
        numbers, fresh = self.keys.encode_some([k.slice(lo, hi - lo) for k in keys], synced)
        if fresh is not None:
            self.key_store.append(pa.RecordBatch.from_arrays(fresh.columns, schema=self.key_store.schema))
            self._grow(self.keys.count + 1)
        return numbers + 1

    def _chunk(
        self, slots: I64, letters: I64, synced: Array, arrays: list[Array], lo: int, hi: int
    ) -> list[tuple[Array, ...]]:
        t = self.tables
        size = hi - lo
        columns = self.gathered(arrays, lo, hi)
        outs: list[tuple[Array, ...]] = []
        at = 0
        while at < size:
            room = max(size, 2 * self.keys.count + 16)
            places = 2 * len(t.out_kinds)
            out_row, out_slot = np.empty(room, np.int64), np.empty(room, np.int64)
            out_i, out_f = np.empty((places, room), np.int64), np.empty((places, room), np.float64)
            maps = np.empty((size, 2), np.int64)
            self.meta[2:] = 0
            at = run_collect(
                at,
                size,
                slots,
                letters[lo:hi],
                synced[lo:hi],
                *columns,
                t.code,
                t.steps,
                *(self.ri, self.rf, self.rings, self.si, self.sf),
                t.out_place,
                self.rate,
                self.active,
                self.meta,
                *(out_row, out_slot, out_i, out_f, maps),
            )
            n, m = int(self.meta[2]), int(self.meta[3])
            outs.append(
                (maps[:m, 0] + lo, maps[:m, 1], out_slot[:n], out_i[:, :n].copy(), out_f[:, :n].copy())
            )
        return [self._with_keys(o) for o in outs]

    def _specialised(self, rows: int) -> Generated | None:
        if self.kernel == "table" or (self.kernel == "auto" and self.seen + rows < HOT):
            return None
        if self._special is None:
            letters = letters_of(self.node.body)
            self._special = generated_collect(self.auto, self.tables, self._sync, _mask(letters, self.node))
        return self._special

    def _fast(
        self, special: Generated, slots: I64, arrays: list[Array], lo: int, hi: int
    ) -> list[tuple[Array, ...]]:
        outs: list[tuple[Array, ...]] = []
        places, at = 2 * len(self.tables.out_kinds), lo
        while at < hi:
            room = max(hi - lo, 2 * self.keys.count + 16)
            out_slot = np.empty(room, np.int64)
            out_i, out_f = (
                np.empty((places, room), np.int64),
                np.empty((places if "f" in self.tables.out_kinds else 0, room), np.float64),
            )
            maps = np.empty((hi - lo, 2), np.int64)
            self.meta[2:] = 0
            state = (self.ri, self.rf, self.rings, self.rate, self.active, self.meta)
            at = special.function(lo, at, hi, slots, *state, out_slot, out_i, out_f, maps, *arrays)
            n, m = int(self.meta[2]), int(self.meta[3])
            outs.append((maps[:m, 0], maps[:m, 1], out_slot[:n], out_i[:, :n], out_f[:, :n]))
        return [self._with_keys(o) for o in outs]

    def _with_keys(self, out: tuple[Array, ...]) -> tuple[Array, ...]:
        return (*out, self.key_store.take(out[2] - 1))

    def _drop_shared(self) -> None:
        """Gives back the rows of keys that are in the shared state, once they are the most."""
        count = self.keys.count
        if count < 1024:
            return
        open_ = np.flatnonzero(self.ri[1 : count + 1, 0] != SHARED)
        if 2 * len(open_) > count:
            return
        self.keys.keep(open_)
        self.key_store.compact(open_)
        old_active = self.active[: self.meta[0]]
        number = np.zeros(count + 1, np.int64)
        number[open_ + 1] = np.arange(1, len(open_) + 1)
        renumbered = number[old_active]
        self._compact(np.append(0, open_ + 1), count + 1)
        self.ri[len(open_) + 1 :, 0] = SHARED
        self.active = np.zeros(len(self.ri), np.int64)
        self.active[: len(renumbered)] = renumbered

    def _maps(self, outs: list[tuple[Array, ...]]) -> Maps:
        places = range(2 * len(self.tables.out_kinds))
        shift = np.cumsum([0, *(len(o[2]) for o in outs)])
        rows = np.concatenate([o[0] for o in outs]) if outs else np.zeros(0, np.int64)
        starts = np.concatenate([o[1] + s for o, s in zip(outs, shift, strict=False)]) if outs else rows
        whole = [np.concatenate([o[3][j] for o in outs]) if outs else np.zeros(0, np.int64) for j in places]
        some = places if "f" in self.tables.out_kinds else ()
        real = [np.concatenate([o[4][j] for o in outs]) if outs else np.zeros(0) for j in some]
        leaves = [(real if k == "f" else whole)[2 * j] for j, k in enumerate(self.tables.out_kinds)]
        flags = [whole[2 * j + 1] for j in range(len(leaves))]
        entries = int(shift[-1])
        keys = pa.concat_batches([o[5] for o in outs]) if outs else self.key_store.take(np.zeros(0, np.int64))
        return Maps(rows, starts, keys, self.arrow(self.auto.type, leaves, flags, entries))

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.key_store.nbytes


def _mask(letters: Alphabet, node: MapCollect) -> int:
    """The letters of the body's alphabet that are synchronisation items."""
    whole = letters_of(node)
    sync = whole.mask(node.sync)
    shared = [(whole.predicates[e.key], i) for i, e in enumerate(letters.exprs)]
    truths = {
        sum(1 << i for w, i in shared if m.truth >> w & 1)
        for c, m in enumerate(whole.minterms)
        if sync >> c & 1
    }
    return sum(1 << c for c, m in enumerate(letters.minterms) if m.truth in truths)


def _rate(node: MapCollect, again: bool) -> I64:
    """Per state: (the next after a synchronisation item, 1 if a map comes then, 2 to begin anew)."""
    letters = letters_of(node)
    auto = positions(node.over, lambda key: letters.mask(letters.exprs[letters.predicates[key]]))
    sync = next(bits(letters.mask(node.sync)))
    states: dict[int, int] = {-1: 0}
    rows: list[list[int]] = []
    live = -1
    while len(states) <= MOST_RATES:
        after = auto.by_letter[-1].get(sync, 0) if live == -1 else 0
        for p in bits(live) if live > 0 else ():
            after |= auto.by_letter[p].get(sync, 0)
        rows.append([states.setdefault(after, len(states)) if after else -1, 0])
        if not after or len(rows) >= len(states):
            break
        live = after
    for mask, number in states.items():
        if mask > 0 and number < len(rows):
            rows[number][1] = (2 if again else 1) if mask & auto.last else 0
    if len(states) > len(rows):
        raise NotCompiled("a rate of too many synchronisation items")
    return np.array(rows, np.int64)
