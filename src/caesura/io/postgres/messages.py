"""What Postgres says of changes to tables: the messages of its `pgoutput` plugin, version 1.

>>> Message(b"D" + bytes([0, 0, 0, 7]) + b"K" + bytes([0, 1]) + b"t" + bytes([0, 0, 0, 2]) + b"42").change()
RowChange(kind='D', relation=7, old=['42'], new=None)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

UNIX_2000 = 946_684_800_000_000
"""Postgres counts microseconds from the year 2000 on."""


class NotSent(Enum):
    """A large value that was not touched, and is not sent."""

    VALUE = 0


NOT_SENT = NotSent.VALUE
Text = str | NotSent | None


@dataclass(frozen=True)
class ChangedTable:
    """A table as it is when it changes."""

    number: int
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class RowChange:
    """A row before and after; of a row before, only the key may be known."""

    kind: str
    relation: int
    old: list[Text] | None
    new: list[Text] | None


@dataclass(frozen=True)
class Commit:
    """The end of a transaction: where the log goes on behind it, and when it was, in microseconds."""

    end: int
    time: int


class Message:
    """Reads one message from its start on."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 1
        self.kind = data[:1].decode()

    def commit(self) -> Commit:
        _, _, end, time = self._unpack(">bqqq")
        return Commit(end, time + UNIX_2000)

    def relation(self) -> ChangedTable:
        (number,) = self._unpack(">I")
        namespace, name = self._text(), self._text()
        _, count = self._unpack(">bH")
        columns = []
        for _ in range(count):
            self._unpack(">b")
            columns.append(self._text())
            self._unpack(">Ii")
        return ChangedTable(number, f"{namespace}.{name}", tuple(columns))

    def change(self) -> RowChange:
        """An insert, an update or a delete."""
        (relation,) = self._unpack(">I")
        rows: dict[str, list[Text]] = {}
        while self._at < len(self._data):
            part = self._data[self._at : self._at + 1].decode()
            self._at += 1
            rows[part] = self._row()
        return RowChange(self.kind, relation, rows.get("O", rows.get("K")), rows.get("N"))

    def truncated(self) -> tuple[int, ...]:
        """The tables that were emptied."""
        count, _ = self._unpack(">Ib")
        return self._unpack(f">{count}I")

    def _row(self) -> list[Text]:
        (count,) = self._unpack(">H")
        return [self._value() for _ in range(count)]

    def _value(self) -> Text:
        kind = self._data[self._at : self._at + 1]
        self._at += 1
        if kind == b"t":
            (size,) = self._unpack(">I")
            self._at += size
            return self._data[self._at - size : self._at].decode()
        return NOT_SENT if kind == b"u" else None

    def _text(self) -> str:
        end = self._data.index(b"\0", self._at)
        text, self._at = self._data[self._at : end].decode(), end + 1
        return text

    def _unpack(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found


def status(position: int, now: int) -> bytes:
    """What a reader answers: everything before a position is safe with it, at a time in microseconds."""
    return struct.pack(">cQQQqb", b"r", position, position, position, now - UNIX_2000, 0)
