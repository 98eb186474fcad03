"""Which part of a page is a bucket's: every bucket takes its own, on its own thread.

Where a key must be hashed, or buckets are many, the first that asks divides the page for all.

Law: rows whose keys are equal are in one bucket, whichever exchange of a plan they come by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
import pyarrow as pa

from caesura.events import Page
from caesura.events.columns import from_words, words
from caesura.events.identity import Secret, identity
from caesura.events.nested import NO_MASK, validity
from caesura.events.page import PointPage, take_rows
from caesura.kernels.dividing import RowsByBucket, divided
from caesura.kernels.hashing import I64
from caesura.plan.cut import EVENTS, EVERYWHERE, Exchange

ONCE = 8
"""For so many buckets a page is divided once by whole numbers; for fewer each picks its own rows."""
_DIVIDING = Lock()


def part_of(page: Page, exchange: Exchange, buckets: int, number: int, secret: Secret) -> Page | None:
    """The rows of a page that a bucket gets; None where it gets none."""
    if buckets == 1 or exchange.keys == EVERYWHERE:
        return page
    if exchange.keys == ():
        return page if number == 0 else None
    names = page.schema.names if exchange.keys in (None, EVENTS) else list(exchange.keys or ())
    columns = [page.payload.column(name) for name in names]
    columns += [pa.array(page.le)] if exchange.keys == EVENTS else []
    if buckets < ONCE and _is_whole(columns):
        return _picked(page, names[0], columns[0], _whole(columns[0]), buckets, number, secret.routing)
    how = (exchange.keys, buckets, secret.routing.start)
    rows = _once(page, how, lambda: by_bucket(columns, len(page), buckets, secret))[number]
    return None if len(rows) == 0 else page if len(rows) == len(page) else page.take(rows)


def by_bucket(columns: Sequence[pa.Array], count: int, buckets: int, secret: Secret) -> RowsByBucket:
    """The rows of each bucket, by keys in these columns."""
    if _is_whole(columns):
        valid = validity(columns[0])
        return RowsByBucket.of_keys(_whole(columns[0]), valid, secret.routing.start[0], buckets)
    return RowsByBucket.of_hashes(identity(columns, count, secret.routing)[0], buckets)


def _is_whole(columns: Sequence[pa.Array]) -> bool:
    """By the type of the columns alone, so that all pages are cut alike, nulls or not."""
    return len(columns) == 1 and pa.types.is_integer(columns[0].type)


def _whole(column: pa.Array) -> I64:
    found: I64 = words(column).astype(np.int64, copy=False)
    return found


def _once(page: Page, how: object, divide: Callable[[], RowsByBucket]) -> RowsByBucket:
    """The rows of all buckets, found by the first that asks; the others wait for it."""
    with _DIVIDING:
        known: dict[object, RowsByBucket] = page.__dict__.setdefault("_divided", {})
        if how not in known:
            known[how] = divide()
        return known[how]


def _picked(
    page: Page, name: str, column: pa.Array, keys: I64, buckets: int, number: int, secret: Secret
) -> Page | None:
    part = divided(keys, validity(column), page.le, page.re, secret.start[0], buckets, number)
    if len(part.rows) in (0, len(page)):
        return page if len(part.rows) else None
    if type(page) not in (Page, PointPage) or page.re_new is not None or page.tags is not None:
        return page.take(part.rows)
    if column.type != pa.int64() or column.null_count:
        payload = take_rows(page.payload, part.rows)
    else:
        at = page.schema.get_field_index(name)
        others = take_rows(page.payload.remove_column(at), part.rows)
        payload = others.add_column(at, page.schema.field(at), from_words(part.keys, NO_MASK, column.type))
    return Page(part.le, part.re, payload, None, page.settled, None, page.partial)
