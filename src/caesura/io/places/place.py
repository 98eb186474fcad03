"""A place: a path or a URI that a user gives, the same on the driver, in workers and in process.

A plain path and ``file://`` are files of this machine; ``s3://`` (or ``s3a://``), ``gs://`` and ``abfss://``
are object stores; ``memory://`` is one of this process. Every write is one put of a whole file: `put`
replaces, `create` has one winner among all who try, `update` loses nobody's.

>>> import tempfile
>>> folder = Place.of(tempfile.mkdtemp()) / "commits"
>>> (folder / "7.json").create(b"mine"), (folder / "7.json").create(b"yours")
(True, False)
>>> [(file.name, file.read_text()) for file in folder.files(".json")]
[('7.json', 'mine')]
>>> Place.of("hdfs://namenode/clicks")
Traceback (most recent call last):
...
caesura.errors.PlanError: 'hdfs://namenode/clicks' lies in a store that Caesura cannot use: 'hdfs'.
Copy it to a folder, or to s3://, gs:// or abfss://; or let Spark read it: cz.from_spark(...).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from caesura.errors import DataError, PlanError
from caesura.io.places.local import PART, LocalStorage
from caesura.io.places.objects import CANONICAL, ObjectStorage
from caesura.io.places.storage import Storage, StoredEntry

OBJECTS = ("s3", "gs", "abfss", "memory")
URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
LOCAL = LocalStorage()


@dataclass(frozen=True)
class Place:
    """A file or a folder, wherever it lies."""

    storage: Storage
    path: str

    @staticmethod
    def of(given: str | Path | Place) -> Place:
        """The place that a path or a URI names; a scheme that nothing can be written to is refused."""
        if isinstance(given, Place):
            return given
        text = os.fspath(given)
        if isinstance(given, Path) and text.partition(":/")[0] in NAMED:
            raise PlanError(
                f"Path('{text}') is a path on this machine, and no URI.", remedy="Give the URI as a text."
            )
        if text.startswith("file:"):
            return Place(LOCAL, unquote(urlparse(text).path) or "/")
        uri = URI.match(text)
        if uri is None:
            return Place(LOCAL, str(Path(text)))
        scheme = uri[1].lower()
        if CANONICAL.get(scheme, scheme) not in OBJECTS:
            raise _unknown(text, scheme)
        root, _, path = text[uri.end() :].partition("/")
        if not root:
            raise DataError(
                f"'{text}' names no bucket.",
                remedy=f"Write {scheme}://BUCKET/FOLDER, e.g. {scheme}://data/out.",
            )
        return Place(ObjectStorage(scheme, root), "/".join(part for part in path.split("/") if part))

    # -- its name ---------------------------------------------------------------------------------------

    def __truediv__(self, name: str) -> Place:
        if self.local is not None:
            return Place(self.storage, str(self.local / name))
        return Place(self.storage, f"{self.path}/{name}" if self.path else name)

    def __str__(self) -> str:
        return self.storage.shown(self.path)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Place:
        """The folder that it lies in."""
        if self.local is not None:
            return Place(self.storage, str(self.local.parent))
        return Place(self.storage, self.path.rpartition("/")[0])

    @property
    def stem(self) -> str:
        """The name without its last ending."""
        return Path(self.name).stem

    @property
    def identity(self) -> str:
        """The same text for every spelling of one place."""
        return self.storage.identity(self.path)

    @property
    def local(self) -> Path | None:
        """The path on this machine; None of an object store."""
        return Path(self.path) if isinstance(self.storage, LocalStorage) else None

    def absolute(self) -> Place:
        """The same place, wherever a process that is given it was started."""
        return self if self.local is None else Place(self.storage, str(self.local.absolute()))

    def on_this_machine(self, what: str) -> Path:
        """The path, for what can lie in no object store."""
        if self.local is None:
            raise PlanError(f"{what} cannot lie in '{self}'.", remedy="Give a folder on this machine.")
        return self.local

    @property
    def hadoop(self) -> str:
        """The place in the words of Spark's own file systems."""
        identity = self.identity
        return f"s3a{identity[2:]}" if identity.startswith("s3://") else identity

    # -- what lies there --------------------------------------------------------------------------------

    def entry(self) -> StoredEntry | None:
        """Size and time of what lies there; None for nothing."""
        return self.storage.entry(self.path)

    def exists(self) -> bool:
        return self.entry() is not None

    def is_file(self) -> bool:
        found = self.entry()
        return found is not None and found.is_file

    def is_folder(self) -> bool:
        found = self.entry()
        return found is not None and not found.is_file

    @property
    def size(self) -> int:
        """How many bytes a file has; 0 where there is none."""
        found = self.entry()
        return 0 if found is None else found.size

    def entries(self) -> list[StoredEntry]:
        """What lies in a folder, by name."""
        return self.storage.entries(self.path)

    def files(self, ending: str = "") -> list[Place]:
        """The files of a folder whose names end so, by name."""
        return [self / e.name for e in self.entries() if e.is_file and e.name.endswith(ending)]

    def files_below(self, ending: str = "") -> list[Place]:
        """The files of a folder and of the folders in it whose names end so."""
        found = []
        for entry in self.entries():
            here = self / entry.name
            if not entry.is_file:
                found += here.files_below(ending)
            elif entry.name.endswith(ending):
                found.append(here)
        return found

    def read_bytes(self) -> bytes:
        with self._named():
            return self.storage.read(self.path)

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def first_bytes(self, count: int) -> bytes:
        """The beginning of a file."""
        with self.local.open("rb") if self.local is not None else self.open() as file:
            return bytes(file.read(count))

    def open(self) -> Any:
        """What Arrow reads: a path, or a file object."""
        return self.storage.open(self.path)

    # -- writing ----------------------------------------------------------------------------------------

    def put(self, data: bytes, *, private: bool = False) -> None:
        """Writes the file as a whole, in place of what was there; a private one is for its owner's eyes."""
        with self._named():
            self.storage.put(self.path, data, fresh=False, private=private)

    def create(self, data: bytes, *, private: bool = False) -> bool:
        """Writes the file as a whole unless it is there; among all who try, one is told True."""
        try:
            with self._named():
                self.storage.put(self.path, data, fresh=True, private=private)
        except FileExistsError:
            return False
        return True

    def update(self, change: Callable[[bytes | None], bytes]) -> bytes:
        """Replaces the file by what is made of it, and gives that; no other update comes between.

        ``change`` gets None where there is no file, and may be called again.
        """
        with self._named():
            return self.storage.update(self.path, change)

    def remove(self) -> None:
        """Takes the file away, if it is there."""
        with self._named():
            self.storage.remove(self.path)

    def make_folder(self) -> None:
        """Makes the folder, where folders have to be made."""
        with self._named():
            self.storage.make_folder(self.path)

    def reach(self) -> Place:
        """The place itself; refuses one that nothing can be written to, before anything is made."""
        self.storage.reach(self.path)
        return self

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What the machine refuses names the path: a full disk alone does not say where it is."""
        try:
            yield
        except OSError as error:
            unnamed = error.filename is None and error.errno is not None
            if unnamed or str(error.filename).endswith(PART):
                error.filename = str(self)
            raise


NAMED = {*OBJECTS, *CANONICAL, "hdfs", "http", "https", "ftp"}


def _unknown(text: str, scheme: str) -> PlanError:
    spark = "; or let Spark read it: cz.from_spark(...)" if scheme in ("hdfs", "wasbs", "dbfs") else ""
    return PlanError(
        f"'{text}' lies in a store that Caesura cannot use: '{scheme}'.",
        remedy=f"Copy it to a folder, or to s3://, gs:// or abfss://{spark}.",
    )
