"""Rows that are kept until they are asked for, each with the reason why it did not go on.

>>> page = Page.of(pa.record_batch({"id": [7, 8]}), le=[3, 4], re=[4, 5])
>>> noted = NotedRows(page.schema, limit=1)
>>> noted.add(page, ["too late", "too late"])
>>> noted.count, noted.taken(pa.int64()).to_pylist()
(2, [{'reason': 'too late', 'kind': '+', 'LE': 3, 'RE': 4, 'id': 7}])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.page import NO_NEW_END, Page
from caesura.events.rows import RowState
from caesura.punctuation import INFINITY


class NotedRows:
    """Rows since they were last asked for; past a limit they are only counted."""

    def __init__(self, schema: pa.Schema, *, limit: int | None = None) -> None:
        self.schema, self.limit = schema, limit
        names = ["reason", *_beside(schema.names)]
        stored = pa.schema([(n, t) for n, t in zip(names, [pa.string(), *schema.types], strict=True)])
        self.rows = RowState({"le": np.int64, "re": np.int64, "new": np.int64}, stored)
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether more would only be counted."""
        return self.limit is not None and self.rows.live >= self.limit

    def add(self, page: Page, reasons: Sequence[str]) -> None:
        """Takes rows, each with its reason, as far as there is room; all are counted."""
        self.count += len(page)
        if self.limit is not None and len(page) + self.rows.live > self.limit:
            page = page.slice(0, max(0, self.limit - self.rows.live))
            reasons = reasons[: len(page)]
        if len(page) == 0:
            return
        new = np.full(len(page), NO_NEW_END) if page.re_new is None else page.re_new
        columns = [pa.array(reasons, pa.string()), *page.payload.select(self.schema.names).columns]
        payload = pa.RecordBatch.from_arrays(columns, schema=self.rows.schema)
        self.rows.append({"le": page.le, "re": page.re, "new": new}, payload)

    def taken(self, time: pa.DataType) -> pa.Table | None:
        """The rows since the last call; None when there are none."""
        rows = np.flatnonzero(self.rows.alive)
        if len(rows) == 0:
            return None
        payload = self.rows.payload.take(rows)
        le, re, new = (self.rows.get(name)[rows] for name in ("le", "re", "new"))
        self.rows.kill(rows)
        self.rows.compact()
        columns: dict[str, Any] = {
            "reason": payload.column(0),
            "kind": pa.array(np.where(new == NO_NEW_END, "+", "-").tolist()),
            "LE": pa.array(le).cast(time),
            "RE": pa.array(re, mask=re == INFINITY).cast(time),
        }
        return pa.table(columns | dict(zip(payload.schema.names[1:], payload.columns[1:], strict=True)))


def _beside(names: list[str]) -> list[str]:
    """Names of columns beside the table's own; one that is taken gets an underscore."""
    taken = {"reason", "kind", "LE", "RE"}
    out = []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        out.append(name)
    return out
