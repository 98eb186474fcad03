"""Columns of lists, maps and structs, computed with whole: all elements of a page at once.

>>> contains(pa.array([[1, 2], [1, None], [], None]), pa.scalar(2)).to_pylist()
[True, None, False, None]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.identity import LOCAL, identity
from caesura.events.nested import (
    any_element,
    element_type,
    elements,
    listed,
    offsets_of,
    owners,
    ranges,
    struct_of,
    validity,
    with_elements,
)
from caesura.events.order import Nulls, doubled_keys, in_key_order, ranks
from caesura.expr.arrays import keep_where, repeat
from caesura.expr.faults import Attempt
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable

Datum = Any


def spread(*args: Datum) -> list[pa.Array]:
    """Constants among columns as columns; each its own array, however it was cut."""
    rows = next(len(a) for a in args if not isinstance(a, pa.Scalar))
    return [repeat(a, rows) if isinstance(a, pa.Scalar) else a for a in args]


def present(*columns: pa.Array) -> Mask:
    """The rows in which none is null."""
    valid: Mask = np.logical_and.reduce([np.array(c.is_valid(), np.bool_) for c in columns])
    return valid


def whole_numbers(column: pa.Array) -> I64:
    """Whole numbers, 0 for null."""
    filled: I64 = column.fill_null(0).to_numpy() if column.null_count else column.to_numpy()
    return filled


# Elements by place and by key.


def size(column: pa.Array) -> pa.Array:
    """How many elements or entries there are."""
    sizes = np.diff(elements(column)[0]).astype(np.int32)
    return pa.array(sizes, mask=~validity(column) if column.null_count else None)


def from_zero(place: I64, sizes: I64) -> I64:
    """Places that count from 0; -1 for none."""
    return np.where((place >= 0) & (place < sizes), place, -1)


def from_one(place: I64, sizes: I64) -> I64:
    """Places that count from 1, or from the end as -1; -1 for none."""
    at = np.where(place < 0, sizes + place, place - 1)
    return np.where((place != 0) & (at >= 0) & (at < sizes), at, -1)


class ElementAt(Attempt):
    """The element at a place; an element that is null is a value, a place that is not there is none."""

    def __init__(self, count: Callable[[I64, I64], I64]) -> None:
        super().__init__(count)

    def _found(self, args: Sequence[Datum]) -> tuple[pa.Array, I64, Mask]:
        column, place = spread(*args)
        offsets, values = elements(column)
        at = self.kernel(whole_numbers(place), np.diff(offsets))
        there = present(column, place)
        return values, np.where(at < 0, -1, offsets[:-1] + at), there

    def __call__(self, *args: Datum) -> pa.Array:
        values, at, there = self._found(args)
        there = there & (at >= 0)
        return values.take(pa.array(np.where(there, at, 0), mask=~there))

    def refused(self, made: Any, args: Sequence[Datum]) -> Any:
        _, at, there = self._found(args)
        return pa.array(there & (at < 0))


def field(column: pa.Array, index: int) -> pa.Array:
    """A field of structs; of a null none."""
    return pc.struct_field(column, [index])


def of_elements(column: pa.Array, what: Callable[[pa.Array], pa.Array], t: pa.DataType) -> pa.Array:
    """A list with something made of each element."""
    return with_elements(column, what(elements(column)[1]), t)


def equals(values: pa.Array, wanted: pa.Array, owner: I64) -> Mask:
    """Which elements equal what their row wants; a null equals a null."""
    v1, v2 = identity([values], len(values), LOCAL)
    w1, w2 = identity([wanted], len(wanted), LOCAL)
    return np.asarray((v1 == w1[owner]) & (v2 == w2[owner]))


def _first_hit(column: pa.Array, values: pa.Array, wanted: pa.Array, offsets: I64) -> I64:
    """The first element of each row that equals what it wants; -1 for none."""
    owner = owners(offsets)
    hits = np.flatnonzero(equals(values, wanted, owner))
    found = np.full(len(column), -1, np.int64)
    found[owner[hits][::-1]] = hits[::-1]
    return found


def value_of(column: Datum, key: Datum) -> pa.Array:
    """What a map has for a key; null if it has none."""
    column, key = spread(column, key)
    offsets, entries_ = elements(column)
    found = _first_hit(column, entries_.field(0), key, offsets)
    there = present(column, key) & (found >= 0)
    return entries_.field(1).take(pa.array(np.where(there, found, 0), mask=~there))


def has_key(column: Datum, key: Datum) -> pa.Array:
    """Whether a map has a key."""
    column, key = spread(column, key)
    offsets, entries_ = elements(column)
    found = _first_hit(column, entries_.field(0), key, offsets)
    return pa.array(found >= 0, mask=~present(column, key))


def contains(column: Datum, value: Datum) -> pa.Array:
    """Whether a list has a value; null if it has not, and has nulls."""
    column, value = spread(column, value)
    offsets, values = elements(column)
    there = present(column, value)
    holds = any_element(offsets, equals(values, value, owners(offsets)))
    unknown = any_element(offsets, np.array(values.is_null(), np.bool_)) & ~holds
    return pa.array(holds & there, mask=unknown | ~there)


def position(column: Datum, value: Datum) -> pa.Array:
    """Where a list has a value first, from 1 on; 0 for nowhere."""
    column, value = spread(column, value)
    offsets, values = elements(column)
    found = _first_hit(column, values, value, offsets)
    return pa.array(np.where(found < 0, 0, found - offsets[:-1] + 1), mask=~present(column, value))


# Making them.


def array(args: Sequence[Datum], t: pa.DataType) -> pa.Array:
    """A list of each row's values."""
    parts = spread(*args)
    rows, count = len(parts[0]), len(parts)
    every = pa.concat_arrays(parts)
    order = (np.arange(rows)[:, None] + rows * np.arange(count)).reshape(-1)
    return listed(pa.list_(t), np.arange(rows + 1, dtype=np.int64) * count, every.take(pa.array(order)))


def struct(args: Sequence[Datum], t: pa.DataType) -> pa.Array:
    """A struct of each row's values."""
    return struct_of(t, spread(*args))


def create_map(args: Sequence[Datum], t: pa.DataType) -> pa.Array:
    """A map of each row's keys and values; null, which is refused, where a key is null or there twice."""
    parts = spread(*args)
    offsets, keys = elements(array(parts[::2], t.key_type))
    values = elements(array(parts[1::2], t.item_type))[1]
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(element_type(t)))
    keyed = ~any_element(offsets, np.array(keys.is_null(), np.bool_))
    made = in_key_order(listed(t, offsets, pairs, keyed))
    return keep_where(pa.array(keyed & ~doubled_keys(made)), made)


def entries(column: pa.Array, part: int | None, t: pa.DataType) -> pa.Array:
    """The keys, the values, or both, of maps, by key."""
    column = in_key_order(column)
    values = elements(column)[1]
    return with_elements(column, values if part is None else values.field(part), t)


# Lists from lists.


def in_order(column: pa.Array, *, down: bool, nulls: Nulls) -> pa.Array:
    """The elements of each list in their order."""
    offsets, values = elements(column)
    rank = -ranks(values) if down else ranks(values)
    if values.null_count:
        end = np.iinfo(np.int64).max if nulls == "last" else np.iinfo(np.int64).min
        rank = np.where(validity(values), rank, end)
    order = np.lexsort((rank, owners(offsets)))
    return with_elements(column, values.take(pa.array(order)))


def distinct(column: pa.Array) -> pa.Array:
    """The different elements of each list, where they come first."""
    offsets, values = elements(column)
    owner = owners(offsets)
    ids = identity([pa.array(owner), values], len(values), LOCAL)
    _, fresh = KeyTable().encode(*ids)
    fresh = np.sort(fresh)
    sizes = np.bincount(owner[fresh], minlength=len(column)).astype(np.int64)
    return listed(column.type, offsets_of(sizes), values.take(pa.array(fresh)), validity(column))


def extreme(column: pa.Array, *, greatest: bool) -> pa.Array:
    """The least or greatest element of each list; nulls do not count."""
    offsets, values = elements(column)
    owner, rank = owners(offsets), ranks(values)
    some = np.flatnonzero(np.array(values.is_valid(), np.bool_))
    order = some[np.lexsort((rank[some] if greatest else -rank[some], owner[some]))]
    found = np.full(len(column), -1, np.int64)
    found[owner[order]] = order  # the last one of a row stays
    return values.take(pa.array(np.maximum(found, 0), mask=found < 0))


def flatten(column: pa.Array) -> pa.Array:
    """The elements of the lists in each list; null where one of those is null."""
    offsets, inner = elements(column)
    ends, values = elements(inner)
    lost = any_element(offsets, np.array(inner.is_null(), np.bool_))
    valid = np.array(column.is_valid(), np.bool_) & ~lost
    sizes = np.where(valid, ends[offsets[1:]] - ends[offsets[:-1]], 0)
    kept = values.take(pa.array(ranges(ends[offsets[:-1]], sizes)))
    return listed(column.type.value_type, offsets_of(sizes), kept, valid)


def slices(column: Datum, start: Datum, length: Datum) -> pa.Array:
    """Some elements of each list, from a place on that counts from 1, or from the end as -1.

    Null, which is refused, where a place is 0 or a length below 0.
    """
    column, start, length = spread(column, start, length)
    offsets, values = elements(column)
    sizes, first, count = np.diff(offsets), whole_numbers(start), whole_numbers(length)
    valid = present(column, start, length) & (first != 0) & (count >= 0)
    at = np.where(first < 0, sizes + first, first - 1)
    inside = valid & (at >= 0) & (at < sizes)
    at = np.where(inside, at, 0)
    taken = np.where(inside, np.minimum(count, sizes - at), 0)
    kept = values.take(pa.array(ranges(offsets[:-1] + at, taken)))
    return listed(column.type, offsets_of(taken), kept, valid)


def joined(column: pa.Array, separator: str, null: str | None) -> pa.Array:
    """The texts of each list in one; nulls are left out, or written so."""
    offsets, values = elements(column)
    if null is not None:
        return pc.binary_join(with_elements(column, values.fill_null(null)), separator)
    there = np.array(values.is_valid(), np.bool_)
    sizes = np.bincount(owners(offsets)[there], minlength=len(column)).astype(np.int64)
    texts = listed(column.type, offsets_of(sizes), values.drop_null(), validity(column))
    return pc.binary_join(texts, separator)
