"""The events that windows may still need: counted by value, numbered by group, ordered by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.delta import Deltas
from caesura.events.identity import Secret, identity
from caesura.events.page import take_rows
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, distinct
from caesura.ops.ordered import Ordered
from caesura.punctuation import Pattern


@kernel
def first_rows(alive: Mask, group: I64, first: I64) -> None:
    """The first live row of each group, where there is one."""
    for i in range(len(alive)):
        if alive[i] and first[group[i]] < 0:
            first[group[i]] = i


class WindowEvents:
    """Rows of (group, lifetime, values) with how often each is there."""

    def __init__(
        self, keys: pa.Schema, values: Sequence[pa.Field], secret: Secret, *, counted: bool = True
    ) -> None:
        self._secret = secret
        self.width = len(keys)
        self._counted = counted
        """Whether events that are equal share a row; where none is ever taken back, each has its own."""
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
        self._starts, self._ends, self._started, self._ended = Ordered(), Ordered(), 0, 0
        self.group = Grown(np.int64)
        number, _ = self.groups.encode(rows.get("h1"), rows.get("h2"))
        self.group.extend(number)
        if self._counted:
            ids = identity(rows.payload.all().columns, rows.size, self._secret)
            self._values.encode(*mixed(ids, rows.get("le"), rows.get("re")))
        return moved

    @property
    def starts(self) -> Ordered:
        """The rows by (group, start); brought up to date when it is asked for."""
        first, self._started = self._started, self.rows.size
        if first < self.rows.size:
            le, re = self.rows.get("le")[first:], self.rows.get("re")[first:]
            self._starts.add(self.group.view[first:], le, np.arange(first, self.rows.size), re)
        return self._starts

    @property
    def ends(self) -> Ordered:
        """The rows by (group, end)."""
        first, self._ended = self._ended, self.rows.size
        if first < self.rows.size:
            re = self.rows.get("re")[first:]
            self._ends.add(self.group.view[first:], re, np.arange(first, self.rows.size))
        return self._ends

    def apply(
        self, change: Deltas, keys: pa.RecordBatch, values: Sequence[pa.Array], ids: tuple[U64, U64]
    ) -> I64:
        """Counts events that come and go; ``ids`` are those of the groups. Gives the row of each change."""
        columns = [*keys.columns, *values]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.rows.schema) if columns else keys
        if len(change.rows) != batch.num_rows or change.rows[-1] != len(change.rows) - 1:
            batch, ids = take_rows(batch, change.rows), (ids[0][change.rows], ids[1][change.rows])
        if not self._counted:
            first = self._append(*ids, change.le, change.re, change.weight, batch)
            return np.arange(first, first + len(change.le))
        at, fresh = self._values.encode(
            *mixed(identity(batch.columns, len(change.le), self._secret), change.le, change.re)
        )
        if len(fresh):
            none = np.zeros(len(fresh), np.int64)
            new = ids[0][fresh], ids[1][fresh], change.le[fresh], change.re[fresh]
            self._append(*new, none, take_rows(batch, fresh))
        add_weights(at, change.weight, self.rows.get("n"))
        some = distinct(at, self.rows.size)
        self.rows.touch(some)
        self.rows.keep(some, self.rows.get("n")[some] > 0)
        return at

    def _append(self, h1: U64, h2: U64, le: I64, re: I64, n: I64, batch: pa.RecordBatch) -> int:
        first = self.rows.append({"h1": h1, "h2": h2, "le": le, "re": re, "n": n}, batch)
        self.group.extend(self.groups.find(h1, h2))
        return first

    def keys_of(self, rows: I64) -> list[pa.Array]:
        """The key columns of some rows."""
        return [column.take(rows) for column in self.rows.payload.columns[: self.width]]

    def values_of(self, rows: I64) -> list[pa.Array]:
        """The value columns of some rows."""
        return [column.take(rows) for column in self.rows.payload.columns[self.width :]]

    def live_groups(self) -> tuple[I64, I64]:
        """The numbers of the groups that have live rows, and a row of each."""
        first = np.full(self.groups.count, -1, np.int64)
        first_rows(self.rows.alive, self.group.view, first)
        groups = np.flatnonzero(first >= 0)
        return groups, first[groups]

    def placed(self, groups: I64) -> tuple[Mask, I64, I64, I64, I64]:
        """All rows for a loop: which live, their groups, where each group lies among some (or -1), LE, RE."""
        where = np.full(self.groups.count, -1, np.int64)
        where[groups] = np.arange(len(groups))
        return self.rows.alive, self.group.view, where, self.rows.get("le"), self.rows.get("re")

    def matching(self, own: Pattern, times: Pattern, names: Sequence[str]) -> I64:
        """The live rows with such keys and values, by their names in order, and such lifetimes."""
        live = np.flatnonzero(self.rows.alive)
        columns: dict[str, Any] = {"LE": self.rows.get("le")[live], "RE": self.rows.get("re")[live]}
        payload = self.rows.payload.take(live).columns
        columns |= {name: payload[i] for i, name in reversed(list(enumerate(names)))}
        return live[own.matches(columns) & times.matches(columns)]
