"""A Delta table that holds what a stream says now, or its history: an epoch is one MERGE.

The transaction carries the query's id with the epoch's number, so an epoch that runs again finds itself in
the table's log. Needs the package `deltalake`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.io.places import Place
from caesura.io.sinks.current import NetChange, TableLayout, two_rows
from caesura.io.sinks.keyed import KeyedSink
from caesura.io.sinks.packages import package
from caesura.io.sinks.partitions import check_partition, refuse_empty
from caesura.plan import Node

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch

PUT, FENCE = "caesura put", "caesura start "
P = ParamSpec("P")
R = TypeVar("R")


def explained(work: Callable[P, R]) -> Callable[P, R]:
    """What Delta raises, in our words."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        failures = package("deltalake.exceptions", "delta")
        try:
            return work(*args, **kwargs)
        except (failures.DeltaError, OSError) as error:
            raise args[0].failed(error) from error  # type: ignore[attr-defined]

    return run


class DeltaTableSink(KeyedSink):
    """Writes to the Delta table at a path, which is made if it is not there."""

    def __init__(self, path: str | Path, partition_by: Sequence[str] = ()) -> None:
        super().__init__(str(Place.of(path).reach()))
        self._partition_by = list(partition_by)

    def open(self, outputs: Mapping[str, Node]) -> None:
        super().open(outputs)
        for layout in self.layouts.values():
            check_partition(self._partition_by, layout.schema)

    @property
    def place(self) -> str:
        return f"the Delta table '{self.table}'"

    @explained
    def take_over(self) -> int:
        delta = _deltalake()
        fence = 0
        for path, layout in self.layouts.items():
            if not delta.DeltaTable.is_deltatable(path, self._options):
                delta.DeltaTable.create(
                    path,
                    layout.schema,
                    description=self._owner,
                    partition_by=self._partition_by or None,
                    storage_options=self._options,
                )
            table = self._opened(path)
            if table.metadata().description != self._owner:
                raise self.foreign(path)
            fence = 1 + (table.transaction_version(FENCE + self.query) or 0)
            mark = delta.CommitProperties(app_transactions=[delta.Transaction(FENCE + self.query, fence)])
            table.create_write_transaction([], "append", table.schema(), commit_properties=mark)
        return fence

    @property
    def _options(self) -> dict[str, str] | None:
        return delta_options(Place.of(self.table))

    def _opened(self, path: str) -> Any:
        return _deltalake().DeltaTable(path, storage_options=self._options)

    @property
    def _owner(self) -> str:
        return f"written by Caesura's query {self.query}"

    def last_epoch(self) -> int | None:
        epochs = [self._version(path) for path in self.layouts]
        return None if None in epochs else min(e for e in epochs if e is not None)

    def _version(self, path: str) -> int | None:
        found = self._opened(path).transaction_version(self.query)
        return None if found is None else int(found)

    @explained
    def merge(self, epoch: Epoch, changes: Mapping[str, NetChange]) -> None:
        for path, change in changes.items():
            behind = self._version(path)
            if behind is None or behind < epoch.number:  # a kill may come between two tables
                self._merge(epoch.number, path, change)

    def _merge(self, epoch: int, path: str, change: NetChange) -> None:
        delta = _deltalake()
        table, layout = self._opened(path), self.layouts[path]
        later = table.transaction_version(FENCE + self.query)
        if later != self.fence:
            raise self.fenced(later)
        mark = delta.CommitProperties(app_transactions=[delta.Transaction(self.query, epoch)])
        if len(change) == 0:
            table.create_write_transaction([], "append", table.schema(), commit_properties=mark)
            return
        refuse_empty(change.put, self._partition_by)
        self._refuse_second(table, layout, change)
        same = " AND ".join(f"(s.{_quoted(n)} IS NOT DISTINCT FROM t.{_quoted(n)})" for n in layout.key)
        values = {_quoted(name): f"s.{_quoted(name)}" for name in layout.schema.names}
        put = f"s.{_quoted(PUT)}"
        (
            table.merge(_both(change, layout), same, "s", "t", commit_properties=mark)
            .when_matched_delete(f"NOT {put}")
            .when_matched_update(values, put)
            .when_not_matched_insert(values, put)
            .execute()
        )

    def _refuse_second(self, table: Any, layout: TableLayout, change: NetChange) -> None:
        """Looks for rows of keys that must be new, among those that the first column may lead to."""
        new = change.new_keys
        if new.num_rows == 0 or not table.file_uris():
            return
        first = pc.field(layout.key[0])
        values = new.column(layout.key[0]).combine_chunks()
        wanted = first.isin(values.drop_null()) | (first.is_null() if values.null_count else pc.scalar(False))
        there = table.to_pyarrow_dataset().to_table(filter=wanted)
        keys = {tuple(row.values()) for row in new.to_pylist()}
        found = [row for row in there.to_pylist() if tuple(row[name] for name in layout.key) in keys]
        if found:
            raise two_rows(pa.Table.from_pylist(found, there.schema), layout.key)

    def held(self, output: str = "out") -> pa.Table:
        table = self._opened(self._names[output]).to_pyarrow_table()
        schema = self.layouts[self._names[output]].schema
        return table.select(schema.names).cast(schema)

    read_back = held


def delta_options(place: Place) -> dict[str, str] | None:
    """What Delta's own library needs to know of an object store beside the environment."""
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return {"allow_http": "true"} if plain and place.local is None else None


def _both(change: NetChange, layout: TableLayout) -> pa.Table:
    """Rows to put and keys to delete, told apart by a column."""
    deleted = pa.Table.from_arrays(
        [
            change.delete.column(f.name)
            if f.name in change.delete.column_names
            else pa.nulls(len(change.delete), f.type)
            for f in layout.schema
        ],
        schema=layout.schema,
    )
    put = np.arange(len(change.put) + len(deleted)) < len(change.put)
    return pa.concat_tables([change.put, deleted]).append_column(PUT, pa.array(put))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _deltalake() -> Any:
    return package("deltalake", "delta")
