"""Records of a topic as rows, without a broker: holes, records that cannot be read, deletes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

import caesura as cz
from caesura.io.codecs.json import JsonCodec
from caesura.io.codecs.protocol import RecordCodec, TextCodec
from caesura.io.kafka.records import RecordForm, lane_rows
from caesura.plan import Raw

SCHEMA = pa.schema([("ts", pa.int64()), ("n", pa.int64())])


class Record:
    """A message as a client gives it."""

    def __init__(self, value: bytes | None, key: bytes | None = None, at: int = 0) -> None:
        self.value, self.key, self.timestamp = (lambda: value), (lambda: key), (lambda: (1, at))


def rows(form: RecordForm, records: list[Record], offsets: list[int], lanes: list[int], lane: int) -> Raw:
    places, parts = np.array(offsets), np.array(lanes)
    mine = np.flatnonzero(parts == lane)
    span = (0, int(places[mine[-1]]) + 1)
    read = form.rows(records, places, parts)  # type: ignore[arg-type]
    return lane_rows(form, read, lane, mine, places, span)


def row(n: int) -> Record:
    return Record(b'{"ts": %d, "n": %d}' % (n, n))


def test_rows_know_their_offsets_where_there_are_holes_and_can_be_cut_anywhere() -> None:
    records = [row(1), row(2), row(3), row(4)]
    raw = rows(RecordForm("t", cz.json(SCHEMA)), records, [2, 3, 7, 9], [0] * 4, 0)
    first, rest = raw.split(2)
    assert (raw.end, first.end, rest.offset, rest.end) == (10, 7, 7, 10)
    assert [part.batch["n"].to_pylist() for part in (first, rest)] == [[1, 2], [3, 4]]
    cut = raw.first(8)
    assert cut is not None and cut.batch["n"].to_pylist() == [1, 2, 3]


def test_partitions_of_one_poll_are_told_apart() -> None:
    form, records = RecordForm("t", cz.json(SCHEMA)), [row(1), Record(b"?"), row(3), row(4)]
    lanes, offsets = [1, 0, 0, 1], [0, 0, 1, 1]
    one, other = (rows(form, records, offsets, lanes, lane) for lane in (0, 1))
    assert (one.batch["n"].to_pylist(), other.batch["n"].to_pylist()) == ([3], [1, 4])
    assert [at for at, _ in one.refused] == [0]
    assert other.refused == () and other.offsets is None


def test_a_delete_has_its_key_and_the_time_of_the_broker() -> None:
    timed = cz.json(pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("n", pa.int64())]))
    form = RecordForm("t", timed, TextCodec("id", pa.int64()), time="ts")
    records = [Record(b'{"ts": "2026-01-01T00:00:00", "n": 4}', b"7"), Record(None, b"7", 1000)]
    found = rows(form, records, [0, 1], [0, 0], 0).batch.to_pylist()
    assert [(r["id"], r["n"], r["ts"].year, r["_op"]) for r in found] == [
        (7, 4, 2026, "put"),
        (7, None, 1970, "delete"),
    ]


@pytest.mark.parametrize(
    "bad", [b"", b"[]", b"1", b"{}{}", b"{}\n{}", b'{"ts": "x"}', b'{"ts": 1', b"\xff{}", b'{"s": "\xff"}']
)
def test_a_record_that_is_no_json_object_of_its_schema_is_named_and_the_others_are_read(bad: bytes) -> None:
    codec = JsonCodec(SCHEMA.append(pa.field("s", pa.string())))
    decoded = codec.decode([b'{"ts": 1}', bad, b'{\n "ts": 2}', b'{"ts": 3}'])
    assert (decoded.batch["ts"].to_pylist(), list(decoded.bad)) == ([1, 2, 3], [1])


def avro_record(**types: object) -> dict[str, object]:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "Reading", "fields": fields}


def descriptors(folder: Path) -> Path:
    """A file as protoc makes it: a message of a time, a number that may be missing, and a list."""
    one = descriptor_pb2.FieldDescriptorProto
    message = descriptor_pb2.DescriptorProto(name="Reading", oneof_decl=[{"name": "_n"}])
    message.field.add(name="ts", number=1, type=one.TYPE_INT64, label=one.LABEL_OPTIONAL)
    message.field.add(
        name="n", number=2, type=one.TYPE_INT64, label=one.LABEL_OPTIONAL, proto3_optional=True, oneof_index=0
    )
    message.field.add(name="tags", number=3, type=one.TYPE_STRING, label=one.LABEL_REPEATED)
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="t", syntax="proto3")
    file.message_type.add().CopyFrom(message)
    path = folder / "readings.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return path


def codecs(folder: Path) -> Iterator[RecordCodec]:
    optional = ["null", "long"]
    yield JsonCodec(SCHEMA)
    yield cz.avro(avro_record(ts="long", n=optional, tags={"type": "map", "values": "long"}))
    yield cz.protobuf(descriptors(folder), "t.Reading")


def test_what_a_codec_writes_it_reads_also_in_another_process(tmp_path: Path) -> None:
    for codec in codecs(tmp_path):
        rows = [{"ts": 1, "n": 7, "tags": []}, {"ts": 2, "n": None, "tags": []}]
        table = pa.Table.from_pylist(rows, codec.schema)
        written = codec.encode(table)
        decoded = pickle.loads(pickle.dumps(codec)).decode([*written, b"\xff\xff"])
        assert (decoded.batch.to_pylist(), list(decoded.bad)) == (table.to_pylist(), [2])


def test_avro_is_read_as_a_later_schema_and_behind_the_header_of_a_registry(tmp_path: Path) -> None:
    file = tmp_path / "reading.avsc"
    file.write_text(json.dumps(avro_record(ts="long")))
    later = avro_record(ts="long")
    later["fields"] = [{"name": "ts", "type": "double"}, {"name": "n", "type": "long", "default": 4}]
    [written] = cz.avro(file).encode(pa.table({"ts": [3]}))
    decoded = cz.avro(file, reader=later, registry_header=True).decode([b"\0\0\0\0\1" + written, written])
    assert (decoded.batch.to_pylist(), list(decoded.bad)) == ([{"ts": 3.0, "n": 4}], [1])
