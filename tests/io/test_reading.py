"""Reading what is in memory: Arrow, pandas, Python rows; and what a source says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pytest

from caesura.errors import DataError, PlanError
from caesura.events import pages
from caesura.io import delay, from_arrow, from_pandas, from_rows
from caesura.ops.union import Union
from caesura.punctuation import Intent, Pattern, Punctuation, cti
from caesura.runtime import Query
from caesura.runtime.query.result import run

TABLE = pa.table({"t": [1, 2, 3, 4, 5], "id": [7, 8, 9, 10, 11]})


def read(source, offset=0):
    return [(raw.offset, row["id"]) for raw in source.read({0: offset}) for row in raw.batch.to_pylist()]


@pytest.mark.parametrize(
    "data",
    [TABLE, TABLE.to_batches()[0], TABLE.to_batches(max_chunksize=2), TABLE.to_reader(max_chunksize=2)],
)
def test_arrow_data_of_every_kind_is_read_in_batches_from_an_offset(data):
    assert read(from_arrow(data, time="t", batch_size=2), 3) in ([(3, 10), (4, 11)], [(3, 10), (3, 11)])


def test_a_stream_can_be_read_once_only():
    source = from_arrow(TABLE.to_reader(), time="t", name="clicks")
    read(source)
    with pytest.raises(DataError, match=r"step 'clicks'.*was read already"):
        read(source)


def test_other_things_are_no_arrow_data():
    with pytest.raises(DataError, match="a dict is no Arrow data"):
        from_arrow({"t": [1]}, time="t")


def test_a_frame_is_read_without_its_index():
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-05-01"]), "id": [7]}, index=["a"])
    source = from_pandas(frame, time="t")
    assert source.schema.names == ["id"] and source.time == pa.timestamp("us")


def test_a_frame_with_mixed_columns_is_refused():
    with pytest.raises(DataError, match="one type each"):
        from_pandas(pd.DataFrame({"t": [1, 2], "id": ["a", {"b": 1}]}), time="t")


class Named(NamedTuple):
    t: int
    id: int


@dataclass
class Click:
    t: int
    id: int


SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64())])


@pytest.mark.parametrize("rows", [[{"t": 1, "id": 7}], [Named(1, 7)], [Click(1, 7)]])
def test_rows_of_every_kind_name_their_columns(rows):
    assert read(from_rows(rows, time="t")) == [(0, 7)]


def test_plain_tuples_need_a_schema():
    assert read(from_rows([(1, 7)], SCHEMA, time="t")) == [(0, 7)]
    with pytest.raises(PlanError, match="do not name their columns"):
        from_rows([(1, 7)], time="t")


def test_a_sequence_is_read_again_and_from_an_offset():
    rows = [{"t": n, "id": n} for n in range(5)]
    source = from_rows(rows, time="t", batch_size=2)
    assert [id_ for _, id_ in read(source, 3)] == [3, 4] and len(read(source)) == 5


def test_an_iterator_is_read_once_and_only_as_far_as_its_schema_needs():
    taken = []
    rows = ({"t": taken.append(n) or n, "id": None if n == 0 else n} for n in range(1000))
    source = from_rows(rows, time="t", batch_size=10)
    assert len(taken) <= 100
    assert len(read(source)) == 1000
    with pytest.raises(DataError, match="can be read once only"):
        read(source)


def test_punctuation_between_rows_keeps_its_place_across_batches():
    rows = [{"t": 1}, cti(1), {"t": 2}, {"t": 3}, Pattern(t=4), cti(9)]
    raws = list(from_rows(rows, time="t", batch_size=2).read({}))
    marks = [(raw.offset + at, str(pattern)) for raw in raws for at, pattern in raw.punctuations]
    assert marks == [(1, "time < 1"), (3, "t = 4"), (3, "time < 9")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "there is no row to infer a schema from"),
        ([{"t": 1, "id": "a"}, {"t": 2, "id": 3}], "one type per column"),
        ([7], "row 0 is 7, which names no columns"),
    ],
)
def test_rows_that_make_no_schema_are_refused(rows, message):
    with pytest.raises(DataError, match=message):
        from_rows(rows, time="t")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"t": 1, "id": "x"}, "row 1: column 'id' is int64, but the value is 'x'"),
        ({"t": 1, "idd": 2}, "row 1 has a column 'idd' that the schema does not have"),
        ((1,), "row 1 has 1 values, but there are 2 columns"),
        (Punctuation(Pattern(id=1), Intent.ASSUMED), "a source cannot give 'assumed: id = 1'"),
    ],
)
def test_a_row_that_does_not_fit_is_named(row, message):
    source = from_rows([{"t": 1, "id": 1}, row], SCHEMA, time="t")
    with pytest.raises(DataError, match=message):
        read(source)


def test_a_missing_value_is_null():
    [raw] = from_rows([{"t": 1}], SCHEMA, time="t").read({})
    assert raw.batch.to_pylist() == [{"t": 1, "id": None}]


def test_sources_over_equal_rows_have_one_fingerprint():
    one, same = from_arrow(TABLE, time="t", name="a"), from_arrow(TABLE, time="t", name="b")
    other = from_arrow(TABLE, time="t", punctuate=delay(5))
    copy = from_arrow(pa.table(TABLE.to_pydict()), time="t")
    half = from_arrow(TABLE.slice(1), time="t")
    assert one.fingerprint == same.fingerprint == copy.fingerprint
    assert len({one.fingerprint, other.fingerprint, half.fingerprint}) == 3


def test_a_source_describes_what_it_reads_and_gives():
    source = from_arrow(TABLE, time="t", punctuate=delay(5, every=10), late="adjust")
    assert source.describe() == (
        "Arrow table of 5 rows, time 't' (point); gives time: 5 behind the latest event of the slowest lane, "
        "after each 10 events; all at the end of input; late rows: adjust"
    )
    assert source.declares == ("time",) and source.heartbeat is None


def test_properties_follow_from_the_shape():
    interval = from_arrow(pa.table({"t": [1], "end": [2]}), time="t", end="end")
    edge = from_arrow(pa.table({"t": [1], "end": [2], "k": ["start"]}), time="t", end="end", kind="k")
    assert from_arrow(TABLE, time="t").properties.points
    assert interval.properties.insert_only and not interval.properties.points
    assert not edge.properties.insert_only


def test_a_payload_column_with_the_engines_name_is_refused():
    with pytest.raises(PlanError, match="may not be called 'LE'"):
        from_rows([{"t": 1, "LE": 2}], time="t")


def test_a_table_is_read_in_larger_batches_unless_a_size_was_asked_for():
    table = pa.table({"t": range(70_000)})
    for size, sizes in ((65_536, [70_000]), (40_000, [40_000, 30_000])):
        reader = from_arrow(table, time="t", batch_size=size).reader.batched(1 << 18)
        assert [raw.batch.num_rows for raw in reader.read({})] == sizes


def test_a_run_to_the_end_reads_larger_batches_than_a_query_that_is_stepped():
    source = from_arrow(pa.table({"t": range(70_000), "id": range(70_000)}), time="t")
    query = Query({"out": source})
    query.run()
    assert [len(page) for page in pages(query.take("out"))] == [65_536, 4_464]
    assert [len(page) for page in pages(run(source).items)] == [70_000]


def test_a_run_does_not_look_at_the_rows_of_a_table_to_know_it(monkeypatch):
    def looked_at(column):
        raise AssertionError("a run told tables apart by their rows")

    monkeypatch.setattr("caesura.io.sources.memory.column_key", looked_at)
    same = [from_arrow(TABLE, time="t", name=name) for name in ("one", "two")]
    result = run(Union(inputs=tuple(same)))
    assert len(result.history) == 2 * len(TABLE)
    assert sum(name in result.counters for name in ("one", "two")) == 1  # one table is read once


def test_tables_that_differ_in_rows_alone_are_not_taken_for_each_other():
    other = TABLE.set_column(1, "id", pa.array([0, 0, 0, 0, 0]))
    both = Union(inputs=tuple(from_arrow(table, time="t") for table in (TABLE, other)))
    assert sorted(row[2] for row in run(both).history.rows()) == sorted(
        [(0,)] * 5 + [(i,) for i in range(7, 12)]
    )
