"""Schemas of a real registry, for records of a real topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from local_kafka import NotRunError
from local_registry import RegistryServer
from topics import Topic

import caesura as cz
from caesura.errors import StreamError

FIRST = pa.schema([("ts", pa.int64()), ("n", pa.int64())])


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    try:
        running = RegistryServer()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    with running:
        yield running


@pytest.fixture
def registry(server: RegistryServer) -> Any:
    return cz.registry(server.url)


def test_a_schema_that_changes_is_followed_and_one_that_does_not_fit_stops_the_sink(
    make_topic: Callable[..., Topic], server: RegistryServer, registry: Any
) -> None:
    topic = make_topic()
    value = cz.avro(registry=registry, subject=f"{topic.name}-value")
    first = value.for_rows(FIRST)
    later = value.for_rows(FIRST.append(pa.field("road", pa.string())))
    topic.put(*first.encode(pa.table({"ts": [1], "n": [10]}, schema=FIRST)))
    server.backward(f"{topic.name}-value")
    topic.put(*later.encode(pa.table({"ts": [2], "n": [20], "road": ["A1"]}, schema=later.schema)))
    topic.put(b"\0\0\0\x7f\xff\x02")
    done = cz.read.kafka(topic.servers, topic.name, value=value, time="ts", until="latest").run()
    assert [(r["n"], r["road"]) for r in done.table().to_pylist()] == [(10, None), (20, "A1")]
    [late] = done.late.values()
    assert "names schema 32767, which is no Avro schema of the registry" in late.column("reason")[0].as_py()
    with pytest.raises(StreamError, match="does not fit earlier ones"):
        value.for_rows(pa.schema([("ts", pa.string())])).prepare()


def test_two_pipelines_chain_by_avro(make_topic: Callable[..., Topic], registry: Any, tmp_path: Path) -> None:
    topic = make_topic(partitions=2)
    value = cz.avro(registry=registry, subject=f"{topic.name}-value")
    rows = cz.from_rows([{"ts": t, "id": t % 3} for t in range(20)], time="ts", punctuate=cz.delay(2))
    counts = rows.group_by("id").tumbling(5).agg(n=cz.count())
    sink = cz.kafka(topic.servers, topic.name, key="id", punctuation=True, value=value)
    counts.query(checkpoint=tmp_path, sink=sink).run()
    topic.settle()
    options: Any = {"time": pa.int64(), "value": value, "until": "latest"}
    back = cz.read.kafka_changes(topic.servers, topic.name, counts.schema, **options)
    assert back.run(output="final").history == counts.run(output="final").history


def test_protobuf_messages_of_two_versions_are_read_as_the_last(registry: Any, tmp_path: Path) -> None:
    field = descriptor_pb2.FieldDescriptorProto
    codecs = []
    for names in (["ts"], ["ts", "n"]):
        file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="t", syntax="proto3")
        message = file.message_type.add(name="Reading")
        for number, name in enumerate(names, 1):
            message.field.add(name=name, number=number, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
        path = tmp_path / "-".join(names)
        path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
        codecs.append(cz.protobuf(path, "t.Reading", registry=registry, subject="readings"))
    written = [
        one for codec in codecs for one in codec.encode(pa.table({name: [7] for name in codec.schema.names}))
    ]
    assert codecs[1].decode(written).batch.to_pylist() == [{"ts": 7, "n": 0}, {"ts": 7, "n": 7}]
    assert cz.protobuf(registry=registry, subject="readings").schema == codecs[1].schema
