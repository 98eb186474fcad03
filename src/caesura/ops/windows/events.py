"""The events that windows may still need: counted by value, numbered by group, ordered by time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.delta import Deltas
from caesura.events.identity import identity
from caesura.events.page import take_rows
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, U64, mix_int
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.ops.windows.index import Ordered


class Events:
    """Rows of (group, lifetime, values) with how often each is there."""

    def __init__(self, keys: pa.Schema, values: Sequence[pa.Field]) -> None:
        self.width = len(keys)
        fields = [pa.field(f"k{i}", f.type) for i, f in enumerate(keys)]
        fields += [pa.field(f"v{i}", f.type) for i, f in enumerate(values)]
        own = {"h1": np.uint64, "h2": np.uint64, "le": np.int64, "re": np.int64, "n": np.int64}
        self.rows = RowState(own, pa.schema(fields))
        self.index()

    def index(self) -> I64 | None:
        """Numbers and orders the live rows anew; gives old row numbers by new ones if they moved."""
        rows = self.rows
        moved = rows.compact() if rows.live < rows.size else None
        self.groups, self._values = KeyTable(), KeyTable()
        self.starts, self.ends = Ordered(), Ordered()
        self.group = Grown(np.int64)
        number, _ = self.groups.encode(rows.get("h1"), rows.get("h2"))
        self.group.extend(number)
        le, re = rows.get("le"), rows.get("re")
        self._values.encode(*_ids(identity(rows.payload.all().columns, rows.size), le, re))
        self._order(number, np.arange(rows.size), le, re)
        return moved

    def _order(self, group: I64, row: I64, le: I64, re: I64) -> None:
        self.starts.add(group, le, row, re)
        self.ends.add(group, re, row)

    def apply(
        self, change: Deltas, keys: pa.RecordBatch, values: Sequence[pa.Array], ids: tuple[U64, U64]
    ) -> None:
        """Counts events that come and go; ``ids`` are those of the groups."""
        columns = [*keys.columns, *values]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.rows.schema) if columns else keys
        batch = take_rows(batch, change.rows)
        h1, h2 = ids[0][change.rows], ids[1][change.rows]
        at, fresh = self._values.encode(
            *_ids(identity(batch.columns, len(change.rows)), change.le, change.re)
        )
        if len(fresh):
            le, re = change.le[fresh], change.re[fresh]
            fields = {"h1": h1[fresh], "h2": h2[fresh], "le": le, "re": re}
            fields["n"] = np.zeros(len(fresh), np.int64)
            first = self.rows.append(fields, take_rows(batch, fresh))
            group = self.groups.find(h1[fresh], h2[fresh])
            self.group.extend(group)
            self._order(group, np.arange(first, first + len(fresh)), le, re)
        add_weights(at, change.weight, self.rows.get("n"))
        some = distinct(at, self.rows.size)
        self.rows.touch(some)
        self.rows.keep(some, self.rows.get("n")[some] > 0)

    def keys_of(self, rows: I64) -> list[pa.Array]:
        """The key columns of some rows."""
        return list(self.rows.payload.take(rows).columns[: self.width])

    def values_of(self, rows: I64) -> list[pa.Array]:
        """The value columns of some rows."""
        return list(self.rows.payload.take(rows).columns[self.width :])

    def live_groups(self) -> tuple[I64, I64]:
        """The numbers of the groups that have live rows, and a row of each."""
        live = np.flatnonzero(self.rows.alive)
        groups, first = np.unique(self.group.view[live], return_index=True)
        return groups, live[first]


def distinct(numbers: I64, size: int) -> I64:
    """Numbers below ``size``, each once, ascending; by marking where that is cheaper than sorting."""
    if 8 * len(numbers) < size:
        return np.unique(numbers)
    there = np.zeros(size, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there)


def _ids(ids: tuple[U64, U64], le: I64, re: I64) -> tuple[U64, U64]:
    every = np.arange(len(le))
    h1, h2 = np.empty(len(le), np.uint64), np.empty(len(le), np.uint64)
    mix_int(ids[0], ids[1], every, le, h1, h2)
    mix_int(h1, h2, every, re, h1, h2)
    return h1, h2
