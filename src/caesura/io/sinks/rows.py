"""Output as rows: kind, LE, RE, RE_new, then the payload; as a table.

An end that never comes is null, and so is the new end of an insert.

>>> from caesura.events import parse
>>> items = parse('''
...  LE  RE    | id |
...  10  inf   | 3  | +
...  10  inf->15 | 3  | -
... ''')
>>> rows_table(items, items[0].schema, pa.int64()).to_pylist()[1]
{'kind': '-', 'LE': 10, 'RE': None, 'RE_new': 15, 'id': 3}
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events import History, Item, Page
from caesura.events.columns import empty_rows
from caesura.events.page import NO_NEW_END
from caesura.io.ingress.clock import to_ticks
from caesura.io.ingress.late import beside, lifetimes
from caesura.punctuation import INFINITY, MIN_TIME


def row_schema(schema: pa.Schema, time: pa.DataType) -> pa.Schema:
    """The columns of output rows; a payload column called 'kind' becomes 'kind_'."""
    ends = [("LE", time), ("RE", time), ("RE_new", time)]
    payload = beside(schema, ("kind", "LE", "RE", "RE_new"))
    return pa.schema([("kind", pa.string()), *ends, *payload])


def rows_table(items: Iterable[Item], schema: pa.Schema, time: pa.DataType) -> pa.Table:
    """The events among stream items as a table; times are timestamps where the stream's are."""
    shape = row_schema(schema, time)
    batches = [
        pa.RecordBatch.from_arrays([*lifetimes(page, time), *page.payload.columns], schema=shape)
        for page in items
        if isinstance(page, Page)
    ]
    return pa.Table.from_batches(batches, schema=shape)


def history_table(items: Iterable[Item], schema: pa.Schema, time: pa.DataType) -> pa.Table:
    """What items say in the end: LE, RE and the payload; an end that never comes is null."""
    return rows_table([History.of(items, schema).page], schema, time).drop_columns(["kind", "RE_new"])


def changed_page(
    rows: pa.Table, schema: pa.Schema, time: pa.DataType, kinds: tuple[str, ...] = ("+", "-")
) -> Page:
    """The changes among output rows as one page: `rows_table` the other way; or rows of other kinds."""
    shape = row_schema(schema, time)
    rows = rows.select(shape.names).cast(shape)
    rows = rows.filter(pc.is_in(rows.column("kind"), pa.array(kinds)))
    le, re, new = (rows.column(n).combine_chunks() for n in ("LE", "RE", "RE_new"))
    retracts = np.asarray(pc.equal(rows.column("kind"), "-"))
    ends = np.where(retracts, to_ticks(new, INFINITY), NO_NEW_END)
    columns = [column.combine_chunks() for column in rows.columns[4:]]
    payload = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else empty_rows(len(rows))
    return Page.of(payload, le=to_ticks(le, MIN_TIME), re=to_ticks(re, INFINITY), re_new=ends)
