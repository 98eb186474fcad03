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

    Parameters
    ----------
    schema
        The schema that records were written with: a file, or its content as a dict.
    reader
        A schema that they are read as instead, by Avro's rules of evolution.
    registry_header
        Whether each record has the five bytes in front that name a schema in a registry; they are passed
        over.
    registry
        A registry: then each record names the schema that it was written with, and is read as ``schema``,
        or as the last one of its subject; a sink registers the schema of its rows there.
    subject
        The subject in the registry.

    Returns
    -------
    RecordCodec
        For ``value=`` and ``key=`` of `read.kafka`, and ``value=`` of `cz.kafka`.

    See Also
    --------
    read.kafka : a topic of Kafka.
    registry : where schemas of records are kept.
    protobuf : records that hold messages.

    Examples
    --------
    >>> import caesura as cz
    >>> fields = [{"name": "ts", "type": "long"}, {"name": "id", "type": "long"}]
    >>> cz.avro({"type": "record", "name": "click", "fields": fields}).schema.names
    ['ts', 'id']
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
    """Records that are Protobuf messages.

    Parameters
    ----------
    descriptors
        A file that ``protoc --descriptor_set_out`` made.
    message
        The full name of the message, such as ``"traffic.Reading"``. One that holds itself cannot be a row.
    registry
        A registry: then each record names its schema there; without a file its message is the first one of
        the subject's last schema, or the one named. A sink registers the message under the subject.
    subject
        The subject in the registry.

    Returns
    -------
    RecordCodec
        For ``value=`` and ``key=`` of `read.kafka`, and ``value=`` of `cz.kafka`.

    See Also
    --------
    read.kafka : a topic of Kafka.
    registry : where schemas of records are kept.
    avro : records that hold Avro.

    Examples
    --------
    With a file of descriptors::

        readings = cz.protobuf("readings.desc", "traffic.Reading")
        speeds = cz.read.kafka("kafka:9092", "speeds", value=readings, time="ts")
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
