"""Files of which some, or some lines, cannot be read: those are noted or set aside, and the rest is read.

A file counts only as a whole: it is looked through before its first row is given. A line of text is one row
that is read or not. Whatever cannot be read keeps an offset of its own, so that no other row is counted anew.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "a.csv").write_text("t,id\\n1,7\\n2,x\\n3,9\\n")
>>> schema = pa.schema([("t", pa.int64()), ("id", pa.int64())])
>>> [raw] = LenientFileReader(folder, CSV, schema=schema, on_bad="late").read({})
>>> raw.batch.column("id").to_pylist(), raw.refused[0][0], raw.end
([7, 9], 1, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from caesura.errors import DataError, PlanError
from caesura.io.codecs.json import JsonCodec
from caesura.io.codecs.protocol import RecordDecoder
from caesura.io.ingress.clock import to_ticks
from caesura.io.places import Place
from caesura.io.sources.files import FileReader
from caesura.io.sources.formats import CSV, CsvLines, Format, csv_names, line_blocks
from caesura.io.sources.memory import BATCH
from caesura.io.sources.passed import FileState
from caesura.io.sources.protocol import Offsets
from caesura.io.sources.pruning import Pruning
from caesura.io.sources.quarantine import OnBad, Quarantine, SetAside
from caesura.misuse import check_word
from caesura.plan import Raw
from caesura.punctuation import INFINITY


class LenientFileReader(FileReader):
    """A file, or the files of a folder, without what cannot be read of them."""

    def __init__(
        self,
        path: str | Path | Place,
        format: Format,
        *,
        on_bad: OnBad,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        batch_size: int = BATCH,
    ) -> None:
        check_word(on_bad, get_args(OnBad), "way to treat what is bad", "read")
        self.on_bad = on_bad
        if schema is None and format.rows is None:
            raise PlanError(
                f"on_bad='{on_bad}' needs to know what a good line of {format.name} is.",
                remedy="Give schema= too: where the first lines tell the types, a bad one would change them.",
            )
        super().__init__(path, format, schema=schema, columns=columns, batch_size=batch_size)
        if on_bad == "quarantine" and self.complete:
            raise PlanError(
                f"on_bad='quarantine' reads mended rows as a new file, and '{self.path}' is a single file.",
                remedy="Read its folder, or take on_bad='late'.",
            )
        self.prunes = False
        self._whole = self.schema
        """All columns: what is bad does not depend on which of them a query needs."""

    def _first_schema(self, files: list[Place]) -> pa.Schema:
        """That of the first file that has one."""
        for file in files:
            if self._flaw(file, self._schema_of) is None:
                return self._schema_of(file)
        return super()._first_schema(files)

    def files(self) -> list[Place]:
        """The files there are now, and those set aside that were taken away since: they count too."""
        there = super().files()
        if not hasattr(self, "_whole") or self.path.is_file():
            return there
        missing = self.set_aside - {file.name for file in there}
        return sorted([*there, *(self.path / name for name in missing)], key=lambda file: file.name)

    @property
    def set_aside(self) -> set[str]:
        """The files that are set aside whole."""
        return {some.file for some in Quarantine(self.path, self._whole).entries() if not some.lines}

    def _states(self) -> Mapping[str, FileState]:
        """As of any file; one that is set aside may be mended, or taken away."""
        if self.path.is_file():
            return super()._states()
        return {**super()._states(), **dict.fromkeys(self.set_aside)}

    def latest(self) -> Offsets | None:
        return None

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        skip, start = offsets.get(0, 0), 0
        for file, begins in self._coming_by():
            passed = begins(start)
            rows = self._rows_before(file, skip - start)
            end = start + (rows or 0)
            for raw in self._given(file, fresh=start >= skip) if rows is None else ():
                if raw.offset == 0 and not raw.batch.num_rows and self._quarantine(file).whole(file):
                    passed.set_aside()
                moved = _moved(raw, start)
                end = moved.end
                if moved.offset < skip < end:
                    moved = moved.split(_rows_up_to(moved, skip))[1]
                if moved.end > skip:
                    yield moved
            start = end

    def _rows_before(self, file: Place, left: int) -> int | None:
        """How many rows a file has, if that is cheap to know and all of them were read."""
        if self.format.rows is None or left <= 0:
            return None
        aside = self._quarantine(file).whole(file)
        rows = 1 if aside is not None else self._open(file, self.format.rows)
        return rows if rows <= left else None

    def read_file(self, uri: str, pruning: Pruning | None = None) -> Iterator[Raw]:
        """The rows of a file; or one that could not be read, in the place of all of them."""
        return self._given(Place.of(uri), fresh=True)

    def _given(self, file: Place, *, fresh: bool) -> Iterator[Raw]:
        """What a file gives; one that is not ``fresh`` could be read before, and was counted by its rows."""
        quarantine = self._quarantine(file)
        aside = quarantine.whole(file)
        if aside is None and (error := self._flaw(file, self._look_through)) is not None:
            if not fresh:
                raise error
            aside = quarantine.put(self._about(file, reason=_reason(error, file)))
        if aside is None:
            yield from self._lines(file) if self.format.rows is None else super().read_file(str(file))
            return
        nothing = pa.RecordBatch.from_pylist([], self.schema)
        refused = () if aside.given_back else ((0, f"'{file}' {aside.reason}"),)
        yield Raw(0, 0, nothing, gap=1, refused=refused)

    def tried(self, file: Place) -> tuple[int, str]:
        """How many rows a file would give, or why some of it cannot be read; nothing is set aside."""
        if (error := self._flaw(file, self._look_through)) is not None:
            return 0, error.problem
        if self.format.rows is not None:
            return int(self.format.rows(file)), ""
        raws = list(self._lines(file))
        reasons = [why for raw in raws for _, why in raw.refused]
        return sum(raw.batch.num_rows for raw in raws), reasons[0] if reasons else ""

    def first_time(self, uri: str, time: str) -> int | None:
        for raw in self.read_file(uri):
            if raw.batch.num_rows:
                return int(to_ticks(raw.batch.column(time), INFINITY).min())
        return None

    # -- what is bad ----------------------------------------------------------------------------------

    def _about(self, file: Place, **more: str) -> SetAside:
        return SetAside.of(file, self.format.name, self._whole, **more)

    def _quarantine(self, file: Place) -> Quarantine:
        return Quarantine.beside(file, self._whole)

    def _flaw(self, file: Place, how: Callable[[Place], Any]) -> DataError | None:
        """Why something cannot be done with what a file holds; that its store is away is no such reason."""
        try:
            self._open(file, how)
        except DataError as error:
            cause = error.__context__
            if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno is not None):
                raise
            return error
        return None

    def _look_through(self, file: Place) -> None:
        """Reads a file to its end, for what is wrong with it as a whole."""
        if self.format.rows is not None:
            whole = copy(self)
            whole.schema = self._whole
            for _ in whole._batches(file):
                pass
            return
        first = b""
        for block in line_blocks(file):
            first = first or _first_line(block)
        if first and self.format.name == CSV.name:
            self._compare(file, pa.schema([(name, pa.null()) for name in csv_names(first)]))

    def _lines(self, file: Place) -> Iterator[Raw]:
        """The rows of a file of text; each line that cannot be read is noted, or set aside."""
        decoder: RecordDecoder = JsonCodec(self._whole)
        header, number, offset = "", 0, 0
        for block in line_blocks(file):
            lines: dict[int, bytes] = {}
            for line in block.removesuffix(b"\n").split(b"\n"):
                number += 1
                if line := line.removesuffix(b"\r"):
                    lines[number] = line
            if self.format.name == CSV.name and not header and lines:
                first = lines.pop(next(iter(lines)))
                header = first.decode(errors="replace")
                decoder = CsvLines(csv_names(first), self._whole)
            if lines:
                yield from self._cut(self._decoded(file, decoder, header, lines, offset))
                offset += len(lines)

    def _decoded(
        self, file: Place, decoder: RecordDecoder, header: str, lines: dict[int, bytes], offset: int
    ) -> Raw:
        numbers, texts = list(lines), list(lines.values())
        batch, bad = decoder.decode(texts)
        rows = batch.select(self.schema.names)
        if not bad:
            return Raw(0, offset, rows)
        why = {numbers[at]: reason for at, reason in bad.items()}
        given_back = False
        if self.on_bad == "quarantine":
            about = self._about(file, header=header, ending=self.format.endings[0])
            some = self._quarantine(file).put_lines(about, why, [texts[at] for at in bad])
            given_back = bool(some.given_back)
        refused = [(offset + at, f"'{file}', line {numbers[at]}: {reason}") for at, reason in bad.items()]
        places = offset + np.delete(np.arange(len(texts)), list(bad))
        return Raw(
            0, offset, rows, gap=len(bad), offsets=places, refused=() if given_back else tuple(refused)
        )

    def _cut(self, raw: Raw) -> Iterator[Raw]:
        """The rows in batches."""
        while raw.batch.num_rows > self.batch_size:
            first, raw = raw.split(self.batch_size)
            yield first
        yield raw


def _reason(error: DataError, file: Place) -> str:
    return error.problem.removeprefix("file ").removeprefix(f"'{file}' ").rstrip(".")


def _first_line(block: bytes) -> bytes:
    return next((line for line in (some.rstrip(b"\r") for some in block.split(b"\n")) if line), b"")


def _moved(raw: Raw, by: int) -> Raw:
    """The same rows, counted from further up."""
    offsets = None if raw.offsets is None else raw.offsets + by
    refused = tuple((at + by, reason) for at, reason in raw.refused)
    return replace(raw, offset=raw.offset + by, offsets=offsets, refused=refused)


def _rows_up_to(raw: Raw, offset: int) -> int:
    """How many rows stand before an offset."""
    if raw.offsets is None:
        return min(int(raw.batch.num_rows), offset - raw.offset)
    return int(np.count_nonzero(raw.offsets < offset))
