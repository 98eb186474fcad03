"""JSON objects as maps, in records and in files; whatever else stands there is told."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.errors import DataError
from caesura.io.codecs.json_maps import BARES, LETTERS, as_entries, map_paths, write_entries

COUNTS = pa.map_(pa.string(), pa.int64())
INNER = pa.struct([("größe", COUNTS), ("list", pa.list_(pa.map_(pa.int32(), COUNTS)))])
SCHEMA = pa.schema([("ts", pa.int64()), ("m", COUNTS), ("s", INNER), ("mm", pa.map_(pa.string(), COUNTS))])

keys = st.sampled_from(["a", 'b"', "ü", "{}", "", ":,", "\\", "key", "m"])
counts = st.none() | st.dictionaries(keys, st.none() | st.integers(-9, 2**60), max_size=3)
numbered = st.lists(st.dictionaries(st.integers(0, 99).map(str), counts, max_size=2), max_size=2)
inner = st.none() | st.fixed_dictionaries({"größe": counts, "list": numbered, "more": counts})
record = st.fixed_dictionaries(
    {"ts": st.integers(0, 9)},
    optional={"m": counts, "s": inner, "mm": st.dictionaries(keys, counts, max_size=2), "more": counts},
)


def written_out(value, t):
    """The obvious: a map as the list of its entries."""
    if value is None or t is None:
        return value
    if pa.types.is_map(t):
        number = int if pa.types.is_integer(t.key_type) else str
        return [{"key": number(k), "value": written_out(v, t.item_type)} for k, v in value.items()]
    if pa.types.is_struct(t):
        types = {field.name: field.type for field in t}
        return {k: written_out(v, types.get(k)) for k, v in value.items()}
    return [written_out(v, t.value_type) for v in value] if pa.types.is_list(t) else value


@pytest.mark.slow
@settings(max_examples=examples(60, short=20), deadline=None)
@given(record, st.booleans(), st.sampled_from([None, 1]))
def test_maps_are_written_out_and_nothing_else_changes(row, plain, indent):
    paths, text = map_paths(SCHEMA), json.dumps(row, ensure_ascii=plain, indent=indent).encode()
    assert json.loads(as_entries(text, paths)) == written_out(row, pa.struct(list(SCHEMA)))
    found = []
    for run in (write_entries.twin, write_entries.compiled()):
        out, letters = np.zeros(20 * len(text), np.uint8), np.frombuffer(text, np.uint8)
        size = run(letters, paths.nodes, paths.fields, paths.letters, LETTERS, BARES, out)
        found.append((size, out.tolist()))
    assert found[0] == found[1]


def test_records_with_objects_are_read_as_maps():
    some = [
        b'{"ts": 1, "m": {"b": 2, "a": 1}, "mm": {"x": {"y": 3}, "z": null}}',
        b'{"ts": 2, "m": [{"key": "a", "value": 5}], "s": {"list": [{"7": {"q": 1}}]}}',
        b'{"ts": 3, "m": null}',
        b'{"ts": 4, "m": {}, "s": {"gr\\u00f6\\u00dfe": {"a": null}}}',
    ]
    rows = cz.json(SCHEMA).parse(some).to_pylist()
    assert [row["m"] for row in rows] == [[("a", 1), ("b", 2)], [("a", 5)], None, []]
    assert rows[0]["mm"] == [("x", [("y", 3)]), ("z", None)]
    assert rows[1]["s"]["list"] == [[(7, [("q", 1)])]] and rows[3]["s"]["größe"] == [("a", None)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b'{"ts": 1, "m": 7}', "column 'm' is a map, and there stands 7"),
        (b'{"ts": 1, "m": "a, b"}', "column 'm' is a map, and there stands \"a, b\""),
        (b'{"ts": 1, "mm": {"x": [], "y": true}}', "column 'mm' is a map, and there stands true"),
        (b'{"ts": 1, "m": {"a": "x"}}', "changed from number to string"),
        (b'{"ts": 1, "m": {"a", "b": 1}}', 'is no JSON: , "b": 1'),
        (b'{"ts": 1, "m": {"a": 1,}}', "JSON parse error"),
        (b'{"ts": 1, "s": {"list": [{"x": {}}]}}', "changed from number to string"),
        (b'{"ts": 1, "m": ' + b"[" * 2000 + b"}", "nests more than 1024"),
    ],
)
def test_what_is_no_map_is_told_and_the_others_are_read(record, reason):
    decoded = cz.json(SCHEMA).decode([b'{"ts": 0}', record, b'{"ts": 2, "m": {"a": 1}}'])
    assert reason in decoded.bad[1] and list(decoded.bad) == [1]
    assert decoded.batch.column("m").to_pylist() == [None, [("a", 1)]]


def test_a_decimal_beside_a_map_keeps_its_digits():
    schema = pa.schema([("d", pa.decimal128(30, 10)), ("m", COUNTS)])
    row = b'{"d": "12345678901234567890.0123456789", "m": {"a": 9007199254740993}}'
    assert cz.json(schema).parse([row]).to_pylist()[0]["m"] == [("a", 9007199254740993)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_files_with_objects_are_read_as_maps(tmp_path, name):
    rows = [{"ts": n, "m": {f"key {n}": n, f"other {n}": 0}} for n in range(500)]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    schema = pa.schema([("ts", pa.int64()), ("m", COUNTS)])
    read = cz.read.json(tmp_path / name, schema=schema, time="ts").run().history.rows()
    assert [dict(row[0]) for _, _, row in read] == [row["m"] for row in rows]


def test_a_file_with_something_else_for_a_map_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"ts": 1, "m": {"a": 1}}\n{"ts": 2, "m": "b"}\n')
    schema = pa.schema([("ts", pa.int64()), ("m", COUNTS)])
    with pytest.raises(DataError, match=r"a.jsonl' cannot be read as JSON lines: column 'm' is a map"):
        cz.read.json(tmp_path / "a.jsonl", schema=schema, time="ts").run()


def test_a_map_with_one_key_twice_is_late_with_the_reason(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"ts": 1, "m": {"a": 1, "a": 2}}\n{"ts": 2, "m": {"a": 1}}\n')
    schema = pa.schema([("ts", pa.int64()), ("m", COUNTS)])
    result = cz.read.json(tmp_path / "a.jsonl", schema=schema, time="ts", name="rows").run()
    assert len(result.history) == 1 and "twice" in result.late["rows"]["reason"][0].as_py()
