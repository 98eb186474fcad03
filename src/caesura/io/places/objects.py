"""Object stores: each put is one request, so an object appears whole; one that must be new has one winner.

Keys, regions and endpoints come from the environment, as the store's own tools take them
(``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``, ...), the same on every machine. ``memory://name`` is a store of
this process.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from caesura.errors import StreamError
from caesura.io.places.storage import StoredEntry

ENVIRONMENT = {
    "s3": "AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "abfss": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Where each kind of store finds its keys."""
CANONICAL = {"s3a": "s3", "abfs": "abfss", "gcs": "gs"}
"""Other names of a scheme."""
RETRIES: dict[str, Any] = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
}
"""How long a request is tried again that a store did not answer."""
BUFFER = 1 << 20


@dataclass(frozen=True)
class ObjectStorage:
    """A bucket or container, by the scheme and the name that a URI has for it."""

    scheme: str
    root: str

    def shown(self, path: str) -> str:
        return f"{self.scheme}://{self.root}/{path}".rstrip("/")

    def identity(self, path: str) -> str:
        return f"{CANONICAL.get(self.scheme, self.scheme)}://{self.root}/{path}"

    def read(self, path: str) -> bytes:
        obstore = _obstore(self.shown(path))
        with self._asking(path, "read"):
            return bytes(obstore.get(self._store, path).bytes())

    def open(self, path: str) -> Any:
        return io.BufferedReader(ObjectFile(self, path), BUFFER)

    def part(self, path: str, start: int, end: int) -> bytes:
        """The bytes of an object from one place to another."""
        obstore = _obstore(self.shown(path))
        with self._asking(path, "read"):
            return bytes(obstore.get_range(self._store, path, start=start, end=end))

    def put(self, path: str, data: bytes, *, fresh: bool, private: bool) -> None:
        obstore = _obstore(self.shown(path))
        with self._asking(path, "written"):
            obstore.put(self._store, path, data, mode="create" if fresh else "overwrite", use_multipart=False)

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> bytes:
        """Puts with if-match, or create-only, until no other put has come between."""
        obstore = _obstore(self.shown(path))
        lost = (obstore.exceptions.PreconditionError, obstore.exceptions.AlreadyExistsError)
        while True:
            held, mode = self._held(path)
            data = change(held)
            try:
                with self._asking(path, "written", passes=lost):
                    obstore.put(self._store, path, data, mode=mode, use_multipart=False)
            except lost:
                continue
            return data

    def _held(self, path: str) -> tuple[bytes | None, Any]:
        """An object, and the mode of a put that replaces it and no later one."""
        obstore = _obstore(self.shown(path))
        try:
            with self._asking(path, "read"):
                found = obstore.get(self._store, path)
                marks = {name: found.meta.get(name) for name in ("e_tag", "version")}
                return bytes(found.bytes()), {name: mark for name, mark in marks.items() if mark}
        except FileNotFoundError:
            return None, "create"

    def remove(self, path: str) -> None:
        obstore = _obstore(self.shown(path))
        try:
            with self._asking(path, "removed"):
                obstore.delete(self._store, path)
        except FileNotFoundError:
            return

    def entry(self, path: str) -> StoredEntry | None:
        obstore = _obstore(self.shown(path))
        if path:
            try:
                with self._asking(path, "read"):
                    return _entry(dict(obstore.head(self._store, path)))
            except FileNotFoundError:
                pass
        return StoredEntry(path.rpartition("/")[2], False) if self.entries(path) else None

    def entries(self, path: str) -> list[StoredEntry]:
        obstore = _obstore(self.shown(path))
        with self._asking(path, "read"):
            found = obstore.list_with_delimiter(self._store, path or None)
        files = [_entry(dict(one)) for one in found["objects"]]
        folders = [StoredEntry(one.rpartition("/")[2], False) for one in found["common_prefixes"]]
        return sorted((e for e in (*files, *folders) if e.name), key=lambda e: e.name)

    def make_folder(self, path: str) -> None:
        return

    def reach(self, path: str) -> None:
        self.entries(path)

    @property
    def _store(self) -> Any:
        return _opened(CANONICAL.get(self.scheme, self.scheme), self.root)

    @contextmanager
    def _asking(self, path: str, done: str, *, passes: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """A store's own errors as ours, or as those that a file system has for what is there or is not."""
        exceptions = _obstore(self.shown(path)).exceptions
        try:
            yield
        except passes:
            raise
        except exceptions.AlreadyExistsError:
            raise FileExistsError(errno.EEXIST, "it is there", self.shown(path)) from None
        except (exceptions.BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError) and "bucket" not in str(error).lower():
                raise FileNotFoundError(errno.ENOENT, "nothing is there", self.shown(path)) from None
            raise self._unreachable(path, done, error) from error

    def _unreachable(self, path: str, done: str, error: Exception) -> StreamError:
        keys = ENVIRONMENT.get(CANONICAL.get(self.scheme, self.scheme), "")
        look = f", and {keys} in the environment of every process" if keys else ""
        return StreamError(
            f"'{self.shown(path)}' cannot be {done}: {_first_line(error)}.",
            remedy=f"Look at the name '{self.root}'{look}; what was written before is whole.",
        )


class ObjectFile(io.RawIOBase):
    """An object as a file that is read in parts."""

    def __init__(self, storage: ObjectStorage, path: str) -> None:
        found = storage.entry(path)
        if found is None or not found.is_file:
            raise FileNotFoundError(errno.ENOENT, "nothing is there", storage.shown(path))
        self._storage, self._path, self._size, self._at = storage, path, found.size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._size, self._at + len(buffer))
        if end <= self._at:
            return 0
        data = self._storage.part(self._path, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _entry(about: dict[str, Any]) -> StoredEntry:
    changed = int(about["last_modified"].timestamp() * 1e9)
    return StoredEntry(str(about["path"]).rpartition("/")[2], True, int(about["size"]), changed)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(". ")[:300]


def _obstore(shown: str) -> Any:
    try:
        import obstore
        import obstore.exceptions
    except ImportError as error:
        raise StreamError(
            f"'{shown}' lies in an object store, and the package 'obstore' is not installed.",
            remedy="Install it with: pip install 'caesura[objects]'; or give a folder on this machine.",
        ) from error
    return obstore


@cache
def _opened(scheme: str, root: str) -> Any:
    """The store, once per process."""
    from obstore.store import MemoryStore, from_url

    if scheme == "memory":
        return MemoryStore()
    plain = scheme == "s3" and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    options: dict[str, Any] = {"client_options": {"allow_http": True}} if plain else {}
    made: Any = from_url
    return made(f"{scheme}://{root}", retry_config=RETRIES, **options)
