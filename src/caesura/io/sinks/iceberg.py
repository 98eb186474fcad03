"""An Iceberg table as a sink: what a stream says now, its history, or its changes; an epoch is one commit.

A plan with `upserts` replaces rows by key: the files that hold them are written anew, with one snapshot.
Other plans append their changes: kind, LE, RE, RE_new and the payload. The epoch is noted in the snapshot's
summary, and in the table's properties, by the same commit. Needs the package `pyiceberg`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pyarrow as pa

from caesura.errors import CaesuraError, StreamError
from caesura.io.sinks.current import NetChange, TableLayout, layout_of, names_key
from caesura.io.sinks.iceberg_catalog import Catalog, IcebergName
from caesura.io.sinks.keyed import KeyedSink
from caesura.io.sinks.packages import package
from caesura.io.sinks.replaced import ReplacedKeys
from caesura.io.sinks.rows import changed_page, history_table, row_schema
from caesura.plan import Node

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch

QUERY, EPOCH, FENCE = "caesura.query", "caesura.epoch", "caesura.fence"
OWN_RETRIES = {"commit.retry.num-retries": "0"}
"""What did not commit is tried again by us, who look whether the epoch is there; a client would not."""
TRIES = 5
P = ParamSpec("P")
R = TypeVar("R")


def explained(work: Callable[P, R]) -> Callable[P, R]:
    """What the catalog or the store raises, in our words."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return work(*args, **kwargs)
        except CaesuraError:
            raise
        except Exception as error:
            raise args[0].failed(error) from error  # type: ignore[attr-defined]

    return run


class IcebergSink(KeyedSink):
    """Writes to a table of a catalog, which is made if it is not there."""

    def __init__(self, table: str, catalog: Catalog, partition_by: Sequence[str] = ()) -> None:
        super().__init__(IcebergName(table, catalog).table)
        self._catalog, self._partition_by = catalog, tuple(partition_by)
        self._logs: dict[str, Node] = {}
        """Outputs without a key, by table: their changes are appended."""

    @property
    def place(self) -> str:
        return f"the Iceberg table '{self.table}'"

    def reach(self) -> None:
        IcebergName(self.table, self._catalog).opened()

    def open(self, outputs: Mapping[str, Node]) -> None:
        one = len(outputs) == 1
        self._names = {name: self.table if one else f"{self.table}_{name}" for name in outputs}
        for name, node in outputs.items():
            if names_key(node):
                self.layouts[self._names[name]] = layout_of(node)
            else:
                self._logs[self._names[name]] = node

    def _load(self, table: str) -> Any:
        return IcebergName(table, self._catalog).load()

    @explained
    def take_over(self) -> int:
        tables = {name: self._made(name) for name in self._names.values()}
        for name, table in tables.items():
            owner = table.properties.get(QUERY)
            if owner != self.query and (owner is not None or table.current_snapshot() is not None):
                raise self.foreign(name)
        fence = 1 + max(int(table.properties.get(FENCE, 0)) for table in tables.values())
        for table in tables.values():
            with table.transaction() as work:
                work.set_properties({QUERY: self.query, FENCE: str(fence), **OWN_RETRIES})
        return fence

    def _made(self, name: str) -> Any:
        catalog = IcebergName(name, self._catalog).opened()
        if not catalog.table_exists(name):
            log = self._logs.get(name)
            schema = self.layouts[name].schema if log is None else row_schema(log.schema, log.time)
            catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
            made = catalog.create_table_if_not_exists(name, schema)
            with made.update_spec() as spec:
                for column in self._partition_by:
                    spec.add_identity(column)
        return catalog.load_table(name)

    @explained
    def last_epoch(self) -> int | None:
        epochs = [_epoch(self._load(name)) for name in self._names.values()]
        return None if -1 in epochs else min(epochs, default=None)

    def take(self, epoch: Epoch) -> None:
        keyed = {output: name for output, name in self._names.items() if name in self.layouts}
        self.merge(epoch, {name: epoch.change(output) for output, name in keyed.items()})

    @explained
    def merge(self, epoch: Epoch, changes: Mapping[str, NetChange]) -> None:
        """Commits each table that has not got the epoch: a kill may come between two."""
        conflict = package("pyiceberg.exceptions", "iceberg").CommitFailedException
        for output, name in self._names.items():
            for attempt in range(TRIES):
                try:
                    self._commit(epoch, output, name, changes.get(name))
                    break
                except conflict:
                    if attempt == TRIES - 1:
                        raise

    def _commit(self, epoch: Epoch, output: str, name: str, change: NetChange | None) -> None:
        table = self._load(name)
        if _epoch(table) >= epoch.number:
            return
        later = int(table.properties.get(FENCE, 0))
        if later != self.fence:
            raise self.fenced(later)
        work = table.transaction()
        if change is not None:
            self._replace(work, table, self.layouts[name], change, epoch.number)
        elif (rows := epoch.table(output)).num_rows:
            work.append(_cast(rows, table), snapshot_properties=self._note(epoch.number))
        work.set_properties({EPOCH: str(epoch.number)})
        work.commit_transaction()

    def _note(self, epoch: int) -> dict[str, str]:
        return {QUERY: self.query, EPOCH: str(epoch)}

    def _replace(self, work: Any, table: Any, layout: TableLayout, change: NetChange, epoch: int) -> None:
        """Writes the files that hold rows of changed keys anew, without those, and the rows to put."""
        if len(change) == 0:
            return
        keys = ReplacedKeys(change, layout)
        old, rows = [], [change.put]
        for file, held in self._held(table, layout, keys):
            if (left := keys.left(held)) is not None:
                old.append(file)
                rows.append(left)
        update = work.update_snapshot(snapshot_properties=self._note(epoch))
        with update.overwrite() if old else update.fast_append() as snapshot:
            for file in old:
                snapshot.delete_data_file(file)
            made = _cast(pa.concat_tables(rows), table)
            if made.num_rows:
                write = package("pyiceberg.io.pyarrow", "iceberg")._dataframe_to_data_files
                for file in write(work.table_metadata, made, table.io):
                    snapshot.append_data_file(file)

    def _held(self, table: Any, layout: TableLayout, keys: ReplacedKeys) -> Iterator[tuple[Any, pa.Table]]:
        """The files that may hold rows of these keys, and their rows."""
        arrow, where = package("pyiceberg.io.pyarrow", "iceberg"), package("pyiceberg.expressions", "iceberg")
        first, wanted = layout.key[0], where.AlwaysTrue()
        if keys.ordered:
            wanted = where.IsNull(first) if keys.nulls else where.AlwaysFalse()
            if keys.span is not None:
                least, greatest = keys.span
                inside = where.And(
                    where.GreaterThanOrEqual(first, least), where.LessThanOrEqual(first, greatest)
                )
                wanted = where.Or(wanted, inside)
        whole = arrow.ArrowScan(table.metadata, table.io, table.schema(), where.AlwaysTrue())
        for task in table.scan(row_filter=wanted).plan_files():
            if task.delete_files:
                raise StreamError(
                    f"{self.place} has delete files, which another writer made.",
                    remedy="Let no one else write to it; or have it rewritten without them.",
                )
            held = whole.to_table([package("pyiceberg.table", "iceberg").FileScanTask(task.file)])
            yield task.file, held.select(layout.schema.names).cast(layout.schema)

    def held(self, output: str = "out") -> pa.Table:
        rows, node = self.read_back(output), self._logs.get(self._names[output])
        if node is None:
            return rows
        return history_table([changed_page(rows, node.schema, node.time)], node.schema, node.time)

    def read_back(self, output: str = "out") -> pa.Table:
        """The rows of the Iceberg table as it is."""
        name = self._names[output]
        rows = self._load(name).scan().to_arrow()
        return rows.cast(self.layouts[name].schema) if name in self.layouts else rows


def _epoch(table: Any) -> int:
    """The last epoch that a table has; -1 for none."""
    return int(table.properties.get(EPOCH, -1))


def _cast(rows: pa.Table, table: Any) -> pa.Table:
    """Rows in the types that Iceberg has."""
    wanted = table.schema().as_arrow()
    return rows.select(wanted.names).cast(wanted)
