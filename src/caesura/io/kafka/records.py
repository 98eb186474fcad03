"""Records of a topic as rows: key, value, and what the broker knows of each, a whole poll at once.

With a key, a record without a value is a row too: it deletes the one of its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError, closest
from caesura.events.columns import empty_rows
from caesura.io.codecs.protocol import Decoded, RecordDecoder
from caesura.kernels.hashing import I64
from caesura.plan import Raw

if TYPE_CHECKING:
    from confluent_kafka import Message

Meta = Literal["timestamp", "partition", "offset"]
META: Mapping[str, pa.DataType] = {
    "timestamp": pa.timestamp("us", "UTC"),
    "partition": pa.int64(),
    "offset": pa.int64(),
}
OP, ORDER = "_op", "_offset"
"""Of topics with a key: whether a row deletes, and which of several at one time is the last."""
PUT, DELETE = "put", "delete"


@dataclass(frozen=True)
class RecordForm:
    """What the rows of a topic are made of."""

    topic: str
    value: RecordDecoder
    key: RecordDecoder | None = None
    meta: tuple[Meta, ...] = ()
    time: str = ""
    """The column that a delete, which has none, gets the broker's timestamp in."""
    columns: tuple[str, ...] | None = None
    """The columns that are wanted; None for all."""
    punctuated: bool = False
    """Whether promises lie between the records, as in a topic that a sink of ours writes."""

    def check(self) -> None:
        """Refuses columns that there are not, or twice."""
        for name in self.meta:
            if name not in get_args(Meta):
                raise PlanError(
                    f"a record has no {name!r} that meta= could name.", remedy=closest(name, get_args(Meta))
                )
            if name in self.value.schema.names:
                raise PlanError(
                    f"meta= adds a column '{name}', and the value has one of that name.",
                    remedy=f"Leave '{name}' out of meta=, or out of the value's columns.",
                )
        if self.key is None or self.time not in self.value.schema.names:
            return
        timestamped = pa.types.is_timestamp(self.value.schema.field(self.time).type)
        if timestamped or self.time in self.key.schema.names:
            return
        raise PlanError(
            f"a record that deletes a key has no value, so nothing tells its '{self.time}'.",
            remedy="Read with meta=['timestamp'] and time='timestamp'; or make the column a timestamp, which "
            "a delete takes from the broker.",
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        own = [] if self.key is None else list(self.key.schema)
        names = [field.name for field in own]
        fields = own + [field for field in self.value.schema if field.name not in names]
        fields += [pa.field(name, META[name]) for name in self.meta]
        if self.key is not None:
            fields += [pa.field(OP, pa.string()), pa.field(ORDER, pa.int64())]
        if self.columns is not None:
            fields = [field for field in fields if field.name in self.columns]
        return pa.schema(fields)

    @property
    def text(self) -> str:
        """The form, to tell it from others."""
        key = "" if self.key is None else self.key.key
        marks = ":punctuated" if self.punctuated else ""
        return f"{self.topic}:{self.value.key}:{key}:{','.join(self.meta)}:{self.columns}{marks}"

    def rows(self, messages: Sequence[Message], offsets: I64, partitions: I64) -> ReadRecords:
        """The records that can be read, and why the others cannot."""
        values: list[Any] = list(map(methodcaller("value"), messages))
        absent, there = np.zeros(len(values), np.bool_), values
        if None in values:
            absent[:] = [value is None for value in values]
            there = [value for value in values if value is not None]
        bad: dict[int, str] = {}
        present = np.flatnonzero(~absent)
        value = self.value.decode(there)
        bad |= {int(present[at]): why for at, why in _told(value, "value").items()}
        place = np.full(len(values), -1)
        place[_without(present, value.bad)] = np.arange(value.batch.num_rows)
        keys: Decoded | None = None
        at_key = np.zeros(0, np.int64)
        skipped: list[int] = []
        if self.key is None and self.value.passes_tombstones:
            skipped = np.flatnonzero(absent).tolist()
        elif self.key is None:
            bad |= dict.fromkeys(np.flatnonzero(absent).tolist(), "it has no value, and key= names none")
        else:
            keys = self.key.decode([message.key() or b"" for message in messages])
            bad |= {at: why for at, why in _told(keys, "key").items() if at not in bad}
            at_key = np.full(len(values), -1)
            at_key[_without(np.arange(len(values)), keys.bad)] = np.arange(keys.batch.num_rows)
        good = np.setdiff1d(np.arange(len(values)), np.array([*bad, *skipped], np.int64), assume_unique=True)
        parts = _Records(messages, offsets, partitions, good, absent[good])
        batch = self._batch(parts, value, place, keys, at_key)
        return ReadRecords(batch, good, bad)

    def _batch(
        self, parts: _Records, value: Decoded, place: I64, keys: Decoded | None, at_key: I64
    ) -> pa.RecordBatch:
        whole = len(parts.good) == value.batch.num_rows and not parts.deletes.any()
        taken = None if whole else pa.array(place[parts.good], mask=parts.deletes)
        columns = []
        for field in self.schema:
            name = field.name
            if keys is not None and name in keys.batch.schema.names:
                columns.append(keys.batch.column(name).take(pa.array(at_key[parts.good])))
            elif name in value.batch.schema.names:
                column = value.batch.column(name) if taken is None else value.batch.column(name).take(taken)
                columns.append(parts.timed(column) if name == self.time else column)
            else:
                columns.append(parts.meta(name))
        if not columns:
            return empty_rows(len(parts.good))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class ReadRecords(NamedTuple):
    """ReadRecords of a poll, which of its records they are, and why others are none."""

    batch: pa.RecordBatch
    good: I64
    bad: Mapping[int, str]


@dataclass(frozen=True)
class _Records:
    """The records that become rows, and what the broker knows of them."""

    messages: Sequence[Message]
    offsets: I64
    partitions: I64
    good: I64
    deletes: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def meta(self, name: str) -> pa.Array:
        match name:
            case "timestamp":
                return self.stamps()
            case "partition":
                return pa.array(self.partitions[self.good])
            case _ if name == OP:
                return pa.array(np.where(self.deletes, DELETE, PUT), pa.string())
            case _:
                return pa.array(self.offsets[self.good])

    def stamps(self) -> pa.Array:
        """When the broker says that the records were made."""
        micros = [1000 * self.messages[at].timestamp()[1] for at in self.good.tolist()]
        return pa.array(micros, pa.int64()).cast(META["timestamp"])

    def timed(self, column: pa.Array) -> pa.Array:
        """A column of times, in which deletes have that of the broker."""
        if not self.deletes.any():
            return column
        stamps = self.stamps()
        if column.type.tz is None:
            stamps = stamps.cast(pa.int64()).cast(pa.timestamp("us"))
        return pc.if_else(pa.array(self.deletes), stamps.cast(column.type), column)


def _without(places: I64, bad: Mapping[int, str]) -> I64:
    return np.delete(places, np.fromiter(bad, np.int64, len(bad))) if bad else places


def _told(decoded: Decoded, what: str) -> dict[int, str]:
    return {at: f"its {what} cannot be read: {why}" for at, why in decoded.bad.items()}


def lane_rows(
    form: RecordForm, rows: ReadRecords, lane: int, mine: I64, offsets: I64, span: tuple[int, int]
) -> Raw:
    """The rows of one partition, which reaches from one offset to another; ``mine`` are its records."""
    begin, end = span
    if len(mine) == len(offsets):
        batch, good = rows.batch, rows.good
    else:
        chosen = np.isin(rows.good, mine, assume_unique=True)
        good = rows.good[chosen]
        batch = rows.batch.take(pa.array(np.flatnonzero(chosen)))
    places = offsets[good]
    refused = tuple(
        (int(offsets[at]), f"{form.topic}, partition {lane}, offset {offsets[at]}: {rows.bad[at]}")
        for at in (mine.tolist() if rows.bad else ())
        if at in rows.bad
    )
    count = len(places)
    dense = count == 0 or (int(places[0]) == begin and int(places[-1]) == begin + count - 1)
    return Raw(
        lane, begin, batch, gap=end - begin - count, offsets=None if dense else places, refused=refused
    )
