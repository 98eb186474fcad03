"""The late table: rows that may not enter, each with its reason, lane and offset.

It keeps all rows until they are asked for, in files where there are many. A limit lets go of the oldest;
how many went is counted.

>>> late = LateTable(pa.schema([("id", pa.int64())]), pa.int64(), limit=10)
>>> page = Page.of(pa.record_batch({"id": [7]}), le=[3], re=[4])
>>> late.add(page, "too late", lane=0, offsets=np.array([12]))
>>> late.drain().to_pylist()
[{'reason': 'too late', 'lane': 0, 'offset': 12, 'kind': '+', 'LE': 3, 'RE': 4, 'RE_new': None, 'id': 7}]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import Page
from caesura.events.columns import empty_rows
from caesura.events.page import NO_NEW_END
from caesura.events.rows import RUN_BYTES, RowState
from caesura.io.ingress.clock import from_ticks
from caesura.io.ingress.late_pages import LatePages
from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import INFINITY, MIN_TIME

PAGE_BYTES = RUN_BYTES
"""How many bytes of late rows stay in memory."""


def lifetimes(page: Page, time: pa.DataType) -> list[pa.Array]:
    """The columns kind, LE, RE, RE_new of a page, as people and files take them: no end is null."""
    ends = np.full(len(page), NO_NEW_END, np.int64) if page.re_new is None else page.re_new
    kept = ends == NO_NEW_END
    kinds = pa.array(["-", "=" if page.settled else "~" if page.partial else "+"])
    return [
        kinds.take(pa.array(kept.view(np.int8))),
        from_ticks(page.le, time, _missing(page.le == MIN_TIME)),
        from_ticks(page.re, time, _missing((page.re == INFINITY) | (page.re <= MIN_TIME + 1))),
        from_ticks(ends, time, _missing(kept | (ends == INFINITY))),
    ]


def beside(schema: pa.Schema, taken: tuple[str, ...]) -> list[pa.Field]:
    """Payload columns beside columns of the engine: a name that is taken gets an underscore.

    >>> [field.name for field in beside(pa.schema([("kind", pa.string())]), ("kind",))]
    ['kind_']
    """
    names = [*taken]
    fields = []
    for field in schema:
        name = field.name
        while name in names or (name != field.name and name in schema.names):
            name += "_"
        names.append(name)
        fields.append(field.with_name(name))
    return fields


def _missing(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


class LateTable:
    """Refused rows since the last drain; a row state, so that a snapshot saves them."""

    def __init__(self, schema: pa.Schema, time: pa.DataType, *, limit: int | None = None) -> None:
        self.schema = schema
        self.time = time
        self.limit = limit
        self.count = 0
        self.dropped = 0
        texts = [("reason", pa.string()), ("kind", pa.string())]
        ticks = [("LE", time), ("RE", time), ("RE_new", time)]
        names = ("reason", "lane", "offset", "kind", "LE", "RE", "RE_new")
        columns = pa.schema([*texts, *ticks, *beside(schema, names)])
        self.rows = RowState({"lane": np.int64, "offset": np.int64}, columns)
        self.pages = LatePages()
        """Rows that were put aside before these."""

    @property
    def kept(self) -> int:
        """How many rows wait to be asked for."""
        return self.rows.live + self.pages.live

    def add(
        self, page: Page, reason: str | pa.Array, *, lane: int | I64, offsets: I64, kind: str | None = None
    ) -> None:
        """Takes refused rows; one reason for all, or one each."""
        self.count += len(page)
        if len(page) == 0:
            return
        if isinstance(reason, str):
            reason = pa.array(np.full(len(page), reason), pa.string())
        kinds, *ticks = lifetimes(page, self.time)
        if kind is not None:
            kinds = pa.array([kind] * len(page))
        columns = [reason, kinds, *ticks, *page.payload.columns]
        fields = {"lane": np.full(len(page), lane) if isinstance(lane, int) else lane, "offset": offsets}
        self.rows.append(fields, pa.RecordBatch.from_arrays(columns, schema=self.rows.schema))
        self._make_room()

    def _make_room(self) -> None:
        """Lets go of the oldest rows beyond the limit; puts many rows aside."""
        over = 0 if self.limit is None else self.kept - self.limit
        while over > 0 and self.pages.live:
            dropped_rows = self.pages.drop(over)
            self.dropped, over = self.dropped + dropped_rows, over - dropped_rows
        if over > 0:
            self.rows.kill(np.flatnonzero(self.rows.alive)[:over])
            self.dropped += over
            if self.rows.wasteful:
                self.rows.compact()
        if self.rows.nbytes > PAGE_BYTES:
            self.pages.put(self._in_memory())

    def note(self, reason: str, *, lane: int, offset: int, kind: str = "punctuation") -> None:
        """Takes a punctuation that says nothing, or a row that could not be read: one without an event."""
        columns = [pa.nulls(1, field.type) for field in self.schema]
        payload = pa.RecordBatch.from_arrays(columns, schema=self.schema) if columns else empty_rows(1)
        never = Page.of(payload, le=[MIN_TIME], re=[INFINITY])
        self.add(never, reason, lane=lane, offsets=np.array([offset]), kind=kind)

    def refuse(self) -> None:
        """Stops where a row was refused and whoever reads the source wants none to be."""
        if self.kept == 0:
            return
        rows = self.drain()
        assert rows is not None
        first = rows.slice(0, 1).to_pylist()[0]
        place = f"row {first['offset']} of lane {first['lane']}" if first["offset"] >= 0 else "a row"
        raise StreamError(
            f"{place}: {first['reason']}.",
            remedy="Mend the row, promise less (a longer delay), or read with late='reject', which keeps "
            "such rows in the late table.",
        )

    def drain(self) -> pa.Table | None:
        """The rows refused since the last call; None when there are none."""
        tables = [*self.pages.take(), *([self._in_memory()] if self.rows.live else [])]
        return pa.concat_tables(tables) if tables else None

    def peek(self, first: int, count: int) -> pa.Table | None:
        """Some of the rows that wait to be asked for, and go on waiting; None where there are no such."""
        aside = self.pages.peek(first, count)
        seen = sum(table.num_rows for table in aside)
        start = max(0, first - self.pages.live)
        keep = np.flatnonzero(self.rows.alive)[start : start + count - seen]
        tables = [*aside, *([self._table(keep)] if len(keep) else [])]
        return pa.concat_tables(tables) if tables else None

    def _in_memory(self) -> pa.Table:
        """The rows in memory, taken out."""
        keep = np.flatnonzero(self.rows.alive)
        table = self._table(keep)
        self.rows.kill(keep)
        self.rows.compact()
        return table

    def _table(self, keep: I64) -> pa.Table:
        """Some of the rows in memory."""
        batch = self.rows.payload.take(keep)
        lane, offset = (pa.array(self.rows.get(name)[keep]) for name in ("lane", "offset"))
        columns = [batch.column(0), lane, offset, *batch.columns[1:]]
        names = ["reason", "lane", "offset", *batch.schema.names[1:]]
        return pa.table(columns, names=names)
