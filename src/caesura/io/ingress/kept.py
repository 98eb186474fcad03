"""Columns in the types that a stream keeps, and what is wrong with the rows that those cannot hold.

Lists of any layout become lists, dictionaries their values. The entries of a map are ordered by key, and a
map with one key twice is refused, as Spark does.

>>> t = pa.map_(pa.int8(), pa.float64())
>>> column, flaw = kept(pa.array([[(2, 0.5), (1, -0.0)], [(1, 1.0), (1, 2.0)]], t), t)
>>> column.to_pylist()[0], flaw.tolist()
([(1, -0.0), (2, 0.5)], [0, 12])
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.nested import (
    any_element,
    element_type,
    elements,
    holds_map,
    is_list,
    listed,
    struct_of,
    validity,
)
from caesura.events.order import doubled_keys, in_key_order
from caesura.expr.casts import cast_kernel
from caesura.io.ingress.row_kernels import I8
from caesura.kernels.hashing import Mask

UNKEPT, DOUBLED_KEY = 11, 12
"""The flaws of a row with a timestamp that microseconds cannot hold, and with a map that has a key twice."""
Kept = tuple[pa.Array, I8 | None]


def kept(column: pa.Array, type: pa.DataType) -> Kept:
    """A column in the type that the stream keeps, and the flaws of its rows, if there are any."""
    made, lost = (column, None) if column.type == type else _converted(column, type)
    flaw = None if lost is None else np.where(lost, np.int8(UNKEPT), np.int8(0))
    if not holds_map(type):
        return made, flaw
    made = in_key_order(made)
    doubled = doubled_keys(made)
    if not doubled.any():
        return made, flaw
    both = np.where(doubled, np.int8(DOUBLED_KEY), np.int8(0))
    return made, both if flaw is None else np.maximum(flaw, both)


def _converted(column: pa.Array, type: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """The column, and the rows whose timestamps the type cannot hold."""
    if column.type == type:
        return column, None
    if pa.types.is_dictionary(column.type) and (pa.types.is_timestamp(type) or pa.types.is_nested(type)):
        column = column.dictionary_decode()
    if pa.types.is_struct(column.type):
        return _struct(column, type)
    if is_list(type):
        return _list(column, type)
    if not pa.types.is_timestamp(column.type):
        return column.cast(type, safe=False), None
    convert = cast_kernel(column.type, type)
    assert convert is not None
    made = convert(column)
    if made.null_count == column.null_count:
        return made, None
    return made, np.array(made.is_null()) & np.array(column.is_valid())


def _struct(column: pa.Array, type: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """A struct with its fields as the stream keeps them."""
    there = np.array(column.is_valid())
    parts = [_converted(column.field(i), type.field(i).type) for i in range(type.num_fields)]
    lost = [mask & there for _, mask in parts if mask is not None]
    unkept = np.logical_or.reduce(lost) if np.any(lost) else None
    return struct_of(type, [part for part, _ in parts], there), unkept


def _list(column: pa.Array, type: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """A list or map with its elements as the stream keeps them."""
    offsets, values = elements(column)
    made, lost = _converted(values, element_type(type))
    if lost is None:
        return listed(type, offsets, made, validity(column)), None
    rows = any_element(offsets, lost)
    return listed(type, offsets, made, np.array(column.is_valid()) & ~rows), rows
