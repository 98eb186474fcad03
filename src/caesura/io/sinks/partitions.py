"""Rows in folders by their values of some columns, as Hive, Spark and Delta lay tables out.

>>> rows = pa.table({"day": ["mo", "tu", "mo"], "v": [1, 2, 3]})
>>> for part in partitions(rows, ["day"]):
...     whole = with_partition(part.rows, part.folder, rows.schema)
...     print(part.folder, part.rows.to_pydict(), whole.num_columns)
day=mo {'v': [1, 3]} 2
day=tu {'v': [2]} 2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError, StreamError, closest
from caesura.events.identity import LOCAL, identity
from caesura.kernels.keys import KeyTable

NULL = "__HIVE_DEFAULT_PARTITION__"
FITTING = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_boolean)


class FolderRows(NamedTuple):
    """The rows of one folder, without the columns that its name tells."""

    folder: str
    values: Mapping[str, str | None]
    rows: pa.Table


def check_partition(columns: Sequence[str], schema: pa.Schema) -> None:
    """Refuses columns that no folder can be named by."""
    for name in columns:
        if name not in schema.names:
            raise PlanError(
                f"partition_by names '{name}', and the rows have no such column.",
                remedy=closest(name, schema.names),
            )
        if not any(fits(schema.field(name).type) for fits in FITTING):
            raise PlanError(
                f"partition_by names '{name}', which is {schema.field(name).type}.",
                remedy="Take columns of whole numbers, texts, dates or truths; compute one: "
                "with_columns(day=col('ts').cast('date')).",
            )


def partitions(rows: pa.Table, columns: Sequence[str]) -> Iterator[FolderRows]:
    """Rows by their values of some columns; without any, all rows in one folder without a name."""
    if not columns:
        yield FolderRows("", {}, rows)
        return
    keys = [rows.column(name).combine_chunks() for name in columns]
    number, first = KeyTable().encode(*identity(keys, rows.num_rows, LOCAL))
    rest = rows.drop_columns(list(columns))
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(len(first) + 1))
    for one in range(len(first)):
        at = int(first[one])
        values = {n: key[at].cast(pa.string()).as_py() for n, key in zip(columns, keys, strict=True)}
        mine = pa.array(order[starts[one] : starts[one + 1]])
        yield FolderRows(folder_name(values), values, rest.take(mine))


def folder_name(values: Mapping[str, str | None]) -> str:
    """A folder's name by its values."""
    named = {quote(n, safe=""): NULL if v is None else quote(v, safe=" ") for n, v in values.items()}
    return "/".join(f"{name}={value}" for name, value in named.items())


def refuse_empty(rows: pa.Table, columns: Sequence[str]) -> None:
    """Refuses texts without a letter, where a format would take them for null."""
    for name in columns:
        column = rows.column(name)
        if pa.types.is_string(column.type) and pc.any(pc.equal(column, "")).as_py():
            raise StreamError(
                f"a row has an empty text in '{name}', and Delta does not tell it from null in a column that "
                "a table is partitioned by.",
                remedy=f"Give it another value: with_columns({name}=...); or leave '{name}' out of "
                "partition_by.",
            )


def folder_values(folder: str) -> dict[str, str | None]:
    """What a folder's name tells of its rows."""
    values = dict(part.split("=", 1) for part in folder.split("/") if part)
    return {unquote(n): None if v == NULL else unquote(v) for n, v in values.items()}


def with_partition(rows: pa.Table, folder: str, schema: pa.Schema) -> pa.Table:
    """Rows with the columns that their folder tells, in the order of a schema."""
    known = folder_values(folder)
    columns = [
        pa.repeat(pa.scalar(known[f.name], pa.string()), rows.num_rows).cast(f.type)
        if f.name in known
        else rows.column(f.name)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
