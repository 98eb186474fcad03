"""What users call to say how records are written: Avro and Protobuf, by files or by a registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from caesura.errors import CaesuraError, PlanError
from caesura.io.codecs.avro import AvroCodec, loaded
from caesura.io.codecs.avro_registry import RegistryAvroCodec
from caesura.io.codecs.protobuf import message_codec
from caesura.io.codecs.protobuf_registry import RegistryProtobufCodec
from caesura.io.codecs.protocol import RecordCodec
from caesura.io.codecs.registry import HEADER, SchemaRegistry, no_subject
from caesura.misuse import strict
from caesura.plan import here


@strict
def avro(
    schema: str | Path | Mapping[str, Any] | None = None,
    *,
    reader: str | Path | Mapping[str, Any] | None = None,
    registry_header: bool = False,
    registry: SchemaRegistry | None = None,
    subject: str | None = None,
) -> RecordCodec:
    """Records in Avro, written with the schema of an .avsc file, or with schemas of a registry.

    ``reader`` is a schema that they are read as instead, by Avro's rules of evolution. ``registry_header``
    says that each has the five bytes in front that name a schema in a registry; they are passed over. With a
    ``registry`` each record names the schema that it was written with, and is read as ``schema``, or as the
    last one of its ``subject``; a sink registers the schema of its rows there.
    """
    if registry is not None:
        pinned = schema if reader is None else reader
        if pinned is None and subject is None:
            raise no_subject().at("avro", here())
        return RegistryAvroCodec(registry, subject, None if pinned is None else loaded(pinned))
    if schema is None:
        raise PlanError(
            "it is not said which schema the records were written with.",
            remedy="Give cz.avro('reading.avsc'), or cz.avro(registry=cz.registry(url), subject=...).",
        ).at("avro", here())
    other = None if reader is None else loaded(reader)
    return AvroCodec(loaded(schema), other, header=HEADER if registry_header else 0)


@strict
def protobuf(
    descriptors: str | Path | None = None,
    message: str = "",
    *,
    registry: SchemaRegistry | None = None,
    subject: str | None = None,
) -> RecordCodec:
    """Records that are Protobuf messages, described by a file that ``protoc --descriptor_set_out`` made.

    ``message`` is the full name, such as "traffic.Reading". A message that holds itself cannot be a row.
    With a ``registry`` each record names its schema there; without a file its message is the first one of the
    ``subject``'s last schema, or the one named. A sink registers the message under the subject.
    """
    if registry is None:
        if descriptors is None or not message:
            raise PlanError(
                "it is not said which message the records are.",
                remedy="Give cz.protobuf('readings.desc', 'traffic.Reading'), or cz.protobuf(registry="
                "cz.registry(url), subject=...).",
            ).at("protobuf", here())
        return message_codec(descriptors, message)
    if descriptors is None and subject is None:
        raise no_subject().at("protobuf", here())
    try:
        return RegistryProtobufCodec.of(registry, subject, descriptors, message)
    except CaesuraError as error:
        raise error.at("protobuf", here()) from None
