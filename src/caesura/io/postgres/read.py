"""What users call to follow a table of Postgres."""

from __future__ import annotations

import re
from collections.abc import Sequence

from caesura.errors import PlanError, closest
from caesura.io.ingress.policy import Policy, delay
from caesura.io.postgres.columns import TableColumn
from caesura.io.postgres.reader import TIME, PostgresReader, Until
from caesura.io.postgres.server import PostgresServer
from caesura.io.sources.read import source_of
from caesura.io.sources.source import Source
from caesura.plan import Duration, seconds


def read_postgres(
    dsn: str,
    table: str,
    *,
    slot: str,
    publication: str = "",
    key: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    until: Until | None = None,
    timeout: Duration = "60s",
    punctuate: Policy | None = None,
    name: str = "",
) -> tuple[Source, tuple[str, ...]]:
    """The rows of a table and its changes; and the columns of its key."""
    found: list[tuple[str, ...]] = []

    def make() -> PostgresReader:
        if not re.fullmatch(r"[a-z0-9_]{1,40}", slot):
            raise PlanError(
                f"'{slot}' is no name for a replication slot.",
                remedy="Up to 40 small letters, digits and underscores: slot='orders_view'.",
            )
        if until not in (None, "latest"):
            raise PlanError(f"until={until!r} tells a table nothing.", remedy="Give None or 'latest'.")
        server = PostgresServer(dsn, seconds(timeout, "timeout"))
        full, known, primary = server.table(table)
        given = (key,) if isinstance(key, str) else tuple(key)
        chosen, group = choose(full, known, given or primary, columns)
        found.append(group)
        return PostgresReader(server, full, chosen, slot=slot, publication=publication or slot, until=until)

    policy = delay("1s") if punctuate is None else punctuate
    source = source_of(make, {"time": TIME, "punctuate": policy, "name": name or table})
    return source, found[0]


def choose(
    table: str, known: Sequence[TableColumn], key: tuple[str, ...], columns: Sequence[str] | None
) -> tuple[list[TableColumn], tuple[str, ...]]:
    """The columns that are read, and those of the key, which always are."""
    if not key:
        raise PlanError(
            f"the table '{table}' has no primary key, so no change tells which row it replaces.",
            remedy="Name the columns that are unique: key=[...].",
        )
    names = [column.name for column in known]
    wanted = names if columns is None else [*key, *columns]
    for column in (*key, *wanted):
        if column not in names:
            raise PlanError(f"'{table}' has no column '{column}'.", remedy=closest(column, names))
    return [column for column in known if column.name in wanted], key
