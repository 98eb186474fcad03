"""Readers of files and folders: Parquet, CSV, JSON lines.

A folder is one lane: its files one behind the other, sorted by name. All files must have the columns of
the first (or of the schema given), in types that fit; a file that does not is named.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "a.csv").write_text("t,id\\n1,7\\n"), (folder / "b.csv").write_text("t,id\\n2,8\\n")
>>> reader = FileReader(folder, CSV)
>>> [raw.batch.to_pylist() for raw in reader.read({})]
[[{'t': 1, 'id': 7}], [{'t': 2, 'id': 8}]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from caesura.errors import DataError, PlanError, closest
from caesura.io.ingress.clock import to_ticks
from caesura.io.places import Place
from caesura.io.sources.file_parts import lines_of
from caesura.io.sources.formats import CSV, JSON, PARQUET, Format, encoding_advice, for_columns, looks_like
from caesura.io.sources.memory import BATCH, in_lane
from caesura.io.sources.passed import BEFORE, FileState, PassedFiles, displaced
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.pruning import Pruning, ValueRange
from caesura.io.sources.row_groups import Groups, RowGroupRange, unread, wanted_first
from caesura.plan import Raw
from caesura.punctuation import INFINITY

BY_LINES = (CSV.name, JSON.name)
"""Formats whose files may be appended to."""
BATCH_BYTES = 64 << 20
"""Batches that grow do so up to about this size."""


class FileReader(Reader):
    """A file, or the files of a folder."""

    spark_form = "files"
    put_back = (
        "Put the files back as they were, with the times at which they were written (cp -p), and give new "
        "rows in files whose names sort behind; or start anew without the saved state."
    )

    @property
    def as_files(self) -> FileReader:
        return self

    @property
    def set_aside(self) -> set[str]:
        """None: what cannot be read stops the query."""
        return set()

    def __init__(
        self,
        path: str | Path | Place,
        format: Format,
        *,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        batch_size: int = BATCH,
        inferred: bool = False,
    ) -> None:
        self.path = Place.of(path)
        self._passed = PassedFiles()
        self._last_part: tuple[Any, Mapping[str, int]] = ((), {})
        self.format = format if schema is None else for_columns(format, schema)
        self._declared = schema is not None and not inferred
        self.batch_size = batch_size
        self._batch_bytes: int | None = None
        """How large a batch may become that is larger than it was asked to be."""
        files = self.files()
        if schema is None:
            if not files:
                raise DataError(
                    f"the folder '{self.path}' holds no {self.format.name} file to take a schema from.",
                    remedy=f"Put a file ending in {' or '.join(format.endings)} there, or give schema=.",
                )
            schema = self._first_schema(files)
        self.schema = _pruned(schema, columns, str(self.path))
        self.complete = self.path.is_file()
        self.prunes = format.name == "Parquet"
        self.key = self._named()

    def _named(self) -> str:
        """What it is known by."""
        return f"{self.format.name}:{self.path.identity}:{','.join(self.schema.names)}:{self.batch_size}"

    def _first_schema(self, files: list[Place]) -> pa.Schema:
        return self._schema_of(files[0])

    def _schema_of(self, file: Place) -> pa.Schema:
        if self.format.rows is None and file.size == 0:
            raise DataError(
                f"the file '{file}' is empty, so nothing tells its columns.",
                remedy="Give schema=, or let it begin with a line that does.",
            )
        return self._open(file, self.format.schema)

    def files(self) -> list[Place]:
        """The files there are now, in reading order."""
        if not self.path.exists():
            where = "" if self.path.local is None else f"; this one is looked up in '{Path.cwd()}'"
            raise DataError(
                f"there is no file or folder '{self.path}'.", remedy=f"Give a path that exists{where}."
            )
        if self.path.is_file():
            return [self.path]
        some = [f for f in self.path.files() if not f.name.startswith((".", "_"))]
        mine = [f for f in some if f.name.endswith(self.format.endings)]
        if some and not mine:
            raise DataError(
                f"the folder '{self.path}' holds no {self.format.name} file, but others such as "
                f"'{min(f.name for f in some)}'.",
                remedy=f"Read them with cz.read.csv or cz.read.json if they are such, or rename them: "
                f"{self.format.name} files end in {' or '.join(self.format.endings)}.",
            )
        return mine

    def latest(self) -> Offsets | None:
        if self.format.rows is None:
            return None
        return {0: sum(self._open(file, self.format.rows) for file in self.files())}

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        offset = offsets.get(0, 0)
        known = self._passed.up_to(offset)
        part = self._part_read(offset) if known else {}
        return {**known, **part, BEFORE: self._passed.before_last(offset)} if part else known

    def _part_read(self, offset: int) -> Mapping[str, int]:
        """What lets a start tell that the file read last has only grown: it may be told then that it may."""
        name, state = self._passed.last_up_to(offset)
        if state is None or self.format.name not in BY_LINES:
            return {}
        if self._last_part[0] != (name, state):
            file = self.path if self.path.is_file() else self.path / name
            known, now = lines_of(file, state[0]), file.entry()
            same = now is not None and (now.size, now.changed) == state
            self._last_part = (name, state), known if same else {}
        return self._last_part[1]

    def displaced(self, passed: Mapping[str, int]) -> str:
        if not passed:
            return ""
        files, states = self.files(), self._states()
        why = displaced(passed, {file.name: states.get(file.name) for file in files})
        return f"in '{self.path}' {why}" if why else ""

    def _states(self) -> Mapping[str, FileState]:
        """By name, what tells that a file is the same."""
        own = self.path.entry()
        entries = [own] if own is not None and own.is_file else self.path.entries()
        return {entry.name: (entry.size, entry.changed) for entry in entries}

    def _coming_by(self) -> Iterator[tuple[Place, Callable[[int], PassedFiles]]]:
        """The files in reading order; whoever reads says at which row each begins."""
        self._passed = passed = PassedFiles()
        files, states = self.files(), self._states()

        def begins(file: Place, row: int) -> PassedFiles:
            passed.add(file.name, row, states.get(file.name))
            return passed

        return ((file, partial(begins, file)) for file in files)

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        skip = offsets.get(0, 0)
        offset = 0
        for file, begins in self._coming_by():
            begins(offset)
            if self.format.rows is not None and skip > offset:
                rows = self._open(file, self.format.rows)
                if offset + rows <= skip:
                    offset += rows
                    continue
            for batch in self._batches(file):
                for raw in in_lane([batch], max(0, skip - offset), self.batch_size):
                    yield Raw(0, offset + raw.offset, raw.batch)
                offset += batch.num_rows

    def read_pruned(self, offsets: Offsets, pruning: Pruning) -> Iterator[Raw]:
        """As `read`, without the row groups all of whose rows will be ignored by the time they are due.

        What is not read still counts for the lane's time, by its statistics. Row groups with rows that are
        wanted come first, where that changes nothing else.
        """
        known = dict(offsets)
        before: Groups | None = None
        for part in wanted_first(self._parts(known, pruning.time), pruning):
            if before is not None and before is not part.groups:
                before.close()
            before = part.groups
            yield from self._rows_of(part, unread(known, part.start, part.rows), pruning)
        if before is not None:
            before.close()

    def _parts(self, offsets: Offsets, time: str) -> Iterator[RowGroupRange]:
        """What is left to read of the files, in their order."""
        start = 0
        for file, begins in self._coming_by():
            begins(start)
            opened: Groups = self._open(file, lambda f: Groups(f, self.schema))
            left = unread(offsets, start, opened.rows) < opened.rows
            if left:
                self._compare(file, self._open(file, self.format.schema))
            for part in opened.parts(self.batch_size, start, time) if left else ():
                if unread(offsets, part.start, part.rows) < part.rows:
                    yield part
            start += opened.rows

    def _rows_of(self, part: RowGroupRange, skip: int, pruning: Pruning) -> Iterator[Raw]:
        """The rows of a part but for the first ones, or how many were left out."""
        if not pruning.active:
            yield from self._read_part(part, skip)
            return
        for piece, ignored in part.split(pruning.ignores):
            before = min(piece.rows, max(0, skip - (piece.start - part.start)))
            if ignored and not before:
                pruning.saved(piece.rows, piece.groups.weight(piece.run), len(piece.run))
                nothing = pa.RecordBatch.from_pylist([], self.schema)
                top = piece.spans[pruning.time].greatest
                yield Raw(0, piece.start, nothing, skipped=piece.rows, top=top)
            elif before < piece.rows:
                yield from self._read_part(piece, before)

    def _read_part(self, part: RowGroupRange, skip: int) -> Iterator[Raw]:
        wide = None if self._batch_bytes is None else part.groups.rows_in(part.run, self._batch_bytes)
        size = self.batch_size if wide is None else min(self.batch_size, max(wide, BATCH))
        batches, at = part.groups.batches(part.run, size), 0
        while (batch := self._open(part.groups.path, partial(_following, batches))) is not None:
            for raw in in_lane([_cast(batch, self.schema)], max(0, skip - at), self.batch_size):
                yield replace(raw, offset=part.start + at + raw.offset)
            at += batch.num_rows

    def narrowed(self, columns: Sequence[str]) -> Self:
        """The same files, of which only these columns are read."""
        other = copy(self)
        other.format = for_columns(self.format, self.schema)
        other.schema = _pruned(self.schema, columns, str(self.path))
        other.key = other._named()
        return other

    def batched(self, rows: int) -> FileReader:
        """The same files in larger batches, unless a size was asked for."""
        if self.batch_size != BATCH:
            return self
        other = copy(self)
        other.batch_size, other._batch_bytes = max(rows, BATCH), BATCH_BYTES
        return other

    @property
    def folder(self) -> str:
        return self.path.hadoop

    @property
    def suffixes(self) -> tuple[str, ...]:
        return self.format.endings

    def first_time(self, uri: str, time: str) -> int | None:
        """By a file's statistics, or else in its first rows."""
        file = Place.of(uri)
        if self.format.name == "Parquet":
            opened: Groups = self._open(file, lambda f: Groups(f, self.schema))
            spans = [opened.spans(run, time).get(time) for run in opened.runs(self.batch_size)]
            opened.close()
            if spans and all(span is not None and span.least is not None for span in spans):
                return min(int(span.least) for span in spans if span is not None)
        first = next(self._batches(file), None)
        if first is None or first.num_rows == 0:
            return None
        return int(to_ticks(first.column(time), INFINITY).min())

    def spans(self, uri: str, time: str) -> tuple[dict[str, ValueRange], int, int]:
        file = Place.of(uri)
        opened: Groups = self._open(file, lambda f: Groups(f, self.schema))
        whole = [group for run in opened.runs(self.batch_size) for group in run]
        return (opened.spans(whole, time) if whole else {}), opened.rows, file.size

    def read_file(self, uri: str, pruning: Pruning | None = None) -> Iterator[Raw]:
        file = Place.of(uri)
        if pruning is not None and self.format.name == "Parquet":
            opened: Groups = self._open(file, lambda f: Groups(f, self.schema))
            self._compare(file, self._open(file, self.format.schema))
            for part in wanted_first(opened.parts(self.batch_size, 0, pruning.time), pruning):
                yield from self._rows_of(part, 0, pruning)
            opened.close()
            return
        offset = 0
        for batch in self._batches(file):
            yield Raw(0, offset, batch)
            offset += batch.num_rows

    def _batches(self, file: Place) -> Iterator[pa.RecordBatch]:
        if self.format.rows is None and file.size == 0:
            return  # a text file without a line has no rows
        found = self._open(file, self.format.schema)
        self._compare(file, found)
        batches = self.format.batches(file, self.schema, self.batch_size)

        def following(_: Place) -> pa.RecordBatch | None:
            batch = next(batches, None)
            return None if batch is None else _cast(batch, self.schema)

        while (batch := self._open(file, following)) is not None:
            yield batch

    def _compare(self, file: Place, found: pa.Schema) -> None:
        for wanted in self.schema:
            if wanted.name not in found.names:
                told, way = ("schema= names", "leave it out of schema=, and of what the plan reads")
                if not self._declared:
                    told, way = ("the first file has", "name with columns= those that all have")
                raise DataError(
                    f"file '{file}' has no column '{wanted.name}', which {told}.",
                    remedy=f"{closest(wanted.name, found.names)} Make all files alike, or {way}.",
                )
            got = found.field(wanted.name).type
            if got != wanted.type and not pa.types.is_null(got) and not self.format.fits(got, wanted.type):
                there = "is {} in schema=" if self._declared else "was {} before"
                raise DataError(
                    f"file '{file}' has '{wanted.name}' as {got}, but it {there.format(wanted.type)}.",
                    remedy=self._typed_alike(wanted, got),
                )

    def _typed_alike(self, wanted: pa.Field, got: pa.DataType) -> str:
        """What to do about a file whose values have another type."""
        if not self._declared:
            return "Make all files alike, or give schema= with a type that fits all of them."
        if self.format.fits(wanted.type, pa.string()) and self.format.fits(got, pa.string()):
            return (
                f"Mend the file; or take '{wanted.name}' as pa.string() in schema=, and cast it behind: "
                f"col('{wanted.name}').cast(...)."
            )
        return f"Mend the file, or write its type in schema=: {got}."

    def _open(self, file: Place, how: Callable[[Place], Any]) -> Any:
        """Does something with a file; what goes wrong becomes a diagnostic that names it."""
        try:
            return how(file)
        except (pa.ArrowException, OSError, ValueError) as error:
            told = _plain(error)
            advice = looks_like(file, self.format.name) or encoding_advice(file, self.format.name, told)
            raise DataError(
                f"'{file}' cannot be read as {self.format.name}: {told}.",
                remedy=advice or "Mend the file, or take it away.",
            ) from None

    def describe(self) -> str:
        return f"{self.format.name} '{self.path}'"


def _following(batches: Iterator[pa.RecordBatch], _: Place) -> pa.RecordBatch | None:
    return next(batches, None)


def _plain(error: Exception) -> str:
    """The first line of a library's message, without what cannot be printed."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return "".join(c if c.isprintable() else "?" for c in line)[:160].rstrip(". :?")


def _pruned(schema: pa.Schema, columns: Sequence[str] | None, path: str) -> pa.Schema:
    if columns is None:
        return schema.remove_metadata()
    for name in columns:
        if name not in schema.names:
            raise PlanError(f"'{path}' has no column '{name}'.", remedy=closest(name, schema.names))
    return pa.schema([schema.field(name) for name in dict.fromkeys(columns)])


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    columns = [batch.column(f.name).cast(f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


__all__ = ["CSV", "JSON", "PARQUET", "FileReader", "Format"]
