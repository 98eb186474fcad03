"""What a folder of a Parquet sink holds, read commit by commit: changes, late rows, claims.

Only what commits name is opened, and only the last commits are looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caesura.consistency import Claim
from caesura.consistency.store import Manifest
from caesura.errors import StreamError
from caesura.events.columns import empty_rows
from caesura.events.page import NO_NEW_END, Page
from caesura.io.ingress.clock import to_ticks
from caesura.io.places import Place
from caesura.io.sinks.commits import generation_folder, read_commit
from caesura.io.sinks.partitions import folder_values
from caesura.io.sinks.protocol import LATE, Part
from caesura.plan import here
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.sinks.parquet import generations

OWN = ("kind", "LE", "RE", "RE_new")
COMMITS = 1_000
"""So many of the last commits are looked at."""


class SinkFolder:
    """The commits of a folder; each is read once."""

    def __init__(self, path: str | Place) -> None:
        self._root = Place.of(path)
        self.place = self._root
        """Where the generation of the output lies that counts."""
        self._lock = threading.Lock()
        self._commits: dict[int, list[Part]] = {}
        self._claims: dict[str, Claim] = {}

    @property
    def commits(self) -> dict[int, list[Part]]:
        """The parts of the last epochs, by epoch, the oldest first."""
        with self._lock:
            self._enter()
            files = (self.place / "_commits").files(".json")[-COMMITS:]
            numbers = {int(file.stem): file for file in files if file.stem.isdecimal()}
            self._commits = {
                number: self._commits.get(number) or [Part(**part) for part in read_commit(file)["files"]]
                for number, file in numbers.items()
            }
            return self._commits

    def _enter(self) -> None:
        """Goes over to a new generation once anything of it is committed."""
        place = generation_folder(self._root, generations(self._root)[-1])
        if str(place) != str(self.place):
            self.place, self._commits, self._claims = place, {}, {}

    def outputs(self) -> list[str]:
        """The outputs that anything was written of."""
        return sorted({part.output for some in self.commits.values() for part in some if part.output != LATE})

    def sources(self) -> list[str]:
        """The sources that have late rows here."""
        return sorted({_source(part) for part in self._late_parts()})

    def changes(self, output: str, rows: int) -> tuple[list[Page], pa.Schema, pa.DataType | None]:
        """The last changes of an output, with its columns and how it counts time."""
        found: list[pa.Table] = []
        for part in (
            p for some in reversed(self.commits.values()) for p in reversed(some) if p.output == output
        ):
            found.insert(0, self._read(part, max(0, part.rows - rows)))
            rows -= part.rows
            if rows <= 0:
                break
        if not found:
            return [], pa.schema([]), None
        payload = [field for field in found[-1].schema if field.name not in OWN]
        return (
            [page for table in found for page in _pages(table)],
            pa.schema(payload),
            found[-1].schema.field("LE").type,
        )

    def late(self, source: str, first: int, count: int) -> pa.Table | None:
        """Some of the late rows of a source; only the files that have them are opened."""
        found: list[pa.Table] = []
        before = 0
        for part in self._late_parts(source):
            start, end = max(first - before, 0), min(first + count - before, part.rows)
            if start < end:
                found.append(self._read(part, start, end))
            before += part.rows
        return pa.concat_tables(found, promote_options="permissive") if found else None

    def late_kept(self, source: str) -> int:
        """How many late rows of a source there are here."""
        return sum(part.rows for part in self._late_parts(source))

    def claims(self) -> list[Claim]:
        """The claims, where the folder is of a pipeline."""
        folder = self.place / "_claims"
        if not folder.is_folder():
            return []
        with self._lock:
            files = folder.files(".json")[-COMMITS:]
            fresh = {
                file.name: Manifest.from_bytes(file.read_bytes())
                for file in files
                if file.name not in self._claims
            }
            known = {**self._claims, **{name: made.claim for name, made in fresh.items() if made is not None}}
            self._claims = {file.name: known[file.name] for file in files if file.name in known}
            return list(self._claims.values())

    def _late_parts(self, source: str | None = None) -> Iterator[Part]:
        late = (part for some in self.commits.values() for part in some if part.output == LATE)
        there = {file.name for file in (self.place / LATE).files(".parquet")}
        return (p for p in late if p.file in there and (source is None or _source(p) == source))

    def _read(self, part: Part, start: int = 0, end: int | None = None) -> pa.Table:
        """Some rows of a part; only the row groups that have them are read."""
        file = self.place / part.output / part.file
        try:
            with pq.ParquetFile(file.open()) as opened:
                table = _rows(opened, start, part.rows if end is None else end)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StreamError(
                f"'{file}' cannot be read: {error}.",
                remedy=f"Put it back as it was; `caesura audit {self.place}` lists what was changed.",
            ).at("console", here()) from error
        for name, value in folder_values(part.file.rpartition("/")[0]).items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
        return table


def _rows(file: pq.ParquetFile, start: int, end: int) -> pa.Table:
    groups: list[int] = []
    before = first = 0
    for number in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if before < end and before + rows > start:
            first = before if not groups else first
            groups.append(number)
        before += rows
    return file.read_row_groups(groups).slice(max(0, start - first), end - start)


def _source(part: Part) -> str:
    """The source that a file of late rows is of."""
    return part.file.rpartition("-epoch-")[0]


def _pages(table: pa.Table) -> Iterator[Page]:
    """Output rows as pages: changes as they came, then the marks of rows that are final, or partial."""
    kinds = table.column("kind")
    for mark, some in ((None, ["+", "-"]), ("settled", ["="]), ("partial", ["~"])):
        rows = table.filter(pc.is_in(kinds, pa.array(some)))
        if rows.num_rows == 0:
            continue
        le, re, new = (
            _ticks(rows, name, least)
            for name, least in (("LE", MIN_TIME), ("RE", INFINITY), ("RE_new", INFINITY))
        )
        gone = np.asarray(pc.equal(rows.column("kind"), "-"))
        columns = rows.drop_columns(list(OWN)).combine_chunks()
        payload = columns.to_batches()[0] if columns.num_columns else empty_rows(rows.num_rows)
        page = Page.of(payload, le=le, re=re, re_new=np.where(gone, new, NO_NEW_END))
        yield page if mark is None else replace(page, settled=mark == "settled", partial=mark == "partial")


def _ticks(rows: pa.Table, name: str, missing: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return to_ticks(rows.column(name).combine_chunks(), missing)


def is_sink_folder(place: Place) -> bool:
    """Whether a folder is one that a Parquet sink, or a pipeline, has written."""
    return (place / "_commits").is_folder()
