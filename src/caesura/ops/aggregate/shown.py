"""What windows have shown on demand before they closed, to be replaced by what they say in the end.

>>> shown = Shown(pa.schema([("id", pa.int64()), ("n", pa.int64())]), 1)
>>> early = Page.of(pa.record_batch({"id": [7], "n": [1]}), le=[0], re=[10])
>>> shown.renew(early).rows()
[(0, 10, None, (7, 1))]
>>> final = Page.of(pa.record_batch({"id": [7], "n": [2]}), le=[0], re=[10])
>>> shown.close(final).rows()
[(0, 10, 0, (7, 1)), (0, 10, None, (7, 2))]
>>> shown.rows.live
0
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.identity import LOCAL, identity
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.keys import KeyTable
from caesura.ops.sent import replaced
from caesura.punctuation import Pattern


class Shown:
    """Rows by their first columns, the group, and their start."""

    def __init__(self, schema: pa.Schema, width: int) -> None:
        self.rows = RowState({"le": np.int64, "re": np.int64}, schema)
        self.width = width

    def renew(self, page: Page) -> Page:
        """Shows these rows, instead of what was shown of their windows."""
        change = self.close(page)
        self.rows.append({"le": page.le, "re": page.re}, page.payload)
        return change

    def close(self, page: Page) -> Page:
        """The change from what was shown of some windows to what they say; nothing is kept of it."""
        live = np.flatnonzero(self.rows.alive)
        if len(live) == 0:
            return page
        table = KeyTable()
        table.encode(*self._ids(page.payload, page.le))
        old = live[table.find(*self._ids(self.rows.payload.take(live), self.rows.get("le")[live])) >= 0]
        change = replaced(self.rows, old, page)
        if self.rows.wasteful:
            self.rows.compact()
        return change

    def take_back(self, pattern: Pattern) -> list[Item]:
        """The retracts of what was shown and matches; nothing is kept of it."""
        live = np.flatnonzero(self.rows.alive)
        payload = self.rows.payload.take(live)
        le, re = (self.rows.get(name)[live] for name in ("le", "re"))
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        some = np.flatnonzero(pattern.matches({**columns, "LE": le, "RE": re}))
        self.rows.kill(live[some])
        if len(some) == 0:
            return []
        return [Page.of(payload.take(pa.array(some)), le=le[some], re=re[some], re_new=le[some])]

    def _ids(self, payload: pa.RecordBatch, le: I64) -> tuple[U64, U64]:
        return mixed(identity(payload.columns[: self.width], len(le), LOCAL), le)
