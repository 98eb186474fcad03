"""The versions of a Delta table, from its log: the files that each adds and removes, or its change feed.

Where a version has files of the change feed those are its changes; else the rows of files that it adds come,
and those of files that it removes go. Needs the package `deltalake`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from caesura.errors import DataError, StreamError
from caesura.io.changes.lake_reader import CHANGE, DELETE, INSERT, META, LakeTable, TableFile, parquet_batches
from caesura.io.codecs.protocol import reason
from caesura.io.places import Place
from caesura.io.sinks.delta_table import delta_options
from caesura.io.sinks.packages import package

SKEW = 100
"""Among so many versions clocks of writers may differ: none counts as earlier than those before it."""


class DeltaLog(LakeTable):
    """A Delta table at a place."""

    def __init__(self, place: Place) -> None:
        self.place = place.absolute()
        self._times: dict[int, int] = {}
        (self._log / "_last_checkpoint").exists()  # a store that does not answer says so here, in our words
        opened = self._opened()
        meta = opened.metadata()
        if meta.configuration.get("delta.columnMapping.mode", "none") != "none":
            raise StreamError(
                f"{self.name} maps its columns to other names in its files, which is not read.",
                remedy="Write it without delta.columnMapping.mode; or read it with Spark: cz.from_cdf(...).",
            )
        self.schema = pa.schema(opened.schema().to_arrow()).remove_metadata()
        self.identity = self._identity(meta)

    def _identity(self, meta: Any) -> str:
        return f"delta:{self.place.identity}:{meta.id}"

    @property
    def name(self) -> str:
        return f"the Delta table '{self.place}'"

    def _opened(self, version: int | None = None) -> Any:
        delta, failures = package("deltalake", "delta"), package("deltalake.exceptions", "delta")
        options = delta_options(self.place)
        try:
            return delta.DeltaTable(str(self.place), version=version, storage_options=options)
        except failures.TableNotFoundError:
            raise DataError(
                f"there is no Delta table at '{self.place}'.", remedy="Give the folder with its _delta_log."
            ) from None
        except (failures.DeltaError, OSError) as error:
            problem = reason(error)
            if version is not None:
                raise self.gone(version, problem) from error
            raise DataError(
                f"{self.name} cannot be opened: {problem}.",
                remedy="See that its log is whole, and that this user may read it.",
            ) from error

    def latest(self) -> int:
        opened = self._opened()
        self.refuse_other(self._identity(opened.metadata()))
        return int(opened.version())

    def versions(self, after: int, last: int) -> list[int]:
        for version in range(after + 1, last + 1):
            if not self._file(version).exists():
                raise self.gone(version, "its log has been cleaned up")
        return list(range(after + 1, last + 1))

    def committed(self, version: int) -> int:
        near = range(max(0, version - SKEW), version + 1)
        self._times.update((v, _written(self._file(v))) for v in near if v not in self._times)
        return max(self._times[v] for v in near)

    def operation(self, version: int) -> str:
        for action in _actions(self._file(version)):
            if "commitInfo" in action:
                return str(action["commitInfo"].get("operation", "an unnamed operation"))
        return "an unnamed operation"

    @property
    def _log(self) -> Place:
        return self.place / "_delta_log"

    def _file(self, version: int) -> Place:
        return self._log / f"{version:020d}.json"

    def all_files(self, version: int) -> list[TableFile]:
        opened = self._opened(version)
        self._refuse_vectors(version, pa.table(opened.deletion_vectors()).num_rows > 0)
        added = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
        added.sort(key=lambda file: (file["modification_time"], file["path"]))
        return [
            self._table_file(file["path"], {n: file.get(f"partition.{n}") for n in self.schema.names}, INSERT)
            for file in added
        ]

    def changed_files(self, version: int) -> list[TableFile]:
        files: dict[str, list[dict[str, Any]]] = {"add": [], "remove": [], "cdc": []}
        for action in _actions(self._file(version)):
            for kind, found in files.items():
                if kind in action and (kind == "cdc" or action[kind].get("dataChange", True)):
                    found.append(action[kind])
        if files["cdc"]:
            return [self._logged(version, file, None) for file in files["cdc"]]
        kinds = (("remove", DELETE), ("add", INSERT))
        return [self._logged(version, file, change) for kind, change in kinds for file in files[kind]]

    def _logged(self, version: int, file: dict[str, Any], change: str | None) -> TableFile:
        self._refuse_vectors(version, file.get("deletionVector") is not None)
        values = file.get("partitionValues") or {}
        known = {
            name: pa.scalar(text or None, pa.string()).cast(self.schema.field(name).type).as_py()
            for name, text in values.items()
            if name in self.schema.names
        }
        return self._table_file(unquote(file["path"]), known, change)

    def _table_file(self, path: str, known: dict[str, Any], change: str | None) -> TableFile:
        file = Place.of(path) if "://" in path else self.place / path
        return TableFile(path, (file, known), change)

    def _refuse_vectors(self, version: int, found: bool) -> None:
        if found:
            raise StreamError(
                f"version {version} of {self.name} deletes rows by deletion vectors, which are not read.",
                remedy="Write it without delta.enableDeletionVectors; or read it with Spark: "
                "cz.from_cdf(...).",
            )

    def rows(self, file: TableFile) -> Iterator[pa.RecordBatch]:
        place, known = file.content
        own = [] if file.change is not None else [pa.field(CHANGE, META[CHANGE])]
        yield from parquet_batches(place, pa.schema([*self.schema, *own]), known)


def _actions(file: Place) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line) for line in file.read_text().splitlines() if line.strip())


def _written(file: Place) -> int:
    """When a version was committed, by its own account or that of its file; 0 of one that is gone."""
    if not file.exists():
        return 0
    for action in _actions(file):
        info = action.get("commitInfo", {})
        if (found := info.get("inCommitTimestamp", info.get("timestamp"))) is not None:
            return int(found) * 1000
    entry = file.entry()
    return 0 if entry is None else entry.changed // 1000
