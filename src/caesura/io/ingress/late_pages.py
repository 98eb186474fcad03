"""Late rows on disk: when many wait to be asked for, they lie in files, and a snapshot has them all.

The files are in a folder of their own, which goes when its table does; the folder lies where the system
keeps temporary files (``TMPDIR``).
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.chunks import Chunks
from caesura.events.rows import RUN_BYTES, RowState


class LatePages(RowState):
    """Tables of late rows, the oldest first; each is a file, saved once."""

    def __init__(self) -> None:
        super().__init__({})
        self._folder: Path | None = None
        self._files: deque[tuple[str, int]] = deque()
        """(name, rows) of the files there are; of the oldest so many may still wait, the last of it."""
        self._cut = False
        """Whether the oldest has rows that do not."""
        self._fresh: list[str] = []
        self._gone: list[str] = []
        self._number = 0

    @property
    def nbytes(self) -> int:
        """Nothing in memory."""
        return 0

    def put(self, table: pa.Table) -> None:
        """Writes rows behind the others, in files that are small enough for a snapshot."""
        width = max(1, table.nbytes // max(1, table.num_rows))
        step = max(1, RUN_BYTES // width)
        for start in range(0, table.num_rows, step):
            part = table.slice(start, step)
            name = f"{self._number:08d}"
            self._number += 1
            self._write(name, part)
            self._files.append((name, part.num_rows))
            self._fresh.append(name)
            self.live += part.num_rows

    def _write(self, name: str, table: pa.Table) -> None:
        try:
            with pa.ipc.new_file(str(self._place() / name), table.schema) as writer:
                writer.write_table(table)
        except OSError as error:
            raise StreamError(
                f"late rows cannot be put aside in '{tempfile.gettempdir()}': {error.strerror or error}.",
                remedy="Make room where temporary files go (TMPDIR), ask for late rows more often, or set "
                "late_limit=.",
            ) from error

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="caesura-late-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def take(self) -> list[pa.Table]:
        """All rows, out of their files."""
        taken = [self._waiting(name, rows) for name, rows in self._files]
        while self._files:
            self.drop(self._files[0][1])
        return taken

    def peek(self, first: int, count: int) -> list[pa.Table]:
        """Some of the rows, which stay; only the files that have them are opened."""
        found, before = [], 0
        for name, rows in self._files:
            start, end = max(first, before) - before, min(first + count, before + rows) - before
            if start < end:
                found.append(self._waiting(name, rows).slice(start, end - start))
            before += rows
        return found

    def _read(self, name: str) -> pa.Table:
        return pa.ipc.open_file(pa.memory_map(str(self._place() / name))).read_all()

    def _waiting(self, name: str, rows: int) -> pa.Table:
        """The rows of a file that wait."""
        table = self._read(name)
        return table.slice(table.num_rows - rows)

    def drop(self, most: int) -> int:
        """Lets go of the oldest rows, at most so many, and of one file at the most; gives how many."""
        name, rows = self._files.popleft()
        if most < rows:
            self._files.appendleft((name, rows - most))
            self.live -= most
            self._cut = True
            return most
        self._cut = False
        (self._place() / name).unlink()
        if name in self._fresh:
            self._fresh.remove(name)
        else:
            self._gone.append(name)
        self.live -= rows
        return rows

    def snapshot(self) -> Chunks:
        self._trim()
        chunks: Chunks = dict.fromkeys(self._gone)
        chunks |= {name: (self._place() / name).read_bytes() for name in self._fresh}
        self._fresh, self._gone = [], []
        return chunks

    def _trim(self) -> None:
        """Writes the oldest file anew where not all of its rows wait: a snapshot has those that do."""
        if not self._cut:
            return
        name, rows = self._files[0]
        waiting, self._cut = self._waiting(name, rows), False
        (self._place() / name).unlink()  # what is read of it stays readable
        self._write(name, waiting)
        if name not in self._fresh:
            self._fresh.append(name)

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        self._files.clear()
        self.live, self._cut = 0, False
        for name in sorted(chunks):
            (self._place() / name).write_bytes(chunks[name])
            rows = self._read(name).num_rows
            self._files.append((name, rows))
            self.live += rows
            self._number = int(name) + 1
