"""Avro records that name the schema they were written with in a registry.

They are read as one schema, by Avro's rules of evolution: fields that a writer did not have take their
defaults, others are passed over. A record whose writer's schema does not fit is named; the others are read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from functools import cached_property
from io import BytesIO
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError
from caesura.io.codecs.avro import arrow_type, loaded
from caesura.io.codecs.protocol import RecordCodec
from caesura.io.codecs.registry import SchemaRegistry, check_kind, header, no_subject, split_header

KIND = "AVRO"
TYPES: Mapping[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), "int"),
    **dict.fromkeys((pa.int64(), pa.uint32()), "long"),
    pa.float32(): "float",
    pa.float64(): "double",
    **dict.fromkeys((pa.string(), pa.large_string()), "string"),
    **dict.fromkeys((pa.binary(), pa.large_binary()), "bytes"),
    pa.date32(): {"type": "int", "logicalType": "date"},
}
"""The Avro types of Arrow types."""


class RegistryAvroCodec(RecordCodec):
    """An Avro record per record, behind the number of its writer's schema."""

    def __init__(
        self, registry: SchemaRegistry, subject: str | None, schema: Mapping[str, Any] | None
    ) -> None:
        self._registry, self._subject, self._given = registry, subject, schema

    @cached_property
    def _text(self) -> str:
        """The schema that records are read as: the one given, or the subject's last when it is asked for."""
        if self._given is not None:
            return json.dumps(self._given)
        found = self._registry.latest(self._subject or "")
        check_kind(found, self._subject, KIND)
        loaded(json.loads(found.text))
        return found.text

    @cached_property
    def _reader(self) -> Any:
        return _parsed(self._text)

    @cached_property
    def schema(self) -> pa.Schema:
        named: dict[str, Any] = {}
        return pa.schema([(f["name"], arrow_type(f["type"], named)) for f in self._reader["fields"]])

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """By what records are read as; where the registry is, and who asks, does not count."""
        return f"avro-registry:{self._subject}:{self._text}"

    @cached_property
    def _writers(self) -> dict[int, Any]:
        """The schemas that records were written with, by number."""
        return {}

    def _writer(self, number: int) -> Any:
        if number not in self._writers:
            found = self._registry.by_number(number)
            if found is None or found.kind != KIND:
                raise ValueError(f"names schema {number}, which is no Avro schema of the registry")
            self._writers[number] = _parsed(found.text)
        return self._writers[number]

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        rows = []
        try:
            for record in data:
                number, rest = split_header(record)
                body = BytesIO(rest)
                rows.append(schemaless_reader(body, self._writer(number), self._reader))
                if body.tell() != len(rest):
                    raise ValueError("has bytes behind the record")
        except (SchemaResolutionError, struct.error) as error:
            raise ValueError(str(error)) from error
        return pa.RecordBatch.from_pylist(rows, self.schema)

    def for_rows(self, rows: pa.Schema) -> RecordCodec:
        """Rows have a schema of their own, unless one was given."""
        if self._given is not None:
            return super().for_rows(rows)
        return RegistryAvroCodec(self._registry, self._subject, avro_schema(rows))

    @cached_property
    def _number(self) -> int:
        if self._subject is None:
            raise no_subject()
        return self._registry.register(self._subject, KIND, self._text)

    def prepare(self) -> None:
        """Registers the schema, so that one that does not fit stops a query before it begins."""
        _ = self._number

    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        from fastavro import schemaless_writer

        written, head = [], header(self._number)
        for row in rows.to_pylist(maps_as_pydicts="strict"):
            body = BytesIO()
            body.write(head)
            schemaless_writer(body, self._reader, row)
            written.append(body.getvalue())
        return written

    def __getstate__(self) -> dict[str, Any]:
        """A worker asks the registry itself; it knows what records are read as, and the number of that."""
        made: dict[str, Any] = {name: vars(self)[name] for name in ("_text", "_number") if name in vars(self)}
        return {"_registry": self._registry, "_subject": self._subject, "_given": self._given, **made}


def _parsed(text: str) -> Any:
    from fastavro import parse_schema

    return parse_schema(json.loads(text))


def avro_schema(rows: pa.Schema, name: str = "Row") -> dict[str, Any]:
    """A record with a field for each column, all of which may be null.

    >>> avro_schema(pa.schema([("n", pa.int64())]))["fields"]
    [{'name': 'n', 'type': ['null', 'long'], 'default': None}]
    """
    types = [(f.name, ["null", _avro_type(f.type, f"{name}_{f.name}")]) for f in rows]
    fields = [{"name": field, "type": kind, "default": None} for field, kind in types]
    return {"type": "record", "name": name, "fields": fields}


def _avro_type(t: pa.DataType, name: str) -> Any:
    if t in TYPES:
        return TYPES[t]
    if pa.types.is_timestamp(t) and t.unit != "ns":
        return {"type": "long", "logicalType": f"{'local-' if t.tz is None else ''}timestamp-micros"}
    if pa.types.is_decimal(t):
        return {"type": "bytes", "logicalType": "decimal", "precision": t.precision, "scale": t.scale}
    if pa.types.is_list(t):
        return {"type": "array", "items": ["null", _avro_type(t.value_type, name)]}
    if pa.types.is_map(t) and t.key_type == pa.string():
        return {"type": "map", "values": ["null", _avro_type(t.item_type, name)]}
    if pa.types.is_struct(t):
        return avro_schema(pa.schema(list(t)), name)
    raise PlanError(
        f"a column of the type {t} has none in Avro.",
        remedy="Cast it in select, or leave it out: Avro has whole numbers to 64 bits, floats, texts, bytes, "
        "decimals, dates, timestamps in microseconds, lists, maps with texts as keys, and records.",
    )
