"""Rows as the bytes of a Parquet file, with dictionaries for the columns whose values repeat.

Arrow makes a dictionary of every column, up to a megabyte of it. Where nearly every row has a value of its
own that takes two thirds of the time, and makes the file larger.

>>> rows = pa.table({"id": range(100_000), "name": ["a", "b"] * 50_000, "none": pa.nulls(100_000)})
>>> repeating(rows)
['name', 'none']
>>> pq.read_table(pa.BufferReader(parquet_bytes(rows))).equals(rows)
True
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

RUNS, RUN = 64, 64
"""Values are looked at in so many runs of so many rows: neighbours may be alike, or rows far apart."""
OFTEN = 2
"""How often a value occurs, on average, that is worth an entry of a dictionary."""


def parquet_bytes(rows: pa.Table) -> bytes:
    """A table as a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, use_dictionary=repeating(rows))
    return bytes(sink.getvalue().to_pybytes())


def repeating(rows: pa.Table) -> bool | list[str]:
    """The columns that are worth a dictionary; True for all, where rows are few or hold others in them."""
    count = rows.num_rows
    if count <= RUNS * RUN or any(pa.types.is_nested(column.type) for column in rows.columns):
        return True
    starts = np.arange(RUNS) * (count - RUN) // (RUNS - 1)
    some = rows.take(pa.array((starts[:, None] + np.arange(RUN)).ravel()))
    return [name for name in rows.schema.names if _repeats(some.column(name), count)]


def _repeats(sample: pa.ChunkedArray, count: int) -> bool:
    """Whether values occur often among so many rows, by how many of a sample are there before.

    Of n rows of d values, each as frequent, some n * n / 2d are.
    """
    if pa.types.is_dictionary(sample.type) or pa.types.is_null(sample.type):
        return True
    again = len(sample) - int(pc.count_distinct(sample, mode="all").as_py())
    return again * count * 2 >= OFTEN * len(sample) ** 2
