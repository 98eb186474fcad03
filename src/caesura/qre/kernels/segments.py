"""Aggregates of maps without making them: all maps' entries lie in columns, each map in a piece of its own.

>>> from caesura.qre.language.relations import rel
>>> entries = Entries(np.array([0, 2]), pa.array([7, 8, 9]), pa.array([1, 5, 3]))
>>> aggregated(rel().max(), entries).to_pylist(), aggregated(rel().best(), entries).to_pylist()[0]
([5, 3], {'key': 8, 'value': 5})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.events.nested import validity
from caesura.expr import RowError, evaluate
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.qre.language.operations import ExprOp, Operation
from caesura.qre.language.relations import RelOp, total
from caesura.qre.language.scalar import wide
from caesura.qre.language.whole_numbers import fits, real

Array = np.ndarray[Any, Any]
NO_KEYS: I64 = np.zeros(0, np.int64)


@kernel
def extremes(starts: I64, keys: Array, values: Array, there: Mask, sign: int, rows: I64) -> bool:
    """Per piece the row of its least value (its greatest, for sign -1), the least key first; -1 if none.

    False where a value is no number.
    """
    some = len(there) > 0
    keyed = len(keys) > 0
    for piece in range(len(starts)):
        end = starts[piece + 1] if piece + 1 < len(starts) else len(values)
        best = -1
        for i in range(starts[piece], end):
            if some and not there[i]:
                continue
            if values[i] != values[i]:
                return False
            if best < 0:
                best = i
            elif values[i] != values[best]:
                if (values[i] < values[best]) == (sign > 0):
                    best = i
            elif keyed and keys[i] < keys[best]:
                best = i
        rows[piece] = best
    return True


@dataclass
class Entries:
    """Entries of maps: map j has those from ``starts[j]`` on."""

    starts: I64
    keys: pa.Array
    values: pa.Array

    @property
    def sizes(self) -> I64:
        return np.diff(np.append(self.starts, len(self.values)))

    def column(self, op: Operation | None) -> pa.Array | None:
        """An operation on every entry; None where only Python will do."""
        if op is None:
            return self.values
        if not isinstance(op, ExprOp):
            return None
        named = {"key": self.keys, "value": self.values}
        if pa.types.is_struct(self.values.type):
            named = {**{f.name: self.values.field(f.name) for f in self.values.type}, **named}
        try:
            return evaluate(wide(op.expr), pa.RecordBatch.from_pydict(named))
        except RowError:  # perhaps of a sum that fits in the end
            return None

    def where(self, hits: Mask) -> Entries:
        """The entries for which something holds."""
        before = np.append(0, np.cumsum(hits))
        return Entries(
            before[self.starts], self.keys.filter(pa.array(hits)), self.values.filter(pa.array(hits))
        )


def by_columns(op: Operation) -> bool:
    """Whether an operation on maps is an aggregate that can be had of their columns."""
    if not isinstance(op, RelOp) or op.verb not in ("count", "best", "min", "max", "sum", "avg"):
        return False
    while op.verb != "rel":
        if not isinstance(op.op, ExprOp | None):
            return False
        op = op.sources[0]
        if op.verb not in ("filter", "map_values", "rel"):
            return False
    return True


def aggregated(op: Operation, entries: Entries) -> pa.Array | None:
    """The aggregate of each map; None where only Python will do."""
    if not isinstance(op, RelOp) or not by_columns(op):
        return None
    some = _shaped(op.sources[0], entries)
    if some is None:
        return None
    if op.verb == "count":
        return pa.array(some.sizes)
    column = some.column(op.op)
    if column is None or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    if op.verb == "best" and not pa.types.is_integer(some.keys.type):
        return None
    if op.verb in ("min", "max", "best"):
        return _extreme(op.verb, some, column)
    some = Entries(some.starts, some.keys, column)
    if column.null_count:
        some = some.where(column.is_valid().to_numpy(zero_copy_only=False))
    values = some.values.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        return None
    return _reduced(op.verb, some, values)


def _shaped(op: RelOp, entries: Entries) -> Entries | None:
    """What filters and maps leave of the entries."""
    if op.verb == "rel":
        return entries
    if op.verb not in ("filter", "map_values"):
        return None
    inner = _shaped(op.sources[0], entries)
    column = None if inner is None else inner.column(op.op)
    if inner is None or column is None:
        return None
    if op.verb == "map_values":
        return Entries(inner.starts, inner.keys, column)
    return inner.where(column.fill_null(False).to_numpy(zero_copy_only=False))


def _may_be_beyond(values: Array, sizes: I64) -> bool:
    """Whether a sum of whole numbers may not fit into 64 bits."""
    largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    return largest * int(sizes.max(initial=0)) >= 2**63


def _reduced(verb: str, some: Entries, values: Array) -> pa.Array | None:
    """None where a sum does not fit."""
    sizes = some.sizes
    full = sizes > 0
    out = np.zeros(len(sizes), values.dtype)
    if values.dtype.kind == "f" or _may_be_beyond(values, sizes):
        pieces = zip(some.starts.tolist(), (some.starts + sizes).tolist(), strict=True)
        sums = [total(values[a:b].tolist()) for a, b in pieces]
        if verb == "sum" and not fits(sums):
            return None
        if values.dtype.kind != "f" and verb == "avg":
            out = np.array([real(s) for s in sums])
        else:
            out[:] = sums
    elif full.any():
        out[full] = np.add.reduceat(values, some.starts[full])
    if verb == "avg":
        out = out / np.maximum(sizes, 1)
    return pa.array(out, mask=~full)


def _extreme(verb: str, some: Entries, column: pa.Array) -> pa.Array | None:
    """The least value, the greatest, or the greatest and the least of its keys."""
    rows = np.empty(len(some.starts), np.int64)
    keys = words(some.keys) if verb == "best" else NO_KEYS
    keys, values, there = (frozen(a) for a in (keys, words(column), validity(column)))
    if not extremes(frozen(some.starts), keys, values, there, 1 if verb == "min" else -1, rows):
        return None
    at = pa.array(rows, mask=rows < 0)
    found = column.take(at)
    if verb != "best":
        return found
    return pa.StructArray.from_arrays([some.keys.take(at), found], names=["key", "value"])
