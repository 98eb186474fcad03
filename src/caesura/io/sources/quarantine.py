"""What cannot be read of a folder is set aside in it, with its reason and place, and given back once mended.

    clicks/04.csv                        has a line 7 that is none
    clicks/_quarantine/04.csv.7.a1b2c3.csv      that line, and others near it: mended here
    clicks/_quarantine/04.csv.7.a1b2c3.json     which lines of which file they are, and why
    clicks/_quarantine/03.parquet.a1b2c3.json   a whole file that cannot be read: mended where it lies
    clicks/09.csv~0001.csv                      what was given back: a new file behind all that are there

``a1b2c3`` stands for the columns that were to be read: what is bad under some is good under others.

A file that is set aside stays so, whatever it holds later: queries count it as one row that could not be
read, so that offsets and epochs that run again stay what they were. Its rows come back as a new file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.json_files import parsed

OnBad = Literal["stop", "quarantine", "late"]
"""What becomes of a file or a line that cannot be read."""
FOLDER = "_quarantine"
RECORD = ".json"
FORMAT = 1
WANTS = ("version", "file", "format", "schema", "reason", "lines", "header", "ending", "given_back", "done")
REMEDY = "Put back the file as it was; or take it away, and its rows are read as if nothing were set aside."


@dataclass(frozen=True)
class BadLine:
    """A line that cannot be read."""

    line: int
    reason: str


@dataclass(frozen=True)
class SetAside:
    """A file that cannot be read, or some lines of one."""

    file: str
    format: str
    """The name of the format it is read as."""
    schema: str
    reason: str = ""
    lines: tuple[BadLine, ...] = ()
    """The lines; none of a whole file."""
    header: str = ""
    """What a file of such lines begins with."""
    ending: str = ""
    given_back: str = ""
    """The file that its rows come back in."""
    done: bool = False
    """Whether that file is there: who was cut off before that makes it again."""
    version: int = FORMAT

    @staticmethod
    def of(file: Place, format: str, schema: pa.Schema, **more: Any) -> SetAside:
        return SetAside(file.name, format, _written(schema), **more)

    @staticmethod
    def read(record: Place) -> SetAside | None:
        try:
            content = parsed(record.read_bytes().decode(errors="replace"), record, REMEDY, wants=WANTS)
        except FileNotFoundError:
            return None
        if content["version"] > FORMAT:
            raise StreamError(
                f"'{record}' was written by a later version of Caesura.",
                remedy="Read the folder with that version.",
            )
        lines = tuple(BadLine(**line) for line in content.pop("lines"))
        return SetAside(**content, lines=lines)

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @property
    def columns(self) -> pa.Schema:
        """The columns that its rows must have."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema)))

    @property
    def name(self) -> str:
        """What it goes by in the folder."""
        line = f".{self.lines[0].line}" if self.lines else ""
        return f"{self.file}{line}.{_tag(self.schema)}"


class Quarantine:
    """What is set aside in a folder."""

    def __init__(self, folder: Place, schema: pa.Schema | None = None) -> None:
        self.folder = folder
        self.place = folder / FOLDER
        self._tag = "" if schema is None else _tag(_written(schema))
        """Of what is read with some columns; empty for all that is there."""

    @staticmethod
    def beside(file: Place, schema: pa.Schema) -> Quarantine:
        """That of the folder in which a file lies."""
        return Quarantine(file.parent, schema)

    def whole(self, file: Place) -> SetAside | None:
        """What is known of a file that is set aside; None of one that is read."""
        return SetAside.read(self.record(f"{file.name}.{self._tag}"))

    def record(self, name: str) -> Place:
        return self.place / f"{name}{RECORD}"

    def text(self, some: SetAside) -> Place:
        """The lines that are set aside, as a file of their format."""
        return self.place / f"{some.name}{some.ending}"

    def put(self, some: SetAside) -> SetAside:
        """Sets a whole file aside; gives what counts, which may have been written before."""
        record = self.record(some.name)
        record.create(some.to_bytes())
        known = SetAside.read(record)
        assert known is not None
        return known

    def put_lines(self, some: SetAside, bad: Mapping[int, str], texts: Sequence[bytes]) -> SetAside:
        """Sets lines aside, each by its number with the reason; the record counts, and is written last."""
        made = replace(some, lines=tuple(BadLine(line, why) for line, why in bad.items()))
        if not self.record(made.name).exists():
            begin = [made.header.encode()] if made.header else []
            self.text(made).put(b"\n".join([*begin, *texts, b""]))
        return self.put(made)

    def entries(self) -> Iterator[SetAside]:
        """What is set aside, by name; also what was given back."""
        for record in self.place.files(f"{self._tag}{RECORD}"):
            some = SetAside.read(record)
            if some is not None:
                yield some

    def behind(self, ending: str) -> Place:
        """A name that stands behind all files that are there, and before any that follows those."""
        names = [f.name for f in self.folder.files() if not f.name.startswith((".", "_"))]
        last = max(names, default="")
        if (before := re.fullmatch(rf"(.*~)(\d{{4}}){re.escape(ending)}", last)) is not None:
            return self.folder / f"{before[1]}{int(before[2]) + 1:04d}{ending}"
        return self.folder / f"{last}~0001{ending}"


def _written(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _tag(schema: str) -> str:
    return hashlib.sha256(schema.encode()).hexdigest()[:6]
