"""Rows of an epoch as records of a topic: changes as they come, or the current row of every key.

As changes a record is an envelope: kind, LE, RE, RE_new, then the values. As upserts it is the row of a key
that never ends, and a record without a value where a key has none any more.

>>> schema = pa.schema([("kind", pa.string()), ("LE", pa.int64()), ("RE", pa.int64()), ("RE_new", pa.int64()),
...     ("id", pa.int64()), ("n", pa.int64())])
>>> rows = [dict(kind="-", LE=1, RE=None, RE_new=5, id=7, n=1), dict(kind="+", LE=5, RE=None, id=7, n=2)]
>>> [(r.key, r.value) for r in upserts(pa.Table.from_pylist(rows, schema), ["id"])]
[(b'7', b'{"id":7,"n":2}')]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.identity import Secret, identity
from caesura.io.codecs.json import JsonCodec
from caesura.io.codecs.protocol import RecordCodec, TextCodec

LIFETIME = ("kind", "LE", "RE", "RE_new")
ANY = -1
"""The partition of a record that goes where its key says, or anywhere."""
Headers = tuple[tuple[str, bytes], ...]
PLACES = Secret(b"caesura.io.kafka")
"""What decides where rows without a key go: the same in every process and at every start."""


class OutRecord(NamedTuple):
    """A record that is to be written."""

    key: bytes | None
    value: bytes | None
    partition: int = ANY
    headers: Headers = ()


def key_codec(schema: pa.Schema, key: Sequence[str]) -> RecordCodec:
    """One column as its text, several as a JSON object."""
    fields = [schema.field(name) for name in key]
    if len(fields) == 1 and not pa.types.is_nested(fields[0].type):
        return TextCodec(fields[0].name, fields[0].type)
    return JsonCodec(pa.schema(fields))


def changes(
    rows: pa.Table, key: Sequence[str], partitions: int = 0, value: RecordCodec | None = None
) -> Iterator[OutRecord]:
    """Every change as a record of its own, in JSON where nothing else is said.

    Without a key, and with a number of partitions, all changes of an event go to the same one.
    """
    values = (value or JsonCodec(rows.schema)).encode(rows)
    if not key:
        places = _places(rows, partitions) if partitions else [ANY] * len(values)
        yield from (OutRecord(None, value, place) for value, place in zip(values, places, strict=True))
        return
    keys = key_codec(rows.schema, key).encode(rows)
    yield from (OutRecord(*pair) for pair in zip(keys, values, strict=True))


def _places(rows: pa.Table, partitions: int) -> list[int]:
    """A partition for each change, by the start and the values of its event."""
    named = [name for name in rows.schema.names if name not in LIFETIME or name == "LE"]
    [whole] = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    hashes, _ = identity([whole.column(name) for name in named], len(rows), PLACES)
    return [int(place) for place in hashes % np.uint64(partitions)]


def upserts(rows: pa.Table, key: Sequence[str], value: RecordCodec | None = None) -> Iterator[OutRecord]:
    """The net of an epoch: one record for every key whose current row has changed."""
    payload = rows.drop_columns(list(LIFETIME))
    keys = key_codec(payload.schema, key).encode(payload)
    values = (value or JsonCodec(payload.schema)).encode(payload)
    net: dict[bytes, dict[tuple[Any, bytes], int]] = {}
    columns = zip(*(rows.column(name).to_pylist() for name in LIFETIME), keys, values, strict=True)
    for kind, start, end, new_end, one, written in columns:
        counts = net.setdefault(one, {})
        row = (start, written)
        if kind == "-" and end is None:
            counts[row] = counts.get(row, 0) - 1
        if (kind != "-" and end is None) or (kind == "-" and new_end is None):
            counts[row] = counts.get(row, 0) + 1
    for one, counts in net.items():
        put = [row for row, count in counts.items() if count > 0]
        if len(put) > 1 or any(count > 1 for count in counts.values()):
            raise StreamError(
                f"the key {one.decode()} has several current rows, such as {put[0][1].decode()}.",
                remedy="Name key columns that tell rows apart, or take latest(key) first.",
            )
        if put or any(count < 0 for count in counts.values()):
            yield OutRecord(one, put[0][1] if put else None)
