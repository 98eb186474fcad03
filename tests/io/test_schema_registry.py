"""Records whose schemas lie in a registry, over real HTTP: evolution, what is asked, what goes wrong."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from memory_broker import MemoryBroker
from schema_server import SchemaServer

import caesura as cz
from caesura.errors import CaesuraError
from caesura.io.codecs import registry as registries
from caesura.io.kafka.cluster import Cluster
from caesura.runtime.query.stored_plan import pickled

ROWS = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int64()), ("tags", pa.list_(pa.string()))])


def record(**types: Any) -> dict[str, Any]:
    fields = [
        {"name": name, **(kind if isinstance(kind, dict) else {"type": kind})} for name, kind in types.items()
    ]
    return {"type": "record", "name": "Reading", "fields": fields}


@pytest.fixture
def server() -> Iterator[SchemaServer]:
    registries._known.cache_clear()
    with SchemaServer().served() as made:
        yield made


def avro(server: SchemaServer, *schema: Any, **options: Any) -> Any:
    registry = cz.registry(server.url, timeout=options.pop("timeout", "5s"), **options)
    return cz.avro(*schema, registry=registry, subject="readings-value")


def test_records_of_several_schemas_are_read_as_the_last_and_each_schema_is_asked_for_once(server):
    first, later = record(ts="long"), record(ts="long", n={"type": "long", "default": 4})
    written = []
    for schema in (first, later):
        server.add("readings-value", schema)
        rows = pa.table({name: [7] for name in [f["name"] for f in schema["fields"]]})
        written += avro(server, schema).encode(rows)
    server.asked.clear()
    codec = avro(server)
    decoded = codec.decode(written * 3)
    assert decoded.batch.to_pylist() == [{"ts": 7, "n": 4}, {"ts": 7, "n": 7}] * 3
    latest = "GET /subjects/readings-value/versions/latest"
    assert sorted(server.asked) == ["GET /schemas/ids/100", "GET /schemas/ids/101", latest]


def test_a_record_that_does_not_fit_or_names_nothing_is_named_and_the_others_are_read(server):
    number = server.add("other", record(ts="string"))
    codec = avro(server, record(ts="long"))
    [good] = codec.encode(pa.table({"ts": [1]}))
    bad = [b"{}", b"\0\0\0\0\x07\x02", number.to_bytes(5, "big") + b"\x02a", good + b"\0"]
    decoded = codec.decode([good, *bad, good])
    assert (decoded.batch["ts"].to_pylist(), list(decoded.bad)) == ([1, 1], [1, 2, 3, 4])
    assert decoded.bad[2] == "names schema 7, which is no Avro schema of the registry"


def test_rows_get_a_schema_of_their_own_and_are_read_back_in_another_process(server):
    codec = avro(server).for_rows(ROWS)
    codec.prepare()
    rows = pa.Table.from_pylist(
        [{"ts": 5, "n": None, "tags": ["a", None]}, {"ts": None, "n": 1, "tags": []}], ROWS
    )
    written = pickle.loads(pickle.dumps(codec)).encode(rows)
    assert server.asked == ["POST /subjects/readings-value/versions"]  # the worker knows the number
    assert codec.decode(written).batch.to_pylist() == rows.to_pylist()
    assert avro(server).schema == ROWS


def test_a_schema_that_does_not_fit_the_subject_stops_a_sink_before_it_begins(server):
    server.add("readings-value", record(kind="long"))
    broker = MemoryBroker()
    broker.make("topic")
    with (
        broker.served(),
        pytest.raises(CaesuraError, match="does not fit earlier ones: Schema being registered"),
    ):
        stream = cz.from_rows([{"ts": 1, "id": 7}], time="ts")
        sink = cz.kafka(broker.servers, "topic", value=avro(server))
        stream.query(checkpoint="memory://unfit", sink=sink)


def test_a_topic_of_avro_chains_two_pipelines(server):
    broker = MemoryBroker()
    broker.make("topic", 2)
    stream = cz.from_rows([{"ts": t, "id": t % 3} for t in range(9)], time="ts", punctuate=cz.delay(1))
    counts = stream.group_by("id").tumbling(4).agg(n=cz.count())
    with broker.served():
        sink = cz.kafka(broker.servers, "topic", punctuation=True, value=avro(server))
        counts.query(checkpoint="memory://avro", sink=sink).run()
        back = cz.read.kafka_changes(
            broker.servers, "topic", counts.schema, time=pa.int64(), value=avro(server), until="latest"
        )
        assert back.run(output="final").history == counts.run().history


def test_a_registry_is_waited_for_and_one_that_stays_away_is_no_reason_to_drop_records(server):
    [written] = avro(server, record(ts="long")).encode(pa.table({"ts": [1]}))
    server.broken = 2
    assert avro(server, record(ts="long")).decode([written]).bad == {}
    registries._known.cache_clear()
    server.broken = 1 << 20
    with pytest.raises(CaesuraError, match=r"no schema registry answers at .* within 0 s: it answers 503"):
        avro(server, record(ts="long"), timeout="0s").decode([written])


def test_passwords_come_from_the_environment_and_are_in_no_plan_and_no_message(server, monkeypatch):
    server.wanted = "Basic " + base64.b64encode(b"me:hidden").decode()
    server.add("readings-value", record(ts="long"))
    with pytest.raises(CaesuraError, match="'REGISTRY' has no credentials"):
        _ = avro(server, auth_env="REGISTRY").schema
    monkeypatch.setenv("REGISTRY", "me:wrong")
    with pytest.raises(CaesuraError, match="does not accept what 'REGISTRY' holds"):
        _ = avro(server, auth_env="REGISTRY").schema
    monkeypatch.setenv("REGISTRY", "me:hidden")
    codec = avro(server, auth_env="REGISTRY")
    assert codec.schema.names == ["ts"]
    broker = MemoryBroker()
    broker.make("topic")
    config = {"sasl.password": "hidden", "sasl.username": "me"}
    with broker.served():
        stream = cz.read.kafka(broker.servers, "topic", value=codec, time="ts", config=config)
    saved = pickled({"out": stream.node})
    assert saved is not None and b"hidden" not in saved and b"sasl.username" in saved
    assert "hidden" not in repr(stream.node.reader.cluster) + repr(codec) + codec.key + stream.explain()


def test_options_of_a_client_may_name_variables(monkeypatch):
    cluster = Cluster("host:1", (("sasl.password", "env:SECRET"),))
    assert cluster.without_secrets() == cluster
    with pytest.raises(CaesuraError, match="'SECRET', which is not set"):
        _ = cluster._options
    monkeypatch.setenv("SECRET", "x")
    assert cluster._options == {"sasl.password": "x"}


def descriptors(folder: Path, *fields: str, package: str = "t") -> Path:
    """A file as protoc makes it: a message that nobody reads, and one with these numbers."""
    one = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package=package, syntax="proto3")
    file.message_type.add(name="Other")
    message = file.message_type.add(name="Reading")
    for number, name in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=one.TYPE_INT64, label=one.LABEL_OPTIONAL)
    path = folder / f"{'-'.join(fields)}.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return path


def test_protobuf_is_read_by_the_numbers_of_its_fields_and_another_message_is_refused(server, tmp_path):
    registry = cz.registry(server.url)
    first = cz.protobuf(descriptors(tmp_path, "ts"), "t.Reading", registry=registry, subject="p")
    later = cz.protobuf(descriptors(tmp_path, "ts", "n"), "t.Reading", registry=registry, subject="p")
    other = cz.protobuf(descriptors(tmp_path, "ts", "m"), "t.Other", registry=registry, subject="q")
    written = [*first.encode(pa.table({"ts": [1]})), *later.encode(pa.table({"ts": [2], "n": [3]}))]
    foreign = other.encode(pa.table({"none": pa.nulls(1)}))
    decoded = pickle.loads(pickle.dumps(later)).decode([*written, *foreign, b"\0\0"])
    assert decoded.batch.to_pylist() == [{"ts": 1, "n": 0}, {"ts": 2, "n": 3}]
    assert decoded.bad == {2: "is a message 't.Other', not 't.Reading'", 3: "names no schema of a registry"}
    assert cz.protobuf(message="t.Reading", registry=registry, subject="p").schema == later.schema
