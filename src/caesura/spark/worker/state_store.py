"""The chunks of a bucket in Spark's state store."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any


class ChunkStore:
    """The chunks of one bucket in Spark's state store, as text: bytes come back from it more slowly."""

    def __init__(self, handle: Any) -> None:
        self._chunks = handle.getMapState("chunks", "name string", "data string")
        self._stamp = handle.getValueState("stamp", "stamp string")

    def stamp(self) -> str | None:
        held = self._stamp.get()
        return None if held is None else str(held[0])

    def read(self) -> dict[str, bytes]:
        """All chunks, one at a time: an iterator over them would hold thousands in one message."""
        keys = self._chunks.keys()
        names = [str(key[0]) for key in keys]
        return {name: from_text(self._chunks.getValue((name,))[0]) for name in names}

    def write(self, chunks: dict[str, bytes | None], stamp: str) -> None:
        for name, data in chunks.items():
            if data is None:
                if self._chunks.containsKey((name,)):
                    self._chunks.removeKey((name,))
            else:
                self._chunks.updateValue((name,), (as_text(data),))
        self._stamp.update((stamp,))


def as_text(data: bytes) -> str:
    """Bytes as the state store holds them."""
    return b64encode(data).decode("ascii")


def from_text(text: str) -> bytes:
    """What `as_text` took."""
    return b64decode(text)
