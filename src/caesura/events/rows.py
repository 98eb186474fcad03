"""Rows that an operator keeps, and how they are saved: runs of what changed, and tombstones.

A row has named 64-bit fields and a payload; rows are numbered and numbers stay until `compact`.
`snapshot` gives the rows that are new or touched since the last one as runs of at most 4 MB, the
numbers of the dead, and, after a compaction, everything anew. Restoring reads the runs in order;
later ones win.

>>> rows = RowState({"le": np.int64}, pa.schema([("id", pa.int64())]))
>>> rows.append({"le": np.array([5, 6])}, pa.record_batch({"id": [1, 2]}))
0
>>> rows.kill(np.array([0]))
>>> again = RowState({"le": np.int64}, pa.schema([("id", pa.int64())]))
>>> again.restore({k: v for k, v in rows.snapshot().items() if v is not None})
>>> again.live, again.get("le")[again.alive].tolist()
(1, [6])
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.arrow_bytes import first_batch
from caesura.events.chunks import Chunks, damaged, ipc_bytes
from caesura.events.columns import ColumnStore, Grown
from caesura.events.paging import StatePages
from caesura.events.referred import Deferred, ReferredStore
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.sums import distinct, each_once

RUN_BYTES = 4 << 20
NUMBER = "\x00number"
MARK = "\x00field:"
SMALL = 4096
RUN_ROWS = 256
"""A run counts as so many rows where it is asked whether to write everything anew, so that runs stay few."""


class RowState:
    """A growing table of rows with liveness, compaction and snapshots of what changed."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        schema: pa.Schema | None = None,
        *,
        reuses: bool = False,
        store: type[ColumnStore] = ColumnStore,
        grown_by: Mapping[str, int] | None = None,
    ) -> None:
        self.schema = schema if schema is not None else pa.schema([])
        self._store = store
        self.reuses = reuses
        """Whether compacting writes over the fields; their views must then not be kept."""
        self.grown_by = grown_by or {}
        """By field of lists that were shorter once: at which place of today's those begin."""
        self.dtypes = {name: np.dtype(dtype) for name, dtype in fields.items()}
        self._pages: StatePages | None = None
        self._clear()
        self._generation = 0
        self._runs: list[str] = []
        self._written = 0

    def _clear(self) -> None:
        self.fields = {name: Grown(dtype) for name, dtype in self.dtypes.items()}
        self.payload = self._store(self.schema)
        if self._pages is not None:
            self.page_to(self._pages)
        self._alive = Grown(np.bool_)
        self.size = 0
        self.live = 0
        self._saved = 0
        self._touched: list[I64] = []
        self._killed: list[I64] = []

    def page_to(self, pages: StatePages) -> None:
        """From now on wide values beyond a budget lie on the disk, where the rows refer to them."""
        self._pages = pages
        if isinstance(self.payload, ReferredStore):
            self.payload.page_to(pages)

    def get(self, name: str) -> np.ndarray[Any, Any]:
        """A field of all rows, dead ones included; writing to it needs `touch`."""
        return self.fields[name].view

    @property
    def alive(self) -> Mask:
        """Which rows live."""
        return self._alive.view

    def append(
        self,
        fields: Mapping[str, np.ndarray[Any, Any]],
        payload: pa.RecordBatch | Deferred | None = None,
        rows: I64 | None = None,
    ) -> int:
        """Adds rows, with the payload's rows of these numbers or all, and gives the number of the first."""
        first = self.size
        count = 0
        for name, grown in self.fields.items():
            grown.extend(fields[name])
            count = len(fields[name])
        if isinstance(payload, Deferred):
            assert isinstance(self.payload, ReferredStore)
            self.payload.refer(payload)
        elif payload is not None and self.payload.columns:
            self.payload.append(payload, rows)
        self._alive.repeat(True, count)
        self.size += count
        self.live += count
        return first

    def touch(self, rows: I64) -> None:
        """Notes that fields of these rows were written; a row may be named often."""
        if self._saved == 0:
            return
        old = rows[rows < self._saved]
        if len(old):
            self._touched.append(distinct(old, self._saved))

    def kill(self, rows: I64) -> None:
        """Takes these rows out; they must live, and be named once each."""
        self._alive.data[rows] = False
        self.live -= len(rows)
        old = rows[rows < self._saved]
        if len(old):
            self._killed.append(old)

    def keep(self, rows: I64, present: Mask) -> None:
        """Takes these rows (once each) out where they are not present, and back in where they are."""
        alive = self.alive[rows]
        gone, back = rows[alive & ~present], rows[~alive & present]
        if len(gone):
            self.kill(gone)
        if len(back):
            self._alive.data[back] = True
            self.live += len(back)
            self.touch(back)

    @property
    def all_fresh(self) -> bool:
        """Whether all rows live, and none of them is in a snapshot."""
        return self._saved == 0 and self.live == self.size

    @property
    def wasteful(self) -> bool:
        """Whether it is time to compact."""
        return wasteful(self.live, self.size)

    def compact(self, keep: I64 | None = None, *, moved: Collection[str] = ()) -> I64:
        """Moves the live rows, or some of them, together; gives their old numbers, by new number.

        Somebody may have moved the values of some fields already.
        """
        keep = np.flatnonzero(self.alive) if keep is None else keep
        for name, grown in self.fields.items():
            if name in moved:
                grown.cut(len(keep))
            else:
                grown.keep(keep, reuse=self.reuses)
        if self.payload.columns:
            self.payload.compact(keep)
        self._alive.fill(True, len(keep), reuse=self.reuses)
        self.size = self.live = len(keep)
        if self._runs:
            self._generation += 1
        self._saved = 0
        self._touched, self._killed = [], []
        return keep

    @property
    def nbytes(self) -> int:
        """Bytes held, without spare capacity."""
        widths = sum(int(d.itemsize) for d in self.dtypes.values())
        return int(self.payload.nbytes + self.size * (1 + widths))

    def snapshot(self) -> Chunks:
        """What changed since the last snapshot, as chunks; None for a chunk that is gone."""
        if self._written + RUN_ROWS * len(self._runs) > 2 * self.live + SMALL:
            self._generation += 1
            self._saved = 0
        chunks: Chunks = {}
        prefix = f"{self._generation:06d}/"
        if self._saved == 0:
            chunks = {name: None for name in self._runs if not name.startswith(prefix)}
            self._runs = [name for name in self._runs if name.startswith(prefix)]
            self._touched, self._killed = [], []
            self._written = 0
        fresh = np.arange(self._saved, self.size)
        rows = each_once(np.concatenate([*self._touched, fresh])) if self._touched else fresh
        rows = rows[self.alive[rows]] if len(rows) else rows
        for part in self._split(rows):
            self._add(chunks, prefix + f"{len(self._runs):06d}r", self._pack(part))
        dead = each_once(np.concatenate(self._killed)) if self._killed else rows[:0]
        dead = dead[~self.alive[dead]]
        if len(dead):
            self._add(chunks, prefix + f"{len(self._runs):06d}x", ipc_bytes(pa.record_batch({NUMBER: dead})))
        self._written += len(rows)
        self._saved = self.size
        self._touched, self._killed = [], []
        return chunks

    def _add(self, chunks: Chunks, name: str, data: bytes) -> None:
        self._runs.append(name)
        chunks[name] = data

    def _split(self, rows: I64) -> list[I64]:
        if len(rows) == 0:
            return []
        width = max(1, self.nbytes // max(1, self.size))
        step = max(1, RUN_BYTES // width)
        return [rows[i : i + step] for i in range(0, len(rows), step)]

    def _pack(self, rows: I64) -> bytes:
        columns: list[Any] = [pa.array(rows)]
        columns += [_to_arrow(grown.view[rows]) for grown in self.fields.values()]
        if self.payload.columns:
            columns += self.payload.take(rows).columns
        names = [NUMBER, *(MARK + n for n in self.fields), *self.schema.names]
        return ipc_bytes(pa.RecordBatch.from_arrays(columns, names=names))

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the rows of these chunks, under their old numbers; gaps are dead rows."""
        self._clear()
        self._runs = sorted(chunks)
        self._generation = int(self._runs[-1][:6]) if self._runs else 0
        runs = [(name, *_run(chunks[name])) for name in self._runs]
        ends = [int(numbers[-1]) + 1 for name, _, numbers in runs if name.endswith("r")]
        last = np.full(max(ends, default=0), -1, np.int64)
        batches: list[pa.RecordBatch] = []
        self._written, in_order = 0, True
        for name, batch, numbers in runs:
            if name.endswith("x"):
                last[numbers[numbers < len(last)]] = -1
                continue
            places = np.arange(self._written, self._written + len(numbers))
            in_order = in_order and np.array_equal(numbers, places)
            last[numbers] = places
            self._written += len(numbers)
            batches.append(batch)
        if len(last):
            self._load(batches, last, in_order=in_order)

    def _load(self, batches: list[pa.RecordBatch], last: I64, *, in_order: bool) -> None:
        if not in_order:  # else every row stands at its number
            table = pa.Table.from_batches(batches).take(pa.array(np.maximum(last, 0)))
            batches = table.combine_chunks().to_batches()
        for name, grown in self.fields.items():
            grown.reserve(len(last))
            for batch in batches:
                grown.extend(_to_numpy(batch.column(MARK + name), self.dtypes[name], self.grown_by.get(name)))
        if self.payload.columns:
            self.payload.append_all([batch.select(self.schema.names) for batch in batches])
        self._alive.extend(last >= 0)
        self.size = self._saved = len(last)
        self.live = int(np.count_nonzero(last >= 0))
        lists = [
            (batch.column(MARK + name), self.dtypes[name]) for name in self.grown_by for batch in batches
        ]
        if any(column.type.list_size < dtype.shape[0] for column, dtype in lists):
            self._generation, self._saved = self._generation + 1, 0  # so that no runs of two widths meet


def wasteful(live: int, size: int) -> bool:
    """Whether so many live rows of so many are few enough to move them together: a quarter is dead."""
    return live < size and 4 * (size - live) >= size


def _run(data: bytes) -> tuple[pa.RecordBatch, I64]:
    """A run of rows, or of tombstones, and the numbers of its rows."""
    try:
        batch = first_batch(data)
    except ValueError as error:
        raise damaged("a table of rows") from error
    numbers = batch.column(0) if batch.num_columns else pa.nulls(0)
    if numbers.type != pa.int64() or numbers.null_count or len(numbers) == 0:
        raise damaged("a table of rows")
    found: I64 = numbers.to_numpy()
    if int(found.min()) < 0:
        raise damaged("a table of rows")
    return batch, found


def _to_arrow(values: np.ndarray[Any, Any]) -> pa.Array:
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def _to_numpy(column: pa.Array, dtype: np.dtype[Any], first: int | None = None) -> np.ndarray[Any, Any]:
    if dtype.subdtype is None:
        return column.to_numpy(zero_copy_only=False).astype(dtype, copy=False)  # type: ignore[no-any-return]
    lists: np.ndarray[Any, Any] = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
    if lists.shape[1:] == dtype.shape:
        return lists
    if first is None or first + lists.shape[1] > dtype.shape[0]:
        raise damaged("rows of another shape")
    padded = np.zeros((len(column), *dtype.shape), dtype.base)
    padded[:, first : first + lists.shape[1]] = lists
    return padded
