"""Output as rows, files and calls; and what a sink writes a source reads back."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caesura.errors import DataError, PlanError
from caesura.events import History, parse
from caesura.io import FileSink, read_csv, read_json, read_parquet, rows_table, sink_to
from caesura.punctuation import cti

ITEMS = parse("""
 LE  RE      | id |
 10  inf     | 3  | +
 10  inf->15 | 3  | -
 11  12      | 4  | +
-- definite: time < 20 --
""")
SCHEMA = ITEMS[0].schema


def test_rows_have_kind_lifetimes_and_payload():
    assert rows_table(ITEMS, SCHEMA, pa.int64()).to_pylist() == [
        {"kind": "+", "LE": 10, "RE": None, "RE_new": None, "id": 3},
        {"kind": "-", "LE": 10, "RE": None, "RE_new": 15, "id": 3},
        {"kind": "+", "LE": 11, "RE": 12, "RE_new": None, "id": 4},
    ]


def test_rows_of_a_stream_with_timestamps_have_timestamps():
    table = rows_table(ITEMS, SCHEMA, pa.timestamp("us", "UTC"))
    assert table.schema.field("RE_new").type == pa.timestamp("us", "UTC")
    assert table.column("LE").to_pylist()[0].microsecond == 10


def test_a_payload_column_with_a_name_that_is_taken_gets_another():
    [page] = parse("""
     LE  RE | kind id |
     10  12 | a    3  | +
    """)
    assert rows_table([page], page.schema, pa.int64()).schema.names == [
        "kind",
        "LE",
        "RE",
        "RE_new",
        "kind_",
        "id",
    ]


def test_no_pages_make_an_empty_table():
    assert rows_table([cti(5)], SCHEMA, pa.int64()).schema.names == ["kind", "LE", "RE", "RE_new", "id"]


@pytest.mark.parametrize(
    ("name", "read"), [("o.parquet", read_parquet), ("o.csv", read_csv), ("o.jsonl", read_json)]
)
def test_what_a_sink_writes_a_source_reads_back(tmp_path, name, read):
    with FileSink(tmp_path / name, SCHEMA, pa.int64()) as sink:
        sink.write(ITEMS[:1])
        sink.write(ITEMS[1:])
        assert not (tmp_path / name).exists()
    source = read(tmp_path / name, time="LE", end="RE", kind="kind", new_end="RE_new")
    ingress = source.operator()
    items = [item for raw in source.read({}) for item in ingress.raw(raw)]
    assert History.of(items, source.schema) == History.of(ITEMS, SCHEMA)


def test_a_failure_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError), FileSink(tmp_path / "o.jsonl", SCHEMA, pa.int64()) as sink:
        sink.write(ITEMS)
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_json_lines_spell_times_as_iso_texts(tmp_path):
    with FileSink(tmp_path / "o.jsonl", SCHEMA, pa.timestamp("us")) as sink:
        sink.write(ITEMS)
    first = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])
    assert first == {"kind": "+", "LE": "1970-01-01T00:00:00.000010", "RE": None, "RE_new": None, "id": 3}


def test_a_function_gets_every_item():
    got = []
    sink_to(got.append, SCHEMA, pa.int64()).write(ITEMS)
    assert got == ITEMS


def test_an_output_without_events_is_a_file_with_columns(tmp_path):
    with FileSink(tmp_path / "o.parquet", SCHEMA, pa.int64()) as sink:
        sink.write([cti(5)])
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 0


def test_places_and_columns_that_cannot_be_written_are_told(tmp_path):
    with pytest.raises(PlanError, match=r"no writer for 'o\.txt'"):
        FileSink(tmp_path / "o.txt", SCHEMA, pa.int64())
    with pytest.raises(DataError, match="cannot be written"):
        FileSink(tmp_path / "nowhere" / "o.csv", SCHEMA, pa.int64())
    nested = pa.schema([("at", pa.struct([("x", pa.int64())]))])
    with pytest.raises(PlanError, match="CSV cannot hold the column 'at'"):
        FileSink(tmp_path / "o.csv", nested, pa.int64())
