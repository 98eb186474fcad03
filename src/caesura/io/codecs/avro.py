"""Records in Avro's binary form, with a schema from a file.

>>> schema = {"type": "record", "name": "Reading", "fields": [
...     {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
...     {"name": "speed", "type": ["null", "double"]}]}
>>> AvroCodec(schema, None, header=0).schema
ts: timestamp[us, tz=UTC]
speed: double
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.errors import DataError, PlanError
from caesura.io.codecs.protocol import RecordCodec, reason
from caesura.io.places import Place
from caesura.plan import here

SIMPLE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
LOGICAL = {
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "date": pa.date32(),
    "uuid": pa.string(),
}


class AvroCodec(RecordCodec):
    """An Avro record per record, written with one schema and read as it, or as a compatible one."""

    def __init__(self, writer: Mapping[str, Any], reader: Mapping[str, Any] | None, *, header: int) -> None:
        import fastavro

        self._header = header
        self._writer: Any = fastavro.parse_schema(dict(writer))
        self._reader: Any = None if reader is None else fastavro.parse_schema(dict(reader))
        shown: Any = self._writer if self._reader is None else self._reader
        named: dict[str, Any] = {}
        self.schema = pa.schema([(f["name"], arrow_type(f["type"], named)) for f in shown["fields"]])
        self.key = f"avro:{json.dumps(writer, sort_keys=True)}:{json.dumps(reader, sort_keys=True)}:{header}"

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        try:
            return self._parsed_rows(data, schemaless_reader)
        except (SchemaResolutionError, struct.error) as error:
            raise ValueError(str(error)) from error

    def _parsed_rows(self, data: Sequence[bytes], read: Callable[..., Any]) -> pa.RecordBatch:
        rows = []
        for record in data:
            body = BytesIO(record)
            if self._header and body.read(self._header)[:1] != b"\0":
                raise ValueError("names no schema of a registry")
            rows.append(read(body, self._writer, self._reader))
            if body.tell() != len(record):
                raise ValueError("has bytes behind the record")
        return pa.RecordBatch.from_pylist(rows, self.schema)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        from fastavro import schemaless_writer

        written = []
        for row in rows.to_pylist(maps_as_pydicts="strict"):
            body = BytesIO()
            schemaless_writer(body, self._writer, row)
            written.append(body.getvalue())
        return written


def arrow_type(avro_type: Any, named: dict[str, Any]) -> pa.DataType:
    """The Arrow type of an Avro type; ``named`` are the types that were met before."""
    if isinstance(avro_type, list):
        some = [one for one in avro_type if one != "null"]
        if len(some) == 1:
            return arrow_type(some[0], named)
        raise PlanError(
            f"a field of several types, {json.dumps(avro_type)}, fits no one column.",
            remedy="Leave the field out by a reader's schema: cz.avro(schema, reader=...).",
            step="avro",
            place=here(),
        )
    if isinstance(avro_type, str):
        return SIMPLE[avro_type] if avro_type in SIMPLE else named[avro_type]
    kind = avro_type["type"]
    if avro_type.get("logicalType") == "decimal":
        return pa.decimal128(avro_type["precision"], avro_type.get("scale", 0))
    if avro_type.get("logicalType") in LOGICAL:
        return LOGICAL[avro_type["logicalType"]]
    if kind == "array":
        return pa.list_(arrow_type(avro_type["items"], named))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(avro_type["values"], named))
    if kind == "record":
        made = pa.struct([(f["name"], arrow_type(f["type"], named)) for f in avro_type["fields"]])
    else:
        made = arrow_type(kind, named)
    if "name" in avro_type:
        named[avro_type["name"]] = made
    return made


def loaded(schema: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that is given, or lies in a file."""
    try:
        found = json.loads(Place.of(schema).read_text()) if isinstance(schema, str | Path) else schema
        if found["type"] != "record":
            raise ValueError("it is no record")
        return dict(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{str(schema)[:80]!r} cannot be taken as an Avro schema: {reason(error)}.",
            remedy="Give the path of an .avsc file with a record in it, or the record itself.",
            step="avro",
            place=here(),
        ) from None
