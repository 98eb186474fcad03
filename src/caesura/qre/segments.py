"""Aggregates of maps without making them: all maps' entries lie in columns, each map in a piece of its own.

>>> from caesura.qre.relations import rel
>>> entries = Entries(np.array([0, 2]), pa.array([7, 8, 9]), pa.array([1, 5, 3]))
>>> aggregated(rel().max(), entries).to_pylist(), aggregated(rel().best(), entries).to_pylist()[0]
([5, 3], {'key': 8, 'value': 5})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.expr import evaluate
from caesura.kernels.hashing import I64, Mask
from caesura.qre.operations import ExprOp, Operation
from caesura.qre.relations import RelOp
from caesura.qre.scalar import wide

Array = np.ndarray[Any, Any]
_REDUCE = {"sum": np.add, "avg": np.add, "min": np.minimum, "max": np.maximum}


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
        return evaluate(wide(op.expr), pa.RecordBatch.from_pydict(named))

    def kept(self, hits: Mask) -> Entries:
        """The entries for which something holds."""
        before = np.append(0, np.cumsum(hits))
        return Entries(
            before[self.starts], self.keys.filter(pa.array(hits)), self.values.filter(pa.array(hits))
        )


def aggregated(op: Operation, entries: Entries) -> pa.Array | None:
    """The aggregate of each map; None where only Python will do."""
    if not isinstance(op, RelOp) or op.verb not in ("count", "best", *_REDUCE):
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
    some = Entries(some.starts, some.keys, column)
    if column.null_count:
        some = some.kept(column.is_valid().to_numpy(zero_copy_only=False))
    values = some.values.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        return None
    return _best(some, values) if op.verb == "best" else _reduced(op.verb, some, values)


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
    return inner.kept(column.fill_null(False).to_numpy(zero_copy_only=False))


def _reduced(verb: str, some: Entries, values: Array) -> pa.Array:
    sizes = some.sizes
    full = sizes > 0
    out = np.zeros(len(sizes), values.dtype)
    if full.any():
        out[full] = _REDUCE[verb].reduceat(values, some.starts[full])
    if verb == "avg":
        out = out / np.maximum(sizes, 1)
    return pa.array(out, mask=~full)


def _best(some: Entries, values: Array) -> pa.Array:
    """The greatest value and the least of its keys."""
    top = _reduced("max", some, values)
    tops = top.fill_null(0).to_numpy(zero_copy_only=False)
    found = some.kept(values == np.repeat(tops, some.sizes))
    keys = _reduced("min", found, found.keys.to_numpy())
    return pa.StructArray.from_arrays([keys, top], names=["key", "value"])
