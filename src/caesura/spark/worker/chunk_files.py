"""Large chunks of a bucket's state lie in files at the checkpoint's place, which the state store names.

A file is whole before the row that names it, with its length and hash, is written: so the version of the
store decides which files count, and an attempt that failed leaves files that nobody names. A file goes when
no version that Spark retains can name it.

>>> import tempfile
>>> files = ChunkFiles(Place.of(tempfile.mkdtemp()), "1-0", epoch=7, attempt=0, retained=100)
>>> row, small = files.save(FileRow(), {"rows": b"r" * INLINE, "note": b"n"})
>>> sorted(row.named), small
(['rows'], {'rows': None, 'note': b'n'})
>>> read_named(files.place, FileRow.of_text(row.text()))["rows"] == b"r" * INLINE
True
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from caesura.errors import StreamError
from caesura.events.chunks import Chunks, damaged, later
from caesura.io.places import Place

FOLDER = "chunks"
"""Where the files lie, in the folder of a checkpoint."""
INLINE = 64 << 10
"""Chunks of fewer bytes lie in the state store itself."""
ROW_FORMAT = 1
NAME = re.compile(r"\d+-\d+/\d{9,}-\d+-[0-9a-f]{12}-\d+")
"""Stage and bucket, epoch, attempt, nonce, number."""
MARGIN = 2
"""So many epochs more than Spark retains a file stays: the epoch at work, and the one that may run again."""
AT_ONCE = 4
"""So many files are read or written at a time."""
REMEDY = "Put it back from a copy of the checkpoint, or start with a new checkpoint."


class NamedFile(NamedTuple):
    """A file with one chunk in it."""

    name: str
    length: int
    hash: str


@dataclass
class FileRow:
    """What a version of the store says of a bucket's files."""

    named: dict[str, NamedFile] = field(default_factory=dict)
    """By chunk."""
    dropped: dict[int, list[str]] = field(default_factory=dict)
    """By epoch, the files that no version names from it on."""

    @staticmethod
    def of_text(text: str) -> FileRow:
        try:
            content = json.loads(text)
            number = int(content["format"])
            named = {chunk: NamedFile(*about) for chunk, about in content["named"].items()}
            row = FileRow(named, {int(epoch): list(names) for epoch, names in content["dropped"].items()})
            known = all(NAME.fullmatch(name) for name in row.known())
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise damaged("the list of a bucket's files") from error
        if number > ROW_FORMAT:
            raise later("the list of a bucket's files", number, ROW_FORMAT)
        if not known:  # a path that leads elsewhere would be read, and in the end taken away
            raise damaged("the list of a bucket's files")
        return row

    def text(self) -> str:
        return json.dumps({"format": ROW_FORMAT, "named": self.named, "dropped": self.dropped})

    def known(self) -> set[str]:
        """All files that some version may name."""
        return {file.name for file in self.named.values()}.union(*self.dropped.values())


class ChunkFiles:
    """The files of one bucket, as one attempt at an epoch sees and writes them."""

    def __init__(self, place: Place, bucket: str, *, epoch: int, attempt: int, retained: int) -> None:
        self.place, self.bucket, self.epoch, self.retained = place, bucket, epoch, retained
        self._prefix = f"{bucket}/{epoch:09d}-{attempt}-{uuid.uuid4().hex[:12]}"
        self._strays: list[str] = []

    def read(self, row: FileRow) -> dict[str, bytes]:
        """The chunks that the row names. What earlier attempts left, and no version names, is noted too."""
        here = (f"{self.bucket}/{entry.name}" for entry in (self.place / self.bucket).entries())
        self._strays = [name for name in here if _epoch(name) < self.epoch and name not in row.known()]
        return read_named(self.place, row)

    def save(self, row: FileRow, chunks: Chunks) -> tuple[FileRow, Chunks]:
        """Writes what is large, and gives the row that says so, and what else goes into the store.

        Files go that were dropped so long ago that Spark retains no version that names them.
        """
        named, rest = dict(row.named), dict(chunks)
        gone = [named.pop(chunk).name for chunk in chunks if chunk in named]
        large = {n: data for n, data in chunks.items() if data is not None and len(data) >= INLINE}
        if large:
            own = [f"{self._prefix}-{number}" for number in range(len(large))]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                made = list(pool.map(self._put, own, large.values()))
            named.update(zip(large, made, strict=True))
        for chunk in large:
            rest[chunk] = None  # it may have been small before
        dropped = dict(row.dropped)
        if gone or self._strays:
            dropped[self.epoch] = [*dropped.get(self.epoch, []), *gone, *self._strays]
        return FileRow(named, self._purged(dropped)), rest

    def _put(self, name: str, data: bytes) -> NamedFile:
        (self.place / name).put(data, private=True)
        return NamedFile(name, len(data), sha256(data).hexdigest())

    def _purged(self, dropped: Mapping[int, list[str]]) -> dict[int, list[str]]:
        last = self.epoch - self.retained - MARGIN
        _remove(self.place, (name for epoch, names in dropped.items() if epoch < last for name in names))
        return {epoch: names for epoch, names in dropped.items() if epoch >= last}


def read_named(place: Place, row: FileRow) -> dict[str, bytes]:
    """The chunks of a bucket that lie in files, by name; each must be as it was written."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda file: _read(place / file.name), row.named.values())
        return {chunk: _checked(place, file, *next(found)) for chunk, file in row.named.items()}


def _read(file: Place) -> tuple[bytes | None, str]:
    """What a file holds, and its hash; None where there is no file."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None, ""
    return data, sha256(data).hexdigest()


def _checked(place: Place, file: NamedFile, data: bytes | None, found: str) -> bytes:
    if data is None:
        raise MissingFileError(
            f"the state of this checkpoint lies in '{place / file.name}', which is not there.", remedy=REMEDY
        )
    if len(data) != file.length:
        raise StreamError(
            f"'{place / file.name}' has {len(data)} bytes; {file.length} of state were written to it.",
            remedy=REMEDY,
        )
    if found != file.hash:
        raise StreamError(f"'{place / file.name}' is not the state that was written to it.", remedy=REMEDY)
    return data


class MissingFileError(StreamError):
    """A file that a version of the store names is not there; a later version may do without it."""


def _epoch(name: str) -> int:
    """The epoch in which a file was written; never, where its name is none of ours."""
    return int(name.rpartition("/")[2].partition("-")[0]) if NAME.fullmatch(name) else 1 << 62


def _remove(place: Place, names: Iterable[str]) -> None:
    for name in names:
        (place / name).remove()
