"""A map whose synchronisation items are events, in several buckets: keyed items by key, the others to all.

     id day |                      bucket of 1: 1, end        1 -> 5
     1  -   |      map_collect     bucket of 2: 2, end        2 -> 7
     2  -   |
     -  end |

Law: every bucket sees every synchronisation item and all items of its keys, in the stream's order, so its
part of each map is what the map has of its keys; the maps are the unions of their parts. Where something
is made of whole maps, the parts of each meet in one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.expr import compile_predicate, lit
from caesura.kernels.hashing import I64
from caesura.ops.select import Select
from caesura.ops.where import Where
from caesura.plan import Node, Operator, definite, shown
from caesura.punctuation import INFINITY, MIN_TIME, Pattern
from caesura.qre.checking.inference import value_type
from caesura.qre.compiler.columns import asks_for_times
from caesura.qre.engine.choice import machine_for
from caesura.qre.engine.map_columns import Maps
from caesura.qre.engine.map_rates import anew_at_every_tick, by_tick, core, ends
from caesura.qre.engine.outputs import flat
from caesura.qre.engine.ticks import Received, Weaver
from caesura.qre.language.items import TICK, items
from caesura.qre.language.query import Atom, Combine, MapCollect, Query
from caesura.qre.language.types import MapOf, Record, columns
from caesura.qre.step.node import Over, OverEachKey, columns_of, named_by
from caesura.qre.step.operator import QueryOperator

MAP, ENTRY = "map #", "entry"


@dataclass(frozen=True, eq=False, kw_only=True)
class OverSynchronised(Over):
    """A map-collect over a stream (by key) and its synchronisation items (a copy for every bucket)."""

    kind = "qre"
    partitioning = "key"

    @property
    def mapped(self) -> MapCollect:
        found = core(self.query)
        assert found is not None
        return found[0]

    def keys(self, port: int) -> tuple[str, ...]:
        return columns_of(self.mapped.by) or ()

    def copied(self, port: int) -> bool:
        return port == 1

    def output_keys(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        return named_by(self.query, keys)

    def notes_copied(self) -> bool:
        """Maps end at a synchronisation item, which all buckets have."""
        return True

    def combined(self) -> Node | None:
        return None

    def operator(self) -> Operator:
        return SynchronisedOperator(self)

    def describe(self) -> str:
        return f"{super().describe()}; items with {self.mapped.sync} in every bucket"


@dataclass(frozen=True, eq=False, kw_only=True)
class _Parts(Over):
    """A step that gives its part of every map, as rows."""

    def output_schema(self) -> pa.Schema:
        number = [pa.field(MAP, pa.int64()), pa.field(ENTRY, pa.bool_())]
        return pa.schema([*number, *super().output_schema()])

    def describe(self) -> str:
        return f"parts of maps: {super().describe()}"


@dataclass(frozen=True, eq=False, kw_only=True)
class PartsOfMaps(_Parts, OverSynchronised):
    """A bucket's part of every map: its entries, and one row that says that there is a map.

    Column MAP numbers the maps: every bucket sees the same synchronisation items, so all number alike.
    """

    def operator(self) -> Operator:
        return PartsOperator(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class PartsAtTicks(_Parts, OverEachKey):
    """The same for a map that comes at every tick and begins anew; MAP is the time of the tick.

    A bucket has the ticks from its first event on and, at the end of the stream, up to its last; where no
    bucket has a tick, the maps there are empty, and it is put in when they are united.
    """

    def operator(self) -> Operator:
        return TickedPartsOperator(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class TicksOf(Over):
    """The ticks of a stream, as events: all buckets have to know when its first event was."""

    def output_schema(self) -> pa.Schema:
        return pa.schema([(TICK, pa.bool_())])

    def combined(self) -> Node | None:
        return None

    def operator(self) -> Operator:
        return TickOperator(self)

    def describe(self) -> str:
        assert self.every is not None
        return f"ticks every {shown(self.every, self.time)}"


@dataclass(frozen=True, eq=False, kw_only=True)
class OverTicked(OverSynchronised):
    """A map-collect over a stream (by key) and its ticks (a copy for every bucket)."""

    def operator(self) -> Operator:
        return TickedOperator(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class PartsOfTicked(_Parts, OverTicked):
    """A bucket's part of every map; MAP is the time of the tick, and no bucket lacks one."""

    def operator(self) -> Operator:
        return PartsOfTickedOperator(self)


def ticks_of(source: Node, node: Over) -> TicksOf:
    """The ticks that a query over a stream wants; of the events only their times are sent."""
    times = Select(inputs=(source,), columns=((TICK, lit(True)),), place=node.place)
    anything = Atom(predicate=lit(True), items=items(times.schema, time=node.time))
    return TicksOf(inputs=(times,), query=anything, every=node.every, place=node.place)


@dataclass(frozen=True, eq=False, kw_only=True)
class OverParts(Over):
    """What a query makes of its maps, from their parts, all in one bucket."""

    def combined(self) -> Node | None:
        return None

    def operator(self) -> Operator:
        return UnitingOperator(self)

    def describe(self) -> str:
        return f"the maps united: {super().describe()}"


def spread(node: Over) -> Over | None:
    """The same maps, a part of each in every bucket; None where they come by ticks, or have to meet."""
    query = _inner(node.query)
    found = core(query)
    if node.lives != "point" or found is None or columns_of(found[0].by) is None:
        return None
    made = query is not node.query
    if made and machine_for(node.query, node.kernel).as_maps is None:
        return None
    own = {f.name: getattr(node, f.name) for f in fields(node) if f.name not in ("inputs", "query")}
    (source,) = node.inputs
    parts: Over
    if node.every is not None and made and anew_at_every_tick(*found):
        parts = PartsAtTicks(inputs=(source,), query=query, **own)
    elif node.every is not None:
        if ends(*found) or not by_tick(found[0]):
            return None
        ticked = (source, ticks_of(source, node))
        if not made:
            return OverTicked(inputs=ticked, query=query, **own)
        parts = PartsOfTicked(inputs=ticked, query=query, **own)
        own["every"] = None
    else:
        if asks_for_times(found[0].sync):
            return None
        alone = machine_for(query, node.kernel).as_maps
        if ends(*found) and (alone is None or not alone.collected):
            return None
        synced = Where(inputs=(source,), predicate=found[0].sync, place=node.place)
        if not made:
            return OverSynchronised(inputs=(source, synced), query=query, **own)
        parts = PartsOfMaps(inputs=(source, synced), query=query, **own)
    return OverParts(inputs=(parts,), **(own | {"query": node.query, "order_by": ()}))


def _inner(query: Query) -> Query:
    """What operations are applied to."""
    while isinstance(query, Combine) and len(query.parts) == 1:
        query = query.parts[0]
    return query


def _map_type(query: Query) -> MapOf:
    t = value_type(query)
    assert isinstance(t, MapOf)
    return t


class TwoInputs(QueryOperator):
    """Reads both inputs as one stream, as far as both have come."""

    def __init__(self, node: Over) -> None:
        super().__init__(node, ports=2)
        self._promised = MIN_TIME

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        bound = min(p.cti for p in self.promises)
        if bound <= self._promised:
            return []
        self._promised = bound
        items = self._advance(bound)
        if bound == INFINITY:
            self._end()
        return [*items, *definite(Pattern.before(bound))]

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._promised = min(p.cti for p in self.promises)


class SynchronisedOperator(TwoInputs):
    """Reads keyed items and, by the other input, synchronisation items."""

    def __init__(self, node: OverSynchronised) -> None:
        super().__init__(node)
        self._is_sync = compile_predicate(node.mapped.sync, self.source, time=node.time)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        """Synchronisation items come by the other input; here they were sent by a key they may not have."""
        if port == 0:
            page = page.filter(~self._is_sync(page.payload, page.le, page.re))
        return super().page(port, page)


class TickedOperator(TwoInputs):
    """Reads events and, by the other input, the ticks of the whole stream."""

    def __init__(self, node: OverTicked) -> None:
        super().__init__(node)
        self.weaver = Received()

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if port == 0:
            return super().page(port, page)
        assert isinstance(self.weaver, Received)
        self.weaver.take(page.le)
        return []


class PartsOperator(SynchronisedOperator):
    """Reads as the others do, and gives its parts of the maps as rows."""

    def __init__(self, node: PartsOfMaps) -> None:
        super().__init__(node)
        self._maps = 0

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        if len(le) == 0:
            return []
        self._changed = True
        maps = self.as_maps.maps(batch, le)
        self._note_departed(batch, le)
        self._note()
        numbers = self._maps + np.arange(len(maps.rows))
        self._maps += len(numbers)
        return _parts(self.node, maps, le[maps.rows], numbers)

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "maps": self._maps}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._maps = meta["maps"]


class TickedPartsOperator(QueryOperator):
    """The parts of maps that come at ticks."""

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        return _ticked_parts(self, batch, le, end)


class PartsOfTickedOperator(TickedOperator):
    """The same, for ticks of the whole stream."""

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        return _ticked_parts(self, batch, le, end)


class TickOperator(QueryOperator):
    """Gives the ticks of a stream as events."""

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        assert self.weaver is not None
        due = self.weaver.due(end, le)
        self._changed = True
        marks = pa.RecordBatch.from_arrays([pa.array(np.ones(len(due), np.bool_))], schema=self.node.schema)
        return [Page(due, due + 1, marks)] if len(due) else []


def _ticked_parts(op: QueryOperator, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
    assert op.weaver is not None
    ticks = op.weaver.due(end, le)
    if len(le) == 0 and len(ticks) == 0:
        return []
    op._changed = True
    maps, times = op.as_maps.ticked_maps(batch, le, ticks)
    op._note()
    return _parts(op.node, maps, times, times)


def _parts(node: Over, maps: Maps, times: I64, numbers: I64) -> list[Item]:
    """A row for each map, and one for each entry."""
    if len(times) == 0:
        return []
    sizes = np.diff(np.append(maps.starts, len(maps.values)))
    entry_columns = [*maps.keys.columns, *flat(maps.values, _map_type(node.query).value).columns]
    padded = [pa.concat_arrays([pa.nulls(len(sizes), c.type), c]) for c in entry_columns]
    entry = np.repeat([False, True], [len(sizes), len(maps.values)])
    number, le = (np.append(a, np.repeat(a, sizes)) for a in (numbers, times))
    made = [pa.array(number), pa.array(entry), *padded]
    return [Page(le, le + 1, pa.RecordBatch.from_arrays(made, schema=node.schema))]


class UnitingOperator(QueryOperator):
    """Waits for all parts of a map, and then answers from the whole; entries go by their keys."""

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        if len(le) == 0:
            return []
        number, entry = batch.column(0).to_numpy(), batch.column(1).to_numpy(zero_copy_only=False)
        numbers, first = np.unique(number, return_index=True)
        times = le[first]
        if self.weaver is not None:
            numbers = times = self._without_gaps(numbers, self.weaver)
        entries = batch.filter(pa.array(entry))
        starts = np.searchsorted(number[entry], numbers)
        value = _map_type(_inner(self.node.query)).value
        keys = batch.num_columns - len(columns(value))
        entry_columns = entries.columns[keys:]
        values = entry_columns[0]
        if isinstance(value, Record):
            values = pa.StructArray.from_arrays(entry_columns, names=[n for n, _ in value.fields])
        maps = Maps(np.arange(len(numbers)), starts, entries.select(list(range(2, keys))), values)
        rows, out = self.as_maps.of_maps(maps, batch, len(numbers))
        self._changed = True
        return [Page(times[rows], times[rows] + 1, out)] if len(rows) else []

    def _without_gaps(self, ticks: I64, weaver: Weaver) -> I64:
        """All ticks from the last that was read to the last of these."""
        first = int(ticks[0]) if weaver.next is None else weaver.next
        weaver.next = int(ticks[-1]) + weaver.every
        return np.arange(first, weaver.next, weaver.every)
