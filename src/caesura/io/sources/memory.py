"""Readers of what is in memory: Arrow tables and streams, pandas frames.

>>> reader = TableReader(pa.table({"t": [1, 2, 3]}), batch_size=2)
>>> [(raw.offset, raw.batch.num_rows) for raw in reader.read({0: 1})]
[(1, 2)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import DataError
from caesura.events.columns import joined_batches
from caesura.events.content import column_key
from caesura.events.types import is_words
from caesura.io.sources.passed import PassedRows
from caesura.io.sources.protocol import Offsets, Reader
from caesura.plan import Raw

if TYPE_CHECKING:
    import pandas as pd

OTHER_ROWS = "the first rows are others than those that were read"
PUT_BACK = "Give the rows that were read first, as they were; or start anew without the saved state."
BATCH = 65_536
THREADS = 4


def in_lane(batches: Iterable[pa.RecordBatch], skip: int, size: int = BATCH) -> Iterator[Raw]:
    """Batches as the rows of lane 0, without the first ``skip``, in batches of at most ``size``."""
    offset = 0
    for whole in batches:
        for start in range(0, whole.num_rows, size):
            batch = whole.slice(start, size)
            end = offset + batch.num_rows
            if end > skip:
                cut = max(0, skip - offset)
                yield Raw(0, offset + cut, batch.slice(cut) if cut else batch)
            offset = end


def in_larger(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Neighbours put together, as long as they have at most so many rows.

    >>> parts = pa.table({"t": pa.chunked_array([[1], [2, 3], [4]])}).to_batches()
    >>> [batch.column(0).to_pylist() for batch in in_larger(parts, 3)]
    [[1, 2, 3], [4]]
    """
    some: list[pa.RecordBatch] = []
    for batch in batches:
        if some and sum(one.num_rows for one in some) + batch.num_rows > size:
            yield joined_batches(some)
            some = []
        some.append(batch)
    if some:
        yield joined_batches(some)


def columns_key(schema: pa.Schema) -> str:
    """Names and types of columns, as one text."""
    return ",".join(f"{field.name} {field.type}" for field in schema)


class TableReader(Reader):
    """A table in memory; it can be read again and again."""

    in_memory = True
    put_back = PUT_BACK

    def __init__(self, table: pa.Table, *, batch_size: int = BATCH) -> None:
        self.table = table
        self.schema = table.schema
        self.batch_size = batch_size
        self._joins = False
        """Whether chunks are put together: each is a page of its own, and steps work by the page."""
        self._columns: dict[str, str] = {}
        """The keys of those columns that were asked for, shared by narrower readers of the table."""
        self._passed = PassedRows(table)
        self._itself: pa.Table | None = None
        """The table that it is known by within a run, in place of its rows. It is held for as long, so that
        no other table has its address meanwhile; nothing that is saved or sent is known by it."""

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Equal for tables of the same rows, in any process."""
        if self._itself is not None:
            return f"table at {id(self._itself)}:{columns_key(self.schema)}"
        from concurrent.futures import ThreadPoolExecutor

        names = [name for name in self.table.schema.names if name not in self._columns]
        with ThreadPoolExecutor(max_workers=THREADS) as threads:
            keys = threads.map(lambda name: column_key(self.table.column(name)), names)
            self._columns.update(zip(names, keys, strict=True))
        named = [f"{name}:{self._columns[name]}" for name in self.table.schema.names]
        return f"table:{self.table.num_rows}:{','.join(named)}"

    def narrowed(self, columns: Sequence[str]) -> TableReader:
        """The same table with these columns only."""
        other = TableReader(self.table.select(columns), batch_size=self.batch_size)
        other._columns, other._itself = self._columns, self._itself
        return other

    def for_one_run(self) -> TableReader:
        """The same table, known by itself: its rows need not be read to tell it from others."""
        other = TableReader(self.table, batch_size=self.batch_size)
        other._itself = self.table
        return other

    def batched(self, rows: int) -> TableReader:
        """The same table in larger batches, unless a size was asked for."""
        if self.batch_size != BATCH:
            return self
        other = copy(self)
        other.batch_size = max(rows, BATCH)
        other._joins = all(is_words(field.type) for field in self.schema)  # else copying costs too much
        return other

    def latest(self) -> Offsets:
        return {0: self.table.num_rows}

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        return self._passed.up_to(min(offsets.get(0, 0), self.table.num_rows))

    def displaced(self, passed: Mapping[str, int]) -> str:
        return OTHER_ROWS if self._passed.differ(passed) else ""

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        skip = offsets.get(0, 0)
        rest = self.table.slice(skip)
        batches: Iterable[pa.RecordBatch] = rest.to_batches(max_chunksize=self.batch_size)
        if self._joins:
            batches = in_larger(batches, self.batch_size)
        for raw in in_lane(batches, 0, self.batch_size):
            yield Raw(0, raw.offset + skip, raw.batch)

    def describe(self) -> str:
        return f"Arrow table of {self.table.num_rows} rows"


class StreamReader(Reader):
    """An Arrow stream, which can be read once."""

    def __init__(self, stream: pa.RecordBatchReader, *, batch_size: int = BATCH) -> None:
        self.stream = self.origin = stream
        self.schema = stream.schema
        self.batch_size = batch_size
        self.key = f"stream:{columns_key(stream.schema)}"
        self._used = False

    def cannot_replay(self) -> str:
        return "this Arrow stream was read already, and it can be read once only" if self._used else ""

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        if self._used:
            raise DataError(
                f"{self.cannot_replay()}.",
                remedy="Read it into a table first: from_arrow(stream.read_all(), ...).",
            )
        self._used = True
        try:
            yield from in_lane(self.stream, offsets.get(0, 0), self.batch_size)
        except pa.ArrowException as error:
            raise DataError(
                f"the Arrow stream broke off: {error}.", remedy="Look at what produces the stream."
            ) from None

    def describe(self) -> str:
        return "Arrow stream"


def arrow_reader(data: Any, *, batch_size: int = BATCH) -> TableReader | StreamReader:
    """The reader of a table, a batch, batches, a stream, or anything with the Arrow C interface."""
    if isinstance(data, pa.Table):
        return TableReader(data, batch_size=batch_size)
    if isinstance(data, pa.RecordBatch):
        return TableReader(pa.Table.from_batches([data]), batch_size=batch_size)
    if isinstance(data, pa.RecordBatchReader):
        return StreamReader(data, batch_size=batch_size)
    if isinstance(data, (list, tuple)) and data and all(isinstance(b, pa.RecordBatch) for b in data):
        return TableReader(pa.Table.from_batches(data), batch_size=batch_size)
    if hasattr(data, "__arrow_c_stream__"):
        return StreamReader(pa.RecordBatchReader.from_stream(data), batch_size=batch_size)
    raise DataError(
        f"a {type(data).__name__} is no Arrow data.",
        remedy="Give a Table, RecordBatch or RecordBatchReader; from_pandas and from_rows take others.",
    )


def pandas_reader(frame: pd.DataFrame, *, batch_size: int = BATCH) -> TableReader:
    """The reader of a pandas frame; its index is left out."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"this frame cannot be read as columns of one type each: {'; '.join(map(str, error.args))}.",
            remedy="Give every column one type, for example with astype.",
        ) from None
    return TableReader(table, batch_size=batch_size)
