"""What a query applies to its maps: by columns where it is an aggregate of them, else in Python."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.qre.checking.inference import part_types, value_type
from caesura.qre.engine.machine import Answered
from caesura.qre.engine.map_columns import Maps
from caesura.qre.engine.outputs import as_rows, at_rows, flat, output_schema
from caesura.qre.kernels.segments import Entries, aggregated, by_columns
from caesura.qre.language.query import Combine, MapCollect, Query, walk
from caesura.qre.language.scalar import Closure
from caesura.qre.language.types import MapOf, to_arrow
from caesura.qre.language.whole_numbers import fits, no_value, whole


def without_operations(query: Query) -> Query:
    """The map of a query that applies operations to maps, one after the other."""
    while isinstance(query, Combine) and len(query.parts) == 1 and _gives_maps(query):
        query = query.parts[0]
    return query


def _gives_maps(query: Combine) -> bool:
    return any(isinstance(node, MapCollect) for node in walk(query))


class AppliedToMaps:
    """The operations of a query on its maps."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.schema = output_schema(query)
        self.ops: list[tuple[str, Closure]] = []
        """The operations, innermost first, each with the name that it knows its map by."""
        while isinstance(query, Combine) and len(query.parts) == 1 and _gives_maps(query):
            self.ops.insert(0, (query.names[0], query.op.closure(part_types(query))))
            query = query.parts[0]

    def rows(self, maps: Maps, batch: pa.RecordBatch, count: int) -> Answered:
        """What the query makes of so many maps."""
        reduced = self._reduced(maps)
        if reduced is not None:
            out = flat(reduced, value_type(self.query))
            return maps.rows, pa.RecordBatch.from_arrays(out.columns, schema=self.schema)
        if self.ops:
            return as_rows(self.query, at_rows(maps.rows, self.values(maps), count), batch, self.schema)
        sizes = np.diff(np.append(maps.starts, len(maps.values)))
        return np.repeat(maps.rows, sizes), self.entries(maps)

    def entries(self, maps: Maps) -> pa.RecordBatch:
        """Maps as output rows, where nothing is applied to them."""
        t = value_type(self.query)
        assert isinstance(t, MapOf)
        columns = [*maps.keys.columns, *flat(maps.values, t.value).columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def values(self, maps: Maps) -> list[Any]:
        """The maps as Python values, with the operations applied."""
        reduced = self._reduced(maps)
        if reduced is not None:
            return reduced.to_pylist()  # type: ignore[no-any-return]
        keys = [c.to_pylist() for c in maps.keys.columns]
        named = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        values = maps.values.to_pylist()
        out: list[Any] = []
        for begin, end in pairwise([*maps.starts.tolist(), len(maps.values)]):
            value: Any = dict(zip(named[begin:end], values[begin:end], strict=True))
            for name, op in self.ops:
                value = op({name: value})
            if not fits(value):
                raise no_value("a map's item", whole(value))
            out.append(value)
        return out

    def _reduced(self, maps: Maps) -> pa.Array | None:
        """The one operation on all maps at once, where it is an aggregate of their columns."""
        if len(self.ops) != 1 or len(maps.keys.columns) != 1 or not isinstance(self.query, Combine):
            return None
        got = aggregated(self.query.op, Entries(maps.starts, maps.keys.column(0), maps.values))
        return None if got is None else got.cast(to_arrow(value_type(self.query)))

    def describe(self, *, keys: int) -> str:
        """How the operations run, on maps with so many parts of a key."""
        one = len(self.ops) == 1 and keys == 1 and isinstance(self.query, Combine)
        fast = one and isinstance(self.query, Combine) and by_columns(self.query.op)
        return f", applied to maps {'by columns' if fast else 'in Python'}"
