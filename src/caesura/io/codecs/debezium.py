"""Records of Debezium as rows: the row that a change leaves or deletes, its time, and its place in the log.

An envelope has ``before``, ``after``, ``op`` and ``source``, with a ``payload`` around it or without. Several
changes at one time are ordered by where they stand in the database's log: the file, the position in it
(``lsn``, ``pos``, ``scn``), and the row of an event or a transaction.

>>> codec = DebeziumCodec(pa.schema([("id", pa.int64()), ("v", pa.string())]), ("id",))
>>> record = b'{"op": "c", "after": {"id": 7, "v": "a"}, "source": {"ts_ms": 5, "lsn": 12}}'
>>> decoded = codec.decode([record, b'{"op": "d", "source": {"ts_ms": 6}}'])
>>> [(row["id"], row["v"], row[OP], row[POSITION]) for row in decoded.batch.to_pylist()], decoded.bad
([(7, 'a', 'c', 12)], {1: "its op is 'd', and it has no 'before'"})
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import StreamError
from caesura.io.codecs.json import JsonCodec
from caesura.io.codecs.protocol import RecordDecoder

ClockOf = Literal["source", "connector"]
OP, LOG, POSITION, ROW = "debezium op", "debezium log", "debezium position", "debezium row"
ORDER = (LOG, POSITION, ROW)
PUTS, DELETES, MESSAGE = ("c", "r", "u"), ("d",), "m"
TIME = pa.timestamp("us", "UTC")
UNAVAILABLE = "__debezium_unavailable_value"
"""What stands for a large value that an update left as it was, and the database did not log."""
WIDTH = 64
"""Names of log files are filled up to so many letters: the tenth comes behind the ninth."""
SOURCE = pa.struct(
    [(name, pa.int64()) for name in ("ts_ms", "ts_us", "lsn", "pos", "row", "event_serial_no")]
    + [(name, pa.string()) for name in ("file", "scn", "commit_lsn", "change_lsn")]
)
TRANSACTION = pa.struct([("total_order", pa.int64())])


class DebeziumCodec(RecordDecoder):
    """Envelopes as JSON objects, of a table with these columns."""

    passes_tombstones = True

    def __init__(self, rows: pa.Schema, key: Sequence[str], time: ClockOf = "source") -> None:
        self.rows, self._key, self._time = rows.remove_metadata(), tuple(key), time
        more = [(OP, pa.string()), (self.time, TIME), (LOG, pa.string())]
        more += [(name, pa.int64()) for name in (POSITION, ROW)]
        self.schema = pa.schema([*self.rows, *(pa.field(*each) for each in more)])
        self.key = f"debezium:{self.schema}:{','.join(key)}"

    @property
    def time(self) -> str:
        """The column with the time of a change."""
        return f"debezium {self._time} time"

    @cached_property
    def envelope(self) -> pa.Schema:
        """A record as JSON has it; times are numbers, decimals and bytes are texts."""
        row = pa.struct([field.with_type(_wire(field.type)) for field in self.rows])
        own = [("before", row), ("after", row), ("source", SOURCE), ("op", pa.string())]
        own += [("ts_ms", pa.int64()), ("ts_us", pa.int64()), ("transaction", TRANSACTION)]
        return pa.schema([*own, ("payload", pa.struct(own))])

    @cached_property
    def _json(self) -> JsonCodec:
        return JsonCodec(self.envelope)

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        return self.changes(self._json.parse(data))

    def changes(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Envelopes as rows."""
        before, after, source, op, ms, us, transaction = (
            _unwrapped(records, name) for name in self.envelope.names[:-1]
        )
        self._check(op, before, after)
        deletes = np.asarray(pc.fill_null(pc.is_in(op, pa.array(DELETES)), False))
        row = _chosen(before, after, deletes)
        columns = [self._value(pc.struct_field(row, f.name), before, f) for f in self.rows]
        place = {name: pc.struct_field(source, name) for name in SOURCE.names}
        if self._time == "source":
            ms, us = place["ts_ms"], place["ts_us"]
        time = pc.coalesce(us, pc.multiply(ms, 1000))
        if time.null_count:
            raise ValueError(f"it has no time ({'source.' if self._time == 'source' else ''}ts_ms)")
        lsn = pc.binary_join_element_wise(place["commit_lsn"], place["change_lsn"], ":")
        log = pc.utf8_lpad(pc.coalesce(place["file"], lsn), WIDTH, "0")
        position = pc.coalesce(place["lsn"], place["pos"], place["scn"].cast(pa.int64()))
        total = pc.struct_field(transaction, "total_order")
        number = pc.coalesce(place["row"], place["event_serial_no"], total)
        return pa.RecordBatch.from_arrays(
            [*columns, op, time.cast(TIME), log, position, number], schema=self.schema
        )

    def _check(self, op: pa.Array, before: pa.Array, after: pa.Array) -> None:
        known = pa.array([*PUTS, *DELETES, MESSAGE])
        if "t" in pc.unique(op).to_pylist():
            raise StreamError(
                "the table was truncated (op 't'), and such a record does not name the rows that it deletes.",
                remedy="Have the connector leave truncates out (skipped.operations=t) and delete rows "
                "instead; or begin anew, with a new snapshot and a new checkpoint.",
            )
        strange = op.filter(pc.invert(pc.is_in(op, known)))
        if len(strange):
            what = "it has no op" if strange[0].as_py() is None else f"its op is {strange[0].as_py()!r}"
            raise ValueError(f"{what}, so it is no change of a row")
        for ops, name, rows in ((DELETES, "before", before), (PUTS, "after", after)):
            lacks = pc.and_(pc.is_in(op, pa.array(ops)), rows.is_null())
            if pc.any(lacks).as_py():
                raise ValueError(f"its op is {op.filter(lacks)[0].as_py()!r}, and it has no '{name}'")
        self._refuse_moved(before, after)

    def _refuse_moved(self, before: pa.Array, after: pa.Array) -> None:
        """An update that gives a row another key would leave the row of the old one."""
        both = pc.and_(before.is_valid(), after.is_valid())
        for name in self._key if pc.any(both).as_py() else ():
            old, new = (pc.struct_field(side.filter(both), name) for side in (before, after))
            moved = pc.fill_null(pc.not_equal(old, new), False)
            if pc.any(moved).as_py():
                pair = [column.filter(moved)[0].as_py() for column in (old, new)]
                raise StreamError(
                    f"an update gives a row another key: its '{name}' was {pair[0]!r} and is {pair[1]!r}.",
                    remedy="Name the key that the connector's records have: of that one it tells a delete "
                    "and an insert.",
                )

    def _value(self, column: pa.Array, before: pa.Array, field: pa.Field) -> pa.Array:
        if not pa.types.is_string(field.type):
            return _from_wire(column, field.type)
        unavailable = pc.fill_null(pc.equal(column, UNAVAILABLE), False)
        if not pc.any(unavailable).as_py():
            return column
        if pc.any(pc.and_(unavailable, before.is_null())).as_py():
            raise ValueError(
                f"the database did not log the value of '{field.name}', which an update left as it was "
                "(ALTER TABLE ... REPLICA IDENTITY FULL)"
            )
        return pc.if_else(unavailable, pc.struct_field(before, field.name), column)


def _unwrapped(records: pa.RecordBatch, name: str) -> pa.Array:
    """A field of the envelope, which may stand in a payload."""
    plain, payload = records.column(name), records.column("payload")
    if payload.null_count == len(records):
        return plain
    inner = pc.struct_field(payload, name)
    return inner if payload.null_count == 0 else _chosen(inner, plain, np.asarray(payload.is_valid()))


def _chosen(one: pa.Array, other: pa.Array, first: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    """The values of one column where ``first`` says so, else those of the other."""
    if not first.any():
        return other
    places = np.arange(len(first)) + np.where(first, 0, len(first))
    return pa.concat_arrays([one, other]).take(pa.array(places))


def _wire(t: pa.DataType) -> pa.DataType:
    """A type as Debezium writes it in JSON."""
    types = pa.types
    if types.is_date(t) or types.is_time(t) or types.is_duration(t):
        return pa.int64()
    if types.is_timestamp(t):
        return pa.int64() if t.tz is None else t
    return pa.string() if types.is_decimal(t) or types.is_binary(t) else t


def _from_wire(column: pa.Array, t: pa.DataType) -> pa.Array:
    if column.type == t:
        return column
    if pa.types.is_binary(t):
        values = [None if v is None else base64.b64decode(v, validate=True) for v in column.to_pylist()]
        return pa.array(values, t)
    narrow = pa.types.is_date32(t) or pa.types.is_time32(t)
    return (column.cast(pa.int32()) if narrow else column).cast(t)
