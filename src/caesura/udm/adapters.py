"""How the members of windows are handed to a module: lists, rows, events, arrays, frames, batches."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.nested import python_values
from caesura.kernels.hashing import I64
from caesura.udm.module import Module
from caesura.udm.values import Event


class Members(NamedTuple):
    """Units (windows, or stretches of them) and their members, sorted by unit."""

    start: I64
    end: I64
    low: I64
    high: I64
    owner: I64
    le: I64
    re: I64
    n: I64
    ids: I64
    """What names each member from one time to the next."""
    values: Sequence[pa.Array]

    def take(self, pairs: I64) -> Members:
        """Some of the members."""
        values = [v.take(pa.array(pairs)) for v in self.values]
        return self._replace(
            owner=self.owner[pairs],
            le=self.le[pairs],
            re=self.re[pairs],
            n=self.n[pairs],
            ids=self.ids[pairs],
            values=values,
        )

    def copies(self) -> Members:
        """The members with their copies written out."""
        if (self.n == 1).all():
            return self
        every = self.take(np.repeat(np.arange(len(self.n)), self.n))
        return every._replace(n=np.ones(len(every.n), np.int64))


class Adapter:
    """Turns members into what the module's writer asked for; slices of it are windows."""

    def __init__(self, module: Module, names: Sequence[str]) -> None:
        self.module, self.names = module, tuple(names)
        self._events = module.events and module.view == "list"

    def load(self, members: Members) -> Any:
        """All members at once."""
        match self.module.view:
            case "array":
                return self._array(members.values)
            case "batch":
                return self._batch(members)
            case "frame":
                return self._batch(members).to_pandas()
        return self.items(members)

    def items(self, members: Members) -> list[Any]:
        """One object per member."""
        payloads = self._payloads(members.values)
        if not self._events:
            return payloads
        starts, ends = members.le.tolist(), members.re.tolist()
        return [Event(a, b, p) for a, b, p in zip(starts, ends, payloads, strict=True)]

    def _payloads(self, values: Sequence[pa.Array]) -> list[Any]:
        columns: list[list[Any]] = [python_values(v) for v in self._widened(values)]
        row = self.module.row
        if row is None and len(columns) == 1:
            return columns[0]
        if row is None or typing.is_typeddict(row):
            return [dict(zip(self.names, cells, strict=True)) for cells in zip(*columns, strict=True)]
        return [row(**dict(zip(self.names, cells, strict=True))) for cells in zip(*columns, strict=True)]

    def _widened(self, values: Sequence[pa.Array]) -> list[pa.Array]:
        """The columns in the types that the module takes."""
        if self.module.takes is None:
            return list(values)
        return [_wide(v, t) for v, (_, t) in zip(values, self.module.takes, strict=True)]

    def _array(self, values: Sequence[pa.Array]) -> Any:
        """One column as it is, several as one array with a field for each."""
        columns = [v.to_numpy(zero_copy_only=False) for v in self._widened(values)]
        if len(columns) == 1:
            return columns[0]
        fields = [(name, column.dtype) for name, column in zip(self.names, columns, strict=True)]
        made = np.empty(len(columns[0]), np.dtype(fields))
        for name, column in zip(self.names, columns, strict=True):
            made[name] = column
        return made

    def _batch(self, members: Members) -> pa.RecordBatch:
        columns, names = self._widened(members.values), list(self.names)
        if self.module.timed:
            columns += [pa.array(members.le), pa.array(members.re)]
            names += ["LE", "RE"]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def part(self, loaded: Any, first: int, last: int) -> Any:
        """The members of one window."""
        if self.module.view == "batch":
            return loaded.slice(first, last - first)
        if self.module.view == "frame":
            return loaded.iloc[first:last].reset_index(drop=True)
        return loaded[first:last]


def _wide(values: pa.Array, t: pa.DataType | None) -> pa.Array:
    return values if t is None or values.type == t else values.cast(t)


def adapter(module: Module, names: Sequence[str]) -> Adapter:
    """The adapter for a module whose columns have these names."""
    return Adapter(module, names)
