"""Output as rows; and what a sink writes a source reads back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from caesura.events import History, parse
from caesura.io import read_parquet, rows_table
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


def test_rows_that_were_written_are_read_back_as_the_same_stream(tmp_path):
    pq.write_table(rows_table(ITEMS, SCHEMA, pa.int64()), tmp_path / "o.parquet")
    source = read_parquet(tmp_path / "o.parquet", time="LE", end="RE", kind="kind", new_end="RE_new")
    ingress = source.operator()
    items = [item for raw in source.read({}) for item in ingress.raw(raw)]
    assert History.of(items, source.schema) == History.of(ITEMS, SCHEMA)
