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

import pyarrow as pa

from caesura.events import Item, Page
from caesura.io.ingress.late import beside, lifetimes


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
