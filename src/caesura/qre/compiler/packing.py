"""Between the words of kernels and Arrow: keys of whole numbers, and registers as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import from_words, words
from caesura.events.nested import NO_MASK
from caesura.kernels.hashing import I64
from caesura.qre.compiler.lowering import HANDLE
from caesura.qre.compiler.texts import Texts
from caesura.qre.language.types import Record, Scalar, ValueType, to_arrow

Array = np.ndarray[Any, Any]


@dataclass
class Scalars:
    """The scalars of answers, and per scalar a flag each for whether it is there and what does not fit.

    Without flags all are there, and all fit.
    """

    values: list[Array]
    there: list[Array | None]
    over: list[Array | None]

    def beyond(self) -> I64:
        """The answers that have no value: a scalar that is there does not fit into 64 bits."""
        bad = [
            np.flatnonzero(over if there is None else there & over)
            for there, over in zip(self.there, self.over, strict=True)
            if over is not None
        ]
        return np.unique(np.concatenate([NONE, *bad]))


def scalars_of(kinds: str, whole: list[Array], real: list[Array]) -> Scalars:
    """The scalars that the table-driven kernels wrote: three places each, in the array of its kind."""
    values = [(real if kind == "f" else whole)[3 * j] for j, kind in enumerate(kinds)]
    there, over = ([whole[3 * j + at] != 0 for j in range(len(kinds))] for at in (1, 2))
    return Scalars(values, [*there], [*over])


def joined(outs: list[Array], places: int, kind: type) -> list[Array]:
    """Per place what several calls wrote."""
    return [np.concatenate([o[j] for o in outs]) if outs else np.zeros(0, kind) for j in range(places)]


NONE: I64 = np.zeros(0, np.int64)


def unpacked(keys: I64, types: list[pa.DataType]) -> list[pa.Array]:
    """Whole-number keys as the columns that they came from.

    >>> [c.to_pylist() for c in unpacked(np.array([8589934591]), [pa.int32(), pa.int32()])]
    [[1], [-1]]
    """
    halves = [keys] if len(types) == 1 else list(keys.view("<i4").reshape(-1, 2).T[::-1])
    own = [h.astype(t.to_pandas_dtype()) for h, t in zip(halves, types, strict=True)]
    return [from_words(o, NO_MASK, t) for o, t in zip(own, types, strict=True)]


def packed(keys: list[pa.Array]) -> list[pa.Array]:
    """Two keys of at most 32 bits as one of 64.

    >>> packed([pa.array([1, 2], pa.int32()), pa.array([-1, 7], pa.int32())])[0].to_pylist()
    [8589934591, 8589934599]
    """
    narrow = [pa.types.is_integer(k.type) and k.type.bit_width <= 32 and not k.null_count for k in keys]
    if len(keys) != 2 or not all(narrow):
        return keys
    both = np.empty((len(keys[0]), 2), "<i4")
    for half, key in zip((1, 0), keys, strict=True):
        own = words(key)
        both[:, half] = own.view(np.int32) if own.dtype == np.uint32 else own
    return [pa.array(both.view("<i8").reshape(-1))]


def column_of(
    t: ValueType, leaves: list[Array], flags: list[Array | None], rows: int, texts: Texts
) -> pa.Array:
    """Registers' values as a column of a type, taken off the lists; without flags all are there."""
    if isinstance(t, Record):
        if not t.fields:
            return pa.array([{}] * rows, pa.struct([]))
        parts = [column_of(inner, leaves, flags, rows, texts) for _, inner in t.fields]
        return pa.StructArray.from_arrays(parts, names=[n for n, _ in t.fields])
    data, flag = leaves.pop(0), flags.pop(0)
    if t is HANDLE:  # the number of a value that is kept elsewhere
        return pa.array(data)
    there = NO_MASK if flag is None else flag
    arrow = to_arrow(t)
    if isinstance(t, Scalar) and pa.types.is_null(t.type):
        return pa.nulls(rows, t.type)
    if isinstance(t, Scalar) and pa.types.is_string(t.type):
        codes = data if flag is None else np.where(there, data, 0)
        decoded = texts.decode(codes) if rows else pa.array([], pa.string())
        return decoded if bool(there.all()) else pa.compute.if_else(pa.array(there), decoded, None)
    if pa.types.is_boolean(arrow):
        return pa.array(data != 0, mask=None if flag is None else ~there)
    if pa.types.is_date32(arrow):
        data = data.astype(np.int32)
    return from_words(np.ascontiguousarray(data), there, arrow)
