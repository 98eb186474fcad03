"""Which columns of a file get a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caesura.io.sinks.parquet_bytes import parquet_bytes, repeating

COUNT = 50_000


def _encoded(rows: pa.Table) -> dict[str, bool]:
    """By column, whether the file has a dictionary of it; the file has the same rows."""
    data = parquet_bytes(rows)
    assert pq.read_table(pa.BufferReader(data)).equals(rows)
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema: column.has_dictionary_page for column in columns}


def test_values_that_repeat_have_a_dictionary_and_others_none() -> None:
    rng = np.random.default_rng(3)
    rows = pa.table(
        {
            "unique": rng.permutation(COUNT),
            "some": rng.integers(0, COUNT // 8, COUNT),
            "neighbours": np.repeat(np.arange(COUNT // 10), 10),
            "texts": [f"row {number}" for number in range(COUNT)],
            "few": pa.array(["a", "b", None, "c"] * (COUNT // 4)),
            "coded": pa.array(["a", "b"] * (COUNT // 2)).dictionary_encode(),
            "nothing": pa.nulls(COUNT, pa.int64()),
            "zeros": np.zeros(COUNT),
            "a.b": rng.random(COUNT),
        }
    )
    found = _encoded(rows)
    assert [name for name, has in found.items() if has] == [
        "some",
        "neighbours",
        "few",
        "coded",
        "nothing",
        "zeros",
    ]


@pytest.mark.parametrize("count", [0, 1, 64, 4096, 4097])
def test_any_number_of_rows_comes_back(count: int) -> None:
    _encoded(pa.table({"id": pa.array(range(count), pa.int64()), "text": ["x"] * count}))


def test_rows_that_hold_others_are_written_as_before() -> None:
    rows = pa.table({"id": range(COUNT), "tags": [["x"]] * COUNT})
    assert repeating(rows) is True
    assert all(_encoded(rows).values())


def test_rows_of_several_chunks_and_types_are_sampled() -> None:
    kinds = [pa.decimal128(20, 2), pa.timestamp("us", "UTC"), pa.date32(), pa.duration("us"), pa.float32()]
    kinds += [pa.binary(), pa.large_string(), pa.bool_(), pa.null(), pa.time64("us"), pa.binary(2)]
    rows = pa.table([pa.nulls(COUNT, kind) for kind in kinds], [str(kind) for kind in kinds])
    parts = pa.concat_tables([rows.slice(0, 10_000), rows.slice(10_000), rows.slice(0, 1)])
    assert parts.column(0).num_chunks == 3
    assert _encoded(parts)
