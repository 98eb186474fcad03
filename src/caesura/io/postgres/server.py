"""A Postgres server: what a table has, slots and publications, and a snapshot that meets the log exactly.

A slot keeps the log for one reader until it says that it needs it no more. The snapshot of a table is that of
a second, temporary slot, whose first change is the one behind the snapshot: nothing is missed or read twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from caesura.errors import DataError, PlanError, closest
from caesura.io.postgres.columns import TableColumn
from caesura.io.sinks.packages import package

SETTINGS = (
    "-c TimeZone=UTC -c DateStyle=ISO -c bytea_output=hex -c extra_float_digits=1 -c client_encoding=UTF8"
)
COLUMNS = """
SELECT a.attname, t.typname, a.atttypmod FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum"""
KEY = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = to_regclass(%s) AND i.indisprimary ORDER BY array_position(i.indkey, a.attnum)"""
NAME = "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
IDENTITY = """
SELECT oid || '.' || to_regclass(%s)::oid FROM pg_database WHERE datname = current_database()"""
PUBLISHED = "SELECT 1 FROM pg_publication_tables WHERE pubname = %s AND schemaname || '.' || tablename = %s"
SLOT = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn, plugin FROM pg_replication_slots WHERE slot_name = %s"


@dataclass(frozen=True)
class TableSnapshot:
    """A table as it was at a position of the log."""

    position: int
    time: int
    """In microseconds; no later commit is earlier."""
    rows: list[tuple[str | None, ...]]


@dataclass(frozen=True)
class PostgresServer:
    """Where it is, and how long one waits for it."""

    dsn: str
    seconds: float = 60.0

    @property
    def place(self) -> str:
        """What messages call it; never a password."""
        from psycopg.conninfo import conninfo_to_dict

        known = conninfo_to_dict(self.dsn)
        return f"{known.get('host', 'this machine')}:{known.get('port', 5432)}/{known.get('dbname', '')}"

    @contextmanager
    def connected(self, **options: str) -> Iterator[Any]:
        """A connection; Postgres' errors within become ours."""
        psycopg = package("psycopg", "postgres")
        wait = max(1, int(self.seconds))
        try:
            settings = f"{psycopg.conninfo.conninfo_to_dict(self.dsn).get('options') or ''} {SETTINGS}"
            with psycopg.connect(
                self.dsn, autocommit=True, connect_timeout=wait, options=settings, **options
            ) as connection:
                yield connection
        except psycopg.Error as error:
            raise self.failed(error) from error

    def failed(self, error: Exception) -> DataError:
        """An error of Postgres in our words."""
        return DataError(
            f"Postgres at {self.place} says: {' '.join(str(error).split()).rstrip('.?')}.",
            remedy="A reader needs wal_level=logical, a free replication slot, and a role with REPLICATION "
            "that may read the table.",
        )

    # -- tables -------------------------------------------------------------------------------------------

    def table(self, name: str) -> tuple[str, tuple[TableColumn, ...], tuple[str, ...]]:
        """A table's full name, its columns, and its primary key."""
        with self.connected() as connection:
            found = connection.execute(f"{NAME} WHERE c.oid = to_regclass(%s)", [name]).fetchone()
            if found is None:
                rows = connection.execute(f"{NAME} WHERE c.relkind IN ('r', 'p')").fetchall()
                raise no_table(name, self.place, [each for (each,) in rows])
            columns = connection.execute(COLUMNS, [name]).fetchall()
            key = connection.execute(KEY, [name]).fetchall()
        return found[0], tuple(TableColumn(*each) for each in columns), tuple(each for (each,) in key)

    def identity(self, name: str) -> str:
        """The same text for the same table; another for one that was made anew under its name."""
        with self.connected() as connection:
            return str(connection.execute(IDENTITY, [name]).fetchone()[0])

    def current(self) -> int:
        """Where the log ends now."""
        with self.connected() as connection:
            return int(connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()[0])

    # -- slots --------------------------------------------------------------------------------------------

    def prepare(self, table: str, slot: str, publication: str) -> None:
        """Makes the publication and the slot, where they are not there."""
        from psycopg import sql

        with self.connected() as connection:
            known = "SELECT 1 FROM pg_publication WHERE pubname = %s"
            if connection.execute(known, [publication]).fetchone() is None:
                names = sql.Identifier(publication), sql.Identifier(*table.split(".", 1))
                connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(*names))
            if connection.execute(PUBLISHED, [publication, table]).fetchone() is None:
                raise not_published(publication, table)
            if connection.execute(SLOT, [slot]).fetchone() is None:
                connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])

    def check_slot(self, slot: str, position: int) -> None:
        """Refuses a slot that no longer has the log behind a position."""
        with self.connected() as connection:
            found = connection.execute(SLOT, [slot]).fetchone()
        if found is None or int(found[0]) > position:
            raise changes_lost(slot, dropped=found is None)

    def snapshot(self, table: str, columns: tuple[str, ...], slot: str) -> TableSnapshot:
        """The table as it is now, and where its changes go on."""
        from psycopg import sql

        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        copied = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(
            names, sql.Identifier(*table.split(".", 1))
        )
        with self.connected() as reading, self.connected(replication="database") as log:
            begun = reading.execute(
                "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
            ).fetchone()
            made = f'"{slot}_{time.time_ns()}" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT'
            result = log.pgconn.exec_(f"CREATE_REPLICATION_SLOT {made}".encode())
            if result.ntuples == 0:
                raise no_snapshot(self.place, result.error_message.decode().strip())
            position, exported = result.get_value(0, 1).decode(), result.get_value(0, 2).decode()
            with reading.transaction():
                reading.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                reading.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(exported)))
                with reading.cursor() as cursor, cursor.copy(copied) as copy:
                    rows = list(copy.rows())
        high, low = position.split("/")
        return TableSnapshot((int(high, 16) << 32) + int(low, 16), begun[0], rows)


def no_table(name: str, place: str, there: Sequence[str]) -> PlanError:
    """There is none of this name; among those that there are, one may be meant."""
    own = [each for each in there if not each.startswith(("pg_catalog.", "information_schema."))]
    return PlanError(
        f"there is no table '{name}' in Postgres at {place}.",
        remedy=closest(name, [*own, *(each.split(".", 1)[1] for each in own)]),
    )


def not_published(publication: str, table: str) -> PlanError:
    """Changes of the table would never come."""
    return PlanError(
        f"the publication '{publication}' does not have the table '{table}'.",
        remedy=f"ALTER PUBLICATION {publication} ADD TABLE {table}; or name another publication.",
    )


def changes_lost(slot: str, *, dropped: bool) -> DataError:
    """The slot does not have the changes that a query wants to go on with."""
    missing = "is not there any more" if dropped else "was read by somebody else"
    return DataError(
        f"the slot '{slot}' of Postgres {missing}, and changes behind the saved position are lost.",
        remedy="Begin anew with a new checkpoint: the table is read again, then its changes.",
    )


def no_snapshot(place: str, why: str) -> DataError:
    """The second slot, which is needed for a moment, could not be made."""
    return DataError(
        f"Postgres at {place} gave no snapshot: {why}.",
        remedy="Set max_replication_slots and max_wal_senders higher: one more is needed for a moment.",
    )
