"""The versions of an Iceberg table: its snapshots, by their sequence numbers.

A snapshot's changes are the data files that it adds and deletes; one that lays rows out anew has none. Needs
the package `pyiceberg`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.types import plain_type
from caesura.io.changes.lake_reader import DELETE, INSERT, LakeTable, TableFile
from caesura.io.sinks.iceberg_catalog import IcebergName
from caesura.io.sinks.packages import package


class IcebergSnapshots(LakeTable):
    """An Iceberg table of a catalog."""

    def __init__(self, named: IcebergName) -> None:
        self._named = named
        self._table: Any = named.load()
        if self._table.format_version < 2:
            raise StreamError(
                f"{self.name} has format version 1, which does not number its snapshots.",
                remedy="Upgrade it: table.transaction().upgrade_table_version(2).",
            )
        own = self._table.schema().as_arrow()
        self.schema = pa.schema([(field.name, plain_type(field.type)) for field in own])
        self.identity = self._identity()

    def _identity(self) -> str:
        return f"iceberg:{self._named.table}:{self._table.metadata.table_uuid}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    @property
    def name(self) -> str:
        return self._named.shown

    @property
    def _now(self) -> Any:
        """The table as it was seen last."""
        if self._table is None:
            self._table = self._named.load()
        return self._table

    def latest(self) -> int | None:
        self._table = self._named.load()
        self.refuse_other(self._identity())
        current = self._table.current_snapshot()
        return None if current is None else int(current.sequence_number)

    def _line(self) -> list[Any]:
        """The snapshots that led to the current one, oldest first, as far as they are there."""
        known = {snapshot.snapshot_id: snapshot for snapshot in self._now.snapshots()}
        line, current = [], self._now.current_snapshot()
        while current is not None:
            line.append(current)
            current = known.get(current.parent_snapshot_id)
        return line[::-1]

    def versions(self, after: int, last: int) -> list[int]:
        numbers = [int(snapshot.sequence_number) for snapshot in self._line()]
        unread = [number for number in numbers if after < number <= last]
        read = [number for number in numbers if number <= after]
        if not unread or (read[-1] != after if read else unread[0] != after + 1):
            raise self.gone(after + 1, "its snapshot was expired, or rolled back")
        return unread

    def _snapshot(self, version: int) -> Any:
        for snapshot in self._line():
            if snapshot.sequence_number == version:
                return snapshot
        raise self.gone(version, "its snapshot was expired, or rolled back")

    def committed(self, version: int) -> int:
        return max(1000 * int(s.timestamp_ms) for s in self._line() if s.sequence_number <= version)

    def operation(self, version: int) -> str:
        return str(self._snapshot(version).summary.operation.value)

    def all_files(self, version: int) -> list[TableFile]:
        found = [
            (entry.sequence_number, entry.data_file)
            for manifest in self._snapshot(version).manifests(self._now.io)
            for entry in self._entries(version, manifest)
        ]
        found.sort(key=lambda pair: (pair[0], pair[1].file_path))
        return [TableFile(file.file_path, file) for _, file in found]

    def changed_files(self, version: int) -> list[TableFile]:
        if self.operation(version) == "replace":
            return []
        snapshot = self._snapshot(version)
        status = package("pyiceberg.manifest", "iceberg").ManifestEntryStatus
        changes = {status.ADDED: INSERT, status.DELETED: DELETE}
        found = [
            TableFile(entry.data_file.file_path, entry.data_file, changes[entry.status])
            for manifest in snapshot.manifests(self._now.io)
            if manifest.added_snapshot_id == snapshot.snapshot_id
            for entry in self._entries(version, manifest, deleted=True)
            if entry.snapshot_id == snapshot.snapshot_id and entry.status in changes
        ]
        return sorted(found, key=lambda file: (file.change != DELETE, file.name))

    def _entries(self, version: int, manifest: Any, *, deleted: bool = False) -> Iterator[Any]:
        """The files of a manifest, which hold rows."""
        data = package("pyiceberg.manifest", "iceberg").ManifestContent.DATA
        for entry in manifest.fetch_manifest_entry(self._now.io, discard_deleted=not deleted):
            if manifest.content != data:
                raise StreamError(
                    f"version {version} of {self.name} deletes rows by delete files, which are not read.",
                    remedy="Have its writers copy on write: write.delete.mode, write.update.mode and "
                    "write.merge.mode 'copy-on-write'.",
                )
            yield entry

    def rows(self, file: TableFile) -> Iterator[pa.RecordBatch]:
        arrow, scans = package("pyiceberg.io.pyarrow", "iceberg"), package("pyiceberg.table", "iceberg")
        everything = package("pyiceberg.expressions", "iceberg").AlwaysTrue()
        table = self._now
        scan = arrow.ArrowScan(table.metadata, table.io, table.schema(), everything)
        for batch in scan.to_record_batches([scans.FileScanTask(file.content)]):
            yield pa.RecordBatch.from_arrays(
                [batch.column(f.name).cast(f.type) for f in self.schema], schema=self.schema
            )
