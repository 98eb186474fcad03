"""Events that never end, waiting for progress to carry them into further windows.

Equal ones (same group, same values, same start) are counted, not kept twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caesura.events.identity import LOCAL, identity
from caesura.events.page import take_rows
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, each_once


class Endless:
    """A counted bag of (keys, values, start), each with the last window it has entered."""

    def __init__(self, keys: pa.Schema, values: Sequence[pa.Field]) -> None:
        self.schema = pa.schema([*(pa.field(f"k{i}", f.type) for i, f in enumerate(keys)), *values])
        self._key_names = keys.names
        self.rows = RowState({"le": np.int64, "n": np.int64, "reached": np.int64}, self.schema)
        self._table = KeyTable()

    def change(
        self, keys: pa.RecordBatch, values: Sequence[pa.Array], le: I64, change: I64, reached: I64
    ) -> None:
        """Counts events without end that come (1) or go (-1); they are in their windows up to ``reached``."""
        some = np.flatnonzero(change)
        batch = pa.RecordBatch.from_arrays([*keys.columns, *values], schema=self.schema)
        batch = take_rows(batch, some)
        ids = identity(batch.columns, len(some), LOCAL)
        at, fresh = self._table.encode(*mixed(ids, le[some]))
        if len(fresh):
            fields = {
                "le": le[some][fresh],
                "n": np.zeros(len(fresh), np.int64),
                "reached": reached[some][fresh],
            }
            self.rows.append(fields, take_rows(batch, fresh))
        add_weights(at, change[some], self.rows.get("n"))
        self.rows.touch(each_once(at))
        self.drop(np.flatnonzero(self.rows.alive & (self.rows.get("n") <= 0)))

    def drop(self, rows: I64) -> None:
        """Lets events go, and the table with them."""
        if len(rows):
            self.rows.kill(rows)
            self.rebuild()

    def rebuild(self) -> None:
        if self.rows.live < self.rows.size:
            self.rows.compact()
        ids = identity(self.rows.payload.all().columns, self.rows.size, LOCAL)
        self._table = KeyTable()
        self._table.encode(*mixed(ids, self.rows.get("le")))
