"""How the bytes of records become columns, a whole batch at once, and rows become bytes again.

A record that cannot be read is no reason to stop: it is named, with why, and the others are read.

>>> decoded = TextCodec("id", pa.int64()).decode([b"7", b"x", b"9"])
>>> decoded.batch.column("id").to_pylist(), list(decoded.bad)
([7, 9], [1])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import pyarrow as pa

from caesura.errors import PlanError
from caesura.plan import here

UNREADABLE = (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError)
"""What goes wrong with the bytes of one record."""


class Decoded(NamedTuple):
    """The records that could be read, in their order, and why the others could not, by position."""

    batch: pa.RecordBatch
    bad: Mapping[int, str]


class RecordDecoder(ABC):
    """How the bytes of records are read."""

    schema: pa.Schema
    """The columns that it has."""
    key: str
    """Equal for values that are read the same way."""
    passes_tombstones: ClassVar[bool] = False
    """Whether a record without a value says nothing, and is no flaw where no key is read."""

    @abstractmethod
    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        """All records as columns; raises where one of them cannot be read."""

    def narrowed(self, columns: Sequence[str]) -> RecordDecoder:
        """The same with these columns only; itself where it reads them all anyway."""
        return self

    def decode(self, data: Sequence[bytes]) -> Decoded:
        """All records that can be read, and why the others cannot."""
        bad: dict[int, str] = {}
        parts = list(self._parsed(data, 0, bad))
        if len(parts) == 1:
            return Decoded(parts[0], bad)
        return Decoded(pa.concat_batches([pa.RecordBatch.from_pylist([], self.schema), *parts]), bad)

    def _parsed(self, data: Sequence[bytes], start: int, bad: dict[int, str]) -> Iterator[pa.RecordBatch]:
        """Halves what cannot be read until the records are found that are to blame."""
        if not data:
            return
        try:
            yield self.parse(data)
        except UNREADABLE as error:
            if len(data) == 1:
                bad[start] = reason(error)
                return
            half = len(data) // 2
            yield from self._parsed(data[:half], start, bad)
            yield from self._parsed(data[half:], start + half, bad)


class RecordCodec(RecordDecoder):
    """How the bytes of records are read and written."""

    @abstractmethod
    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        """Each row as bytes."""

    def for_rows(self, rows: pa.Schema) -> RecordCodec:
        """The same for rows of these columns, which are to be written; refuses those it has no place for."""
        missing = [name for name in rows.names if name not in self.schema.names]
        if not missing:
            return self
        raise PlanError(
            f"the records have no place for the column '{missing[0]}' of the output.",
            remedy=f"They have: {', '.join(self.schema.names)}. Leave the column out by select, or give a "
            "schema that has it.",
        )

    def prepare(self) -> None:
        """Called before the first row is written, on the driver."""
        return


def reason(error: BaseException) -> str:
    """The first line of a library's message, without what cannot be printed."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return "".join(c if c.isprintable() else "?" for c in line)[:160].rstrip(". :")


def is_schema(given: object, function: str) -> pa.Schema:
    """The columns that a user gave, as a schema or as pairs of names and types."""
    if isinstance(given, pa.Schema):
        return given.remove_metadata()
    try:
        return pa.schema(given)
    except (TypeError, ValueError, pa.ArrowException):
        raise PlanError(
            f"cz.{function} is told its columns by {given!r}, which is no schema.",
            remedy=f"Write cz.{function}(pa.schema([('ts', pa.int64()), ('id', pa.string())])).",
            step=function,
            place=here(),
        ) from None


@dataclass(frozen=True)
class TextCodec(RecordCodec):
    """One column, written as a text."""

    column: str
    type: pa.DataType

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", pa.schema([(self.column, self.type)]))
        object.__setattr__(self, "key", f"text:{self.column} {self.type}")

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        texts = pa.array(data, pa.binary()).cast(pa.string())
        return pa.RecordBatch.from_arrays([texts.cast(self.type)], schema=self.schema)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        texts = rows.column(self.column).cast(pa.string())
        return [b"" if text is None else text.encode() for text in texts.to_pylist()]
