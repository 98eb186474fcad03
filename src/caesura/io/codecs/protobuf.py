"""Records in Protobuf's binary form, with a message of a descriptor file.

``protoc --include_imports --descriptor_set_out=readings.desc readings.proto`` makes the file. Fields that a
record does not set are null where the schema tells that from zero (``optional``, messages), and else zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import DataError, PlanError
from caesura.io.codecs.protocol import RecordCodec, reason
from caesura.io.places import Place
from caesura.plan import here

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

SIMPLE: Mapping[str, pa.DataType] = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "INT64": pa.int64(),
    "SINT64": pa.int64(),
    "SFIXED64": pa.int64(),
    "INT32": pa.int32(),
    "SINT32": pa.int32(),
    "SFIXED32": pa.int32(),
    "UINT64": pa.uint64(),
    "FIXED64": pa.uint64(),
    "UINT32": pa.uint32(),
    "FIXED32": pa.uint32(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "ENUM": pa.string(),
}
TIMESTAMP = "google.protobuf.Timestamp"


class ProtobufCodec(RecordCodec):
    """A message per record."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        self._descriptors, self._message = descriptors, message
        self._prepare()
        digest = hashlib.sha256(descriptors).hexdigest()[:16]
        self.key = f"protobuf:{message}:{digest}"

    def _prepare(self) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message_factory import GetMessageClass

        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(self._descriptors).file:
            pool.Add(file)
        self._class = GetMessageClass(pool.FindMessageTypeByName(self._message))
        self.schema = pa.schema([(f.name, _arrow_type(f)) for f in self._class.DESCRIPTOR.fields])

    @property
    def message(self) -> str:
        """The full name of the message."""
        return self._message

    def file(self) -> FileDescriptorProto:
        """The file that the message is in."""
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        made = FileDescriptorProto()
        self._class.DESCRIPTOR.file.CopyToProto(made)
        return made

    def indexes(self) -> tuple[int, ...]:
        """Which message of its file it is, then which within that one."""
        file = self.file()
        names = self._message.removeprefix(f"{file.package}." if file.package else "").split(".")
        found, level = [], file.message_type
        for name in names:
            found.append([message.name for message in level].index(name))
            level = level[found[-1]].nested_type
        return tuple(found)

    def __getstate__(self) -> dict[str, Any]:
        """Classes that are made here are made again in a worker."""
        return {name: vars(self)[name] for name in ("_descriptors", "_message", "key")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        from google.protobuf.message import DecodeError

        try:
            rows = [_row(self._class.FromString(record)) for record in data]
        except DecodeError as error:
            raise ValueError(str(error)) from error
        return pa.RecordBatch.from_pylist(rows, self.schema)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        from google.protobuf.json_format import ParseDict

        plain = rows.to_pylist(maps_as_pydicts="strict")
        given = ({name: value for name, value in row.items() if value is not None} for row in plain)
        return [ParseDict(row, self._class()).SerializeToString() for row in given]


def _arrow_type(field: Any) -> pa.DataType:
    """The Arrow type of a field."""
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        return pa.map_(_arrow_type(key), _arrow_type(value))
    if entry is None:
        one = SIMPLE[_type_name(field)]
    elif entry.full_name == TIMESTAMP:
        one = pa.timestamp("us", "UTC")
    else:
        one = pa.struct([(f.name, _arrow_type(f)) for f in entry.fields])
    return pa.list_(one) if field.is_repeated else one


def _type_name(field: Any) -> str:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_")


def _row(message: Any) -> dict[str, Any]:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Any, field: Any) -> Any:
    if field.is_repeated:
        values = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"]
            return [(key, _one(inner, value)) for key, value in values.items()]
        return [_one(field, value) for value in values]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(field, getattr(message, field.name))


def _one(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if field.message_type is None:
        return value
    if field.message_type.full_name == TIMESTAMP:
        return value.seconds * 1_000_000 + value.nanos // 1000
    return _row(value)


def message_codec(descriptors: str | Path | bytes, message: str) -> ProtobufCodec:
    """The codec for a message of a descriptor file, or of what such a file holds."""
    from google.protobuf.message import DecodeError

    shown = "the registry's schema" if isinstance(descriptors, bytes) else descriptors
    try:
        data = descriptors if isinstance(descriptors, bytes) else Place.of(descriptors).read_bytes()
        return ProtobufCodec(data, message)
    except (OSError, KeyError, TypeError, ValueError, DecodeError) as error:
        raise DataError(
            f"'{shown}' has no message '{message}' that can be read: {reason(error)}.",
            remedy="Make the file with protoc --include_imports --descriptor_set_out=..., and give the "
            "message's full name.",
            step="protobuf",
            place=here(),
        ) from None
    except RecursionError:
        raise PlanError(
            f"the message '{message}' contains itself, and no column can be so.",
            remedy="Read a message that does not, or write the part that does as bytes.",
            step="protobuf",
            place=here(),
        ) from None
