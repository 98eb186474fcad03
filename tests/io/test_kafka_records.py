"""Records of a topic as rows, without a broker: holes, records that cannot be read, deletes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

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


@pytest.mark.parametrize("codec", [JsonCodec(SCHEMA)])
def test_what_a_codec_writes_it_reads(codec: RecordCodec) -> None:
    table = pa.table({"ts": [1, 2, None], "n": [7, None, -1]}, schema=SCHEMA)
    decoded = codec.decode(codec.encode(table))
    assert (decoded.batch.to_pylist(), decoded.bad) == (table.to_pylist(), {})
