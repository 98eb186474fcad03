"""A folder of Parquet files that holds what a stream says now, or its history: an epoch is one manifest.

    <folder>/_manifests/00000007.json     which files count, and the last epoch that is in them
    <folder>/00000007-3-0.parquet         rows, written once; an epoch writes files with changed keys anew

The last manifest counts, and is made by a put that only one process can win. A start makes one of its own, so
that an earlier start finds its next number taken. Files of the manifest before stay for who reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.sinks.current import NetChange, TableLayout
from caesura.io.sinks.keyed import KeyedSink
from caesura.io.sinks.parquet_bytes import parquet_bytes
from caesura.io.sinks.partitions import check_partition, partitions, with_partition
from caesura.io.sinks.replaced import ReplacedKeys
from caesura.plan import Node

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch

KEPT = 2
REMEDY = "Put back the file as it was, or write into a new folder with a new checkpoint."
TOLD = (pa.types.is_integer, pa.types.is_string)
"""Types of a key's first column whose least and greatest values a manifest tells."""


@dataclass(frozen=True)
class HeldFile:
    """A file that counts, and what it holds of the key's first column."""

    file: str
    rows: int
    least: Any = None
    greatest: Any = None
    nulls: bool = True
    told: bool = False

    def may_hold(self, keys: ReplacedKeys) -> bool:
        return not self.told or keys.may_hold(self.least, self.greatest, self.nulls)


@dataclass(frozen=True)
class TableManifest:
    """What a table holds."""

    query: str
    number: int = -1
    fence: int = -1
    """The number of the manifest that began the start that made this one."""
    epoch: int = -1
    files: tuple[HeldFile, ...] = ()


class ParquetTable:
    """The files and manifests of one table."""

    def __init__(self, place: Place, layout: TableLayout, partition_by: Sequence[str]) -> None:
        self.place, self._layout, self._partition_by = place, layout, tuple(partition_by)

    @property
    def _folder(self) -> Place:
        return self.place / "_manifests"

    def last(self) -> TableManifest | None:
        """The manifest that counts."""
        files = self._folder.files(".json")
        return _read(files[-1]) if files else None

    def add(self, made: TableManifest) -> bool:
        """Makes a manifest count, unless another process has gone on; removes what none names any more."""
        file = self._folder / f"{made.number:08d}.json"
        if not file.create(json.dumps(asdict(made)).encode()):
            return False
        there = self._folder.files(".json")
        if int(there[-1].stem) > made.number:
            file.remove()
            return False
        kept = [_read(manifest) for manifest in there[-KEPT:]]
        names = {held.file for manifest in kept for held in manifest.files}
        for old in there[:-KEPT]:
            for held in _read(old).files:
                if held.file not in names:
                    (self.place / held.file).remove()
            old.remove()
        return True

    def sweep(self) -> None:
        """Removes files that no manifest names: of epochs that were cut off."""
        kept = [_read(manifest) for manifest in self._folder.files(".json")]
        names = {str(self.place / held.file) for manifest in kept for held in manifest.files}
        for file in self.place.files_below(".parquet"):
            if str(file) not in names:
                file.remove()

    def changed(self, before: TableManifest, epoch: int, change: NetChange) -> TableManifest:
        """The manifest of an epoch; the files that it names are there."""
        made = replace(before, number=before.number + 1, epoch=epoch)
        if len(change) == 0:
            return made
        keys = ReplacedKeys(change, self._layout)
        rows, stay = [change.put], []
        for held in before.files:
            left = keys.left(self._rows(held)) if held.may_hold(keys) else None
            if left is None:
                stay.append(held)
            else:
                rows.append(left)
        return replace(made, files=(*stay, *self._written(pa.concat_tables(rows), made)))

    def _written(self, rows: pa.Table, made: TableManifest) -> Iterator[HeldFile]:
        for number, part in enumerate(partitions(rows, self._partition_by) if rows.num_rows else ()):
            name = f"{made.number:08d}-{made.fence}-{number}.parquet"
            file = f"{part.folder}/{name}" if part.folder else name
            (self.place / file).put(parquet_bytes(part.rows))
            yield self._held(file, part.rows)

    def _held(self, file: str, rows: pa.Table) -> HeldFile:
        first = self._layout.key[0]
        if first not in rows.column_names or not any(f(rows.schema.field(first).type) for f in TOLD):
            return HeldFile(file, rows.num_rows)
        found, nulls = pc.min_max(rows.column(first)).as_py(), rows.column(first).null_count > 0
        return HeldFile(file, rows.num_rows, found["min"], found["max"], nulls, told=True)

    def _rows(self, held: HeldFile) -> pa.Table:
        table = pq.ParquetFile((self.place / held.file).open()).read()
        return with_partition(table, held.file.rpartition("/")[0], self._layout.schema)

    def rows(self) -> pa.Table:
        """All rows that count."""
        last = self.last()
        files = () if last is None else last.files
        return pa.concat_tables([self._layout.schema.empty_table(), *map(self._rows, files)])


class ParquetTableSink(KeyedSink):
    """Writes to a folder, which is made if it is not there."""

    def __init__(self, path: str | Path, partition_by: Sequence[str] = ()) -> None:
        super().__init__(str(Place.of(path).absolute()))
        self._partition_by = tuple(partition_by)
        self._tables: dict[str, ParquetTable] = {}
        self._fences: dict[str, int] = {}

    @property
    def place(self) -> str:
        return f"the folder '{self.table}'"

    def reach(self) -> None:
        Place.of(self.table).reach()

    def open(self, outputs: Mapping[str, Node]) -> None:
        super().open(outputs)
        for name, layout in self.layouts.items():
            check_partition(self._partition_by, layout.schema)
            self._tables[name] = ParquetTable(Place.of(name).reach(), layout, self._partition_by)

    def take_over(self) -> int:
        self._fences = {name: self._begin(name, table) for name, table in self._tables.items()}
        return max(self._fences.values())

    def _begin(self, name: str, table: ParquetTable) -> int:
        while True:
            before = table.last() or TableManifest(self.query)
            if before.query != self.query:
                raise self.foreign(name)
            number = before.number + 1
            if table.add(replace(before, number=number, fence=number)):
                table.sweep()
                return number

    def last_epoch(self) -> int | None:
        epochs = [-1 if (last := table.last()) is None else last.epoch for table in self._tables.values()]
        return None if -1 in epochs else min(epochs, default=None)

    def merge(self, epoch: Epoch, changes: Mapping[str, NetChange]) -> None:
        for name, change in changes.items():
            table = self._tables[name]
            before = table.last() or TableManifest(self.query)
            if before.epoch >= epoch.number:  # a kill may come between two tables
                continue
            if before.fence != self._fences[name]:
                raise self.fenced(before.fence)
            made = table.changed(before, epoch.number, change)
            if not table.add(made):
                later = table.last()
                raise self.fenced(made.number if later is None else later.fence)

    def held(self, output: str = "out") -> pa.Table:
        return self._tables[self._names[output]].rows()

    read_back = held


def _read(file: Place) -> TableManifest:
    content = read_json(file, REMEDY)
    return TableManifest(**{**content, "files": tuple(HeldFile(**held) for held in content["files"])})
