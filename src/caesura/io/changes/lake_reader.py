"""A table of versions (Delta, Iceberg) as a source: all its rows at one version, then each version's changes.

A version is one commit, and takes a block of offsets: its changes lie in the lower half of its block, behind
its first offset, so that an offset tells whether a version has been begun. Who has
read nothing yet begins with the rows of the whole table, in the upper half of the block of the version that
is the latest then; so an offset tells what it is in the middle of, and nothing is read twice or left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.sources.memory import BATCH, columns_key, in_lane
from caesura.io.sources.passed import small_hash
from caesura.io.sources.protocol import Offsets, Reader
from caesura.plan import NOTHING_NOW, Raw, SourceBatch

BLOCK = 1 << 32
HALF = BLOCK >> 1
CHANGE, VERSION, TIME = "_change_type", "_commit_version", "_commit_timestamp"
"""What is known of a change, by the names of Delta's change feed."""
META = {CHANGE: pa.string(), VERSION: pa.int64(), TIME: pa.timestamp("us", "UTC")}
INSERT, DELETE = "insert", "delete"
REPLACED = "deleted and made anew since it was read"
ANEW = "Put back the table that was read; or start with a new checkpoint, which begins with the whole table."
TABLE = "table"
"""Under which the identity of a table stands among its offsets."""
Start = Literal["snapshot", "latest"]
Until = Literal["latest"]


@dataclass(frozen=True)
class TableFile:
    """A file of a table, and what a version does with its rows."""

    name: str
    content: Any
    """What the table reads it by."""
    change: str | None = INSERT
    """Insert or delete; None of a file whose rows say it themselves, in a column."""


class LakeTable(ABC):
    """A table that tells its versions."""

    schema: pa.Schema
    identity: str
    """The same text for the same table, in any process."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it."""

    @abstractmethod
    def latest(self) -> int | None:
        """The number of its latest version; None before the first."""

    @abstractmethod
    def versions(self, after: int, last: int) -> list[int]:
        """Its versions behind one up to another; refuses where one of them is gone."""

    @abstractmethod
    def committed(self, version: int) -> int:
        """When a version was made, in microseconds; never earlier than the one before it."""

    @abstractmethod
    def operation(self, version: int) -> str:
        """What made a version, in the words of the format."""

    @abstractmethod
    def all_files(self, version: int) -> list[TableFile]:
        """The files of all rows at a version, oldest first."""

    @abstractmethod
    def changed_files(self, version: int) -> list[TableFile]:
        """The files of the rows that a version inserts or deletes; none where it lays rows out anew."""

    @abstractmethod
    def rows(self, file: TableFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file in the table's columns, with the column of changes where it has that."""

    def refuse_other(self, identity: str) -> None:
        """Refuses a table that stands in the place of the one that was opened."""
        if identity != self.identity:
            raise StreamError(f"{self.name} was {REPLACED}.", remedy=ANEW)

    def gone(self, version: int, what: str) -> StreamError:
        """Refuses to go on behind a version that cannot be read any more."""
        return StreamError(
            f"version {version} of {self.name} cannot be read any more: {what}.",
            remedy="Start with a new checkpoint, which begins with the whole table; and have versions kept "
            "for longer than a query stands still.",
        )


class LakeReader(Reader):
    """Reads a table, and waits for its next version; or, with ``until``, ends at the one that is there."""

    spark_form = "lanes"
    poll_seconds = 1.0
    put_back = ANEW

    def __init__(
        self, table: LakeTable, meta: Sequence[str], *, start: Start = "snapshot", until: Until | None = None
    ) -> None:
        self.table, self.start, self.until = table, start, until
        self.keyed = CHANGE in meta
        """Whether rows say if they come or go; else versions that delete rows are refused."""
        self._set_schema(pa.schema([*table.schema, *(pa.field(name, META[name]) for name in meta)]))

    def _set_schema(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._nothing = pa.RecordBatch.from_pylist([], schema)
        self.key = f"{self.table.identity}:{self.start}:{self.until}:{self.keyed}:{columns_key(schema)}"

    def narrowed(self, columns: Sequence[str]) -> LakeReader:
        other = copy(self)
        other._set_schema(pa.schema([self.schema.field(name) for name in columns]))
        return other

    def describe(self) -> str:
        return f"{self.table.name}, by version"

    def cannot_replay(self) -> str:
        return f"{self.table.name} is read from the version that is its latest when a query begins"

    def lane_name(self, lane: int) -> str:
        return self.table.name

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        return {TABLE: small_hash(self.table.identity)}

    def displaced(self, passed: Mapping[str, int]) -> str:
        same = passed.get(TABLE) in (None, small_hash(self.table.identity))
        return "" if same else f"{self.table.name} was {REPLACED}"

    def latest(self) -> Offsets:
        version = self.table.latest()
        return {0: 0 if version is None else (version + 1) * BLOCK}

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        at = offsets.get(0, 0)
        while True:
            end = self.latest()[0]
            for raw in self._between(at, end):
                at = raw.end
                yield raw
            if self.until is not None:
                return
            yield NOTHING_NOW

    def read_between(self, start: Offsets, end: Offsets | None = None) -> Iterator[Raw]:
        yield from self._between(start.get(0, 0), (self.latest() if end is None else end)[0])

    def _between(self, at: int, end: int) -> Iterator[Raw]:
        if at > end:
            raise self.table.gone(at // BLOCK - 1, f"the latest version is {end // BLOCK - 1}")
        if at == end:
            return
        if at == 0:
            begin = end if self.start == "latest" else end - HALF
            yield Raw(0, 0, self._nothing, gap=begin)
            at = begin
        version, begun = divmod(at, BLOCK)
        if begun >= HALF:
            yield from self._rows(version, self.table.all_files(version), at, version * BLOCK + HALF)
        elif begun:
            yield from self._rows(version, self._changed(version), at, version * BLOCK + 1)
        last = version if begun else version - 1
        for version in self.table.versions(last, end // BLOCK - 1) if last < end // BLOCK - 1 else ():
            base = version * BLOCK + 1
            yield Raw(0, (last + 1) * BLOCK, self._nothing, gap=base - (last + 1) * BLOCK)
            yield from self._rows(version, self._changed(version), base, base)
            last = version

    def _changed(self, version: int) -> list[TableFile]:
        files = self.table.changed_files(version)
        if self.keyed or all(file.change == INSERT for file in files):
            return files
        operation = self.table.operation(version)
        raise StreamError(
            f"version {version} of {self.table.name} takes rows back ({operation}), which "
            "a stream of appended rows cannot tell.",
            remedy="Name the table's key, so that rows are replaced and deleted by it: key='id'.",
        )

    def _rows(self, version: int, files: list[TableFile], at: int, base: int) -> Iterator[Raw]:
        """The rows of files from an offset on, and the offsets that are left in the version's block."""
        for raw in in_lane(self._batches(version, files), at - base, BATCH):
            at = base + raw.end
            yield Raw(0, base + raw.offset, raw.batch)
        yield Raw(0, at, self._nothing, gap=(version + 1) * BLOCK - at)

    def _batches(self, version: int, files: list[TableFile]) -> Iterator[pa.RecordBatch]:
        known = {VERSION: version, TIME: self.table.committed(version)}
        for file in files:
            try:
                for batch in self.table.rows(file):
                    yield self._shaped(batch, {**known, CHANGE: file.change})
            except FileNotFoundError:
                raise self.table.gone(version, f"its file '{file.name}' is not there") from None

    def _shaped(self, batch: pa.RecordBatch, known: dict[str, Any]) -> pa.RecordBatch:
        columns = []
        for field in self.schema:
            if known.get(field.name) is None:
                columns.append(batch.column(field.name).cast(field.type))
            else:
                value = pa.scalar(known[field.name])
                columns.append(pa.repeat(value, batch.num_rows).cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def parquet_batches(file: Place, schema: pa.Schema, constant: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file: columns that it lacks are constant, or null."""
    import pyarrow.parquet as pq

    if not file.exists():
        raise FileNotFoundError(str(file))
    with pq.ParquetFile(file.open()) as opened:
        there = [name for name in opened.schema_arrow.names if name in schema.names]
        for batch in opened.iter_batches(batch_size=BATCH, columns=there):
            columns = [
                batch.column(f.name).cast(f.type)
                if f.name in there
                else pa.repeat(pa.scalar(constant.get(f.name), f.type), batch.num_rows)
                for f in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
