"""The chunks of a bucket in Spark's state store, and in the files that it names."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StringType, StructField, StructType

if TYPE_CHECKING:
    from caesura.spark.worker.chunk_files import ChunkFiles, FileRow

ROW, STAMP = "@files", "@stamp"
"""The rows that name files, and say who wrote last; all others are chunks."""
NAMES, TEXTS = (StructType([StructField(name, StringType())]) for name in ("name", "data"))


class ChunkStore:
    """The chunks of one bucket, as text: bytes come back from Spark's state store more slowly.

    Its stamp is a row among them. Spark makes a state variable anew in each task, and asks the JVM to read
    column types that are given as text, several times for each; so there is one, with types.
    """

    def __init__(self, handle: Any) -> None:
        self._chunks = handle.getMapState("chunks", NAMES, TEXTS)

    def stamp(self) -> str | None:
        """What was written last; none for a new bucket, and for one whose stamp an earlier version wrote."""
        return self._text(STAMP)

    def read(self, files: ChunkFiles | None) -> dict[str, bytes] | None:
        """All chunks, one at a time: an iterator over them would hold thousands in one message.

        None for a new bucket.
        """
        keys = self._chunks.keys()
        names = [str(key[0]) for key in keys]
        if not names:
            return None
        small = {
            name: from_text(self._chunks.getValue((name,))[0]) for name in names if name not in (ROW, STAMP)
        }
        return small if files is None else small | files.read(self._row())

    def write(self, chunks: dict[str, bytes | None], stamp: str, files: ChunkFiles | None) -> None:
        """Takes what changed; where there are ``files``, what is large goes there first."""
        if files is not None:
            chunks = self._write_files(chunks, files)
        for name, data in chunks.items():
            if data is None:
                if self._chunks.containsKey((name,)):
                    self._chunks.removeKey((name,))
            else:
                self._chunks.updateValue((name,), (as_text(data),))
        self._chunks.updateValue((STAMP,), (stamp,))

    def _write_files(self, chunks: dict[str, bytes | None], files: ChunkFiles) -> dict[str, bytes | None]:
        """Writes what is large, and the row that names it; gives what is left."""
        before = self._row()
        after, rest = files.save(before, chunks)
        if after != before:
            self._chunks.updateValue((ROW,), (after.text(),))
        return rest

    def _row(self) -> FileRow:
        """What this version says of the files."""
        from caesura.spark.worker.chunk_files import FileRow

        held = self._text(ROW)
        return FileRow() if held is None else FileRow.of_text(held)

    def _text(self, name: str) -> str | None:
        """A row, if there is one."""
        held = self._chunks.getValue((name,))
        return None if held is None else str(held[0])


def as_text(data: bytes) -> str:
    """Bytes as the state store holds them."""
    return b64encode(data).decode("ascii")


def from_text(text: str) -> bytes:
    """What `as_text` took."""
    return b64decode(text)
