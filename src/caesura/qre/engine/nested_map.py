"""A map inside a pattern at work: registers per group and key, and maps inside it of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.events.columns import ColumnStore
from caesura.kernels.hashing import I64, Mask
from caesura.qre.compiler.automaton import automaton
from caesura.qre.compiler.deferral import MapBuilder, has_maps
from caesura.qre.engine.deferred import Child, DeferredMaps, ItemPage, MapEvents
from caesura.qre.engine.key_lists import KeyLists
from caesura.qre.engine.map import MIN_KEYS_TO_COMPACT, MapStage
from caesura.qre.engine.map_columns import Maps
from caesura.qre.engine.pattern import CHUNK, NO_FLOATS, NO_LOG, Array
from caesura.qre.engine.program import GroupedProgram
from caesura.qre.engine.registers import RegisterState
from caesura.qre.kernels.grouped import COPY, FRESH, KEYED, UNSEEN, run_grouped
from caesura.qre.kernels.key_slots import KeySlots
from caesura.qre.kernels.map import DEAD, SHARED
from caesura.qre.kernels.register_rows import move_rows
from caesura.qre.language.query import MapCollect, Query
from caesura.qre.language.whole_numbers import NO_VALUE, whole

GROUP = "group #"
Read = tuple[Array, Array, Array, Array, I64]
"""Of a page's items: letters, which are synchronisation items, columns, and how many constants there are."""
NO_EVENTS: I64 = np.zeros((0, 4), np.int64)


@dataclass
class GroupedState(RegisterState):
    """What is saved of a map inside a pattern."""

    keys: pa.RecordBatch
    synced: int
    base: int
    first_key: I64
    next_key: I64
    key_count: I64
    values: bytes | None
    maps: list[bytes]


GROUPED = ChunkFormat("a map inside a pattern", GroupedState)


class GroupedMap(MapStage):
    """The registers of the keys of one map; threads begin, and maps come, when the pattern around says so."""

    program: GroupedProgram

    def __init__(self, node: MapCollect, *, several: bool) -> None:
        self.built: MapBuilder | None = None
        super().__init__(node, kernel="table")
        self.several = several
        """Whether there may be more than one group."""
        self.base = 1
        self.ri[0, 0] = DEAD
        self.lists = KeyLists()
        self.inside: DeferredMaps | None = None
        if self.built is not None:
            children = [GroupedMap(inner, several=True) for inner in self.built.maps]
            self.inside = DeferredMaps(self.built, self.program, children, node)
        if several:
            self.key_store = ColumnStore(pa.schema([pa.field(GROUP, pa.int64()), *self.key_store.schema]))

    def _program(self, body: Query) -> GroupedProgram:
        if not has_maps(body):
            return GroupedProgram(automaton(body, restarts=True)[0])
        auto, self.built = automaton(body, make=MapBuilder, restarts=True)
        return GroupedProgram(auto)

    def maps(self, page: ItemPage, events: MapEvents, starts: Mask, wants: Mask) -> dict[int, Any]:
        """Feeds what happens; gives the maps by the events at which they are wanted."""
        if len(events.kinds) == 0:
            return {}
        columns = self.reader.page(page.batch, page.le, page.re)
        synced = columns.mask(self.node.sync)
        keys = [columns.column(e) for _, e in self.by]
        free = synced if page.seen is None else synced | ~page.seen
        self._refuse_null_keys(columns, keys, free, np.flatnonzero(free))
        syncs = int(synced.sum())
        self._deepen_for(syncs, len(events.kinds))
        self.synced += syncs
        self.seen += len(events.kinds)
        sources = events.states[events.kinds == COPY]
        self._groups(int(np.append(sources, events.groups).max()) + 1)
        slots = self._numbers(keys, synced, events)
        letters, arrays = self.program.letters(columns, None), self.auto.inputs.arrays(columns)
        read = (letters, synced, *self.program.gathered(arrays, 0, page.batch.num_rows))
        found, inner_events = self._fed(events, slots, starts, wants, read)
        if self.inside is not None:
            self.inside.work_out(page, MapEvents(*(np.ascontiguousarray(c) for c in inner_events.T)))
            if syncs:
                self._join()
        made = _as_dicts(found, None if self.inside is None else self.inside.values, self.several)
        self._tidy_up()
        self._forget_states()
        self.forget_texts()
        return made

    # Rows of registers.

    def _groups(self, count: int) -> None:
        """Rows for so many groups, before those of the keys."""
        if count <= self.base:
            return
        base, more = self.base, max(count, 2 * self.base) - self.base
        size = len(self.ri)
        gaps = [np.zeros((more, held.shape[1]), held.dtype) for held in (self.ri, self.rf)]
        self.ri = np.concatenate([self.ri[:base], gaps[0], self.ri[base:size]])
        self.rf = np.concatenate([self.rf[:base], gaps[1], self.rf[base:size]])
        self.ri[base : base + more, 0] = DEAD
        if len(self.rings):
            gap = np.zeros((len(self.rings), more, self.rings.shape[2]), self.rings.dtype)
            self.rings = np.concatenate([self.rings[:, :base], gap, self.rings[:, base:size]], axis=1)
        self.lists.add_groups(more)
        self.base += more

    def _numbers(self, keys: list[pa.Array], synced: Mask, events: MapEvents) -> I64:
        """Per event the number of its key in its group, or the group that it copies."""
        reads = events.kinds <= FRESH
        skip = ~reads
        skip[reads] = synced[events.items[reads]]
        numbers = np.where(events.kinds == COPY, events.states, -1)
        own = np.flatnonzero(~skip)
        if len(own):
            at = pa.array(events.items[own])
            numbers[own] = self._known(events.groups[own], [k.take(at) for k in keys])
        return numbers

    def _known(self, groups: I64, keys: list[pa.Array]) -> I64:
        named = [pa.array(groups), *keys] if self.several else keys
        numbers, fresh = self.keys.encode_some(named, np.zeros(len(groups), np.bool_))
        if fresh is not None:
            self.key_store.append(pa.RecordBatch.from_arrays(fresh.columns, schema=self.key_store.schema))
            self._grow(self.base + self.keys.count)
            self.lists.reserve(len(self.ri))
        return numbers

    # Running.

    def _fed(self, events: MapEvents, slots: I64, starts: Mask, wants: Mask, read: Read) -> tuple[Maps, I64]:
        outs: list[tuple[Array, ...]] = []
        inner_events: list[I64] = [NO_EVENTS]
        at, count = 0, len(events.kinds)
        while at < count:
            at, made, more_events = self._call(
                at, events, slots, starts, wants, read, sum(map(len, inner_events))
            )
            outs.append(made)
            inner_events.append(more_events)
            if self.meta[3] == UNSEEN:
                self.program.expand(int(self.meta[4]))
            elif self.meta[3] == KEYED:
                inner_events.append(self._copied(int(slots[at]), int(events.groups[at])))
                at += 1
        return self._maps(outs), np.concatenate(inner_events)

    def _call(
        self,
        at: int,
        events: MapEvents,
        slots: I64,
        starts: Mask,
        wants: Mask,
        read: Read,
        before: int,
    ) -> tuple[int, tuple[Array, ...], I64]:
        """One call of the kernel, with room for what it has to say."""
        t, left = self.program.tables, len(events.kinds) - at
        room = max(min(left, CHUNK), 4 * int(self.lists.count[events.groups[at]]) + 16)
        places = 3 * len(t.out_kinds)
        out_slot = np.empty(room, np.int64)
        out_i, out_f = np.empty((places, room), np.int64), np.empty((places, room), np.float64)
        found = np.empty((int(wants[at:].sum()), 2), np.int64)
        inner_events, log = NO_EVENTS, (NO_LOG, NO_LOG[0], NO_FLOATS, NO_LOG[1])
        if self.inside is not None:
            inner_events = np.zeros((4 * room, 4), np.int64)
            log = self.inside.log(len(inner_events), before)
        self.meta[:] = 0
        at = run_grouped(
            *(at, len(events.kinds), events.kinds, events.items, events.groups, slots, starts, wants),
            *read,
            *(t.code, t.steps, self.program.restart, self.program.void, self.base),
            *(self.ri, self.rf, self.rings, self.real, self.program.si, self.program.sf),
            t.out_place,
            *(self.lists.first, self.lists.next, self.lists.count, self.meta),
            *(out_slot, out_i, out_f, found, inner_events, *log),
        )
        n, m = int(self.meta[0]), int(self.meta[1])
        keys = self.key_store.take(out_slot[:n])
        made = (found[:m, 0], found[:m, 1], out_slot[:n], out_i[:, :n].copy(), out_f[:, :n].copy(), keys)
        return at, made, inner_events[: self.meta[2]].copy()

    def _copied(self, source: int, group: int) -> I64:
        """Copies the keys of a group; what they share is there already. Gives events for the maps inside."""
        old = self.lists.of(source)
        named = self.key_store.take(old)
        new = self._known(np.full(len(old), group, np.int64), list(named.columns[1:]))
        before, after = old + self.base, new + self.base
        self.ri[after], self.rf[after] = self.ri[before], self.rf[before]
        if len(self.rings):
            self.rings[:, after] = self.rings[:, before]
        self.lists.link(group, new)
        if self.inside is None:
            return NO_EVENTS
        none = np.zeros(len(old), np.int64)
        return np.stack([none + COPY, none, 2 * new + 1, 2 * old + 1], axis=1)

    # Thrift.

    def _join(self) -> None:
        """Keys around maps that hold what the others of their group share hold it no longer by themselves.

        The kernel cannot say so: what the maps inside hold is known only when the page has been read.
        """
        assert self.inside is not None
        count = self.keys.count
        own = np.flatnonzero(self.ri[self.base : self.base + count, 0] != SHARED)
        if len(own) == 0:
            return
        groups = np.zeros(len(own), np.int64)
        if self.several:
            groups = self.key_store.take(own).column(0).to_numpy()
        joins = self._same(own + self.base, groups)
        self.ri[own[joins] + self.base, 0] = SHARED
        for child in self.inner:
            child.clear(2 * own[joins] + 1)
        self.lists.relink(own[~joins], groups[~joins])

    def alike(self, a: I64, b: I64) -> Mask:
        """Per pair of groups whether they share the same, and no key has a state of its own."""
        self._groups(int(max(a.max(initial=0), b.max(initial=0))) + 1)
        alone: Mask = (self.lists.count[a] == 0) & (self.lists.count[b] == 0)
        return alone & self._same(a, b)

    def _same(self, a: I64, b: I64) -> Mask:
        """Per pair of rows whether their threads stand alike and hold the same."""
        states = self.ri[a, 0]
        same: Mask = states == self.ri[b, 0]
        alive = np.flatnonzero(same & (states > 0))
        left, right = a[alive], b[alive]
        whole, real = self.program.needs
        held = ~whole[states[alive]] | (self.ri[left, 1:] == self.ri[right, 1:])
        if self.inside is not None:
            self.inside.compare(self.ri[left], self.ri[right], held)
        alike = held.all(axis=1) & (~real[states[alive]] | (self.rf[left] == self.rf[right])).all(axis=1)
        if len(self.rings):
            alike &= (self.rings[:, left] == self.rings[:, right]).all(axis=(0, 2))
        for child in self.inner:
            alike &= child.alike(self._inner_groups(left), self._inner_groups(right))
        same[alive] = alike
        return same

    def _inner_groups(self, rows: I64) -> I64:
        """Rows by the numbers that maps inside know them by."""
        return np.where(rows < self.base, 2 * rows, 2 * (rows - self.base) + 1)

    def clear(self, groups: I64) -> None:
        """Groups without keys of their own hold nothing any more."""
        groups = groups[groups < self.base]
        self.ri[groups, 0] = DEAD
        for child in self.inner:
            child.clear(2 * groups)

    def _tidy_up(self, *, least: int = MIN_KEYS_TO_COMPACT) -> None:
        """Gives back the rows of keys that are in the shared state, once they are the most of so many."""
        if self.inside is not None:
            self.inside.forget(self.ri)
        count = self.keys.count
        open_ = int((self.ri[self.base : self.base + count, 0] != SHARED).sum()) if count >= least else count
        if 2 * open_ <= count and count:
            whole = np.arange(self.base)
            self.renumber(whole, whole, self.base)

    def renumber(self, old: I64, new: I64, size: int) -> None:
        """Groups get other numbers, groups that are not among them are gone; keys get other rows."""
        known = old < self.base
        old, new = old[known], new[known]
        count, base = self.keys.count, max(size, 1)
        open_ = np.flatnonzero(self.ri[self.base : self.base + count, 0] != SHARED)
        named = list(self.key_store.take(open_).columns)
        if self.several:
            to = np.full(self.base, -1, np.int64)
            to[old] = new
            groups = to[named[0].to_numpy()]
            open_, groups = open_[groups >= 0], groups[groups >= 0]
            named = [pa.array(groups), *self.key_store.take(open_).columns[1:]]
        rows = (np.append(old, open_ + self.base), np.append(new, np.arange(len(open_)) + base))
        self._laid_out(*rows, base, base + 2 * len(open_) + 64)
        self.lists.renumber(old, new, base, open_, len(self.ri))
        self.keys, schema = KeySlots(), self.key_store.schema
        self.key_store = ColumnStore(schema)
        if len(open_):
            self.keys.encode(named, len(open_))
            self.key_store.append(pa.RecordBatch.from_arrays(named, schema=schema))
        self.base = base
        if self.inside is not None:
            inner_group = (
                np.append(2 * old, 2 * open_ + 1),
                np.append(2 * new, 2 * np.arange(len(open_)) + 1),
            )
            self.inside.renumber(*inner_group, 2 * max(base, len(open_) + 1))

    def _laid_out(self, old: I64, new: I64, base: int, size: int) -> None:
        ri, rf = np.zeros((size, self.ri.shape[1]), np.int64), np.zeros((size, self.rf.shape[1]))
        ri[:base, 0], ri[base:, 0] = DEAD, SHARED
        ri[new], rf[new] = self.ri[old], self.rf[old]
        if len(self.rings):
            rings = np.zeros((len(self.rings), size, self.rings.shape[2]), self.rings.dtype)
            for ring, fresh in zip(self.rings, rings, strict=True):
                move_rows(ring, old, new, fresh)
            self.rings = rings
        self.ri, self.rf = ri, rf

    def save(self) -> bytes:
        self._tidy_up(least=1)
        state = GroupedState(
            **self._registers(len(self.ri)),
            keys=self.key_store.all(),
            synced=self.synced,
            base=self.base,
            first_key=self.lists.first,
            next_key=self.lists.next,
            key_count=self.lists.count,
            **({"values": None, "maps": []} if self.inside is None else self.inside.saved()),
        )
        return GROUPED.write(state)

    def load(self, saved: bytes) -> None:
        state = GROUPED.read(saved)
        self._take_registers(state)
        self._take_keys(state.keys)
        self.synced, self.base = state.synced, state.base
        self.lists = KeyLists(state.first_key, state.next_key, state.key_count)
        if self.inside is not None and state.values is not None:
            self.inside.load(state.values, state.maps)

    @property
    def inner(self) -> Sequence[Child]:
        """The maps inside."""
        return () if self.inside is None else self.inside.children

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.lists.nbytes + (0 if self.inside is None else self.inside.nbytes)

    @property
    def held(self) -> int:
        return super().held + (0 if self.inside is None else self.inside.held)


def _as_dicts(maps: Maps, later: list[Any] | None, several: bool) -> dict[int, Any]:
    """Maps by their events."""
    columns = [c.to_pylist() for c in maps.keys.columns[several:]]
    keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    values = maps.values.to_pylist()
    if later is not None:
        values = [later[number] for number in values]
    cut = zip(maps.rows.tolist(), pairwise([*maps.starts.tolist(), len(values)]), strict=True)
    made = {row: whole(dict(zip(keys[a:b], values[a:b], strict=True))) for row, (a, b) in cut}
    return made | dict.fromkeys(maps.rows[maps.void].tolist(), NO_VALUE)


__all__ = ["GroupedMap"]
