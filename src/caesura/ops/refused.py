"""Rows for which an expression has no value: they stop the query, or wait here for the late table.

>>> refused = Refused(pa.schema([("a", pa.int64())]), pa.int64())
>>> page = Page.of(pa.record_batch({"a": [2**62, 5]}), le=[1, 2], re=[3, 4])
>>> test = compile_expr(col("a") * 4, page.schema)
>>> kept, made = refused.attempt(page, lambda p: test(p.payload))
>>> kept.rows(), made.to_pylist()
([(2, 4, None, (5,))], [20])
>>> refused.drain().to_pylist()[0]["reason"]
"'a * 4' of (4611686018427387904, 4) is no bigint"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from caesura.events.page import KEPT, Page
from caesura.events.rows import RowState
from caesura.expr import RowError
from caesura.expr import col as col
from caesura.expr import compile_expr as compile_expr
from caesura.punctuation import INFINITY

OnError = Literal["stop", "late"]
T = TypeVar("T")


class Refused:
    """Refused rows since the last drain, with the reason for each."""

    def __init__(self, schema: pa.Schema, time: pa.DataType, *, most: int | None = None) -> None:
        self.time, self.schema, self.most = time, schema, most
        names = ["reason", *_beside(schema.names)]
        stored = pa.schema([(n, t) for n, t in zip(names, [pa.string(), *schema.types], strict=True)])
        self.rows = RowState({"le": np.int64, "re": np.int64, "new": np.int64}, stored)
        self.count = 0

    def attempt(self, page: Page, make: Callable[[Page], T]) -> tuple[Page, T]:
        """What is made of the page, and its rows without those of which it cannot be made."""
        while True:
            try:
                return page, make(page)
            except RowError as error:
                self.add(page.take(error.rows), error.reasons)
                page = page.take(np.setdiff1d(np.arange(len(page)), error.rows))

    def add(self, page: Page, reasons: list[str]) -> None:
        """Takes rows, each with its reason, as far as there is room; all are counted."""
        self.count += len(page)
        if self.most is not None and len(page) + self.rows.live > self.most:
            page = page.slice(0, max(0, self.most - self.rows.live))
            reasons = reasons[: len(page)]
        new = np.full(len(page), KEPT) if page.re_new is None else page.re_new
        columns = [pa.array(reasons), *page.payload.select(self.schema.names).columns]
        payload = pa.RecordBatch.from_arrays(columns, schema=self.rows.schema)
        self.rows.append({"le": page.le, "re": page.re, "new": new}, payload)

    def drain(self) -> pa.Table | None:
        """The rows refused since the last call; None when there are none."""
        rows = np.flatnonzero(self.rows.alive)
        if len(rows) == 0:
            return None
        payload = self.rows.payload.take(rows)
        le, re, new = (self.rows.get(name)[rows] for name in ("le", "re", "new"))
        self.rows.kill(rows)
        self.rows.compact()
        columns: dict[str, Any] = {
            "reason": payload.column(0),
            "kind": pa.array(np.where(new == KEPT, "+", "-").tolist()),
            "LE": pa.array(le).cast(self.time),
            "RE": pa.array(re, mask=re == INFINITY).cast(self.time),
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
