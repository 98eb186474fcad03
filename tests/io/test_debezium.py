"""Changes that Debezium tells make the table that the database has, at every moment of it."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import CaesuraError, DataError, PlanError, StreamError
from caesura.io.codecs.debezium import OP, POSITION, ROW, DebeziumCodec
from caesura.io.kafka.records import RecordForm, lane_rows

ROWS = pa.schema([("id", pa.int64()), ("v", pa.string())])
Record = dict[str, Any]


def change(op: str, ms: int, row: Record | None, /, *, before: Record | None = None, **source: Any) -> Record:
    after, before = (None, row) if op == "d" else (row, before)
    return {"op": op, "before": before, "after": after, "source": {"ts_ms": ms, **source}, "ts_ms": ms + 7}


class Database:
    """Rows by key, the log of their changes, and what the table was after each millisecond."""

    def __init__(self, random: Random) -> None:
        self.random, self.lsn, self.now = random, 0, 0
        self.rows: dict[int, str] = {}
        self.log: list[Record] = []
        self.tables: dict[int, dict[int, str]] = {}

    def work(self, steps: int) -> None:
        for _ in range(steps):
            self.now += self.random.choice((0, 0, 1, 3))
            self.lsn += self.random.randint(1, 9)
            key = self.random.randrange(4)
            if key in self.rows and self.random.random() < 0.4:
                del self.rows[key]
                self._tell("d", {"id": key, "v": None})
            else:
                op = "u" if key in self.rows else "c"
                self.rows[key] = self.random.choice("zyxwv") + str(self.random.randrange(9))
                self._tell(op, {"id": key, "v": self.rows[key]})
            self.tables[self.now] = dict(self.rows)

    def snapshot(self) -> None:
        """All rows as they are, before the log goes on; what came before is not told."""
        self.now, self.lsn = self.now + 1, self.lsn + 1
        self.log, self.tables = [], {self.now: dict(self.rows)}
        for key, value in self.rows.items():
            self._tell("r", {"id": key, "v": value})

    def _tell(self, op: str, row: Record) -> None:
        record = change(op, self.now, row, lsn=self.lsn, snapshot=str(op == "r").lower())
        self.log.append({"schema": {"type": "struct"}, "payload": record} if self.lsn % 2 else record)


def write(folder: Path, records: list[Record], random: Random) -> Path:
    """Records in files, cut anywhere."""
    parts: list[list[Record]] = [[]]
    for record in records:
        parts[-1].append(record)
        if random.random() < 0.2:
            parts.append([])
    for number, part in enumerate(parts):
        text = "".join(json.dumps(record) + "\n" for record in part)
        (folder / f"{number:03d}.jsonl").write_text(text)
    return folder


def table_at(history: list[Record], ms: int) -> dict[int, str]:
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return {r["id"]: r["v"] for r in history if r["LE"] <= at and (r["RE"] is None or at < r["RE"])}


@settings(max_examples=examples(6), deadline=None)
@given(st.integers(0, 999), st.booleans())
def test_a_snapshot_and_the_log_behind_it_make_the_table_at_every_moment(tmp_path_factory, seed, twice):
    random = Random(seed)
    database = Database(random)
    database.work(6)
    database.snapshot()
    database.work(14)
    log = [*database.log, *(database.log[-5:] if twice else [])]  # as a connector that starts again
    folder = write(tmp_path_factory.mktemp("log"), log, random)
    history = cz.read.debezium(folder, key="id", schema=ROWS).run().table().to_pylist()
    for ms, rows in database.tables.items():
        assert table_at(history, ms) == rows


def test_columns_are_inferred_and_the_connectors_clock_can_be_taken(tmp_path):
    write(tmp_path, [change("c", 1, {"id": 1, "v": "a"}, lsn=1)], Random(1))
    [row] = cz.read.debezium(tmp_path, key="id", time="connector").run().table().to_pylist()
    assert (row["id"], row["v"], row["LE"]) == (1, "a", datetime.fromtimestamp(0.008, UTC))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"file": "bin.999999", "pos": 9}, {"file": "bin.1000000", "pos": 4}),
        ({"file": "bin.000001", "pos": 9, "row": 0}, {"file": "bin.000001", "pos": 9, "row": 1}),
        ({"scn": "99"}, {"scn": "100"}),
        ({"commit_lsn": "0a:01", "change_lsn": "0a:02"}, {"commit_lsn": "0a:01", "change_lsn": "0a:0f"}),
    ],
)
def test_of_changes_in_one_millisecond_the_last_in_the_log_counts(tmp_path, first, second):
    one, other = ({"id": 1, "v": value} for value in ("z", "a"))
    records = [change("c", 5, one, **first), change("u", 5, other, **second)]
    write(tmp_path, records[::-1], Random(3))
    assert cz.read.debezium(tmp_path, key="id").run().table()["v"].to_pylist() == ["a"]


TYPED = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("ms")),
        ("exact", pa.timestamp("us")),
        ("day", pa.date32()),
        ("zoned", pa.timestamp("us", "UTC")),
        ("cost", pa.decimal128(9, 2)),
        ("raw", pa.binary()),
    ]
)


def test_types_are_read_as_the_connector_writes_them():
    row = {"id": 1, "at": 1500, "exact": 1500, "day": 3, "zoned": "1970-01-01T00:00:02Z", "cost": "1.25"}
    record = change("c", 5, {**row, "raw": "AAE="}, lsn=1)
    [read] = DebeziumCodec(TYPED, ("id",)).decode([json.dumps(record).encode()]).batch.to_pylist()
    assert [read[name].microsecond for name in ("at", "exact")] == [500000, 1500]
    assert read["day"] == date(1970, 1, 4)
    assert (read["zoned"].second, read["cost"], read["raw"]) == (2, Decimal("1.25"), b"\0\1")


def test_a_value_that_was_not_logged_is_taken_from_before_or_named():
    codec = DebeziumCodec(ROWS, ("id",))
    left = {"id": 1, "v": "__debezium_unavailable_value"}
    records = [change("u", 1, left, before={"id": 1, "v": "long"}), change("u", 2, left)]
    decoded = codec.decode([json.dumps(record).encode() for record in records])
    assert decoded.batch["v"].to_pylist() == ["long"]
    assert "did not log the value of 'v'" in decoded.bad[1]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"id": 1}, "no op"),
        (change("x", 1, {"id": 1}), "its op is 'x'"),
        (change("u", 1, None), "no 'after'"),
        ({"op": "c", "after": {"id": 1}}, "no time"),
    ],
)
def test_what_is_no_change_of_a_row_is_named(tmp_path, record, why):
    decoded = DebeziumCodec(ROWS, ("id",)).decode([json.dumps(record).encode()])
    assert why in decoded.bad[0]
    write(tmp_path, [record], Random(1))
    with pytest.raises(DataError, match=why):
        cz.read.debezium(tmp_path, key="id", schema=ROWS).run()


def test_truncates_and_updates_of_the_key_stop_the_query_by_name(tmp_path):
    for record, message in (
        ({"op": "t", "source": {"ts_ms": 1}}, "was truncated"),
        (change("u", 1, {"id": 2, "v": "a"}, before={"id": 1, "v": "a"}), "'id' was 1 and is 2"),
    ):
        write(tmp_path, [record], Random(1))
        with pytest.raises(StreamError, match=message):
            cz.read.debezium(tmp_path, key="id", schema=ROWS).run()


def test_what_is_not_said_is_asked_for(tmp_path):
    write(tmp_path, [change("c", 1, {"id": 1, "v": "a"})], Random(1))
    for options, message in (
        ({"key": "id"}, "not said where"),
        ({"key": "id", "path": tmp_path, "topic": "t"}, "not said where"),
        ({"key": "id", "topic": "t"}, "not said where"),
        ({"key": "id", "servers": "x:9", "topic": "t"}, "nothing tells the columns"),
        ({"key": "idd", "path": tmp_path}, "Did you mean 'id'"),
        ({"key": "id", "path": tmp_path, "time": "mine"}, "is no clock"),
    ):
        with pytest.raises(PlanError, match=message):
            cz.read.debezium(**options)
    (tmp_path / "000.jsonl").write_text('{"op": "t"}\n')
    with pytest.raises(CaesuraError, match="have neither 'after' nor 'before'"):
        cz.read.debezium(tmp_path, key="id")


class Message:
    """A record as a client gives it."""

    def __init__(self, value: bytes | None) -> None:
        self.value, self.key, self.timestamp = (lambda: value), (lambda: None), (lambda: (1, 0))


def test_tombstones_are_passed_over_in_every_partition():
    some = [json.dumps(change("c", n, {"id": n, "v": "a"}, lsn=n)).encode() for n in range(3)]
    values = [some[0], None, some[1], None, None, some[2]]
    lanes, offsets = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 1, 0, 1, 2, 2])
    form = RecordForm("t", DebeziumCodec(ROWS, ("id",)))
    read = form.rows([Message(value) for value in values], offsets, lanes)
    for lane, ids in ((0, [0]), (1, [1, 2])):
        raw = lane_rows(form, read, lane, np.flatnonzero(lanes == lane), offsets, (0, 3))
        assert (raw.batch["id"].to_pylist(), raw.end, raw.refused) == (ids, 3, ())


def test_a_topic_is_read_as_the_files_are():
    producer = Producer({"test.mock.num.brokers": 1, "allow.auto.create.topics": True})
    database = Database(Random(5))
    database.work(12)
    for record in database.log:
        inner = record.get("payload", record)
        producer.produce("shop.public.t", json.dumps(record).encode(), partition=0)
        if inner["op"] == "d":
            producer.produce("shop.public.t", None, partition=0)
    producer.flush()
    [broker] = producer.list_topics().brokers.values()
    options = {"servers": f"{broker.host}:{broker.port}", "topic": "shop.public.t", "schema": ROWS}
    result = cz.read.debezium(key="id", until="latest", punctuate=cz.delay("0s"), **options).run()
    assert table_at(result.table().to_pylist(), database.now) == database.rows
    assert all(late.num_rows == 0 for late in result.late.values())


def test_a_reader_of_files_travels_to_workers(tmp_path):
    write(tmp_path, [change("c", 1, {"id": 1, "v": "a"}, lsn=4, row=2)], Random(9))
    node = cz.read.debezium(tmp_path, key="id").node
    while node.inputs:
        node = node.inputs[0]
    reader = pickle.loads(pickle.dumps(node.reader))
    [raw] = reader.read_file(str(tmp_path / "000.jsonl"))
    assert [raw.batch[name][0].as_py() for name in (OP, POSITION, ROW)] == ["c", 4, 2]
