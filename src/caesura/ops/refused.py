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
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa

from caesura.events.noted import NotedRows
from caesura.events.page import Page
from caesura.expr import RowError
from caesura.expr import col as col
from caesura.expr import compile_expr as compile_expr

OnError = Literal["stop", "late"]
T = TypeVar("T")


class Refused(NotedRows):
    """Refused rows since the last drain, with the reason for each."""

    def __init__(self, schema: pa.Schema, time: pa.DataType, *, limit: int | None = None) -> None:
        super().__init__(schema, limit=limit)
        self.time = time

    def attempt(self, page: Page, make: Callable[[Page], T]) -> tuple[Page, T]:
        """What is made of the page, and its rows without those of which it cannot be made."""
        while True:
            try:
                return page, make(page)
            except RowError as error:
                self.add(page.take(error.rows), error.reasons)
                page = page.take(np.setdiff1d(np.arange(len(page)), error.rows))

    def drain(self) -> pa.Table | None:
        """The rows refused since the last call; None when there are none."""
        return self.taken(self.time)
