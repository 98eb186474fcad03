"""Values as output rows: a record is its fields, a map a row per key, a partition's answer has its key.

>>> import pyarrow as pa
>>> from caesura.qre.language.types import FLOAT, INT, Record
>>> columns(Record((("n", INT), ("mean", FLOAT))))
[pyarrow.Field<n: int64>, pyarrow.Field<mean: double>]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, evaluate, type_of
from caesura.kernels.hashing import I64
from caesura.qre.checking.inference import value_type
from caesura.qre.language.query import Combine, MapCollect, Pipe, Query, Split, walk
from caesura.qre.language.types import MapOf, Record, RelOf, ValueType, column_of, columns
from caesura.qre.reference.oracle import UNDEFINED


def at_rows(rows: I64, values: list[Any], count: int) -> list[Any]:
    """Values of some items, with UNDEFINED at all others."""
    out: list[Any] = [UNDEFINED] * count
    for row, value in zip(rows.tolist(), values, strict=True):
        out[row] = value
    return out


def output_schema(query: Query) -> pa.Schema:
    """The payload columns of a query's answers."""
    if isinstance(query, Pipe):
        return output_schema(query.second)
    t = value_type(query)
    fields = _keys(query, query.partitioned_by)
    if isinstance(t, MapOf):
        fields += [*_map_keys(query, t), *columns(t.value)]
    elif isinstance(t, RelOf):
        fields += columns(t.element)
    else:
        fields += columns(t)
    names = [f.name for f in fields]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise PlanError(
            f"two output columns are called '{twice}'.",
            remedy="Name the key or the value otherwise: by={'who': 'id'}, or a record with other names.",
        )
    return pa.schema(fields)


def _keys(query: Query, by: tuple[tuple[str, Expr], ...]) -> list[pa.Field]:
    if not by:
        return []
    assert query.items is not None
    schema, time = query.items.schema, query.items.time
    return [pa.field(name, type_of(e, schema, time=time)) for name, e in by]


def _map_keys(query: Query, t: MapOf) -> list[pa.Field]:
    found = next((n for n in walk(query) if isinstance(n, MapCollect)), None)
    inner = query.per_key
    if found is not None and isinstance(inner, (MapCollect, Split, Combine)):
        own = _keys(query, found.by)
        if len(own) == 1 or isinstance(t.key, Record):
            return own
    return [column_of("key", t.key)]


def flat(values: pa.Array, t: ValueType) -> pa.RecordBatch:
    """A column of values as the columns of `columns`."""
    if isinstance(t, Record):
        parts = [values.field(i) for i in range(len(t.fields))]
        if not parts:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))
        return pa.RecordBatch.from_arrays(parts, schema=pa.schema(columns(t)))
    return pa.RecordBatch.from_arrays([values], schema=pa.schema(columns(t)))


def as_rows(
    query: Query, values: list[Any], batch: pa.RecordBatch, schema: pa.Schema
) -> tuple[I64, pa.RecordBatch]:
    """The twin's answers as output rows."""
    t = value_type(query)
    keys = _key_values(query, batch)
    rows: list[int] = []
    out: list[dict[str, Any]] = []
    for row, value in enumerate(values):
        if value is UNDEFINED:
            continue
        for one in _entries(value, t, schema):
            rows.append(row)
            out.append({**{n: k[row] for n, k in keys.items()}, **one})
    if len(schema) == 0:
        return np.array(rows, np.int64), pa.RecordBatch.from_struct_array(pa.array(out, pa.struct([])))
    return np.array(rows, np.int64), pa.RecordBatch.from_pylist(out, schema)


def _entries(value: Any, t: ValueType, schema: pa.Schema) -> list[dict[str, Any]]:
    match t:
        case MapOf(value=inner):
            names = schema.names[: len(schema) - len(columns(inner))]
            keyed = [(k if isinstance(k, tuple) else (k,), v) for k, v in value.items()]
            return [{**dict(zip(names, k, strict=True)), **_named(v, inner)} for k, v in keyed]
        case RelOf(element=inner):
            return [_named(v, inner) for v in value]
    return [_named(value, t)]


def _named(value: Any, t: ValueType) -> dict[str, Any]:
    if isinstance(t, Record):
        return {name: value[name] for name, _ in t.fields} if t.fields else {}
    return {"value": value}


def _key_values(query: Query, batch: pa.RecordBatch) -> dict[str, list[Any]]:
    return {name: evaluate(e, batch).to_pylist() for name, e in query.partitioned_by}
