"""Records that are JSON objects: a batch of them is read by Arrow as the lines of one file.

>>> value = JsonCodec(pa.schema([("ts", pa.int64()), ("id", pa.string())]))
>>> decoded = value.decode([b'{"ts": 1, "id": "a"}', b'{"ts": ', b'{"ts": 3}'])
>>> decoded.batch.to_pylist(), list(decoded.bad)
([{'ts': 1, 'id': 'a'}, {'ts': 3, 'id': None}], [1])
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.io.codecs.json_maps import MapPaths, as_entries, map_paths
from caesura.io.codecs.protocol import RecordCodec, is_schema
from caesura.io.ingress.kept import kept

OPEN, CLOSE = b"{}"


class JsonCodec(RecordCodec):
    """A JSON object per record; a field that is missing is null, one that is not named is passed over.

    A map is an object, or a list of objects with a key and a value.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = is_schema(schema, "json")
        self.key = "json:" + ",".join(f"{field.name} {field.type}" for field in self.schema)

    def narrowed(self, columns: Sequence[str]) -> JsonCodec:
        wanted = [field for field in self.schema if field.name in columns]
        return JsonCodec(pa.schema(wanted)) if wanted else self

    def for_rows(self, rows: pa.Schema) -> JsonCodec:
        return JsonCodec(rows)

    @cached_property
    def _arrow(self) -> pa.Schema:
        return pa.schema([field.with_type(json_type(field.type)) for field in self.schema])

    @cached_property
    def _maps(self) -> MapPaths | None:
        return map_paths(self.schema)

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        import pyarrow.json as pj

        lines = b"\n".join(data)
        if not _one_each(lines, data):  # written over several lines, or not what it should be
            data = _on_one_line(data)
            lines = b"\n".join(data)
            if not _one_each(lines, data):
                raise ValueError("is no JSON object")
        if not lines.isascii():
            lines.decode()  # Arrow takes bytes for text as they are
        if self._maps is not None:
            lines = as_entries(lines, self._maps)
        parsing = pj.ParseOptions(explicit_schema=self._arrow, unexpected_field_behavior="ignore")
        reading = pj.ReadOptions(block_size=len(lines) + 1)
        table = pj.read_json(pa.BufferReader(lines), read_options=reading, parse_options=parsing)
        if table.num_rows != len(data):
            raise ValueError("holds more than one JSON object")
        [batch] = table.combine_chunks().to_batches()
        if self._arrow == self.schema:
            return batch.select(self.schema.names)
        columns = [kept(batch.column(field.name), field.type)[0] for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        import orjson

        dumps, zulu = orjson.dumps, orjson.OPT_UTC_Z
        columns = [rows.column(field.name).cast(field.type) for field in self._arrow]
        plain = pa.table(columns, schema=self._arrow).to_pylist()
        return [dumps(row, _plain, zulu) for row in plain]


def _plain(value: Any) -> Any:
    """What JSON has no form for: decimals and durations as texts, bytes as text in Latin-1."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _one_each(lines: bytes, data: Sequence[bytes]) -> bool:
    """Whether every record is at least one object on one line: then a count of rows tells the rest."""
    if lines.count(b"\n") != len(data) - 1 or min(map(len, data)) < 2:
        return False
    ends = np.cumsum(np.fromiter(map(len, data), np.int64, len(data)) + 1) - 1
    letters = np.frombuffer(lines, np.uint8)
    starts = np.concatenate(([0], ends[:-1] + 1))
    return bool((letters[starts] == OPEN).all() and (letters[ends - 1] == CLOSE).all())


def _on_one_line(data: Sequence[bytes]) -> list[bytes]:
    import orjson

    return [orjson.dumps(orjson.loads(record)) for record in data]


def json_type(t: pa.DataType) -> pa.DataType:
    """A type as Arrow reads it from JSON: a map is a list of objects with a key and a value."""
    if pa.types.is_struct(t):
        return pa.struct([field.with_type(json_type(field.type)) for field in t])
    if pa.types.is_map(t):
        return pa.list_(json_type(pa.struct([("key", t.key_type), ("value", t.item_type)])))
    listed = pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)
    return pa.list_(json_type(t.value_type)) if listed else t


def json(schema: pa.Schema) -> JsonCodec:
    """Records that are JSON objects with these columns.

    Parameters
    ----------
    schema
        The columns with their types.

    Returns
    -------
    JsonCodec
        For ``value=`` and ``key=`` of `read.kafka`.

    See Also
    --------
    read.kafka : a topic of Kafka.

    Examples
    --------
    >>> import caesura as cz
    >>> import pyarrow as pa
    >>> cz.json(pa.schema([("ts", pa.int64()), ("id", pa.int64())])).schema.names
    ['ts', 'id']
    """
    return JsonCodec(schema)
