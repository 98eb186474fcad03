"""Columns of whole numbers on their way: what all have in common is said once, the rest in few bytes.

>>> encode_integers(pa.array([1_000_007, 1_000_009, 1_000_007]))
(<pyarrow.lib.UInt8Array object at ...>
[
  0,
  2,
  0
], ['int64', 1000007])
>>> decode_integers(*encode_integers(pa.array([1_000_007, 1_000_009])), 2).to_pylist()
[1000007, 1000009]
>>> encode_integers(pa.array([7, 7]))
(None, ['int64', 7])
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

UNITS = ("s", "ms", "us", "ns")
NUMBERS = [
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.date32(),
    *(pa.timestamp(unit) for unit in UNITS),
    *(pa.timestamp(unit, "UTC") for unit in UNITS),
    *(pa.duration(unit) for unit in UNITS),
]
"""The types that are whole numbers underneath."""
BY_NAME = {str(kind): kind for kind in NUMBERS}
SMALL = [(1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32)]

Encoding = list[Any] | None
"""The type of a column and its least value; None for a column that goes as it is."""


def encode_integers(column: pa.Array) -> tuple[pa.Array | None, Encoding]:
    """A column above its least value, and what it takes to go back; no column where all are equal."""
    name = str(column.type)
    if name not in BY_NAME or len(column) == 0 or column.null_count:
        return column, None
    values = _numbers(column)
    least = int(values.min())
    span = int(values.max()) - least
    encoding = [name, least]
    if span == 0:
        return None, encoding
    size = values.dtype.itemsize
    for limit, small in SMALL:
        if span < limit and np.dtype(small).itemsize < size:
            return pa.array((values - values.dtype.type(least)).astype(small)), encoding
    return column, None


def decode_integers(column: pa.Array | None, encoding: Encoding, rows: int) -> pa.Array:
    """What `encode_integers` took."""
    if encoding is None:
        return column
    kind = BY_NAME[encoding[0]]
    wide = np.dtype(f"i{kind.bit_width // 8}")
    if column is None:
        values = np.full(rows, encoding[1], wide)
    else:
        values = column.to_numpy().astype(wide)
        values += wide.type(encoding[1])
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(values)])


def _numbers(column: pa.Array) -> Any:
    whole = np.frombuffer(column.buffers()[1], f"i{column.type.bit_width // 8}")
    return whole[column.offset : column.offset + len(column)]
