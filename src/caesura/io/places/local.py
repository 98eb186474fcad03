"""Files on this machine: a put writes beside the file, onto the disk, and links or renames it into place."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from caesura.errors import StreamError
from caesura.io.places.storage import StoredEntry

PART = ".part"
"""How a file ends that is not whole; its name begins with a dot."""
LOCK = f".lock{PART}"
"""How a file ends that is locked while another is updated."""


@dataclass(frozen=True)
class LocalStorage:
    """The file system of this machine."""

    def shown(self, path: str) -> str:
        return path

    def identity(self, path: str) -> str:
        return str(Path(path).resolve())

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def open(self, path: str) -> str:
        return path

    def put(self, path: str, data: bytes, *, fresh: bool, private: bool) -> None:
        file = Path(path)
        if not file.name:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        self.make_folder(str(file.parent))
        partial = file.with_name(f".{file.name}.{uuid.uuid4().hex[:12]}{PART}")
        try:
            _write(partial, data, 0o600 if private else 0o666)
            if fresh:
                os.link(partial, file)
            else:
                partial.replace(file)
        except IsADirectoryError:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path) from None
        finally:
            partial.unlink(missing_ok=True)
        _onto_disk(file.parent)

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> bytes:
        import fcntl

        file = Path(path)
        self.make_folder(str(file.parent))
        with file.with_name(f".{file.name}{LOCK}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            data = change(file.read_bytes() if file.exists() else None)
            self.put(path, data, fresh=False, private=False)
        return data

    def remove(self, path: str) -> None:
        with suppress(NotADirectoryError):
            Path(path).unlink(missing_ok=True)

    def entry(self, path: str) -> StoredEntry | None:
        file = Path(path)
        return _entry(file) if file.exists() else None

    def entries(self, path: str) -> list[StoredEntry]:
        folder = Path(path)
        if not folder.is_dir():
            return []
        here = (f for f in folder.iterdir() if not (f.name.startswith(".") and f.name.endswith(PART)))
        return sorted((_entry(f) for f in here if f.exists()), key=lambda e: e.name)

    def make_folder(self, path: str) -> None:
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder", path) from None

    def reach(self, path: str) -> None:
        above = Path(path).absolute()
        while not above.exists():
            above = above.parent
        if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
            return
        what = "is no folder" if not above.is_dir() else "is not writable"
        raise StreamError(
            f"nothing can be written to '{path}': '{above}' {what}.",
            remedy="Give a folder that can be written to.",
        )


def _entry(file: Path) -> StoredEntry:
    about = file.stat()
    return StoredEntry(file.name, file.is_file(), about.st_size, about.st_mtime_ns)


def _write(file: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _onto_disk(folder: Path) -> None:
    """A name is durable when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
