"""Tables that change: loaded again by the clock or when their files do, and read as what came and went.

Each version is compared with the one before it, and the difference is written to a folder, its history: the
rows that are no longer there, then those that are new. A row of the difference enters with the reading of the
clock that is part of the query's offset, so that whoever reads again from an offset reads the same.

>>> import tempfile
>>> rows = [{"id": 7, "name": "Ada"}]
>>> loads = TableVersions(lambda: rows, reload="10m", history=tempfile.mkdtemp())
>>> [raw.batch.num_rows for raw in loads.read_between({})]
[1]
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caesura.errors import PlanError, closest
from caesura.events.identity import LOCAL, identity, plain_zeros
from caesura.io.ingress.arrival import ingestion_time
from caesura.io.ingress.policy import Policy, at_end, heartbeat
from caesura.io.ingress.shape import Shape
from caesura.io.places.place import Place
from caesura.io.sources.files import FileReader
from caesura.io.sources.formats import Format
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.table import Always, file_state, format_of, in_memory_table
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.keys import KeyTable
from caesura.plan import NOTHING_NOW, Duration, Raw, SourceBatch, ticks

CHANGE, COPY, VERSION = "table op", "table copy", "table version"
"""Of a row of a difference: whether it came or went, its number among equal rows, and its version."""
CAME, WENT = "c", "d"
LOOKED = "_looked"
"""The file whose time tells when the table was last looked at."""
CLOCK = pa.timestamp("us")
BATCH = 65_536


class TableVersions(Reader):
    """The differences between the versions of a table, from its history and, behind it, from the table."""

    poll_seconds = 1.0
    streaming_remedy = 'Say where all workers can read what was loaded: cz.table(..., history="/shared/...").'
    follows = True
    bounded = True

    def __init__(
        self,
        data: str | Path | Place | Callable[[], Any],
        *,
        reload: Duration,
        schema: pa.Schema | None = None,
        format: str | None = None,
        history: str | Path | None = None,
    ) -> None:
        self._check(data, reload, format)
        self.data = data if callable(data) else Place.of(data)
        self.origin = data if callable(data) else None
        self.period = None if reload == "changed" else max(1, ticks(reload, CLOCK, "time between reloads"))
        self._format: Format | None = format_of(self.data, format) if isinstance(self.data, Place) else None
        own = history if history is not None else tempfile.mkdtemp(prefix="caesura-table-")
        self.history = Place.of(own).on_this_machine("what was loaded of a table")
        if history is None:
            weakref.finalize(self, shutil.rmtree, self.history, True)
        self.spark_form = "memory" if history is None else "lanes"
        self._wanted = schema
        self.rows = self._load().schema if schema is None else schema
        """The columns of the table itself."""
        added = [pa.field(CHANGE, pa.string()), pa.field(COPY, pa.int64()), pa.field(VERSION, pa.int64())]
        self.schema = pa.schema([*self.rows, *added])
        self.key = f"versions:{self._shown}:{reload}:{self.rows}"

    @staticmethod
    def _check(data: object, reload: Duration, format: str | None) -> None:
        if not callable(data) and not isinstance(data, str | Path | Place):
            raise PlanError(
                f"reload={reload!r} is said of rows in memory, which stay as they are.",
                remedy="Give the path of a folder, or a function that gives the rows as they are now.",
            )
        if callable(data) and format is not None:
            raise PlanError(
                f"format={format!r} is said of files, and a function gives the rows.", remedy="Leave it out."
            )
        if callable(data) and reload == "changed":
            raise PlanError(
                "nothing tells when what a function gives has changed.",
                remedy='Say how often it is called: reload="10m".',
            )
        if isinstance(reload, str) and reload.isalpha() and reload != "changed":
            raise PlanError(
                f"reload={reload!r} says neither how often a table is loaded nor that it is when it changes.",
                remedy=closest(reload, ["changed"]) + ' Or give a time, like reload="10m".',
            )

    @property
    def _shown(self) -> str:
        if isinstance(self.data, Place):
            return self.data.identity
        return f"{self.data.__module__}.{getattr(self.data, '__qualname__', type(self.data).__name__)}"

    def describe(self) -> str:
        often = "when it changes" if self.period is None else f"every {self.period / 1e6:g} s"
        what = f"table '{self.data}'" if isinstance(self.data, Place) else f"table from {self._shown}()"
        return f"{what}, loaded {often}"

    # -- what was loaded ----------------------------------------------------------------------------------

    def _recorded(self) -> list[tuple[int, int, Path]]:
        """The differences there are: (offset of the first row, rows, file), in order."""
        if not self.history.is_dir():
            return []
        found, at = [], 0
        for file in sorted(self.history.glob("[0-9]*-*.parquet")):
            rows = int(file.stem.partition("-")[2])
            found.append((at, rows, file))
            at += rows
        return found

    def latest(self) -> Offsets:
        """Where the history ends, once the table was loaded if that was due."""
        self._refresh()
        recorded = self._recorded()
        return {0: recorded[-1][0] + recorded[-1][1] if recorded else 0}

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        at = offsets.get(0, 0)
        while True:
            for first, rows, file in self._recorded():
                if first + rows > at:
                    for batch in pq.read_table(file).slice(at - first).to_batches(BATCH):
                        yield Raw(0, at, batch.cast(self.schema))
                        at += batch.num_rows
            if not self._refresh():
                yield NOTHING_NOW

    # -- loading ------------------------------------------------------------------------------------------

    def _refresh(self) -> bool:
        """Loads the table if that is due; whether there is something new."""
        marker, now = self.history / LOOKED, self.clock()
        wait = int(self.poll_seconds * 1e6) if self.period is None else self.period
        if marker.exists() and now < marker.stat().st_mtime_ns // 1000 + wait:
            return False
        self.history.mkdir(parents=True, exist_ok=True)
        listing = self._listing()
        same = marker.exists() and listing is not None and marker.read_text() == listing
        fresh = not same and self._record(self._load())
        marker.write_text(listing or "")
        os.utime(marker, ns=(now * 1000, now * 1000))
        return fresh

    def _listing(self) -> str | None:
        """What tells that files have not changed; None where nothing does."""
        if not isinstance(self.data, Place):
            return None
        assert self._format is not None
        found = [self.data] if self.data.is_file() else self.data.files()
        return repr([(f.name, file_state(f)) for f in found if f.name.endswith(self._format.endings)])

    def _load(self) -> pa.Table:
        if not isinstance(self.data, Place):
            table = in_memory_table(self.data(), self._wanted)
            return table if self._wanted is None else table.select(self._wanted.names).cast(self._wanted)
        assert self._format is not None
        files = FileReader(self.data, self._format, schema=self._wanted)
        return pa.Table.from_batches([raw.batch for raw in files.read({})], files.schema)

    def _record(self, table: pa.Table) -> bool:
        """Writes the difference from the last version, if there is any."""
        before = self._recorded()
        number = len(before)
        last = self.history / f"whole-{number - 1:08d}.parquet"
        old = pq.read_table(last).cast(self.rows) if before else self.rows.empty_table()
        new = table.select(self.rows.names).cast(self.rows)
        change = difference(old, new, number).cast(self.schema)
        if change.num_rows == 0:
            return False
        _put(new, self.history / f"whole-{number:08d}.parquet")
        _put(change, self.history / f"{number:08d}-{change.num_rows}.parquet")
        last.unlink(missing_ok=True)
        return True


def correcting(correct: Duration | None, tz: str | None) -> tuple[Shape, Policy]:
    """From when on a version holds: when it was loaded, so long before that, or over all time ("past")."""
    if correct == "past":
        return Always("point", "", time_type=pa.timestamp("us", tz)), at_end()
    if isinstance(correct, str) and correct.isalpha():
        raise PlanError(
            f"correct={correct!r} does not say what a new version corrects.",
            remedy=closest(correct, ["past"]) + ' Or give a time, like correct="1h".',
        )
    clock = ingestion_time(every="1s", tz=tz)
    return clock.shape({}), clock.policy if correct is None else heartbeat("1s", delay=correct)


def _put(table: pa.Table, path: Path) -> None:
    """Writes a file that is there whole or not at all."""
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, hidden)
    hidden.replace(path)


def difference(old: pa.Table, new: pa.Table, version: int) -> pa.Table:
    """The rows that are no longer there, then the new ones; equal rows are told apart by numbers."""
    (old_ids, old_copy), (new_ids, new_copy) = (_numbered(each) for each in (old, new))
    known, other = KeyTable(), KeyTable()
    known.encode(*old_ids)
    other.encode(*new_ids)
    went, came = np.flatnonzero(other.find(*old_ids) < 0), np.flatnonzero(known.find(*new_ids) < 0)
    rows = pa.concat_tables([old.take(pa.array(went)), new.take(pa.array(came))])
    op = pa.array([WENT, CAME]).take(pa.array(np.repeat([0, 1], [len(went), len(came)])))
    copy = pa.array(np.concatenate([old_copy[went], new_copy[came]]), pa.int64())
    rows = rows.append_column(CHANGE, op).append_column(COPY, copy)
    return rows.append_column(VERSION, pa.array(np.full(len(op), version), pa.int64()))


def _numbered(table: pa.Table) -> tuple[tuple[U64, U64], I64]:
    """The identity of each row with its number among equal ones, and that number."""
    batch = plain_zeros(table.combine_chunks().to_batches()[0]) if table.num_rows else None
    columns = [] if batch is None else batch.columns
    h1, h2 = identity(columns, table.num_rows, LOCAL)
    order = np.lexsort((h2, h1))
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (h1[order][1:] != h1[order][:-1]) | (h2[order][1:] != h2[order][:-1])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    copy = np.empty(len(order), np.int64)
    copy[order] = np.arange(len(order)) - first
    return mixed((h1, h2), copy), copy


__all__ = ["CHANGE", "COPY", "VERSION", "TableVersions", "correcting", "difference"]
