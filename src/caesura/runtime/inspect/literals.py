"""Columns as values that stand in a Python file, and back: exact, readable, and nothing but literals.

Numbers, texts, bytes and booleans stand as they are; times, dates and decimals as texts; a float that is no
number as its name; a struct as a dict.

>>> import pyarrow as pa
>>> from datetime import date
>>> column = pa.array([date(2026, 3, 1), None])
>>> to_literals(column)
['2026-03-01', None]
>>> from_literals(['2026-03-01', None], pa.date32()).equals(column)
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def to_literals(column: pa.Array) -> list[Any]:
    """A column as values that `repr` writes so that Python reads the same."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_literals(column.dictionary_decode())
    if pa.types.is_struct(kind):
        fields = {field.name: to_literals(column.field(at)) for at, field in enumerate(kind)}
        present = column.is_valid().to_pylist()
        return [
            {name: values[at] for name, values in fields.items()} if there else None
            for at, there in enumerate(present)
        ]
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return list(column.cast(pa.string()).to_pylist())
    values = column.to_pylist()
    if pa.types.is_floating(kind):
        return [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in values]
    return list(values)


def from_literals(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """What `to_literals` took."""
    if pa.types.is_dictionary(kind):
        return from_literals(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_struct(kind):
        fields = [
            from_literals([None if v is None else v.get(field.name) for v in values], field.type)
            for field in kind
        ]
        missing = pa.array([v is None for v in values], pa.bool_())
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=missing)
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([float(v) if isinstance(v, str) else v for v in values], kind)
    return pa.array(values, kind)


def row_literals(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as dicts of literals."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        columns[name] = to_literals(whole)
    return [{name: values[at] for name, values in columns.items()} for at in range(table.num_rows)]


def batch_of(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of literals as a batch; a column that they do not have is null."""
    columns = [from_literals([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
