"""Which part of a page is a bucket's: every bucket takes its own, on its own thread.

Law: rows whose keys are equal are in one bucket, whichever exchange of a plan they come by.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events import Page
from caesura.events.columns import from_words, words
from caesura.events.identity import Secret, identity
from caesura.events.nested import NO_MASK, validity
from caesura.events.page import take_rows
from caesura.kernels.dividing import divided, hashed_rows_of_bucket
from caesura.plan.cut import EVENTS, EVERYWHERE, Exchange


def part_of(page: Page, exchange: Exchange, buckets: int, number: int, secret: Secret) -> Page | None:
    """The rows of a page that a bucket gets; None where it gets none."""
    if buckets == 1 or exchange.keys == EVERYWHERE:
        return page
    if exchange.keys == ():
        return page if number == 0 else None
    names = page.schema.names if exchange.keys in (None, EVENTS) else list(exchange.keys or ())
    columns = [page.payload.column(name) for name in names]
    columns += [pa.array(page.le)] if exchange.keys == EVENTS else []
    # By the type of the columns alone, so that all pages are cut alike, nulls or not.
    if len(columns) == len(names) == 1 and pa.types.is_integer(columns[0].type):
        return _by_number(page, names[0], columns[0], buckets, number, secret.routing)
    hashes = identity(columns, len(page), secret.routing)[0]
    rows = hashed_rows_of_bucket(hashes, buckets, number)
    return None if len(rows) == 0 else page if len(rows) == len(page) else page.take(rows)


def _by_number(
    page: Page, name: str, column: pa.Array, buckets: int, number: int, secret: Secret
) -> Page | None:
    keys = words(column).astype(np.int64, copy=False)
    part = divided(keys, validity(column), page.le, page.re, secret.start[0], buckets, number)
    if len(part.rows) in (0, len(page)):
        return page if len(part.rows) else None
    if type(page) is not Page or page.re_new is not None or page.tags is not None:
        return page.take(part.rows)
    if column.type != pa.int64() or column.null_count:
        payload = take_rows(page.payload, part.rows)
    else:
        at = page.schema.get_field_index(name)
        others = take_rows(page.payload.remove_column(at), part.rows)
        payload = others.add_column(at, page.schema.field(at), from_words(part.keys, NO_MASK, column.type))
    return Page(part.le, part.re, payload, None, page.settled, None, page.partial)
