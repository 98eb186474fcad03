"""Sources whose content changes between two starts of a query: each kind with every fate that it can have.

A world holds numbered rows, in parts: files, versions, partitions. A fate changes it as something outside
would, while no query runs. What a query may do then follows from the rows alone: where all that were there
are still in their places, it reads on; else it refuses.
"""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from memory_broker import Entry, MemoryBroker
from pyiceberg.catalog import load_catalog

import caesura as cz
from caesura import Stream

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64())])
BATCH = 2
Fate = Callable[[], None]


class World(ABC):
    """Rows outside, by the number of each; ``parts`` holds them in the order in which they are read."""

    must_read_on: tuple[str, ...] = ("nothing", "grown")
    """The fates after which a query has to read on, and not to refuse."""
    least_steps = 1
    """After so many steps a query has seen all parts that are known from the start."""
    forgets = False
    """Whether rows that were read may be gone, as retention takes them."""

    def __init__(self, folder: Path, draw: Random) -> None:
        self.folder, self.draw = folder, draw
        self.numbers = count(100)
        """Of two digits or more from one start to the last: rows of one width, as files of one size need."""
        self.parts: list[list[int]] = []
        self.unread: set[int] = set()
        """Rows that are gone, and were there for good where they stood."""
        for _ in range(draw.randint(1, 3)):
            self.parts.append(self.fresh())
        self.put()

    def fresh(self, size: int = 0) -> list[int]:
        return [next(self.numbers) for _ in range(size or self.draw.randint(1, 4))]

    @property
    def rows(self) -> list[int]:
        return [row for part in self.parts for row in part]

    @abstractmethod
    def put(self) -> None:
        """Writes what there is."""

    @abstractmethod
    def stream(self) -> Stream:
        """A new plan over it, as a new process has it."""

    @property
    def fates(self) -> dict[str, Fate]:
        """By name, what can happen to it."""
        return {"nothing": lambda: None, "grown": self.grow}

    def grow(self) -> None:
        self.parts.append(self.fresh())
        self.put()

    @property
    def some(self) -> int:
        return self.draw.randrange(len(self.parts))


class Files(World):
    """A folder of files of one format; written anew, a file has a later time."""

    def __init__(self, form: str, folder: Path, draw: Random) -> None:
        self.form, self.times = form, count(10**9)
        self.names = count(1)
        self.written: dict[str, list[int]] = {}
        super().__init__(folder, draw)

    def put(self) -> None:
        self.folder.mkdir(exist_ok=True)
        while len(self.written) < len(self.parts):
            name = f"{next(self.names):03d}"
            self.written[name] = self.parts[len(self.written)]
            self.write(name)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.{'jsonl' if self.form == 'json' else self.form}"

    def write(self, name: str) -> None:
        table = pa.table({"t": [5] * len(self.written[name]), "id": self.written[name]}, SCHEMA)
        path = self.path(name)
        if self.form == "parquet":
            pq.write_table(table, path)
        elif self.form == "csv":
            pa_csv.write_csv(table, path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        os.utime(path, (time := next(self.times), time))

    def stream(self) -> Stream:
        read: Any = {"parquet": cz.read.parquet, "csv": cz.read.csv, "json": cz.read.json}[self.form]
        made: Stream = read(self.folder, schema=SCHEMA, time="t", batch_size=BATCH, name="rows")
        return made

    @property
    def fates(self) -> dict[str, Fate]:
        return {
            **super().fates,
            "rewritten in another size": lambda: self.rewrite(self.fresh(7)),
            "rewritten in the same size": lambda: self.rewrite(self.fresh(len(self.parts[self.at]))),
            "shrunk": lambda: self.rewrite(self.parts[self.at][:-1]),
            "appended to": lambda: self.rewrite([*self.parts[self.at], *self.fresh()]),
            "vanished": self.vanish,
            "renamed": self.rename,
            "put between": self.between,
            "made anew": self.anew,
        }

    @property
    def at(self) -> int:
        return Random(len(self.rows)).randrange(len(self.parts))

    def rewrite(self, rows: list[int]) -> None:
        at = self.at
        name = sorted(self.written)[at]
        self.parts[at] = self.written[name] = rows
        self.write(name)

    def vanish(self) -> None:
        name = sorted(self.written)[self.at]
        self.parts.remove(self.written.pop(name))
        self.path(name).unlink()

    def rename(self) -> None:
        name = sorted(self.written)[self.at]
        rows = self.written.pop(name)
        self.parts.remove(rows)
        self.parts.append(rows)
        self.written["900"] = rows
        self.path(name).rename(self.path("900"))

    def between(self) -> None:
        self.written["000"] = self.fresh()
        self.parts.insert(0, self.written["000"])
        self.write("000")

    def anew(self) -> None:
        shutil.rmtree(self.folder)
        sizes = [len(part) for part in self.parts]
        self.parts, self.written, self.names = [self.fresh(size) for size in sizes], {}, count(1)
        self.put()


class Logs(Files):
    """A folder of logs, of which the one that was read last may grow at its end."""

    must_read_on = ("nothing", "grown", "last appended to", "last appended to twice", "half a line")

    def stream(self) -> Stream:
        read: Any = {"csv": cz.read.csv, "json": cz.read.json}[self.form]
        made: Stream = read(
            self.folder, schema=SCHEMA, time="t", batch_size=BATCH, name="rows", appended=True
        )
        return made

    @property
    def fates(self) -> dict[str, Fate]:
        return {
            **super().fates,
            "last appended to": self.lengthen,
            "last appended to twice": self.lengthen_twice,
            "half a line": self.tear,
            "rotated": self.rotate,
            "last written anew, longer": lambda: self.lengthen(anew=True),
            "last cut off": lambda: self.lengthen(more=-1),
        }

    def lengthen(self, more: int = 2, *, anew: bool = False) -> None:
        """Lets the last log grow."""
        name, rows = sorted(self.written)[-1], self.parts[-1]
        rows = self.fresh(len(rows)) if anew else rows
        self.parts[-1] = self.written[name] = [*rows, *self.fresh(more)] if more > 0 else rows[:more]
        self.write(name)

    def lengthen_twice(self) -> None:
        self.lengthen()
        self.lengthen()

    def rotate(self) -> None:
        """Lets the last log grow, and then another begin."""
        self.lengthen()
        self.grow()

    def tear(self) -> None:
        """Lets it grow by a line and the beginning of another, which is no row yet."""
        self.lengthen(1)
        path = self.path(sorted(self.written)[-1])
        path.write_bytes(path.read_bytes() + b'{"t"' if self.form == "json" else path.read_bytes() + b"5,77")


class OneLog(Logs):
    """A single log."""

    must_read_on = ("nothing", "appended to", "last appended to", "last appended to twice", "half a line")

    def put(self) -> None:
        self.parts = [self.rows]
        self.written.clear()
        Files.put(self)

    def stream(self) -> Stream:
        read: Any = {"csv": cz.read.csv, "json": cz.read.json}[self.form]
        made: Stream = read(
            self.path("001"), schema=SCHEMA, time="t", batch_size=BATCH, name="rows", appended=True
        )
        return made

    @property
    def fates(self) -> dict[str, Fate]:
        left = ("grown", "renamed", "put between", "made anew", "rotated")
        return {name: fate for name, fate in super().fates.items() if name not in left}


class Debezium(Files):
    """A folder of changes as Debezium tells them, each of a row of its own."""

    def __init__(self, folder: Path, draw: Random) -> None:
        super().__init__("json", folder, draw)

    def write(self, name: str) -> None:
        rows = [{"id": row, "v": 7} for row in self.written[name]]
        told = [{"op": "c", "before": None, "after": row, "source": {"ts_ms": 5, "lsn": 1}} for row in rows]
        path = self.path(name)
        path.write_text("".join(json.dumps(change) + "\n" for change in told))
        os.utime(path, (time := next(self.times), time))

    def stream(self) -> Stream:
        schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
        made: Stream = cz.read.debezium(self.folder, key="id", schema=schema, name="rows")
        return made


class OneFile(Files):
    """A single file, which is all there when it is read."""

    must_read_on = ("nothing",)

    def put(self) -> None:
        self.parts = [self.rows]
        self.written.clear()
        super().put()

    def stream(self) -> Stream:
        read: Any = {"parquet": cz.read.parquet, "csv": cz.read.csv, "json": cz.read.json}[self.form]
        made: Stream = read(self.path("001"), schema=SCHEMA, time="t", batch_size=BATCH, name="rows")
        return made

    @property
    def fates(self) -> dict[str, Fate]:
        left = ("grown", "renamed", "put between", "made anew")
        return {name: fate for name, fate in super().fates.items() if name not in left}


class Topic(World):
    """A topic with a partition per part, as a broker in memory has it."""

    def __init__(self, folder: Path, draw: Random) -> None:
        self.broker = MemoryBroker(poll=BATCH)
        super().__init__(folder, draw)

    def put(self) -> None:
        self.broker.make("rows", len(self.parts))
        for entries, rows in zip(self.broker.topics["rows"], self.parts, strict=True):
            entries += [
                Entry(None, json.dumps({"t": 5, "id": row}).encode(), None) for row in rows[len(entries) :]
            ]

    def stream(self) -> Stream:
        made: Stream = cz.read.kafka(
            self.broker.servers,
            "rows",
            value=cz.json(SCHEMA),
            time="t",
            until="latest",
            timeout="1s",
            name="rows",
        )
        return made

    @property
    def fates(self) -> dict[str, Fate]:
        return {
            **super().fates,
            "longer partitions": self.lengthen,
            "made anew, smaller": lambda: self.anew(-1),
            "made anew, equal": lambda: self.anew(0),
            "made anew, larger": lambda: self.anew(3),
            "fewer partitions": self.fewer,
            "records are gone": self.retain,
        }

    must_read_on = (*World.must_read_on, "longer partitions")
    least_steps = 4

    def lengthen(self) -> None:
        for part in self.parts:
            part += self.fresh()
        self.put()

    def anew(self, more: int) -> None:
        self.broker.drop("rows")
        self.parts = [self.fresh(len(part) + more) if len(part) + more else [] for part in self.parts]
        self.put()

    def fewer(self) -> None:
        self.broker.drop("rows")
        self.parts = self.parts[:1]
        self.put()

    def retain(self) -> None:
        for partition, rows in enumerate(self.parts):
            rows += self.fresh()
            self.broker.begins["rows", partition] = len(rows) - 1
        self.put()
        self.unread, self.forgets = {row for rows in self.parts for row in rows[:-1]}, True
        self.parts = [rows[-1:] for rows in self.parts]


class Delta(World):
    """A Delta table, a version per part."""

    def put(self) -> None:
        deltalake = __import__("deltalake")
        there = deltalake.DeltaTable.is_deltatable(str(self.folder))
        begun = deltalake.DeltaTable(str(self.folder)).version() + 1 if there else 0
        for rows in self.parts[begun:]:
            table = pa.table({"t": [5] * len(rows), "id": rows}, SCHEMA)
            deltalake.write_deltalake(str(self.folder), table, mode="append")

    def stream(self) -> Stream:
        made: Stream = cz.read.delta(self.folder, time="t", until="latest", name="rows")
        return made

    @property
    def fates(self) -> dict[str, Fate]:
        return {
            **super().fates,
            "made anew, smaller": lambda: self.anew(-1),
            "made anew, equal": lambda: self.anew(0),
            "made anew, larger": lambda: self.anew(2),
            "vanished": lambda: shutil.rmtree(self.folder),
        }

    def anew(self, more: int) -> None:
        shutil.rmtree(self.folder)
        self.parts = [self.fresh() for _ in range(max(1, len(self.parts) + more))]
        self.put()


class Iceberg(Delta):
    """An Iceberg table, a snapshot per part."""

    @property
    def catalog(self) -> Any:
        self.folder.mkdir(exist_ok=True)
        return load_catalog(**self.about)

    @property
    def about(self) -> dict[str, str]:
        file, data = f"sqlite:///{self.folder}/log.db", f"file://{self.folder}/data"
        return {"name": "lake", "type": "sql", "uri": file, "warehouse": data}

    def put(self) -> None:
        catalog = self.catalog
        catalog.create_namespace_if_not_exists("db")
        table = catalog.create_table_if_not_exists("db.rows", SCHEMA)
        for rows in self.parts[len(table.snapshots()) :]:
            table.append(pa.table({"t": [5] * len(rows), "id": rows}, SCHEMA))

    def stream(self) -> Stream:
        made: Stream = cz.read.iceberg("db.rows", catalog=self.about, time="t", until="latest", name="rows")
        return made

    def anew(self, more: int) -> None:
        self.catalog.drop_table("db.rows")
        self.parts = [self.fresh() for _ in range(max(1, len(self.parts) + more))]
        self.put()

    @property
    def fates(self) -> dict[str, Fate]:
        return {**super().fates, "vanished": lambda: self.catalog.drop_table("db.rows")}


class Memory(World):
    """Rows in memory: all there when they are read."""

    must_read_on = ("nothing",)

    def __init__(self, form: str, folder: Path, draw: Random) -> None:
        self.form = form
        super().__init__(folder, draw)

    def put(self) -> None:
        return

    def stream(self) -> Stream:
        rows = [{"t": 5, "id": row} for row in self.rows]
        if self.form == "arrow":
            table = pa.Table.from_pylist(rows, SCHEMA)
            made: Stream = cz.from_arrow(table, time="t", batch_size=BATCH, name="rows")
            return made
        return cz.from_rows(rows, SCHEMA, time="t", batch_size=BATCH, name="rows")

    @property
    def fates(self) -> dict[str, Fate]:
        return {
            **super().fates,
            "shrunk": lambda: self.parts.pop() and None,
            "replaced, equal": lambda: self.replace([self.fresh(len(part)) for part in self.parts]),
            "replaced, larger": lambda: self.replace([self.fresh(len(part) + 2) for part in self.parts]),
            "turned round": lambda: self.replace([self.rows[::-1]]),
        }

    def replace(self, parts: list[list[int]]) -> None:
        self.parts = parts


KINDS: dict[str, Callable[[Path, Random], World]] = {
    **{form: lambda f, d, form=form: Files(form, f, d) for form in ("parquet", "csv", "json")},
    **{f"one {form}": lambda f, d, form=form: OneFile(form, f, d) for form in ("parquet", "csv", "json")},
    **{f"{form} logs": lambda f, d, form=form: Logs(form, f, d) for form in ("csv", "json")},
    **{f"one {form} log": lambda f, d, form=form: OneLog(form, f, d) for form in ("csv", "json")},
    "topic": Topic,
    "debezium": Debezium,
    "delta": Delta,
    "iceberg": Iceberg,
    "rows": lambda f, d: Memory("rows", f, d),
    "arrow": lambda f, d: Memory("arrow", f, d),
}
