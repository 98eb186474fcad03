"""The columns of a table in Postgres, and their texts as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import DataError

TYPES: dict[str, pa.DataType] = {
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "bytea": pa.binary(),
}
MAX_DIGITS = 38


@dataclass(frozen=True)
class TableColumn:
    """A column by its name, its type in Postgres, and what the type was given."""

    name: str
    kind: str
    modifier: int = -1

    @property
    def type(self) -> pa.DataType:
        """The type of its values here; what Arrow has no type for stays a text."""
        if self.kind == "numeric" and self.modifier >= 4:
            digits, scale = (self.modifier - 4) >> 16, (self.modifier - 4) & 0xFFFF
            if 0 <= scale <= digits <= MAX_DIGITS:
                return pa.decimal128(digits, scale)
        return TYPES.get(self.kind, pa.string())

    def values(self, texts: Sequence[str | None]) -> pa.Array:
        """Texts, as Postgres writes them, as values."""
        column = pa.array(texts, pa.string())
        try:
            return READ.get(self.kind, pc.cast)(column, self.type)
        except (pa.ArrowInvalid, ValueError) as error:
            raise DataError(
                f"the column '{self.name}' ({self.kind}) has a value that {self.type} cannot hold: {error}.",
                remedy=f"Leave it out: columns=[...] without '{self.name}'; or make it text in Postgres.",
            ) from None


def _truths(texts: pa.StringArray, _: pa.DataType) -> pa.Array:
    return pc.equal(texts, "t")


def _bytes(texts: pa.StringArray, _: pa.DataType) -> pa.Array:
    return pa.array([None if t is None else bytes.fromhex(t[2:]) for t in texts.to_pylist()], pa.binary())


READ: dict[str, Callable[[pa.StringArray, pa.DataType], pa.Array]] = {"bool": _truths, "bytea": _bytes}
