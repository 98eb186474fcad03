"""The canonical order of values of any type, as whole numbers: equal values have equal numbers.

Scalars are in their own order, NaN behind all numbers, -0.0 beside 0.0. Structs compare field by field.
Lists compare element by element, and one that another begins with comes first. Maps compare as the lists
of their entries, ordered by key. Null comes first, or last, at every depth alike.

>>> ranks(pa.array([[2], [1, 5], None, [1], [1, None]])).argsort().tolist()
[2, 3, 4, 1, 0]
>>> by_key = pa.array([[(2, "b"), (1, "a")], [(1, "a"), (2, "b")]], pa.map_(pa.int64(), pa.string()))
>>> ranks(by_key).tolist(), in_key_order(by_key).to_pylist()[0]
([1, 1], [(1, 'a'), (2, 'b')])
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.nested import (
    elements,
    holds_map,
    is_list,
    listed,
    owners,
    struct_of,
    validity,
    with_elements,
)
from caesura.kernels.hashing import I64, Mask

Nulls = Literal["first", "last"]


def ranks(column: pa.Array, *, nulls: Nulls = "first") -> I64:
    """The place of each value among those there are; null is 0 where it comes first."""
    found = _ranked(column, nulls)
    if column.null_count:
        last = found.max(initial=0) + 1 if nulls == "last" else 0
        found = np.where(validity(column), found, last)
    return found


def _ranked(column: pa.Array, nulls: Nulls) -> I64:
    """From 1 on, whatever stands for null."""
    t = column.type
    if len(column) == 0:
        return np.zeros(0, np.int64)
    if pa.types.is_struct(t):
        return dense_ranks([ranks(part, nulls=nulls) for part in column.flatten()], len(column))
    if is_list(t):
        column = in_key_order(column)
        offsets, values = elements(column)
        words = ranks(values, nulls=nulls) + 1  # big-endian words are in the order of bytes
        texts = pa.py_buffer(words.astype(">u8"))
        column = pa.Array.from_buffers(
            pa.large_binary(), len(column), [None, pa.py_buffer(offsets * 8), texts]
        )
    elif pa.types.is_boolean(t):
        column = column.cast(pa.uint8())
    found: I64 = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return found


def dense_ranks(keys: list[I64], count: int) -> I64:
    """The places of rows by several numbers, the first one counting most."""
    if not keys:
        return np.ones(count, np.int64)
    order = np.lexsort(keys[::-1])
    new = np.zeros(count, np.bool_)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    out = np.empty(count, np.int64)
    out[order] = np.cumsum(new) + 1
    return out


@cache
def is_nested(t: pa.DataType) -> bool:
    """Whether values are structs, lists or maps, which Arrow does not order."""
    return bool(pa.types.is_struct(t)) or is_list(t)


def sortable(column: pa.Array, *, nulls: Nulls) -> pa.Array:
    """A column that Arrow can order as this one is ordered; its nulls stay."""
    if not is_nested(column.type):
        return column
    return pa.array(ranks(column, nulls=nulls), mask=~validity(column) if column.null_count else None)


def in_key_order(column: pa.Array) -> pa.Array:
    """The column with the entries of its maps ordered by key; the column itself if they are."""
    t = column.type
    if not holds_map(t) or len(column) == 0:
        return column
    if pa.types.is_struct(t):
        parts = [in_key_order(column.field(i)) for i in range(t.num_fields)]
        return struct_of(t, parts, validity(column))
    offsets, values = elements(column)
    if not pa.types.is_map(t):
        return with_elements(column, in_key_order(values))
    order = _by_key(offsets, values)
    inner = in_key_order(values)
    if order is None and inner is values:
        return column
    return listed(t, offsets, inner if order is None else inner.take(pa.array(order)), validity(column))


def _by_key(offsets: I64, entries: pa.Array) -> I64 | None:
    """The entries of each map by key; None if they are so."""
    owner, key = owners(offsets), ranks(entries.field(0))
    if ((owner[1:] > owner[:-1]) | (key[1:] >= key[:-1])).all():
        return None
    return np.lexsort((key, owner))


def doubled_keys(column: pa.Array) -> Mask:
    """The rows with a map, at any depth, that has one key twice; of a column in key order."""
    t = column.type
    none = np.zeros(len(column), np.bool_)
    if not holds_map(t) or len(column) == 0:
        return none
    if pa.types.is_struct(t):
        for part in column.flatten():
            none |= doubled_keys(part)
        return none
    offsets, values = elements(column)
    bad = doubled_keys(values)
    if pa.types.is_map(t):
        owner, key = owners(offsets), ranks(values.field(0))
        bad[1:] |= (owner[1:] == owner[:-1]) & (key[1:] == key[:-1])
    np.logical_or.at(none, owners(offsets)[bad], True)
    return none
