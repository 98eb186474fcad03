"""Which rows of a file an epoch replaces or deletes, for tables whose files are written anew.

>>> put = pa.table({"id": [7], "v": [6]})
>>> layout = TableLayout(put.schema, pa.int64(), ("id",), history=False)
>>> keys = ReplacedKeys(NetChange(put, put.select(["id"]).slice(0, 0), np.array([False])), layout)
>>> keys.left(pa.table({"id": [7, 8], "v": [5, 1]})).to_pylist()
[{'id': 8, 'v': 1}]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.identity import LOCAL, identity
from caesura.io.sinks.current import NetChange, TableLayout, two_rows
from caesura.kernels.hashing import U64
from caesura.kernels.keys import KeyTable

ORDERED = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
"""Types by whose least and greatest value files are passed over."""


class ReplacedKeys:
    """The keys whose rows an epoch puts or deletes."""

    def __init__(self, change: NetChange, layout: TableLayout) -> None:
        self._layout = layout
        keys = pa.concat_tables([change.put.select(list(layout.key)), change.delete])
        self._all, self._new = KeyTable(), KeyTable()
        self._all.encode(*self._ids(keys))
        self._new.encode(*self._ids(change.new_keys))
        first = keys.column(layout.key[0])
        self.nulls = first.null_count > 0
        self.span: tuple[Any, Any] | None = None
        """The least and greatest value of the key's first column, where it has any that are told apart so."""
        if any(fits(first.type) for fits in ORDERED) and first.null_count < len(first):
            found = pc.min_max(first)
            self.span = found["min"].as_py(), found["max"].as_py()
        self.ordered = any(fits(first.type) for fits in ORDERED)

    def _ids(self, rows: pa.Table) -> tuple[U64, U64]:
        columns = [rows.column(name).combine_chunks() for name in self._layout.key]
        return identity(columns, rows.num_rows, LOCAL)

    def may_hold(self, least: Any, greatest: Any, nulls: bool) -> bool:
        """Whether a file may hold one of the keys, by its values of the key's first column."""
        if not self.ordered or (self.nulls and nulls):
            return True
        if self.span is None or least is None:
            return False
        return bool(self.span[0] <= greatest and least <= self.span[1])

    def left(self, rows: pa.Table) -> pa.Table | None:
        """The rows of a file that stay, None where all do; refuses a row whose key is to be new."""
        ids = self._ids(rows)
        second = np.flatnonzero(self._new.find(*ids) >= 0)
        if len(second):
            raise two_rows(rows.take(second), self._layout.key)
        replaced = self._all.find(*ids) >= 0
        return rows.filter(pa.array(~replaced)) if replaced.any() else None
