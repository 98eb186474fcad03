"""A table of Postgres as a source: its rows as they are, then every change, in the order of commits.

One lane; its offset is a position of the server's log, behind the last transaction that was read whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Literal

import numpy as np
import pyarrow as pa

from caesura.errors import DataError
from caesura.io.postgres.columns import TableColumn
from caesura.io.postgres.log import ServerLog
from caesura.io.postgres.messages import NOT_SENT, ChangedTable, Message, RowChange, Text
from caesura.io.postgres.server import PostgresServer
from caesura.io.sinks.packages import package
from caesura.io.sources.passed import small_hash
from caesura.io.sources.protocol import Offsets, Reader
from caesura.plan import NOTHING_NOW, Raw, SourceBatch

Until = Literal["latest"]
OP, ORDER, TIME = "_op", "_position", "_committed"
PUT, DELETE = "put", "delete"
OWN = pa.schema([(OP, pa.string()), (ORDER, pa.int64()), (TIME, pa.timestamp("us", "UTC"))])
TABLE = "table"
"""Under which it stands among the offsets which table was read."""
ROWS = 50_000
"""How many changes are given at a time, if they are there; transactions stay whole."""
QUIET_BYTES = 1 << 24
"""After so much of the log without a change of the table, the position moves on without one."""
WAIT_SECONDS = 0.05


class PostgresReader(Reader):
    """Reads a table and its changes through a slot, and waits for more; or, with ``until``, ends."""

    poll_seconds = WAIT_SECONDS
    put_back = "Start with a new checkpoint, a new sink and a new slot, which begin with the table as it is."
    streaming_remedy = (
        "A table of Postgres is followed in one process: stream.query(checkpoint=...). On Spark, "
        "read its changes from Kafka: cz.read.debezium(...)."
    )

    def __init__(
        self,
        server: PostgresServer,
        table: str,
        columns: Sequence[TableColumn],
        *,
        slot: str,
        publication: str,
        until: Until | None = None,
    ) -> None:
        self.server, self.table, self.columns = server, table, tuple(columns)
        self.slot, self.publication, self.until = slot, publication, until
        self._identity = small_hash(server.identity(table))
        self._safe = 0
        self._describe_columns()

    def _describe_columns(self) -> None:
        fields = [pa.field(column.name, column.type) for column in self.columns]
        self.schema = pa.schema([*fields, *OWN])
        self.key = f"postgres:{self.server.place}:{self.table}:{self.slot}:{self.schema.names}:{self.until}"

    def lane_name(self, lane: int) -> str:
        return f"the log of '{self.table}'"

    def describe(self) -> str:
        return f"Postgres table '{self.table}', by slot '{self.slot}'"

    def narrowed(self, columns: Sequence[str]) -> PostgresReader:
        other = copy(self)
        other.columns = tuple(column for column in self.columns if column.name in columns)
        other._describe_columns()
        return other

    def latest(self) -> Offsets:
        return {0: self.server.current()}

    def cannot_replay(self) -> str:
        return "the log of a database is read once"

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        return {TABLE: self._identity}

    def displaced(self, passed: Mapping[str, int]) -> str:
        same = passed.get(TABLE) in (None, self._identity)
        return "" if same else f"{self.describe()} was deleted and made anew since it was read"

    def saved(self, offsets: Offsets) -> None:
        """The server may forget what lies before."""
        self._safe = max(self._safe, offsets.get(0, 0))

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        position = offsets.get(0)
        if position is None:
            self.server.prepare(self.table, self.slot, self.publication)
            first = self._first()
            position = first.end
            yield first
        else:
            self._safe = position
            self.server.check_slot(self.slot, position)
        yield from self._changes(position, self.server.current() if self.until else None)

    def _first(self) -> Raw:
        """The table as it is, as one batch: it is saved whole or not at all."""
        names = tuple(column.name for column in self.columns)
        found = self.server.snapshot(self.table, names, self.slot)
        changes = Changes(self.columns, 0)
        for row in found.rows:
            changes.add(PUT, found.position, row)
        changes.commit(found.position, found.time)
        return changes.taken(found.position)

    def _changes(self, position: int, end: int | None) -> Iterator[SourceBatch]:
        """All that follows; the server may be away for a while."""
        errors: tuple[type[Exception], ...] = (package("psycopg", "postgres").Error, DataError)
        since: float | None = None
        while end is None or position < end:
            log: ServerLog | None = None
            try:
                log = ServerLog(self.server, self.slot, self.publication, position)
                for raw in self._streamed(log, position, end):
                    since = None
                    if isinstance(raw, Raw):
                        position = raw.end
                    yield raw
            except errors as error:
                if isinstance(error, DataError) and not isinstance(error.__cause__, errors[0]):
                    raise
                since = since or time.monotonic()
                if time.monotonic() - since > self.server.seconds:
                    raise error if isinstance(error, DataError) else self.server.failed(error) from error
                yield NOTHING_NOW
            finally:
                if log is not None:
                    log.close()

    def _streamed(self, log: ServerLog, position: int, end: int | None) -> Iterator[SourceBatch]:
        changes = Changes(self.columns, position)
        while end is None or changes.position < end:
            for at, message in log.messages(self._safe):
                changes.take(at, message, self.table)
                if changes.count >= ROWS and not changes.open:
                    yield changes.taken(changes.position)
            seen = max(changes.position, log.seen) if not changes.open else changes.position
            if changes.count or seen - changes.begin > QUIET_BYTES or (end is not None and seen >= end):
                yield changes.taken(seen)
            else:
                yield NOTHING_NOW


class Changes:
    """Changes of one table, gathered by transaction."""

    def __init__(self, columns: Sequence[TableColumn], position: int) -> None:
        self._columns = columns
        self.begin = self.position = position
        self.open = False
        """Whether a transaction has begun and not ended."""
        self._relations: dict[int, list[int]] = {}
        """Where our columns stand in the table's rows, by the number of the table."""
        self._time = 0
        self._rows: list[tuple[str, int, Sequence[Text]]] = []
        """What a change does, its place among the changes of its key, and its values."""
        self._commits: list[tuple[int, int, int]] = []
        """Of whole transactions, how many rows, where it ends, and when."""
        self.count = 0
        """How many rows of whole transactions there are."""

    def take(self, at: int, message: Message, table: str) -> None:
        """One message of the log."""
        match message.kind:
            case "B":
                self.open = True
            case "C":
                done = message.commit()
                self.commit(done.end, done.time)
            case "R":
                self._describe(message.relation(), table)
            case "I" | "U" | "D":
                change = message.change()
                if change.relation in self._relations:
                    self._changed(at, change)
            case "T":
                if any(number in self._relations for number in message.truncated()):
                    raise DataError(
                        f"the table '{table}' was truncated, which says of no row that it is gone.",
                        remedy="DELETE its rows instead; now begin anew with a new checkpoint and slot.",
                    )

    def commit(self, end: int, committed: int) -> None:
        """Ends a transaction; commits are never told earlier than those before them."""
        self.open, self.position = False, end
        self._time = max(self._time, committed)
        if len(self._rows) > self.count:
            self._commits.append((len(self._rows) - self.count, end, self._time))
            self.count = len(self._rows)

    def add(self, op: str, at: int, values: Sequence[Text]) -> None:
        """A row that is there from now on, or is deleted; an update deletes before it puts."""
        self._rows.append((op, 2 * at + (op == PUT), values))

    def taken(self, end: int) -> Raw:
        """The rows of whole transactions, and where the log goes on."""
        counts = np.array([n for n, _, _ in self._commits], np.int64)
        ends = np.array([end for _, end, _ in self._commits], np.int64)
        times = np.array([time for _, _, time in self._commits], np.int64)
        whole, rest = self._rows[: self.count], self._rows[self.count :]
        columns = [
            column.values([_sent(row[n], column.name) for _, _, row in whole])
            for n, column in enumerate(self._columns)
        ]
        own = (
            pa.array([op for op, _, _ in whole], pa.string()),
            pa.array([order for _, order, _ in whole], pa.int64()),
            pa.array(np.repeat(times, counts)).cast(OWN.field(TIME).type),
        )
        names = [*(column.name for column in self._columns), *OWN.names]
        batch = pa.RecordBatch.from_arrays([*columns, *own], names=names)
        begin, self.begin, self.position = self.begin, end, end
        self._rows, self._commits, self.count = rest, [], 0
        offsets = np.repeat(ends, counts) - 1  # a transaction is read whole
        return Raw(0, begin, batch, gap=end - begin - batch.num_rows, offsets=offsets)

    def _describe(self, relation: ChangedTable, table: str) -> None:
        if relation.name != table:
            return
        places = {name: n for n, name in enumerate(relation.columns)}
        missing = [column.name for column in self._columns if column.name not in places]
        if missing:
            raise DataError(
                f"the table '{table}' has no column '{missing[0]}' any more.",
                remedy="Put it back, or begin anew with a new checkpoint.",
            )
        self._relations[relation.number] = [places[column.name] for column in self._columns]

    def _changed(self, at: int, change: RowChange) -> None:
        places = self._relations[change.relation]
        old = None if change.old is None else [change.old[n] for n in places]
        new = None if change.new is None else [change.new[n] for n in places]
        if old is not None:
            self.add(DELETE, at, old)
        if new is not None:
            if old is not None:
                new = [was if value is NOT_SENT else value for was, value in zip(old, new, strict=True)]
            self.add(PUT, at, new)


def _sent(value: Text, column: str) -> str | None:
    if value is NOT_SENT:
        raise DataError(
            f"Postgres does not send the large value of '{column}' when another column is updated.",
            remedy="ALTER TABLE ... REPLICA IDENTITY FULL; or leave it out with columns=[...].",
        )
    return value
