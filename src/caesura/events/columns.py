"""Growing columns that an operator keeps its rows in: append, take, compact.

Appending costs what it copies (capacity doubles), taking is one gather, and compacting keeps the
rows named. All types of `events.types` are held the same way, nulls included.

>>> store = ColumnStore(pa.schema([("name", pa.string()), ("n", pa.int64())]))
>>> store.append(pa.record_batch({"name": ["a", "bc", None], "n": [1, None, 3]}))
>>> store.take(np.array([2, 1])).to_pylist()
[{'name': None, 'n': 3}, {'name': 'bc', 'n': None}]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from caesura.events.nested import (
    NO_MASK,
    bitmap,
    element_type,
    elements,
    is_list,
    listed,
    offsets_of,
    ranges,
    struct_of,
    validity,
)
from caesura.events.types import is_bytes, word_type
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, Mask, frozen
from caesura.plain_arrays import plain_array, plain_numbers

SHORT_GATHER = 256
"""So many rows are taken by NumPy."""
MAX_HEAP = 1 << 30
"""Texts of so many bytes have offsets of 32 bits."""


MANY, AHEAD = 1 << 16, 3
"""Columns of so many values have room for so many times as many when they grow."""
ROOM = 1 << 15
"""Room for so many values is kept, however few there are: who lets go of most soon has as many again."""


class Grown:
    """A NumPy array with spare room at its end."""

    __slots__ = ("data", "size")

    def __init__(self, dtype: Any, capacity: int = 16) -> None:
        self.data: np.ndarray[Any, Any] = np.empty(capacity, dtype)
        self.size = 0

    def frozen(self) -> Grown:
        """The values as they are now, whatever is added or replaced later; nothing is copied."""
        other = Grown(self.data.dtype, 0)
        other.data, other.size = self.data, self.size
        return other

    def extend(self, values: np.ndarray[Any, Any]) -> None:
        end = self.size + len(values)
        self._make_room(end)
        self.data[self.size : end] = values
        self.size = end

    def repeat(self, value: Any, count: int) -> None:
        """So many times a value behind the others."""
        end = self.size + count
        self._make_room(end)
        self.data[self.size : end] = value
        self.size = end

    def _make_room(self, end: int) -> None:
        if end > len(self.data):
            # Room that nothing was written to costs no memory, and moving what is there costs most.
            self._grow(AHEAD * end if end >= MANY else max(end, 2 * len(self.data)))

    def extend_from(self, values: np.ndarray[Any, Any], rows: I64) -> None:
        """The named ones of some values behind the others."""
        self._make_room(self.size + len(rows))
        _take_into(values, rows, self.data[self.size : self.size + len(rows)])
        self.size += len(rows)

    def reserve(self, count: int) -> None:
        """Makes room for so many values more, and some: they are then added without a copy of the others."""
        if self.size + count > len(self.data):
            self._grow(self.size + count + count // 8)

    def _grow(self, capacity: int) -> None:
        grown = np.empty((capacity, *self.data.shape[1:]), self.data.dtype)
        grown[: self.size] = self.data[: self.size]
        self.data = grown

    @property
    def view(self) -> np.ndarray[Any, Any]:
        return self.data[: self.size]

    def replace(self, values: np.ndarray[Any, Any]) -> None:
        """Takes these values instead, as they lie."""
        self.data, self.size = values, len(values)

    def fill(self, value: Any, count: int, *, reuse: bool = False) -> None:
        """So many times a value, no more than there are, with as much room as `keep` leaves."""
        if self._too_much(count):
            self.data = np.empty(count, self.data.dtype)
        elif not reuse:
            self.data = np.empty(len(self.data), self.data.dtype)
        self.data[:count] = value
        self.size = count

    def _too_much(self, count: int) -> bool:
        """Whether so many values need not keep the room there is."""
        return len(self.data) > ROOM and 4 * count < len(self.data)

    def cut(self, count: int) -> None:
        """Only the first so many values, where they lie if `keep` would leave as much room."""
        self.data = self.data[:count].copy() if self._too_much(count) else self.data
        self.size = count

    def keep(self, rows: I64, *, reuse: bool = False) -> None:
        """Only the named values, in new memory with as much room as there was, if it would not stand empty.

        With ``reuse`` they, ascending, are moved within the old memory. Views of the old values stay as they
        are only if it is not reused.

        >>> some = Grown(np.int64)
        >>> some.extend(np.array([7, 8, 9]))
        >>> some.keep(np.array([0, 2]))
        >>> some.view.tolist(), len(some.data)
        ([7, 9], 16)
        """
        count, shape = len(rows), self.data.shape
        if self._too_much(count):
            shape, reuse = (count, *shape[1:]), False
        if reuse:
            _move_up(self.view, rows)
        else:
            kept = np.empty(shape, self.data.dtype)
            _take_into(self.view, rows, kept[:count])
            self.data = kept
        self.size = count


class StoreColumn(Protocol):
    """One column of a store."""

    def append(self, values: pa.Array) -> None: ...
    def take(self, rows: I64) -> pa.Array: ...
    def compact(self, keep: I64) -> None: ...
    @property
    def nbytes(self) -> int: ...


def words(values: pa.Array) -> np.ndarray[Any, Any]:
    """A fixed-width column's memory as NumPy, whatever lies under the nulls."""
    if pa.types.is_boolean(values.type):
        filled = values.fill_null(False) if values.null_count else values
        return plain_numbers(filled).view(np.uint8)
    dtype = word_type(values.type)
    data = None if pa.types.is_null(values.type) else values.buffers()[1]
    if data is None or len(values) == 0:
        return np.zeros(len(values), dtype)
    return np.frombuffer(data, dtype, len(values), values.offset * np.dtype(dtype).itemsize)


def from_words(data: np.ndarray[Any, Any], valid: Mask, t: pa.DataType) -> pa.Array:
    """The Arrow column with this memory."""
    nulls = bitmap(valid)
    if pa.types.is_boolean(t):
        return pa.array(data.view(np.bool_), mask=None if nulls is None else ~valid)
    count = -1 if nulls is not None else 0
    return pa.Array.from_buffers(t, len(data), [nulls, pa.py_buffer(np.ascontiguousarray(data))], count)


@kernel
def gather(values: np.ndarray[Any, Any], rows: I64, out: np.ndarray[Any, Any]) -> None:
    """The named values one behind the other."""
    for i in range(len(rows)):
        out[i] = values[rows[i]]


@kernel
def move_up(values: np.ndarray[Any, Any], rows: I64) -> None:
    """The named values, ascending, one behind the other at the beginning."""
    for i in range(len(rows)):
        values[i] = values[rows[i]]


def taken(values: np.ndarray[Any, Any], rows: I64) -> np.ndarray[Any, Any]:
    """The named values; much faster than NumPy where they do not lie in fast memory."""
    if len(rows) < SHORT_GATHER or values.dtype.kind == "V" or values.ndim > 1:
        return values.take(rows, 0)
    out = np.empty(len(rows), values.dtype)
    _take_into(values, rows, out)
    return out


def _take_into(values: np.ndarray[Any, Any], rows: I64, out: np.ndarray[Any, Any]) -> None:
    """The named values, into memory that is there."""
    if len(rows) < SHORT_GATHER or values.dtype.kind == "V" or values.ndim > 1:
        values.take(rows, 0, out)
        return
    if values.dtype.kind != "i":  # a kernel is compiled once for each kind of array
        width = f"i{values.dtype.itemsize}"
        values, out = values.view(width), out.view(width)
    gather(frozen(values), frozen(rows), out)


def _move_up(values: np.ndarray[Any, Any], rows: I64) -> None:
    """The named values, ascending, to the beginning of the memory that they lie in."""
    if len(rows) < SHORT_GATHER or values.dtype.kind == "V" or values.ndim > 1:
        values[: len(rows)] = values.take(rows, 0)
        return
    move_up(values.view(f"i{values.dtype.itemsize}"), frozen(rows))


class _Valid:
    """The null flags of a growing column; costs nothing until the first null."""

    def __init__(self) -> None:
        self.flags: Grown | None = None

    def append(self, before: int, values: pa.Array, rows: I64 | None = None) -> None:
        if values.null_count == 0 and self.flags is None:
            return
        mask = validity(values)
        mask = mask if len(mask) else np.ones(len(values), np.bool_)
        self._reach(before).extend(mask if rows is None else mask[rows])

    def extend(self, before: int, other: _Valid, rows: I64) -> None:
        """The flags of rows of another column."""
        if other.flags is not None:
            self._reach(before).extend_from(other.flags.view, rows)
        elif self.flags is not None:
            self.flags.extend(np.ones(len(rows), np.bool_))

    def _reach(self, before: int) -> Grown:
        """The flags, with those of so many values before there were any."""
        if self.flags is None:
            self.flags = Grown(np.bool_)
            self.flags.extend(np.ones(before, np.bool_))
        return self.flags

    def frozen(self) -> _Valid:
        other = _Valid()
        other.flags = None if self.flags is None else self.flags.frozen()
        return other

    def take(self, rows: I64) -> Mask:
        return NO_MASK if self.flags is None else self.flags.view[rows]

    def compact(self, keep: I64) -> None:
        if self.flags is not None:
            kept = self.flags.view[keep]
            self.flags = None if kept.all() else self.flags
            if self.flags is not None:
                self.flags.replace(kept)


class FixedColumn:
    """Numbers, times, booleans, decimals."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t
        self.data = Grown(word_type(t))
        self.valid = _Valid()

    def frozen(self) -> FixedColumn:
        """The column as it is now, whatever is added or let go later."""
        other = FixedColumn(self.type)
        other.data, other.valid = self.data.frozen(), self.valid.frozen()
        return other

    def append(self, values: pa.Array, rows: I64 | None = None) -> None:
        """Values of an array, by default all."""
        self.valid.append(self.data.size, values, rows)
        if rows is None:
            self.data.extend(words(values))
        else:
            self.data.extend_from(words(values), rows)

    def refer(self, other: FixedColumn, rows: I64) -> None:
        """Values of another column."""
        self.valid.extend(self.data.size, other.valid, rows)
        self.data.extend_from(other.data.view, rows)

    def hold(self, values: pa.Array) -> None:
        """Takes an array as it lies, in place of all there is."""
        self.valid.append(0, values)
        self.data.replace(words(values))

    def take(self, rows: I64) -> pa.Array:
        return from_words(taken(self.data.view, rows), self.valid.take(rows), self.type)

    def compact(self, keep: I64, *, reuse: bool = False) -> None:
        self.data.keep(keep, reuse=reuse)
        self.valid.compact(keep)

    @property
    def nbytes(self) -> int:
        return self.data.size * self.data.data.itemsize


@kernel
def gather_bytes(starts: I64, sizes: I64, heap: U8, rows: I64, offsets: I64, out: U8) -> None:
    """Copies the named strings one behind the other."""
    at = 0
    for i in range(len(rows)):
        offsets[i] = at
        begin = starts[rows[i]]
        for j in range(sizes[rows[i]]):
            out[at + j] = heap[begin + j]
        at += sizes[rows[i]]
    offsets[len(rows)] = at


def byte_parts(values: pa.Array) -> tuple[I64, U8]:
    """A string or binary column's offsets (64-bit) and data."""
    offsets, data = raw_parts(values)
    return offsets.astype(np.int64), data


def raw_parts(values: pa.Array) -> tuple[np.ndarray[Any, Any], U8]:
    """A string or binary column's offsets, as wide as they lie there, and data."""
    kind = np.int64 if str(values.type).startswith("large_") else np.int32
    _, offs, data = values.buffers()
    if offs is None or len(values) == 0:
        return np.zeros(len(values) + 1, kind), np.zeros(0, np.uint8)
    offsets = np.frombuffer(offs, kind, len(values) + 1, values.offset * np.dtype(kind).itemsize)
    body = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets, body


class BytesColumn:
    """Strings and binary: a heap of bytes, and where each value lies in it."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t
        self.starts = Grown(np.int64)
        self.sizes = Grown(np.int64)
        self.heap = Grown(np.uint8, 64)
        self.valid = _Valid()

    def append(self, values: pa.Array) -> None:
        offsets, data = byte_parts(values)
        self.valid.append(self.starts.size, values)
        self.starts.extend(offsets[:-1] - offsets[0] + self.heap.size)
        self.sizes.extend(np.diff(offsets))
        self.heap.extend(data[offsets[0] : offsets[-1]])

    def _all(self) -> pa.Array:
        """All values as they lie: one behind the other."""
        offsets = np.empty(self.starts.size + 1, np.int32)
        offsets[:-1], offsets[-1] = self.starts.view, self.heap.size
        valid = NO_MASK if self.valid.flags is None else self.valid.flags.view
        parts = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(self.heap.view)]
        return pa.Array.from_buffers(self.type, self.starts.size, parts)

    def _gather(self, rows: I64) -> tuple[I64, U8]:
        offsets = np.empty(len(rows) + 1, np.int64)
        body = np.empty(int(self.sizes.view[rows].sum()), np.uint8)
        gather_bytes(self.starts.view, self.sizes.view, self.heap.view, rows, offsets, body)
        return offsets, body

    def take(self, rows: I64) -> pa.Array:
        if len(rows) > SHORT_GATHER and 2 * len(rows) > self.starts.size and self.heap.size < MAX_HEAP:
            return self._all().take(pa.array(rows))
        offsets, body = self._gather(rows)
        parts = [
            bitmap(self.valid.take(rows)),
            pa.py_buffer(offsets.astype(np.int32)),
            pa.py_buffer(body),
        ]
        return pa.Array.from_buffers(self.type, len(rows), parts)

    def compact(self, keep: I64) -> None:
        offsets, body = self._gather(keep)
        self.sizes.replace(np.diff(offsets))
        self.starts.replace(offsets[:-1].copy())
        self.heap.replace(body)
        self.valid.compact(keep)

    @property
    def nbytes(self) -> int:
        return self.heap.size + 16 * self.starts.size


class StructColumn:
    """A struct: its fields, side by side."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t
        self.fields = [new_column(t.field(i).type) for i in range(t.num_fields)]
        self.rows = 0
        self.valid = _Valid()

    def append(self, values: pa.Array) -> None:
        self.valid.append(self.rows, values)
        self.rows += len(values)
        for i, column in enumerate(self.fields):
            column.append(values.field(i))

    def take(self, rows: I64) -> pa.Array:
        valid = self.valid.take(rows)
        if not self.fields and len(valid) == 0:
            valid = np.ones(len(rows), np.bool_)
        return struct_of(self.type, [column.take(rows) for column in self.fields], valid)

    def compact(self, keep: I64) -> None:
        self.valid.compact(keep)
        self.rows = len(keep)
        for column in self.fields:
            column.compact(keep)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.fields)


class ListColumn:
    """Lists, or maps: a column of elements, and where each row's lie in it."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t
        self.starts = Grown(np.int64)
        self.sizes = Grown(np.int64)
        self.held = 0
        """How many elements the column of elements has."""
        self.elements = new_column(element_type(t))
        self.valid = _Valid()

    def append(self, values: pa.Array) -> None:
        offsets, inner = elements(values)
        self.valid.append(self.starts.size, values)
        self.starts.extend(offsets[:-1] + self.held)
        self.sizes.extend(np.diff(offsets))
        self.held += len(inner)
        self.elements.append(inner)

    def take(self, rows: I64) -> pa.Array:
        sizes = self.sizes.view[rows]
        inner = self.elements.take(ranges(self.starts.view[rows], sizes))
        return listed(self.type, offsets_of(sizes), inner, self.valid.take(rows))

    def compact(self, keep: I64) -> None:
        sizes = self.sizes.view[keep]
        self.elements.compact(ranges(self.starts.view[keep], sizes))
        self.sizes.replace(sizes)
        offsets = offsets_of(sizes)
        self.starts.replace(offsets[:-1])
        self.held = int(offsets[-1])
        self.valid.compact(keep)

    @property
    def nbytes(self) -> int:
        return self.elements.nbytes + 16 * self.starts.size


def new_column(t: pa.DataType) -> StoreColumn:
    """An empty column of this type."""
    if is_list(t):
        return ListColumn(t)
    if pa.types.is_struct(t):
        return StructColumn(t)
    return BytesColumn(t) if is_bytes(t) else FixedColumn(t)


def _reserve(column: StoreColumn, values: Sequence[pa.Array]) -> None:
    """Makes room for values to come; a column of others grows as they come."""
    count = sum(map(len, values))
    if isinstance(column, FixedColumn):
        column.data.reserve(count)
    elif isinstance(column, BytesColumn):
        column.starts.reserve(count)
        column.sizes.reserve(count)
        column.heap.reserve(sum(array.nbytes for array in values))


class ColumnStore:
    """Rows of one schema, numbered from 0 in the order they came."""

    shares = False
    """Whether others may refer to its memory, so that nothing there is written over."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.size = 0

    @cached_property
    def columns(self) -> list[StoreColumn]:
        """A column for each of the schema; made when the first is needed, for many stores stay empty."""
        return [self._column(field.type) for field in self.schema]

    @staticmethod
    def _column(t: pa.DataType) -> StoreColumn:
        return new_column(t)

    def append(self, batch: pa.RecordBatch, rows: I64 | None = None) -> None:
        """Rows of a batch, by default all, behind those there are."""
        for column, values in zip(self.columns, batch.columns, strict=True):
            if isinstance(column, FixedColumn):
                column.append(values, rows)
            else:
                column.append(values if rows is None else values.take(plain_array(rows)))
        self.size += batch.num_rows if rows is None else len(rows)

    def take(self, rows: I64) -> pa.RecordBatch:
        """Some rows, by place."""
        if not self.columns:
            return empty_rows(len(rows))
        return pa.RecordBatch.from_arrays([c.take(rows) for c in self.columns], schema=self.schema)

    def append_all(self, batches: Sequence[pa.RecordBatch]) -> None:
        """All rows of these batches, for which room is made once."""
        for place, column in enumerate(self.columns):
            _reserve(column, [batch.column(place) for batch in batches])
        for batch in batches:
            self.append(batch)

    def compact(self, keep: I64) -> None:
        """Keeps these rows (ascending) and renumbers them by position."""
        for column in self.columns:
            if isinstance(column, FixedColumn):
                column.compact(keep, reuse=not self.shares)
            else:
                column.compact(keep)
        self.size = len(keep)

    def all(self) -> pa.RecordBatch:
        """Every row, as one batch."""
        return self.take(np.arange(self.size))

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        made: list[StoreColumn] = self.__dict__.get("columns", [])
        return sum(column.nbytes for column in made)


def empty_rows(count: int) -> pa.RecordBatch:
    """A batch with rows but no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))


COPIED_ROWS = 64
"""Batches of fewer rows are copied sooner than looked at."""


def joined_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all; of batches of many rows that lie behind each other in memory nothing is copied.

    >>> whole = pa.record_batch({"name": ["a", "b"] * 100})
    >>> both = joined_batches([whole.slice(0, 80), whole.slice(80)])
    >>> both.equals(whole), both["name"].buffers()[2] == whole["name"].buffers()[2]
    (True, True)
    """
    if len(batches) == 1:
        return batches[0]
    first, count = batches[0], sum(batch.num_rows for batch in batches)
    if count < COPIED_ROWS * len(batches) or not all(_follows(a, b) for a, b in pairwise(batches)):
        return pa.concat_batches(batches)
    columns = [
        pa.Array.from_buffers(column.type, count, column.buffers(), offset=column.offset)
        for column in first.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)


def _follows(a: pa.RecordBatch, b: pa.RecordBatch) -> bool:
    """Whether the rows of one batch lie right behind those of another, in the same memory."""
    return all(
        one.offset + len(one) == other.offset
        and not pa.types.is_nested(one.type)
        and not pa.types.is_dictionary(one.type)
        and _memory(one) == _memory(other)
        for one, other in zip(a.columns, b.columns, strict=True)
    )


def _memory(column: pa.Array) -> list[int]:
    return [0 if buffer is None else buffer.address for buffer in column.buffers()]
