"""Protobuf messages that name their schema in a registry, and which message of it they are.

Protobuf reads what other versions of a message wrote by the numbers of its fields, so records are read as one
message; the registry is asked whether a record is that message at all.

>>> split_indexes(encoded_indexes((2, 0)) + b"rest")
((2, 0), b'rest')
>>> encoded_indexes((0,))
b'\\x00'
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from caesura.errors import DataError, PlanError
from caesura.io.codecs.protobuf import ProtobufCodec, message_codec
from caesura.io.codecs.protocol import RecordCodec, reason
from caesura.io.codecs.registry import SchemaRegistry, check_kind, header, no_subject, split_header

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

KIND = "PROTOBUF"
Indexes = tuple[int, ...]
"""Which message of a file, then which message within it, and so on."""


class RegistryProtobufCodec(RecordCodec):
    """A message per record, behind the number of its schema and the place of the message in it."""

    def __init__(self, registry: SchemaRegistry, subject: str | None, inner: ProtobufCodec) -> None:
        self._registry, self._subject, self._inner = registry, subject, inner
        self.schema, self.key = inner.schema, f"registry-{inner.key}:{subject}"
        self._checked: set[tuple[int, Indexes]] = set()
        self._number: int | None = None

    @staticmethod
    def of(
        registry: SchemaRegistry, subject: str | None, descriptors: str | Path | None, message: str
    ) -> RegistryProtobufCodec:
        """The codec for a message of a file, or else of the subject's last schema."""
        if descriptors is not None:
            return RegistryProtobufCodec(registry, subject, message_codec(descriptors, message))
        found = registry.latest(subject or "", serialized=True)
        check_kind(found, subject, KIND)
        file = file_of(found.text)
        if file is None or not file.message_type:
            refuse_text(registry, subject)
        name = message or ".".join(filter(None, (file.package, file.message_type[0].name)))
        return RegistryProtobufCodec(registry, subject, message_codec(with_imports(file), name))

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        bodies = []
        for record in data:
            number, rest = split_header(record)
            indexes, body = split_indexes(rest)
            self._check(number, indexes)
            bodies.append(body)
        return self._inner.parse(bodies)

    def _check(self, number: int, indexes: Indexes) -> None:
        """Refuses records of another message, as far as the registry tells which one they are."""
        if (number, indexes) in self._checked:
            return
        found = self._registry.by_number(number, serialized=True)
        if found is None or found.kind != KIND:
            raise ValueError(f"names schema {number}, which is no Protobuf schema of the registry")
        file = file_of(found.text)
        name = None if file is None else named_by(file, indexes)
        if name not in (None, self._inner.message):
            raise ValueError(f"is a message '{name}', not '{self._inner.message}'")
        self._checked.add((number, indexes))

    def prepare(self) -> None:
        """Registers the message's file."""
        if self._subject is None:
            raise no_subject()
        file = self._inner.file()
        foreign = [name for name in file.dependency if not name.startswith("google/protobuf/")]
        if foreign:
            refuse_imports(self._inner.message, foreign[0])
        text = base64.b64encode(file.SerializeToString()).decode()
        self._number = self._registry.register(self._subject, KIND, text)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> list[bytes]:
        if self._number is None:
            self.prepare()
        assert self._number is not None
        head = header(self._number) + encoded_indexes(self._inner.indexes())
        return [head + body for body in self._inner.encode(rows)]


def file_of(text: str) -> FileDescriptorProto | None:
    """A file as a registry gives it, serialized; None where it gives the source text."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None


def with_imports(file: FileDescriptorProto) -> bytes:
    """A set of a file and of what it imports of Google's own."""
    from google.protobuf import any_pb2, duration_pb2, timestamp_pb2, wrappers_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    made = FileDescriptorSet()
    for module in (timestamp_pb2, duration_pb2, wrappers_pb2, any_pb2):
        if module.DESCRIPTOR.name in file.dependency:
            own = FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(own)
            made.file.append(own)
    made.file.append(file)
    return bytes(made.SerializeToString())


def named_by(file: FileDescriptorProto, indexes: Indexes) -> str | None:
    """The full name of the message at a place of a file."""
    names, level = [file.package] if file.package else [], file.message_type
    for index in indexes:
        if index >= len(level):
            return None
        names.append(level[index].name)
        level = level[index].nested_type
    return ".".join(names)


def encoded_indexes(indexes: Indexes) -> bytes:
    """The place of a message, as Confluent's clients write it; the first of all is a zero."""
    numbers = (0,) if indexes == (0,) else (len(indexes), *indexes)
    return b"".join(_varint(number << 1) for number in numbers)


def split_indexes(data: bytes) -> tuple[Indexes, bytes]:
    """The place of a message, and the rest of a record."""
    count, at = _read_varint(data, 0)
    if count == 0:
        return (0,), data[at:]
    indexes = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        indexes.append(index)
    return tuple(indexes), data[at:]


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number that is not negative, zigzag as all of them here; and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value >> 1, at


def refuse_text(registry: SchemaRegistry, subject: str | None) -> NoReturn:
    """Stops where a registry has a schema as source text only."""
    raise DataError(
        f"the registry at '{registry.url}' gives the schema of '{subject}' as source text, for protoc.",
        remedy="Give the file too: cz.protobuf('readings.desc', 'traffic.Reading', registry=..., "
        "subject=...).",
    )


def refuse_imports(message: str, file: str) -> NoReturn:
    """Stops where a message cannot be registered without other files."""
    raise PlanError(
        f"the message '{message}' imports '{reason(ValueError(file))}', and a sink registers one file.",
        remedy="Put what it imports into its own file, or write Avro.",
    )
