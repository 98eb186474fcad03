"""Lists and maps as columns: where each row's elements begin, and the elements one behind the other.

The elements of a map are structs of key and value. What lies under a null is left out.

>>> some = pa.array([[1, 2], None, [], [3]])
>>> offsets, values = elements(some)
>>> offsets.tolist(), values.to_pylist()
([0, 2, 2, 2, 3], [1, 2, 3])
>>> listed(some.type, offsets, values, validity(some)).to_pylist()
[[1, 2], None, [], [3]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64, Mask

NO_MASK: Mask = np.zeros(0, np.bool_)


def is_list(t: pa.DataType) -> bool:
    """Whether values have elements: lists and maps, in the form that a stream keeps."""
    return bool(pa.types.is_list(t) or pa.types.is_map(t))


def is_any_list(t: pa.DataType) -> bool:
    """Whether values are lists, however they are laid out."""
    types = pa.types
    fixed = types.is_fixed_size_list(t) or types.is_list_view(t) or types.is_large_list_view(t)
    return bool(types.is_list(t) or types.is_large_list(t) or fixed)


def element_type(t: pa.DataType) -> pa.DataType:
    """The type of a list's elements, of a map's entries."""
    return pa.struct([t.key_field, t.item_field]) if pa.types.is_map(t) else t.value_type


def holds_map(t: pa.DataType) -> bool:
    """Whether a map is somewhere in values of a type."""
    if pa.types.is_map(t):
        return True
    if pa.types.is_struct(t):
        return any(holds_map(t.field(i).type) for i in range(t.num_fields))
    return is_any_list(t) and holds_map(t.value_type)


def validity(values: pa.Array) -> Mask:
    """Which rows are not null, as booleans; empty when none is null."""
    if values.null_count == 0:
        return NO_MASK
    mask: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return mask


def bitmap(valid: Mask) -> pa.Buffer | None:
    """Null flags as Arrow has them; None when no row is null."""
    if len(valid) == 0 or bool(valid.all()):
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def elements(column: pa.Array) -> tuple[I64, pa.Array]:
    """Where the elements of each row begin and end, and all elements; a null has none."""
    t = column.type
    if len(column) == 0:
        return np.zeros(1, np.int64), pa.array([], element_type(t))
    if not is_list(t):
        sizes = column.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        return offsets_of(sizes), column.flatten()
    offsets = column.offsets.to_numpy().astype(np.int64)
    if pa.types.is_map(t):
        whole = pa.StructArray.from_arrays([column.keys, column.items], fields=list(element_type(t)))
    else:
        whole = column.values
    sizes = np.diff(offsets)
    if column.null_count and sizes[~validity(column)].any():
        sizes = np.where(validity(column), sizes, 0)
        whole = whole.take(pa.array(ranges(offsets[:-1], sizes)))
        return offsets_of(sizes), whole
    return offsets - offsets[0], whole.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def offsets_of(sizes: I64) -> I64:
    """Where each of some runs begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def ranges(starts: I64, sizes: I64) -> I64:
    """The places of runs, one run behind the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    offsets = offsets_of(sizes)
    return np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def owners(offsets: I64) -> I64:
    """The row of each element."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def listed(t: pa.DataType, offsets: I64, values: pa.Array, valid: Mask = NO_MASK) -> pa.Array:
    """The column of lists or maps with these elements; those of a null are left out."""
    if len(valid) and not valid.all() and np.diff(offsets)[~valid].any():  # Arrow aborts at a null key
        sizes = np.where(valid, np.diff(offsets), 0)
        values = values.take(pa.array(ranges(offsets[:-1], sizes)))
        offsets = offsets_of(sizes)
    wanted = element_type(t)
    if values.type != wanted:
        values = values.cast(wanted)
    if pa.types.is_map(t) and values.offset:  # Arrow takes a map's entries from where their memory begins
        values = pa.StructArray.from_arrays([values.field(0), values.field(1)], fields=list(wanted))
    narrow = pa.array(offsets).cast(pa.int32())  # which refuses more elements than Arrow's lists hold
    parts = [bitmap(valid), narrow.buffers()[1]]
    return pa.Array.from_buffers(t, len(offsets) - 1, parts, children=[values])


def python_values(column: pa.Array) -> list[Any]:
    """The values as Python has them, for users' functions: lists, and dicts for structs and maps.

    >>> python_values(pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())))
    [{'a': 1}, None]
    """
    if holds_map(column.type):
        return column.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def any_element(offsets: I64, mask: Mask) -> Mask:
    """The rows for which something holds of an element."""
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])
    return counts[offsets[1:]] > counts[offsets[:-1]]


def with_elements(column: pa.Array, values: pa.Array, t: pa.DataType | None = None) -> pa.Array:
    """A column of lists with other elements, one for each; by default of the same type."""
    offsets, _ = elements(column)
    return listed(t or column.type, offsets, values, validity(column))


def struct_of(t: pa.DataType, parts: list[pa.Array], valid: Mask = NO_MASK) -> pa.Array:
    """The column of structs with these fields."""
    rows = len(parts[0]) if parts else len(valid)
    if not parts:
        return pa.Array.from_buffers(t, rows, [bitmap(valid)])
    nulls: Any = pa.array(~valid) if len(valid) else None
    return pa.StructArray.from_arrays(parts, fields=list(t), mask=nulls)
