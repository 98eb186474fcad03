"""The 128-bit identity of each row of a batch, over all its columns or some of them, under a secret.

Nulls are equal, NaN equals NaN, and -0.0 equals 0.0, inside lists, maps and structs too; the entries of a
map have no order. Two different rows have one identity with a chance
of about 2**-128, whoever chose them, as long as the secret is not known (docs/adr/0016).

>>> a = pa.record_batch({"x": [0.0, float("nan")], "s": ["hi", None]})
>>> b = pa.record_batch({"x": [-0.0, float("nan")], "s": ["hi", None]})
>>> bool((identity(a.columns, 2, LOCAL)[0] == identity(b.columns, 2, LOCAL)[0]).all())
True
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cache, cached_property
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.columns import byte_parts, words
from caesura.events.nested import (
    element_type,
    elements,
    holds_map,
    is_list,
    struct_of,
    validity,
    with_elements,
)
from caesura.events.order import in_key_order
from caesura.events.types import is_bytes, is_words
from caesura.kernels.hashing import I64, U64, frozen, mix_bytes, mix_lists, mix_rows, mix_words

CANONICAL_NAN = np.uint64(0x7FF8000000000000)


class Secret:
    """What the identities of rows begin with. Who supplies rows must not know it; no result depends on it.

    A query has one, which its steps share and its checkpoint keeps.

    >>> Secret(bytes(16))
    Secret(...)
    """

    SIZE = 16

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.start = self._derived(b"rows")
        """The key under which the first column of a row is hashed."""
        self.none = self._derived(b"none")
        """The identity of a row without columns; the secret cannot be told from it."""

    @staticmethod
    def drawn() -> Secret:
        """A new one."""
        return Secret(secrets.token_bytes(Secret.SIZE))

    def __repr__(self) -> str:
        return "Secret(...)"

    def become(self, other: Secret) -> None:
        """Takes over another secret, for all who share this one; tables are made anew after that."""
        self.__dict__ = dict(other.__dict__)

    def copied(self) -> Secret:
        """The same secret, to become another."""
        other = object.__new__(Secret)
        other.become(self)
        return other

    @cached_property
    def routing(self) -> Secret:
        """What decides which bucket a row goes to; what a bucket knows of its rows by that is of no use."""
        return Secret(self._digest(b"buckets"))

    def _digest(self, use: bytes) -> bytes:
        return blake2b(key=self.key, person=use, digest_size=Secret.SIZE).digest()

    def _derived(self, use: bytes) -> tuple[np.uint64, np.uint64]:
        first, second = np.frombuffer(self._digest(use), "<u8").astype(np.uint64)
        return first, second


LOCAL = Secret.drawn()
"""The secret of this process, for tables that neither leave it nor are saved."""


def identity(columns: Sequence[pa.Array], count: int, secret: Secret) -> tuple[U64, U64]:
    """Two 64-bit halves per row; equal exactly for rows that are equal."""
    h1, h2 = _begun(columns, count, secret)
    for column in columns:
        _fold(column, h1, h2)
    return h1, h2


def identity_at(columns: Sequence[pa.Array], rows: I64, secret: Secret) -> tuple[U64, U64]:
    """The identities of some rows alone.

    >>> column, rows = pa.array([7, None, 8]), np.array([2, 1])
    >>> (identity([column], 3, LOCAL)[0][rows] == identity_at([column], rows, LOCAL)[0]).tolist()
    [True, True]
    """
    if any(c.null_count or pa.types.is_floating(c.type) or not is_words(c.type) for c in columns):
        wanted = pa.array(rows)
        return identity([c.take(wanted) for c in columns], len(rows), secret)
    h1, h2 = _begun(columns, len(rows), secret)
    for column in columns:
        mix_rows(words(column), frozen(rows), h1, h2)
    return h1, h2


def _begun(columns: Sequence[pa.Array], count: int, secret: Secret) -> tuple[U64, U64]:
    first, second = secret.start if columns else secret.none
    return np.full(count, first), np.full(count, second)


def _fold(column: pa.Array, h1: U64, h2: U64) -> None:
    if pa.types.is_struct(column.type):
        mix_words(np.zeros(len(column), np.uint64), validity(column), h1, h2)
        for part in column.flatten():
            _fold(part, h1, h2)
        return
    if is_list(column.type):
        _fold_list(in_key_order(column), h1, h2)
        return
    if is_bytes(column.type):
        offsets, data = byte_parts(column)
        mix_bytes(offsets, data, validity(column), h1, h2)
        return
    for word in _as_u64(column):
        mix_words(word, validity(column), h1, h2)


def _fold_list(column: pa.Array, h1: U64, h2: U64) -> None:
    """Each element is hashed under what its row has so far; the row goes on with all these hashes."""
    offsets, values = elements(column)
    sizes = np.diff(offsets)
    e1, e2 = np.repeat(h1, sizes), np.repeat(h2, sizes)
    _fold(values, e1, e2)
    mix_lists(offsets, e1, e2, validity(column), h1, h2)


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


def plain_zeros(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with 0.0 for -0.0, and maps in key order: rows that are one are written in one way.

    >>> plain_zeros(pa.record_batch({"x": [-0.0, 1.0]})).column(0).to_pylist()
    [0.0, 1.0]
    """
    if not any(_signed(t) for t in batch.schema.types):
        return batch
    columns = [plain_zero(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


@cache
def _signed(t: pa.DataType) -> bool:
    """Whether values of a type may have a zero below zero, or entries in another order."""
    if is_list(t):
        return holds_map(t) or _signed(element_type(t))
    if pa.types.is_struct(t):
        return any(_signed(t.field(i).type) for i in range(t.num_fields))
    return bool(pa.types.is_floating(t))


def plain_zero(column: pa.Array) -> pa.Array:
    """A column with 0.0 for -0.0, and maps in key order."""
    if not _signed(column.type):
        return column
    if pa.types.is_struct(column.type):
        parts = [plain_zero(column.field(i)) for i in range(column.type.num_fields)]
        return struct_of(column.type, parts, validity(column))
    if is_list(column.type):
        column = in_key_order(column)
        return with_elements(column, plain_zero(elements(column)[1]))
    return pc.add(column, pa.scalar(0.0, column.type))
