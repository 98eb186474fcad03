"""A store that keeps wide values where they came from: in the arrays of the pages, by place.

Texts, binary and nested values are not copied when a row is taken in, when others go, or when a row is
named in a result (`Deferred`), but once, when somebody looks. Arrays of which more than half is dead are
written anew.

>>> store = ReferredStore(pa.schema([("name", pa.string()), ("n", pa.int64())]))
>>> store.append(pa.record_batch({"name": ["a", "bc", None], "n": [1, None, 3]}), np.array([2, 1]))
>>> store.take(np.array([1, 0])).to_pylist()
[{'name': 'bc', 'n': None}, {'name': None, 'n': 3}]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from caesura.events.columns import ColumnStore, FixedColumn, Grown, StoreColumn, empty_rows, new_column
from caesura.events.paging import HeldArray, StatePages
from caesura.kernels.hashing import I64

SPARE = 4096
"""So many dead values are carried along without a thought."""
WHOLE = 1 << 15
"""Arrays of so many values are not put together with others."""

SHARED = 4
"""An array is referred to if at least one of so many of its values is wanted."""
LARGE = 1 << 30
"""Arrays of more bytes are not put together: offsets have 32 bits."""


class ReferredColumn:
    """Values of any type: the arrays that hold them, and where each lies, counted over all arrays."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t
        self.at = Grown(np.int64)
        self.pages: StatePages | None = None
        """Where arrays go that do not fit into memory."""
        self._hold([])

    def _hold(self, arrays: list[HeldArray]) -> None:
        """Takes these arrays, of which small neighbours are put together."""
        held: list[HeldArray] = []
        for array in arrays:
            held.append(array)
            while len(held) > 1 and len(held[-2]) < min(2 * len(held[-1]), WHOLE):
                held[-2:] = [HeldArray(pa.concat_arrays([one.values for one in held[-2:]]))]
        self.arrays = held
        self._starts = np.concatenate([[0], np.cumsum([len(array) for array in held])]).astype(np.int64)
        if self.pages is not None:
            self.pages.watch(held)

    def hold(self, values: pa.Array, every: Grown) -> None:
        """Takes an array as it lies, given the places of all its values."""
        self.at = every
        self._hold([HeldArray(values)])

    @property
    def held(self) -> int:
        """How many values the arrays have, dead ones included."""
        return int(self._starts[-1])

    def append(self, values: pa.Array, rows: I64 | None = None) -> None:
        """Values of an array, by default all; of an array of which few are wanted a copy is made."""
        if rows is not None and SHARED * len(rows) < len(values):
            values, rows = values.take(pa.array(rows)), None
        if len(values) == 0:
            return
        places = np.arange(len(values)) if rows is None else rows
        self.at.extend(places + self.held)
        self._hold([*self.arrays, HeldArray(values)])

    def refer(self, other: ReferredColumn, rows: I64) -> None:
        """Values of another column; its arrays are held here too."""
        which, within = other.places(rows)
        known = {array: int(start) for array, start in zip(self.arrays, self._starts, strict=False)}
        arrays, end = list(self.arrays), self.held
        starts = np.zeros(len(other.arrays), np.int64)
        for i in np.flatnonzero(np.bincount(which, minlength=len(starts))).tolist():
            array = other.arrays[i]
            if array not in known:
                known[array] = end
                arrays.append(array)
                end += len(array)
            starts[i] = known[array]
        self.at.extend(within + starts[which])
        self._hold(arrays)

    def places(self, rows: I64) -> tuple[I64, I64]:
        """The array of each of these rows, and where in it the value lies."""
        at = self.at.view[rows]
        if len(self.arrays) == 1:
            return np.zeros(len(at), np.int64), at
        which = np.searchsorted(self._starts[1:], at, side="right")
        return which, at - self._starts[which]

    def in_runs(self, rows: I64) -> list[pa.Array] | None:
        """The values of these rows, array by array; None where they change from one to another often."""
        if len(self.arrays) == 1:
            return [self.arrays[0].values.take(pa.array(self.at.view[rows]))]
        which, within = self.places(rows)
        cuts = np.flatnonzero(which[1:] != which[:-1]) + 1
        if len(cuts) > len(self.arrays):
            return None
        ends = [0, *cuts.tolist(), len(rows)] if len(rows) else []
        return [self.arrays[which[a]].values.take(pa.array(within[a:b])) for a, b in pairwise(ends)]

    def frozen(self) -> ReferredColumn:
        """The column as it is now, whatever is added or let go later."""
        other = ReferredColumn(self.type)
        other.arrays, other._starts, other.at = self.arrays, self._starts, self.at.frozen()
        return other

    def take(self, rows: I64) -> pa.Array:
        return gathered([(self, rows)])

    def compact(self, keep: I64) -> None:
        if self.held <= 2 * len(keep) + SPARE:
            self.at.keep(keep)
            return
        which, within = self.places(keep)
        live = np.bincount(which, minlength=len(self.arrays))
        arrays: list[HeldArray] = []
        starts = np.zeros(len(self.arrays), np.int64)
        end = 0
        for i in np.flatnonzero(live).tolist():
            array = self.arrays[i]
            if 2 * live[i] < len(array):
                some = np.flatnonzero(which == i)
                array = HeldArray(array.values.take(pa.array(within[some])))
                within[some] = np.arange(len(some))
            arrays.append(array)
            starts[i] = end
            end += len(array)
        self.at.replace(within + starts[which])
        self._hold(arrays)

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.arrays)) + 8 * self.at.size


def gathered(parts: Sequence[tuple[ReferredColumn, I64]]) -> pa.Array:
    """The values of rows of columns that may share arrays, one behind the other."""
    runs = [column.in_runs(rows) for column, rows in parts]
    rest = _of_shared_arrays([part for part, own in zip(parts, runs, strict=True) if own is None])
    pieces: list[pa.Array] = []
    used = 0
    for (_, rows), own in zip(parts, runs, strict=True):
        if own is None:
            pieces.append(rest.slice(used, len(rows)))
            used += len(rows)
        else:
            pieces += own
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays(pieces) if pieces else pa.array([], parts[0][0].type)


def _of_shared_arrays(parts: Sequence[tuple[ReferredColumn, I64]]) -> pa.Array:
    arrays: list[HeldArray] = []
    known: dict[HeldArray, int] = {}
    numbers: list[I64] = []
    places: list[I64] = []
    for column, rows in parts:
        which, within = column.places(rows)
        number = np.zeros(max(1, len(column.arrays)), np.int64)
        for i in np.flatnonzero(np.bincount(which, minlength=len(number))).tolist():
            array = column.arrays[i]
            if array not in known:
                known[array] = len(arrays)
                arrays.append(array)
            number[i] = known[array]
        numbers.append(number[which])
        places.append(within)
    if not arrays:
        return pa.array([], pa.null())
    which, within = np.concatenate(numbers), np.concatenate(places)
    held, size = sum(map(len, arrays)), sum(array.nbytes for array in arrays)
    if len(arrays) == 1:
        return arrays[0].values.take(pa.array(within))
    if 4 * len(within) < held or size > LARGE or any(array.paged for array in arrays):
        return _array_by_array(arrays, which, within)
    starts = np.cumsum([0, *(len(array) for array in arrays)])
    return pa.concat_arrays([array.values for array in arrays]).take(pa.array(within + starts[which]))


def _array_by_array(arrays: Sequence[HeldArray], which: I64, within: I64) -> pa.Array:
    """The values at places of arrays, of which none is copied as a whole; one after another is looked at."""
    order = np.argsort(which, kind="stable")
    cuts = np.searchsorted(which[order], np.arange(len(arrays) + 1)).tolist()
    found = [
        array.values.take(pa.array(within[order[begin:end]]))
        for array, begin, end in zip(arrays, cuts, cuts[1:], strict=False)
    ]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(found).take(pa.array(back))


class ReferredStore(ColumnStore):
    """Rows whose wide columns are referred to, and whose others are copied."""

    shares = True

    @staticmethod
    def _column(t: pa.DataType) -> StoreColumn:
        column = new_column(t)
        return column if isinstance(column, FixedColumn) else ReferredColumn(t)

    def append(self, batch: pa.RecordBatch, rows: I64 | None = None) -> None:
        """Rows of a batch, by default all, behind those there are."""
        for column, values in zip(self.columns, batch.columns, strict=True):
            assert isinstance(column, (ReferredColumn, FixedColumn))
            column.append(values, rows)
        self.size += batch.num_rows if rows is None else len(rows)

    def page_to(self, pages: StatePages) -> None:
        """From now on wide values beyond a budget lie on the disk."""
        for column in self.columns:
            if isinstance(column, ReferredColumn):
                column.pages = pages

    def refer(self, some: Deferred) -> None:
        """Rows of other stores, whose wide values are held where they are."""
        stored = len(some.schema) - len(some.beside)
        for place, column in enumerate(self.columns):
            if place >= stored:
                column.append(some.column(place))
                continue
            for other, rows in some.parts_of(place):
                assert isinstance(column, ReferredColumn) == isinstance(other, ReferredColumn)
                column.refer(other, rows)  # type: ignore[attr-defined]
        self.size += len(some)

    @staticmethod
    def over(batch: pa.RecordBatch) -> ReferredStore:
        """The rows of a batch, of which nothing is copied; none may be added."""
        store, every = ReferredStore(batch.schema), Grown(np.int64, 0)
        every.replace(np.arange(batch.num_rows))
        store.size = batch.num_rows
        for column, values in zip(store.columns, batch.columns, strict=True):
            if isinstance(column, ReferredColumn):
                column.hold(values, every)
            elif isinstance(column, FixedColumn):
                column.hold(values)
        return store

    def frozen(self, columns: Sequence[int] | None = None) -> ReferredStore:
        """Some columns, by default all, as they are now, whatever comes or goes later; nothing is copied."""
        some = range(len(self.columns)) if columns is None else columns
        other = ReferredStore(pa.schema([]))
        other.schema, other.size = pa.schema([self.schema.field(place) for place in some]), self.size
        held = [self.columns[place] for place in some]
        other.columns = [c.frozen() for c in held if isinstance(c, (FixedColumn, ReferredColumn))]
        return other

    def picked(self, rows: I64, beside: Sequence[I64], schema: pa.Schema) -> ReferredStore:
        """Some rows as a store of their own, with columns of numbers behind theirs; wide values stay."""
        other = ReferredStore(schema)
        other.size = len(rows)
        for column, own in zip(other.columns, self.columns, strict=False):
            if isinstance(column, ReferredColumn) and isinstance(own, ReferredColumn):
                column.refer(own, rows)
            else:
                column.append(own.take(rows))
        for column, numbers in zip(other.columns[len(self.columns) :], beside, strict=True):
            column.append(pa.array(numbers))
        return other


@dataclass(frozen=True)
class Deferred:
    """Rows of stores as they were, part behind part, and columns of numbers beside them."""

    parts: tuple[tuple[ReferredStore, I64], ...]
    beside: tuple[I64, ...]
    schema: pa.Schema

    @staticmethod
    def of(store: ColumnStore, rows: I64, beside: tuple[I64, ...], schema: pa.Schema) -> Deferred:
        """Rows of a store as it is now."""
        assert isinstance(store, ReferredStore)
        return Deferred(((store.frozen(), rows),), beside, schema)

    @staticmethod
    def joined(some: Sequence[Deferred]) -> Deferred:
        """All of them, one behind the other."""
        if len({len(s.beside) for s in some}) > 1:
            some = [s.stored() for s in some]
        beside = tuple(np.concatenate(columns) for columns in zip(*(s.beside for s in some), strict=True))
        return Deferred(tuple(part for s in some for part in s.parts), beside, some[0].schema)

    def stored(self) -> Deferred:
        """The same, with the numbers beside in stores too."""
        if not self.beside:
            return self
        parts, begin = [], 0
        for store, rows in self.parts:
            own = [numbers[begin : begin + len(rows)] for numbers in self.beside]
            parts.append((store.picked(rows, own, self.schema), np.arange(len(rows))))
            begin += len(rows)
        return Deferred(tuple(parts), (), self.schema)

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self.parts)

    def take(self, rows: I64) -> Deferred | None:
        """Some rows; None where they are not in order and of several parts."""
        beside = tuple(column[rows] for column in self.beside)
        if len(self.parts) == 1:
            store, own = self.parts[0]
            return Deferred(((store, own[rows]),), beside, self.schema)
        if (rows[1:] < rows[:-1]).any():
            return None
        ends = np.cumsum([len(own) for _, own in self.parts])
        cuts = np.searchsorted(rows, ends)
        parts, first, begin = [], 0, 0
        for (store, own), cut, end in zip(self.parts, cuts.tolist(), ends.tolist(), strict=True):
            parts.append((store, own[rows[first:cut] - begin]))
            first, begin = cut, end
        return Deferred(tuple(parts), beside, self.schema)

    def parts_of(self, place: int) -> list[tuple[StoreColumn, I64]]:
        """The parts of one column."""
        return [(store.columns[place], rows) for store, rows in self.parts]

    def column(self, place: int) -> pa.Array:
        """The values of one column."""
        stored = len(self.schema) - len(self.beside)
        if place >= stored:
            return pa.array(self.beside[place - stored])
        referred = [(c, rows) for c, rows in self.parts_of(place) if isinstance(c, ReferredColumn)]
        if referred:
            return gathered(referred)
        taken = [column.take(rows) for column, rows in self.parts_of(place)]
        if not taken:
            return pa.array([], self.schema.field(place).type)
        return taken[0] if len(taken) == 1 else pa.concat_arrays(taken)

    def batch(self) -> pa.RecordBatch:
        """The columns."""
        if len(self.schema) == 0:
            return empty_rows(len(self))
        columns = [self.column(place) for place in range(len(self.schema))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
