"""Files and folders: what they read as, and how bad ones are told."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caesura.errors import CaesuraError, DataError, PlanError
from caesura.io import in_data, read_csv, read_json, read_parquet
from caesura.io.sources.pruning import Pruning

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64())])


def rows(source, offset=0):
    return [row for raw in source.read({0: offset}) for row in raw.batch.to_pylist()]


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=2)


def write_all(folder, texts):
    for name, text in texts.items():
        (folder / name).write_text(text)


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    parquet(tmp_path / "b.parquet", t=[3], id=[9])
    parquet(tmp_path / "a.parquet", t=[1, 2], id=[7, 8])
    (tmp_path / "_SUCCESS").touch()
    raws = list(read_parquet(tmp_path, time="t").read({}))
    assert [(raw.lane, raw.offset, raw.batch.num_rows) for raw in raws] == [(0, 0, 2), (0, 2, 1)]


@pytest.mark.parametrize("offset", range(6))
def test_reading_continues_at_any_offset(tmp_path, offset):
    for n, name in enumerate("ab"):
        parquet(tmp_path / f"{name}.parquet", t=[3 * n, 3 * n + 1, 3 * n + 2], id=[0, 0, 0])
        (tmp_path / f"{name}.csv").write_text("t,id\n" + "".join(f"{3 * n + i},0\n" for i in range(3)))
    for read in (read_parquet, read_csv):
        raws = list(read(tmp_path, time="t", batch_size=2).read({0: offset}))
        assert [row["t"] for raw in raws for row in raw.batch.to_pylist()] == list(range(offset, 6))
        assert raws[0].offset == offset


def test_columns_are_pruned_but_those_of_the_shape_stay(tmp_path):
    parquet(tmp_path / "a.parquet", t=[1], end=[2], id=[3], name=["x"], p=["time < 1"])
    source = read_parquet(tmp_path / "a.parquet", time="t", end="end", columns=["id"], punctuate=in_data("p"))
    assert source.schema.names == ["id"] and sorted(rows(source)[0]) == ["end", "id", "p", "t"]
    with pytest.raises(PlanError, match="has no column 'idd'"):
        read_parquet(tmp_path / "a.parquet", time="t", columns=["idd"])


def test_an_empty_csv_field_is_null_and_the_text_na_is_a_text(tmp_path):
    (tmp_path / "a.csv").write_text('t,country,n\n1,NA,\n2,,4\n3,"",5\n')
    assert [(r["country"], r["n"]) for r in rows(read_csv(tmp_path, time="t"))] == [
        ("NA", None),
        (None, 4),
        ("", 5),
    ]


def test_compressed_text_is_read(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"t,id\n1,2\n"))
    assert rows(read_csv(tmp_path, time="t")) == [{"t": 1, "id": 2}]


def test_json_lines_are_read_with_nested_values(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": 1, "where": {"x": 2.5}}\n{"t": 2}\n')
    source = read_json(tmp_path / "a.jsonl", time="t")
    assert rows(source) == [{"t": 1, "where": {"x": 2.5}}, {"t": 2, "where": None}]


def test_a_file_whose_values_are_narrower_is_widened(tmp_path):
    write_all(tmp_path, {"a.csv": "t,x\n1,2.5\n", "b.csv": "t,x\n2,3\n", "c.csv": "t,x\n3,\n"})
    assert [r["x"] for r in rows(read_csv(tmp_path, time="t"))] == [2.5, 3.0, None]


def test_an_empty_folder_is_an_empty_stream_if_the_schema_is_given(tmp_path):
    assert rows(read_parquet(tmp_path, schema=SCHEMA, time="t")) == []
    with pytest.raises(DataError, match="holds no Parquet file to take a schema from"):
        read_parquet(tmp_path, time="t")


def test_an_empty_text_file_has_no_rows(tmp_path):
    write_all(tmp_path, {"a.jsonl": '{"t": 1}\n', "b.jsonl": ""})
    assert rows(read_json(tmp_path, time="t")) == [{"t": 1}]


@pytest.mark.parametrize("read", [read_parquet, read_csv, read_json])
def test_a_path_that_does_not_exist_is_named(tmp_path, read):
    with pytest.raises(
        DataError, match=r"step 'read' \(test_files.py:\d+\): there is no file or folder '.*/nowhere'"
    ):
        read(tmp_path / "nowhere", time="t")


def test_a_folder_of_other_files_is_told(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match=r"holds no CSV file, but others such as 'a.txt'"):
        read_csv(tmp_path, time="t")


def test_a_file_that_is_not_what_its_name_says_is_told(tmp_path):
    (tmp_path / "a.parquet").write_text("t,id\n1,2\n")
    with pytest.raises(DataError, match=r"a.parquet' cannot be read as Parquet: "):
        read_parquet(tmp_path / "a.parquet", time="t")


def failing(source):
    with pytest.raises(CaesuraError) as error:
        rows(source)
    assert isinstance(error.value, DataError) and error.value.remedy and error.value.__suppress_context__
    return str(error.value)


def test_a_second_file_that_is_broken_is_told_when_it_is_read(tmp_path):
    parquet(tmp_path / "a.parquet", t=[1], id=[2])
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    assert "b.parquet' cannot be read as Parquet" in failing(read_parquet(tmp_path, time="t"))


def test_a_column_that_changes_its_type_is_told_with_both_types(tmp_path):
    parquet(tmp_path / "a.parquet", t=[1], id=[2])
    parquet(tmp_path / "b.parquet", t=[1], id=["x"])
    message = failing(read_parquet(tmp_path, time="t"))
    assert "b.parquet' has 'id' as string, but it was int64 before" in message


def test_a_column_that_is_missing_is_told(tmp_path):
    write_all(tmp_path, {"a.csv": "t,id\n1,2\n", "b.csv": "t,idx\n1,2\n"})
    message = failing(read_csv(tmp_path, time="t"))
    assert "b.csv' has no column 'id'" in message and "Did you mean 'idx'" in message


def test_a_text_column_in_a_later_csv_file_is_told_with_both_types(tmp_path):
    write_all(tmp_path, {"a.csv": "t,id\n1,2\n", "b.csv": "t,id\n1,x\n"})
    assert "has 'id' as string, but it was int64 before" in failing(read_csv(tmp_path, time="t"))


def test_a_number_in_a_json_column_of_texts_is_told_with_both_types(tmp_path):
    write_all(tmp_path, {"a.jsonl": '{"t": 1, "id": "x"}\n', "b.jsonl": '{"t": 1, "id": 2}\n'})
    assert "has 'id' as int64, but it was string before" in failing(read_json(tmp_path, time="t"))


def test_a_csv_value_of_another_type_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("t,id\n1,x\n")
    message = failing(read_csv(tmp_path, schema=SCHEMA.set(1, pa.field("id", pa.string())), time="t") and
                      read_csv(tmp_path, schema=SCHEMA, time="t"))  # fmt: skip
    assert "'id' as string, but it is int64 in schema=" in message


def test_a_csv_line_with_too_many_fields_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("t,id\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match=r"a.csv' cannot be read as CSV: .*Expected 2 columns, got 3"):
        rows(read_csv(tmp_path, time="t"))


def test_a_malformed_json_line_is_told(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": 1}\n{"t": \n')
    with pytest.raises(DataError, match=r"a.jsonl' cannot be read as JSON lines: "):
        rows(read_json(tmp_path, time="t"))


def test_fingerprints_of_files_depend_on_path_and_parameters_only(tmp_path):
    parquet(tmp_path / "a.parquet", t=[1], id=[2])
    one, same = (read_parquet(tmp_path / "a.parquet", time="t") for _ in range(2))
    pruned = read_parquet(tmp_path / "a.parquet", time="t", columns=[])
    assert one.fingerprint == same.fingerprint != pruned.fingerprint


def _bytes_of(kind, rows, folder):
    table = pa.Table.from_pylist(rows)
    if kind == "parquet":
        pq.write_table(table, folder / "whole")
        return (folder / "whole").read_bytes()
    if kind == "json":
        return "".join(f'{{"t": {r["t"]}, "id": {r["id"]}}}\n' for r in rows).encode()
    text = "t,id\n" + "".join(f"{r['t']},{r['id']}\n" for r in rows)
    return gzip.compress(text.encode()) if kind == "csv.gz" else text.encode()


@pytest.mark.parametrize("kind", ["parquet", "json", "csv", "csv.gz"])
def test_a_file_cut_off_anywhere_is_told_unless_its_text_could_be_whole(tmp_path, kind):
    rows = [{"t": t, "id": 10 * t + 7} for t in (11, 12, 13)]
    whole = _bytes_of(kind, rows, tmp_path)
    read = {"parquet": read_parquet, "json": read_json}.get(kind, read_csv)
    schema = pa.schema([("t", pa.int64()), ("id", pa.int64())])
    file = tmp_path / f"cut.{kind}"
    for size in range(1, len(whole)):
        file.write_bytes(whole[:size])
        try:
            got = [r for raw in read(file, schema=schema, time="t").read({}) for r in raw.batch.to_pylist()]
        except DataError as error:
            assert file.name in str(error)
            continue
        lines = (
            whole[:size].decode().splitlines() if kind in ("csv", "json") else pytest.fail(f"{size} bytes")
        )
        last = lines[-1].partition(",")[2] if kind == "csv" else str(rows[len(lines) - 1]["id"])
        kept = rows[: len(lines) - (kind == "csv")]
        assert got == [*kept[:-1], *([{**kept[-1], "id": int(last) if last else None}] if kept else [])]


def test_texts_that_repeat_are_read_as_they_were_written(tmp_path):
    texts, some = ["a", None, "", "a", "b"] * 40, [b"x", None, b"x", b"", b"y"] * 40
    table = pa.table(
        {
            "t": range(200),
            "s": texts,
            "large": pa.array(texts, pa.large_string()),
            "b": some,
            "coded": pa.array(texts).dictionary_encode(),
            "a.b": texts,
            "st": [{"s": s} for s in texts],
            "l": [[s, s] for s in texts],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    for size in (16, 200):
        assert rows(read_parquet(tmp_path, time="t", batch_size=size)) == table.to_pylist()


@pytest.mark.parametrize(("width", "sizes"), [(10, [100_000]), (1000, [67_108, 32_892])])
def test_batches_grow_as_far_as_their_rows_are_narrow(tmp_path, width, sizes):
    texts = pa.array([b"x" * (width - 4) + i.to_bytes(4, "big") for i in range(100_000)])
    pq.write_table(pa.table({"t": range(100_000), "v": texts}), tmp_path / "a.parquet", use_dictionary=False)
    reader = read_parquet(tmp_path / "a.parquet", time="t", columns=["v"]).reader
    pruning = Pruning(list, {"v": "v"}, "t")
    some = [raw.batch.num_rows for raw in reader.batched(1 << 18).read_pruned({}, pruning)]
    assert len(some) == len(sizes) and sum(some) == 100_000 and max(some) <= max(sizes)


def test_a_batch_size_that_was_asked_for_stays(tmp_path):
    parquet(tmp_path / "a.parquet", t=[1, 2, 3], id=[7, 8, 9])
    reader = read_parquet(tmp_path / "a.parquet", time="t", batch_size=2).reader
    assert [raw.batch.num_rows for raw in reader.batched(1 << 18).read({})] == [2, 1]


def test_a_schema_that_was_given_is_not_advised_again(tmp_path):
    schema = pa.schema([("t", pa.int64()), ("id", pa.int64())])
    write_all(tmp_path, {"a.csv": "t,id\n1,2\n", "b.csv": "t,id\n1,x\n"})
    message = failing(read_csv(tmp_path, time="t", schema=schema))
    assert "has 'id' as string, but it is int64 in schema=" in message and "give schema=" not in message
    as_text = pa.schema([("t", pa.int64()), ("id", pa.string())])
    assert (
        "pa.string() in schema=" in message and len(rows(read_csv(tmp_path, time="t", schema=as_text))) == 2
    )
    wider = pa.schema([*schema, ("more", pa.int64())])
    message = failing(read_csv(tmp_path, time="t", schema=wider))
    assert "has no column 'more', which schema= names" in message and "columns=" not in message


def test_the_remedy_for_a_time_that_is_text_works_as_it_is_written(tmp_path):
    (tmp_path / "a.csv").write_text("ts,id\n2024-05-01 10:00:00,1\nsoon,2\n")
    with pytest.raises(PlanError) as error:
        read_csv(tmp_path / "a.csv", time="ts")
    assert "schema=pa.schema([('ts', pa.timestamp('us')), ...])" in error.value.remedy
    (tmp_path / "b.csv").write_text("ts,id\n2024-05-01 10:00:00,1\n2024-05-02,2\n")
    schema = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64())])
    assert len(rows(read_csv(tmp_path / "b.csv", time="ts", schema=schema))) == 2
