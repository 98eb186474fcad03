"""The 128-bit identity of each row of a batch, over all its columns or some of them.

>>> a = pa.record_batch({"x": [0.0, float("nan")], "s": ["hi", None]})
>>> b = pa.record_batch({"x": [-0.0, float("nan")], "s": ["hi", None]})
>>> bool((identity(a.columns, 2)[0] == identity(b.columns, 2)[0]).all())
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caesura.events.columns import byte_parts, validity, words
from caesura.events.types import is_bytes, is_words
from caesura.kernels.hashing import I64, U64, frozen, mix_bytes, mix_rows, mix_words

CANONICAL_NAN = np.uint64(0x7FF8000000000000)


def identity(columns: Sequence[pa.Array], count: int) -> tuple[U64, U64]:
    """Two 64-bit halves per row; equal exactly for rows that are equal."""
    h1 = np.zeros(count, np.uint64)
    h2 = np.zeros(count, np.uint64)
    for place, column in enumerate(columns):
        _fold(column, np.uint64(place + 1), h1, h2)
    return h1, h2


def identity_at(columns: Sequence[pa.Array], rows: I64) -> tuple[U64, U64]:
    """The identities of some rows alone.

    >>> column, rows = pa.array([7, None, 8]), np.array([2, 1])
    >>> (identity([column], 3)[0][rows] == identity_at([column], rows)[0]).tolist()
    [True, True]
    """
    if any(c.null_count or pa.types.is_floating(c.type) or not is_words(c.type) for c in columns):
        wanted = pa.array(rows)
        return identity([c.take(wanted) for c in columns], len(rows))
    h1, h2 = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
    for place, column in enumerate(columns):
        mix_rows(words(column), frozen(rows), np.uint64(place + 1), h1, h2)
    return h1, h2


def _fold(column: pa.Array, salt: np.uint64, h1: U64, h2: U64) -> None:
    if pa.types.is_struct(column.type):
        mix_words(np.zeros(len(column), np.uint64), validity(column), salt, h1, h2)
        for part in column.flatten():
            _fold(part, salt, h1, h2)
        return
    if is_bytes(column.type):
        offsets, data = byte_parts(column)
        mix_bytes(offsets, data, validity(column), salt, h1, h2)
        return
    for word in _as_u64(column):
        mix_words(word, validity(column), salt, h1, h2)


def _as_u64(column: pa.Array) -> list[U64]:
    data = words(column)
    if pa.types.is_decimal128(column.type):
        halves = np.ascontiguousarray(data).view(np.uint64)
        return [np.ascontiguousarray(halves[0::2]), np.ascontiguousarray(halves[1::2])]
    if pa.types.is_floating(column.type):
        wide = data.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
        bits = wide.view(np.uint64)
        return [np.where(np.isnan(wide), CANONICAL_NAN, bits)]
    if data.dtype == np.int64:
        return [np.ascontiguousarray(data).view(np.uint64)]
    return [data.astype(np.int64).view(np.uint64)]
