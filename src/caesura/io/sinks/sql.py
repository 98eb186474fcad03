"""Tables of a SQL database as a sink: rows go to a temporary table first, and from there by key.

The database holds two tables of ours: ``caesura_epochs`` has the last epoch of every table, in the same
transaction as its rows; ``caesura_late`` has the rows that came too late or could not be read, as JSON.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from caesura.io.sinks.current import NetChange, TableLayout, two_rows
from caesura.io.sinks.keyed import KeyedSink

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch

EPOCHS, LATE = "caesura_epochs", "caesura_late"
MADE = (
    f"CREATE TABLE IF NOT EXISTS {EPOCHS} "
    "(target VARCHAR PRIMARY KEY, query VARCHAR NOT NULL, epoch BIGINT, fence BIGINT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS {LATE} (target VARCHAR, epoch BIGINT, source VARCHAR, content VARCHAR)",
)
LATE_SCHEMA = pa.schema([(n, pa.string()) for n in ("target", "epoch", "source", "content")])


class SqlTransaction(Protocol):
    """A transaction of a database."""

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Runs a statement; gives its rows."""

    def stage(self, name: str, table: pa.Table) -> None:
        """Makes a temporary table of rows."""


class SqlSink(KeyedSink):
    """Writes each output as a table of a database."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[SqlTransaction]:
        """A transaction that is committed at the end, unless something was raised."""

    @abstractmethod
    def column_type(self, t: pa.DataType) -> str:
        """What the database calls a type."""

    def last_epoch(self) -> int | None:
        with self.transaction() as work:
            noted = dict(work.run(f"SELECT target, epoch FROM {EPOCHS}"))
        epochs = [noted.get(table) for table in self.layouts]
        return min((e for e in epochs if e is not None), default=None) if None not in epochs else None

    def take_over(self) -> int:
        with self.transaction() as work:
            for statement in MADE:
                work.run(statement)
            for table, layout in self.layouts.items():
                self._make(work, table, layout)
            return max(self._fence(work, table) for table in self.layouts)

    def _make(self, work: SqlTransaction, table: str, layout: TableLayout) -> None:
        columns = ", ".join(f"{quoted(f.name)} {self.column_type(f.type)}" for f in layout.schema)
        work.run(f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({columns})")
        key = ", ".join(quoted(name) for name in layout.key)
        work.run(f"CREATE INDEX IF NOT EXISTS {quoted(f'{table}_key')} ON {quoted(table)} ({key})")

    def _fence(self, work: SqlTransaction, table: str) -> int:
        """Takes the next number for a table of this query."""
        owner = work.run(f"SELECT query FROM {EPOCHS} WHERE target = $1", table)
        if not owner:
            work.run(f"INSERT INTO {EPOCHS} VALUES ($1, $2, NULL, 0)", table, self.query)
        elif owner[0][0] != self.query:
            raise self.foreign(table)
        work.run(f"UPDATE {EPOCHS} SET fence = fence + 1 WHERE target = $1", table)
        return int(work.run(f"SELECT fence FROM {EPOCHS} WHERE target = $1", table)[0][0])

    def merge(self, epoch: Epoch, changes: Mapping[str, NetChange]) -> None:
        with self.transaction() as work:
            for number, (table, change) in enumerate(changes.items()):
                work.run(f"UPDATE {EPOCHS} SET epoch = $1 WHERE target = $2", epoch.number, table)
                later = work.run(f"SELECT fence FROM {EPOCHS} WHERE target = $1", table)
                if int(later[0][0]) != self.fence:
                    raise self.fenced(int(later[0][0]))
                if len(change):
                    self._change(work, table, change, f"caesura_{number}")
            self._note_late(work, epoch, next(iter(changes)))

    def _change(self, work: SqlTransaction, table: str, change: NetChange, staged: str) -> None:
        key = self.layouts[table].key
        fresh, put, lost = f"{staged}_new", f"{staged}_put", f"{staged}_lost"
        if change.new_keys.num_rows:
            work.stage(fresh, change.new_keys)
            both = f"SELECT t.* FROM {quoted(table)} t JOIN {fresh} s ON {same(key)} LIMIT 3"
            if found := work.run(both):
                names = self.layouts[table].schema.names
                raise two_rows(pa.Table.from_pylist([dict(zip(names, r, strict=False)) for r in found]), key)
        keys = change.put.select(list(key))
        old = pa.concat_tables([keys.filter(pa.array(~change.fresh)), change.delete])
        if old.num_rows:
            work.stage(lost, old)
            work.run(f"DELETE FROM {quoted(table)} t WHERE EXISTS (SELECT 1 FROM {lost} s WHERE {same(key)})")
        if change.put.num_rows:
            work.stage(put, change.put)
            names = ", ".join(quoted(name) for name in change.put.column_names)
            work.run(f"INSERT INTO {quoted(table)} ({names}) SELECT {names} FROM {put}")

    def _note_late(self, work: SqlTransaction, epoch: Epoch, table: str) -> None:
        rows = [
            {"target": table, "epoch": str(epoch.number), "source": source, "content": as_json(row)}
            for source, late in epoch.late_tables().items()
            for row in late.to_pylist()
        ]
        if rows:
            work.stage("caesura_late_rows", pa.Table.from_pylist(rows, LATE_SCHEMA))
            fields = "target, CAST(epoch AS BIGINT), source, content"
            work.run(f"INSERT INTO {LATE} SELECT {fields} FROM caesura_late_rows")

    def held(self, output: str = "out") -> pa.Table:
        table = self._names[output]
        schema = self.layouts[table].schema
        names = ", ".join(quoted(name) for name in schema.names)
        with self.transaction() as work:
            rows = work.run(f"SELECT {names} FROM {quoted(table)}")
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    def read_back(self, output: str = "out") -> Iterator[tuple[Any, ...]]:
        """The rows of an output's table as it is."""
        with self.transaction() as work:
            yield from work.run(f"SELECT * FROM {quoted(self._names[output])}")


def quoted(name: str) -> str:
    """A name as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def same(key: Sequence[str]) -> str:
    """Whether rows s and t have one key; null is a key like others."""
    return " AND ".join(f"s.{quoted(name)} IS NOT DISTINCT FROM t.{quoted(name)}" for name in key)


def as_json(row: Any) -> str:
    """A value as JSON text; what JSON has no form for as its own text."""
    return json.dumps(row, default=str)
