"""A map-collect at work: one automaton for all keys, registers per key, maps out.

It stands at the top of a query, or under `iter_last`, where every map begins anew. Operations applied
to the maps run on the maps, which are few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.events.columns import ColumnStore, from_words, words
from caesura.events.nested import NO_MASK
from caesura.expr.faults import shown
from caesura.kernels.hashing import I64, Mask
from caesura.qre.checking.checking import letters_of
from caesura.qre.compiler.columns import PageColumns
from caesura.qre.compiler.generation import Form, Generated
from caesura.qre.compiler.lowering import NotCompiled
from caesura.qre.compiler.map_generation import DONE, FULL, TAKEN, generated_collect, padding
from caesura.qre.compiler.packing import joined, scalars_of
from caesura.qre.engine.map_columns import Maps, Syncs, void_maps
from caesura.qre.engine.map_rates import by_tick, core, map_rate, sync_letters, turns_with_syncs
from caesura.qre.engine.pattern import CHUNK, NO_FLOATS, NO_LOG, NOTHING, SHALLOW, Array, PatternStage
from caesura.qre.engine.registers import RegisterState
from caesura.qre.kernels.key_slots import KeySlots
from caesura.qre.kernels.map import SHARED, run_collect
from caesura.qre.language.items import TICK
from caesura.qre.language.query import Query
from caesura.qre.language.types import to_arrow
from caesura.qre.language.whole_numbers import no_value

SHALLOW_SYNCS = 16
MIN_KEYS_TO_COMPACT = 1024
"""Fewer keys at rest stay where they are until a checkpoint: they may come again."""
ZERO: I64 = np.zeros(1, np.int64)
NO_ROWS: Mask = np.zeros(1, np.bool_)


def never(rows: int) -> pa.BooleanArray:
    """A column of so many times False."""
    return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bytes(rows // 8 + 1))], null_count=0)


class _Call:
    """What calls of a kernel for one page share."""

    def __init__(
        self,
        special: Generated,
        dense: bool,
        syncs: Syncs,
        arrays: list[Array],
        outs: list[Array],
        rows: int,
    ) -> None:
        self.dense = dense
        self.special, self.syncs, self.arrays, self.outs, self.rows = special, syncs, arrays, outs, rows
        self.found = np.empty((len(syncs.places), 2), np.int64)

    def maps(self, stage: MapStage, keys: pa.RecordBatch) -> Maps:
        """The maps that came, by the number of their synchronisation item."""
        count, found = int(stage.meta[2]), self.found[: stage.meta[3]]
        _, scalars = self.special.columns(self.outs, count)
        stage.shrink(self.rows)
        void = void_maps(found[:, 1], scalars)
        values = stage.program.arrow(stage.auto.type, scalars.values, scalars.there, count)
        return Maps(found[:, 0], found[:, 1], keys, values, void)


@dataclass
class MapState(RegisterState):
    """What is saved of a map-collect."""

    rows: I64 | None
    sparse: bool
    departures: int
    keys: pa.RecordBatch
    active: I64
    """The rows of keys with a state of their own."""
    meta: I64
    synced: int


MAP = ChunkFormat("a map-collect", MapState)


class MapStage(PatternStage):
    """The registers of all keys of a map-collect; row 0 is the state that keys share."""

    free = SHARED
    base = 1

    def __init__(self, query: Query, *, kernel: str = "auto") -> None:
        found = core(query)
        if found is None:
            raise NotCompiled("a map_collect inside split, iter, or_ or combine")
        self.node, self.again = found
        body = self.node.body
        object.__setattr__(body, "items", self.node.items)
        super().__init__(body, kernel=kernel)
        self.by = self.node.by
        self.rate = map_rate(self.node, self.again)
        schema = pa.schema([(name, pa.array([], t).type) for name, t in self._key_types()])
        self.key_store = ColumnStore(schema)
        self.active: I64 = np.zeros(64, np.int64)
        self.meta: I64 = np.zeros(6, np.int64)
        self.synced = 0
        self.ri[:, 0] = SHARED
        self.ri[0, 0] = 0
        self.keys = KeySlots()
        self.tumbling = bool(self.rate[0, 0] >= 0 and self.rate[self.rate[0, 0], 1] == 2)
        self._turning = turns_with_syncs(self.auto, sync_letters(self.auto.alphabet, self.node))
        self.rings = self.rings[:, :, : SHALLOW_SYNCS if self._turning else SHALLOW].copy()

    def _deepen_for(self, syncs: int, rows: int) -> None:
        """Rings that turn with synchronisation items are as deep as there have been such items."""
        self._deepen(self.synced + syncs if self._turning else self.seen + rows)

    def _key_types(self) -> list[tuple[str, pa.DataType]]:
        from caesura.expr import type_of

        assert self.node.items is not None
        schema = self.node.items.schema
        return [(n, type_of(e, schema, time=self.node.items.time)) for n, e in self.by]

    def _grow(self, rows: int) -> None:
        before = len(self.ri)
        self._reserve(rows)
        self.ri[before:, 0] = SHARED
        if len(self.active) <= len(self.ri):
            self.active = np.append(self.active, np.zeros(len(self.ri) - len(self.active) + 1, np.int64))

    def collect(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Maps:
        """Feeds a page in order."""
        if self.ended:
            return self._none()
        page = self.reader.page(batch, le, re)
        synced = page.mask(self.node.sync)
        keys = [page.column(e) for _, e in self.by]
        at = np.flatnonzero(synced)
        self._refuse_null_keys(page, keys, synced, at)
        self._deepen_for(len(at), batch.num_rows)
        special = self._specialised(batch.num_rows)
        if special is None:
            maps = self._slow_maps(
                keys, synced, self.program.letters(page, None), self.auto.inputs.arrays(page)
            )
        else:
            form = special.form(self._may_direct(keys), page)
            arrays = self.auto.inputs.arrays(page, special.reads(form))
            own = [a[at] if len(a) else a for a in arrays]
            maps = self._fast_maps(special, form, keys, Syncs(at, 1, 1, own), arrays)
            maps = replace(maps, rows=at[maps.rows])
        if len(maps.void):
            item = shown(batch, int(maps.rows[maps.void[0]]))
            raise no_value(f"the item ({item})", seen=page.failed)
        self.seen += batch.num_rows
        self._count(at)
        self._forget_states()
        self.forget_texts()
        return maps

    @property
    def ended(self) -> bool:
        """Whether no map can come any more: the rate of the maps is at its end."""
        return bool(self.meta[1] < 0)

    def _count(self, at: I64) -> None:
        """Counts synchronisation items; at the first that leads out of the maps' rate everything is freed."""
        self.departed = NOTHING
        first = len(self.rate) - 1 - self.synced
        self.synced += len(at)
        if not self.ended:
            return
        self.departed = at[first : first + 1]
        self.departures = 1
        self._forget_keys()
        self.rows, self.meta[0] = None, 0
        self._moved(NOTHING, NOTHING, 1)

    def _none(self) -> Maps:
        self.departed = NOTHING
        keys = self.key_store.take(NOTHING)
        return Maps(NOTHING, NOTHING, keys, pa.array([], to_arrow(self.auto.type)))

    def takes_ticks(self, rows: int) -> bool:
        """Whether ticks need not be woven into the next page: the query's own kernel has them apart."""
        return self._by_tick() and self._specialised(rows) is not None

    def _by_tick(self) -> bool:
        return by_tick(self.node)

    def collect_ticked(self, batch: pa.RecordBatch, le: I64, places: I64) -> Maps:
        """Feeds a page of events, with ticks before the rows at ``places``; maps are numbered by tick."""
        assert self.node.items is not None
        if self.ended:
            return self._none()
        special = self._specialised(batch.num_rows)
        assert special is not None
        schema = self.node.items.schema
        events = pa.RecordBatch.from_arrays([*batch.columns, never(batch.num_rows)], schema=schema)
        page = self.reader.page(events, le)
        keys = [page.column(e) for _, e in self.by]
        self._refuse_null_keys(page, keys, NO_ROWS, NOTHING)
        form = special.form(self._may_direct(keys), page)
        read = special.reads(form)
        tick = pa.RecordBatch.from_pylist([{TICK: True}], schema)
        one = self.auto.inputs.arrays(self.reader.page(tick, ZERO), read)
        arrays = self.auto.inputs.arrays(page, read)
        self._deepen_for(len(places), batch.num_rows)
        self.seen += batch.num_rows
        maps = self._fast_maps(special, form, keys, Syncs(places, 0, 0, one), arrays)
        if len(maps.void):
            raise no_value("a tick", seen=page.failed)
        self._count(np.clip(places - 1, 0, max(0, batch.num_rows - 1)))
        self.forget_texts()
        return maps

    def _refuse_null_keys(  # type: ignore[override]
        self, page: PageColumns, keys: list[pa.Array], synced: Array, at: I64
    ) -> None:
        """Only synchronisation items may lack a key; mostly they are all that do."""
        for key in keys:
            if key.null_count and key.take(pa.array(at)).null_count < key.null_count:
                super()._refuse_null_keys(page, keys, lambda: ~synced)

    def _slow_maps(self, keys: list[pa.Array], synced: Array, letters: I64, arrays: list[Array]) -> Maps:
        outs: list[tuple[Array, ...]] = []
        for lo in range(0, len(synced), CHUNK):
            hi = min(len(synced), lo + CHUNK)
            slots = self._encoded(keys, synced[lo:hi], lo, hi)
            outs += self._chunk(slots, letters, synced, arrays, lo, hi)
            self._drop_shared()
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
        t = self.program.tables
        size = hi - lo
        columns = self.program.gathered(arrays, lo, hi)
        outs: list[tuple[Array, ...]] = []
        at = 0
        while at < size:
            room = max(size, 2 * self.keys.count + 16)
            places = 3 * len(t.out_kinds)
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
                *(self.ri, self.rf, self.rings, self.real, self.program.si, self.program.sf),
                t.out_place,
                self.rate,
                self.active,
                self.meta,
                *(out_row, out_slot, out_i, out_f, maps, NO_LOG, NO_FLOATS),
            )
            if self.meta[5]:
                self.program.expand(int(self.meta[5]) - 1)
            n, m = int(self.meta[2]), int(self.meta[3])
            outs.append(
                (maps[:m, 0] + lo, maps[:m, 1], out_slot[:n], out_i[:, :n].copy(), out_f[:, :n].copy())
            )
        return [self._with_keys(o) for o in outs]

    def _specialised(self, rows: int) -> Generated | None:
        if self.rows is None and self._cold(rows):
            return None
        if self._special is None:
            letters = sync_letters(letters_of(self.node.body), self.node)
            options = {"tumbling": self.tumbling, "by_tick": self._by_tick()}
            self._special = generated_collect(self.auto, self.program.tables, letters, **options)
        return self._special

    def _fast_maps(
        self, special: Generated, form: Form, keys: list[pa.Array], syncs: Syncs, arrays: list[Array]
    ) -> Maps:
        """By the query's own kernel; answers go to one piece of memory that grows."""
        by, at = self._direct(keys), 0
        rows = len(keys[0])
        first = words(keys[0]).dtype if by is not None else np.int64
        call = _Call(special, form.dense, syncs, arrays, special.outs(rows + len(self.ri), first), rows)
        self.meta[2:] = 0
        while by is not None and self.rows is not None:
            at = self._on(call, at, rows, rows, by)
            if self.meta[5] == DONE:
                return call.maps(self, self._named_by(call.outs[0][: self.meta[2]]))
            if self.meta[5] == TAKEN:
                self._widen(int(by[at]))
        named = [self._named_by(call.outs[0][: self.meta[2]])] if by is not None else []
        call.outs[0] = call.outs[0].astype(np.int64)
        while at < rows or not named or self.meta[5] != DONE:
            hi, before, begin = min(rows, at + CHUNK), int(self.meta[2]), at
            slots = self._encoded(keys, self._skipped(syncs, at, hi), at, hi)
            self.meta[5] = FULL
            while self.meta[5] != DONE:
                at = self._on(call, at, hi, rows, slots, begin)
            named.append(self.key_store.take(call.outs[0][before : self.meta[2]] - 1))
            self._drop_shared()
        return call.maps(self, pa.concat_batches(named))

    def _skipped(self, syncs: Syncs, lo: int, hi: int) -> Array:
        """Which rows are synchronisation items."""
        out = np.zeros(hi - lo, np.bool_)
        if syncs.gap:
            out[syncs.places[np.searchsorted(syncs.places, lo) : np.searchsorted(syncs.places, hi)] - lo] = (
                True
            )
        return out

    def _on(self, call: _Call, at: int, hi: int, rows: int, by: Array, begin: int = 0) -> int:
        """One call of the kernel, and more room if that is what it stopped for."""
        direct = self.rows is not None
        keys = self.rows if self.rows is not None else NOTHING
        state = (keys, self.ri, self.rf, self.rings, self.rate, self.active, self.meta, call.found)
        syncs = call.syncs
        rest = (syncs.places, syncs.step, np.uint64(syncs.gap), *call.outs, *call.arrays, *syncs.columns)
        limit = hi + (hi == rows)
        after = call.special.function(Form(direct, call.dense))(
            at, hi, limit, np.uint64(begin), by, *state, *rest
        )
        if self.meta[5] == FULL:
            more = len(call.outs[0]) + int(self.meta[0])
            call.outs = [np.append(o, np.empty(more, o.dtype)) for o in call.outs]
        return int(after)

    def _named_by(self, keys: Array) -> pa.RecordBatch:
        """Keys as the columns of the map."""
        t = self.key_store.schema.field(0).type
        return pa.RecordBatch.from_arrays([from_words(keys, NO_MASK, t)], schema=self.key_store.schema)

    def _moved(self, old: I64, new: I64, size: int) -> None:
        """Registers, and the list of keys with a state of their own, in other rows."""
        number = np.zeros(len(self.ri), np.int64)
        number[old] = new
        active = number[self.active[: self.meta[0]]]
        super()._moved(np.append(0, old), np.append(0, new), size)
        self.active = np.zeros(size + 1, np.int64)
        self.active[: len(active)] = active
        if self.tumbling:
            at_rest = np.ones(size, np.bool_)
            at_rest[0] = at_rest[new] = False
            self._pad(np.flatnonzero(at_rest))

    def _follow(self, keys: I64, size: int) -> None:
        count = self.meta[0]
        active = np.zeros(size + 1, np.int64)
        active[:count] = (keys[self.active[:count]] & (size - 2)) + 1
        self.active = active
        if self.tumbling:
            self._pad(np.flatnonzero(self.ri[:, 0] == SHARED))

    def _pad(self, rows: I64) -> None:
        """Rows at rest hold what folds begin with."""
        for kind, place, value in padding(self.auto, self.program.tables):
            (self.ri if kind == "i" else self.rf)[rows, place] = value

    def _forget_keys(self) -> None:
        super()._forget_keys()
        self.key_store = ColumnStore(self.key_store.schema)

    def _known_keys(self, keys: I64) -> None:
        super()._known_keys(keys)
        own = keys.astype(self.key_store.schema.field(0).type.to_pandas_dtype())
        self.key_store.append(self._named_by(own))

    def _with_keys(self, out: tuple[Array, ...]) -> tuple[Array, ...]:
        return (*out, self.key_store.take(out[2] - 1))

    def _drop_shared(self, *, least: int = MIN_KEYS_TO_COMPACT) -> None:
        """Gives back the rows of keys that are in the shared state, once they are the most of so many."""
        count = self.keys.count
        if count < least:
            return
        open_ = np.flatnonzero(self.ri[1 : count + 1, 0] != SHARED)
        if 2 * len(open_) > count:
            return
        self.keys.keep(open_)
        self.key_store.compact(open_)
        self._moved(open_ + 1, np.arange(1, len(open_) + 1), 2 * len(open_) + 1024)

    def _maps(self, outs: list[tuple[Array, ...]]) -> Maps:
        shift = np.cumsum([0, *(len(o[2]) for o in outs)])
        rows = np.concatenate([NOTHING, *(o[0] for o in outs)])
        starts = np.concatenate([NOTHING, *(o[1] + s for o, s in zip(outs, shift, strict=False))])
        kinds = self.program.tables.out_kinds
        whole = joined([o[3] for o in outs], 3 * len(kinds), np.int64)
        real = joined([o[4] for o in outs], 3 * len(kinds) if "f" in kinds else 0, np.float64)
        scalars = scalars_of(kinds, whole, real)
        void = void_maps(starts, scalars)
        keys = pa.concat_batches([o[5] for o in outs]) if outs else self.key_store.take(np.zeros(0, np.int64))
        values = self.program.arrow(self.auto.type, scalars.values, scalars.there, int(shift[-1]))
        return Maps(rows, starts, keys, values, void)

    def save(self) -> bytes:
        """What is saved has no keys that hold nothing; between checkpoints a few of them may stay."""
        self._drop_shared(least=1)
        state = MapState(
            **self._registers(self._used),
            rows=self.rows,
            sparse=self.sparse,
            departures=self.departures,
            keys=self.key_store.all(),
            active=self.active[: self.meta[0]],
            meta=self.meta,
            synced=self.synced,
        )
        return MAP.write(state)

    def load(self, saved: bytes) -> None:
        state = MAP.read(saved)
        self._take_registers(state)
        self.rows, self.sparse, self.departures = state.rows, state.sparse, state.departures
        self.meta, self.synced = state.meta, state.synced
        self.active = np.zeros(len(self.ri) + 1, np.int64)
        self.active[: len(state.active)] = state.active
        self._take_keys(state.keys)

    def _take_keys(self, keys: pa.RecordBatch) -> None:
        self.keys, self.key_store = KeySlots.of(keys.columns), ColumnStore(self.key_store.schema)
        self.key_store.append(keys)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.key_store.nbytes
