"""Tables of a real Postgres as streams: the table, then its changes; and a view of them back in Postgres."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

import caesura as cz
from caesura import DataError, PlanError, StreamError
from caesura.runtime.sinks.memory import MemorySink

NAMES = (f"t{n}" for n in count())
VIEW = Path(__file__).with_name("postgres_view.py")
REGIONS = ("north", "south", "east", None)


class Table:
    """A table of a server, changed as somebody else would."""

    def __init__(self, postgres: Any, columns: str) -> None:
        self.dsn, self.name = postgres.dsn, next(NAMES)
        self.run(f"CREATE TABLE {{}} ({columns})")

    def run(self, *statements: str) -> None:
        """Statements in one transaction; `{}` is the table."""
        with psycopg.connect(self.dsn) as connection:
            for statement in statements:
                connection.execute(statement.format(self.name))

    def rows(self, name: str = "", columns: str = "*") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return sorted(
                connection.execute(f"SELECT {columns} FROM {name or self.name}").fetchall(), key=repr
            )

    def read(self, **options: Any) -> cz.Stream:
        return cz.read.postgres(self.dsn, self.name, **{"slot": self.name, "until": "latest", **options})

    def mirror(self, folder: Path, shown: str = "*", **options: Any) -> list[tuple[Any, ...]]:
        """Brings a copy of the table up to now, by another start of one query; gives its rows."""
        sink = cz.postgres(self.dsn, f"{self.name}_copy")
        self.read(**options).upserts(key="id").query(checkpoint=folder / self.name, sink=sink).run()
        return self.rows(f"{self.name}_copy", shown)


def test_a_table_then_its_changes(postgres, tmp_path):
    table = Table(postgres, "id int PRIMARY KEY, v text")
    table.run("INSERT INTO {} VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    for transaction in (
        [],
        ["UPDATE {} SET v = 'c' WHERE id = 1", "DELETE FROM {} WHERE id = 2"],
        ["UPDATE {} SET id = 9 WHERE id = 3", "INSERT INTO {} VALUES (2, 'again')"],
        [
            "INSERT INTO {} VALUES (4, 'x')",
            "UPDATE {} SET v = 'y' WHERE id = 4",
            "DELETE FROM {} WHERE id = 4",
        ],
        ["UPDATE {} SET id = -id"],
        ["ALTER TABLE {} REPLICA IDENTITY FULL", "UPDATE {} SET v = 'z' WHERE id = -1"],
        ["ALTER TABLE {} ADD COLUMN more int", "INSERT INTO {} VALUES (5, 'e', 7)"],
        ["DELETE FROM {}"],
    ):
        table.run(*transaction)
        assert table.mirror(tmp_path, "id, v", columns=["v"]) == table.rows(columns="id, v")


def test_types_come_through(postgres, tmp_path):
    table = Table(
        postgres,
        "id bigint PRIMARY KEY, a smallint, b real, c double precision, d numeric(10, 3), e boolean, f date, "
        "g timestamp, h timestamptz, i bytea, j uuid, k jsonb, l numeric, m text",
    )
    table.run(
        "INSERT INTO {} VALUES (1, -3, 0.1, 'NaN', 12.5, true, '2024-02-29', '2024-01-01 00:00:00.000001', "
        "'2024-01-01 05:30+05:30', '\\x00ff', gen_random_uuid(), '{{\"a\": [1]}}', 1e30, 'it''s \\ \t \n \"')"
    )
    kept = "id, a, b, c::text, d, e, f, g, h, i, m"
    assert table.mirror(tmp_path, kept) == table.rows(columns=kept)
    table.run("INSERT INTO {} (id) VALUES (2)", "UPDATE {} SET id = 3 WHERE id = 1")
    assert table.mirror(tmp_path, kept) == table.rows(columns=kept)
    texts = "id, j::text, k::jsonb::text, l::numeric::text"
    assert table.mirror(tmp_path, texts) == table.rows(columns=texts)


def test_nothing_is_lost_or_twice_between_the_table_and_its_changes(postgres, tmp_path):
    table = Table(postgres, "id serial PRIMARY KEY, v int")
    table.run("INSERT INTO {} (v) SELECT n FROM generate_series(1, 2000) n")
    code = (
        "import sys, psycopg\n"
        "with psycopg.connect(sys.argv[1], autocommit=True) as c:\n"
        "    print('on', flush=True)\n"
        "    while True:\n"
        f"        c.execute('INSERT INTO {table.name} (v) VALUES (0)')\n"
        f"        c.execute('DELETE FROM {table.name} WHERE id = (SELECT min(id) FROM {table.name})')\n"
    )
    writing = subprocess.Popen([sys.executable, "-c", code, table.dsn], stdout=subprocess.PIPE)
    try:
        assert writing.stdout is not None
        writing.stdout.readline()
        assert len(table.mirror(tmp_path)) > 0
    finally:
        writing.kill()
        writing.wait()
    assert table.mirror(tmp_path) == table.rows()


def test_a_server_that_is_away_for_a_while_is_waited_for(postgres, tmp_path):
    table = Table(postgres, "id int PRIMARY KEY")
    query = table.read(until=None).upserts(key="id").query(checkpoint=tmp_path, sink=MemorySink())
    query.step()
    table.run("INSERT INTO {} VALUES (1)")
    postgres.stop()
    query.step()
    postgres.start()
    table.run("INSERT INTO {} VALUES (2)")
    reader = next(iter(query.parts.readers.values()))
    end = time.monotonic() + 60
    while reader.ingress.counters.rows_in < 2 and time.monotonic() < end:
        query.step()
    assert reader.ingress.counters.rows_in == 2
    query.close()


def test_the_log_is_let_go_when_a_query_is_saved(postgres, tmp_path):
    table = Table(postgres, "id int PRIMARY KEY")
    sink = MemorySink()
    query = table.read(until=None).upserts(key="id").query(checkpoint=tmp_path, sink=sink, every="0s")
    held = f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{table.name}'"
    with psycopg.connect(table.dsn, autocommit=True) as connection:
        query.step()
        first = connection.execute(held).fetchone()
        end = time.monotonic() + 60
        while (now := connection.execute(held).fetchone()) == first and time.monotonic() < end:
            table.run("INSERT INTO {} VALUES (1) ON CONFLICT (id) DO NOTHING", "DELETE FROM {}")
            query.step()
            time.sleep(0.05)
    assert now != first
    query.close()


def test_what_cannot_be_followed_is_refused_by_name(postgres, tmp_path):
    table = Table(postgres, "id int PRIMARY KEY, v text")
    with pytest.raises(PlanError, match="there is no table 'ttt'"):
        cz.read.postgres(table.dsn, "ttt", slot="x")
    with pytest.raises(PlanError, match="no name for a replication slot"):
        table.read(slot='a"b')
    with pytest.raises(PlanError, match="has no column 'w'"):
        table.read(columns=["w"])
    with pytest.raises(PlanError, match="no primary key"):
        Table(postgres, "id int").read()
    table.mirror(tmp_path)
    table.run("TRUNCATE {}")
    with pytest.raises(DataError, match="was truncated"):
        table.mirror(tmp_path)


def test_a_slot_that_is_gone_or_was_read_by_another_is_no_silent_loss(postgres, tmp_path):
    table = Table(postgres, "id int PRIMARY KEY")
    table.mirror(tmp_path / "a")
    table.run("INSERT INTO {} VALUES (1)")
    table.run(f"SELECT pg_replication_slot_advance('{table.name}', pg_current_wal_lsn())")
    with pytest.raises(DataError, match="was read by somebody else"):
        table.mirror(tmp_path / "a")
    table.run(f"SELECT pg_drop_replication_slot('{table.name}')")
    with pytest.raises(DataError, match="is not there any more"):
        table.mirror(tmp_path / "a")


def test_a_table_that_was_made_anew_is_no_silent_loss(postgres, tmp_path):
    table = Table(postgres, "id int PRIMARY KEY")
    table.run("INSERT INTO {} VALUES (1)")
    assert table.mirror(tmp_path) == [(1,)]
    table.run("DROP TABLE {}", "CREATE TABLE {} (id int PRIMARY KEY)", "INSERT INTO {} VALUES (2)")
    with pytest.raises(StreamError, match="was deleted and made anew since it was read"):
        table.mirror(tmp_path)


def test_a_view_of_two_tables_equals_its_select_with_the_pipeline_killed_five_times(postgres, tmp_path):
    random = Random(11)
    customers = Table(postgres, "id int PRIMARY KEY, region text")
    orders = Table(postgres, "id int PRIMARY KEY, customer int, amount numeric(12, 2)")
    target = f"{orders.name}_view"
    select = (
        f"SELECT region, count(*), sum(amount) FROM {orders.name} o JOIN {customers.name} c "
        "ON o.customer = c.id GROUP BY region"
    )
    with psycopg.connect(postgres.dsn) as connection:
        for n in range(30):
            work(connection, random, orders.name, customers.name, n)

    def view() -> subprocess.Popen[bytes]:
        told = [sys.executable, str(VIEW), postgres.dsn, orders.name, customers.name, target, str(tmp_path)]
        return subprocess.Popen(told, stdout=subprocess.PIPE)

    kills = 0
    running = view()
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        for n in range(30, 630):
            with connection.transaction():
                for _ in range(random.randint(1, 3)):
                    work(connection, random, orders.name, customers.name, n)
            if n % 100 == 0 and kills < 5:
                assert running.stdout is not None
                for _ in range(random.randint(1, 4)):  # somewhere within an epoch
                    running.stdout.readline()
                running.send_signal(signal.SIGKILL)
                running.wait()
                running, kills = view(), kills + 1
        end = time.monotonic() + 120
        wanted = sorted(connection.execute(select).fetchall(), key=repr)
        found: list[Any] = []
        while found != wanted and time.monotonic() < end and running.poll() is None:
            time.sleep(0.1)
            found = sorted(connection.execute(f"SELECT region, n, total FROM {target}").fetchall(), key=repr)
    running.kill()
    running.wait()
    assert (kills, found) == (5, wanted)
    assert len(wanted) == len(REGIONS)


def work(connection: Any, random: Random, orders: str, customers: str, n: int) -> None:
    """One of the things that happen in a shop."""
    customer, order = random.randrange(12), random.randrange(60)
    kind = random.randrange(6) if n > 30 else random.randrange(2)
    insert = "ON CONFLICT (id) DO UPDATE SET"
    if kind == 0:
        region = random.choice(REGIONS)
        connection.execute(
            f"INSERT INTO {customers} VALUES (%s, %s) {insert} region = excluded.region", [customer, region]
        )
    elif kind in (1, 2):
        values = [order, customer, random.randrange(10_000) / 100]
        connection.execute(
            f"INSERT INTO {orders} VALUES (%s, %s, %s) {insert} customer = excluded.customer, "
            "amount = excluded.amount",
            values,
        )
    elif kind == 3:
        connection.execute(f"UPDATE {orders} SET amount = amount + 1 WHERE customer = %s", [customer])
    elif kind == 4:
        connection.execute(f"DELETE FROM {orders} WHERE id = %s", [order])
    elif random.random() < 0.2:
        connection.execute(f"DELETE FROM {customers} WHERE id = %s", [customer])
