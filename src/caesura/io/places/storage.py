"""What a place asks of whatever holds its files: whole objects, read, listed, put and removed.

A put replaces an object as a whole, or makes one that was not there before; nothing is ever renamed, and
nobody sees half of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class StoredEntry:
    """A file or a folder, as a listing shows it."""

    name: str
    is_file: bool
    size: int = 0
    changed: int = 0
    """When it was last written, in nanoseconds."""


class Storage(Protocol):
    """A file system or an object store."""

    def shown(self, path: str) -> str:
        """A path in it as a user would write it."""

    def identity(self, path: str) -> str:
        """The same for every spelling of a path, from whatever folder it is looked up."""

    def read(self, path: str) -> bytes:
        """All of a file; FileNotFoundError where there is none."""

    def open(self, path: str) -> Any:
        """What Arrow opens: a path on this machine, or a file object that reads parts."""

    def put(self, path: str, data: bytes, *, fresh: bool, private: bool) -> None:
        """Writes a whole file; where it must be ``fresh`` and is there, FileExistsError."""

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> bytes:
        """Replaces a file by what ``change`` makes of it, and gives that; nobody else's update comes between.

        It gets None where there is no file, and may be called again.
        """

    def remove(self, path: str) -> None:
        """Takes a file away; one that is not there is no error."""

    def entry(self, path: str) -> StoredEntry | None:
        """What lies there; None for nothing."""

    def entries(self, path: str) -> list[StoredEntry]:
        """What lies in a folder, sorted by name; nothing where there is no folder."""

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it, where folders have to be made."""

    def reach(self, path: str) -> None:
        """Refuses a path that nothing can be written to, before anything is made."""
