"""A stream of items that are there already: drawn ones, or those of a test; it runs on every host.

>>> from caesura.events import parse
>>> source = from_items(parse(" LE RE | id |\\n 1 9 | 7 | +\\n 1 9->5 | 7 | -\\n-- 6 --"))
>>> source.schema.names, source.declares
(['id'], ('*',))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from caesura.errors import DataError
from caesura.events import Item, Page
from caesura.io.sources.read import from_rows
from caesura.io.sources.source import Source
from caesura.plan import TICKS
from caesura.punctuation import INFINITY

KIND, START, END, NEW = "\0kind", "\0start", "\0end", "\0new"
"""What the columns with the times are called; no payload column is."""


def from_items(
    items: Iterable[Item],
    schema: pa.Schema | None = None,
    *,
    time: pa.DataType = TICKS,
    name: str = "",
    batch_size: int = 1,
) -> Source:
    """Reads stream items: inserts, retracts, and the punctuation between them; so many rows at a time."""
    some = list(items)
    known = schema or next((item.schema for item in some if isinstance(item, Page)), None)
    if known is None:
        raise DataError(
            "there is no row to infer a schema from.",
            remedy="Give schema=, as in pa.schema([('id', pa.int64())]).",
        )
    whole = pa.schema([(KIND, pa.string()), (START, time), (END, time), (NEW, time), *known])
    rows: list[Any] = []
    for item in some:
        rows += _rows(item, whole, time) if isinstance(item, Page) else [item]
    events: Any = {"time": START, "end": END, "kind": KIND, "new_end": NEW, "shape": "full", "name": name}
    return from_rows(rows, whole, batch_size=batch_size, **events)


def _rows(page: Page, schema: pa.Schema, time: pa.DataType) -> list[tuple[Any, ...]]:
    found = []
    for le, re, new, values in page.rows():
        kind = "+" if new is None else "-"
        found.append((kind, *(_moment(t, time) for t in (le, re, new)), *values))
    return found


def _moment(t: int | None, time: pa.DataType) -> Any:
    if t is None or t >= INFINITY:
        return None
    return pa.scalar(t, pa.int64()).cast(time).as_py() if pa.types.is_timestamp(time) else t
