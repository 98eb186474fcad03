"""Pages whose columns are gathered when somebody looks: rows of stores by number, and numbers beside them.

Such a page may be cut, joined and folded without its columns; what is dropped on the way is never copied.

>>> store = ReferredStore(pa.schema([("name", pa.string())]))
>>> store.append(pa.record_batch({"name": ["a", "b"]}))
>>> schema = pa.schema([("name", pa.string()), ("rank", pa.int64())])
>>> rows = Deferred.of(store, np.array([1, 0]), (np.array([1, 2]),), schema)
>>> DeferredPage(np.array([3, 4]), np.array([9, 9]), rows).take(np.array([0])).rows()
[(3, 9, None, ('b', 1))]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from caesura.events.page import NO_NEW_END, Page, Tags
from caesura.events.referred import Deferred, ReferredStore
from caesura.kernels.hashing import I64, Mask


class DeferredPage(Page):
    """A page whose payload is made when somebody asks for it; copies of it have the columns themselves."""

    def __init__(
        self,
        le: I64,
        re: I64,
        payload: pa.RecordBatch | Deferred,
        re_new: I64 | None = None,
        settled: bool = False,
        tags: Tags | None = None,
        partial: bool = False,
    ) -> None:
        own: dict[str, object] = {
            "le": le,
            "re": re,
            "re_new": re_new,
            "settled": settled,
            "tags": tags,
            "partial": partial,
        }
        own["deferred" if isinstance(payload, Deferred) else "payload"] = payload
        self.__dict__.update(own)

    deferred: Deferred | None = None

    @cached_property
    def payload(self) -> pa.RecordBatch:
        assert self.deferred is not None
        return self.deferred.batch()

    @property
    def schema(self) -> pa.Schema:
        """The payload columns."""
        return self.payload.schema if self.deferred is None else self.deferred.schema

    def take(self, rows: I64) -> Page:
        """These rows, in this order."""
        ends = None if self.re_new is None else self.re_new[rows]
        if ends is not None and not (ends != NO_NEW_END).any():
            ends = None
        found = self._named(rows)
        if found is None:
            return super().take(rows)
        tags = None if self.tags is None else self.tags.take(rows)
        page = DeferredPage(self.le[rows], self.re[rows], found, ends, self.settled, tags, self.partial)
        return self._as_known(page, rows)

    def _as_known(self, page: Page, rows: I64) -> Page:
        """A page of some rows, with their identities if those are known."""
        if self.own_ids is not None:
            key, (h1, h2) = self.own_ids
            page.identified(key, (h1[rows], h2[rows]))
        return page

    def filter(self, mask: Mask) -> Page:
        """The rows where mask is true; the page itself when all are."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slice(self, start: int, length: int) -> Page:
        """Some of its rows, as they lie."""
        return self.take(np.arange(start, min(start + length, len(self))))

    def payload_of(self, rows: I64) -> pa.RecordBatch:
        """The payload of these rows."""
        found = self._named(rows)
        return super().payload_of(rows) if found is None else found.batch()

    def deferred_of(self, rows: I64) -> Deferred | None:
        """These rows, if nobody has looked at their columns."""
        return self._named(rows)

    def inserts(self, rows: I64, le: I64, re: I64) -> Page:
        """These rows as inserts with these lifetimes."""
        found = self._named(rows)
        if found is None:
            return super().inserts(rows, le, re)
        return self._as_known(DeferredPage(le, re, found), rows)

    def as_inserts(self) -> Page:
        """All rows as inserts with the lifetimes that they have; nothing is copied."""
        if not self.is_deferred:
            return super().as_inserts()
        assert self.deferred is not None
        page = DeferredPage(self.le, self.re, self.deferred)
        return page if self.own_ids is None else page.identified(*self.own_ids)

    @property
    def is_deferred(self) -> bool:
        """Whether its columns are not gathered yet."""
        return "payload" not in self.__dict__ and self.deferred is not None

    def _named(self, rows: I64) -> Deferred | None:
        """Some of the rows, if that needs no column."""
        return self.deferred.take(rows) if self.is_deferred and self.deferred is not None else None


def deferred_rows(page: Page, rows: I64, le: I64, re: I64) -> Page:
    """Rows of a page as inserts with these lifetimes, whose columns stay where they are."""
    named = Deferred(((ReferredStore.over(page.payload), rows),), (), page.schema)
    made = DeferredPage(le, re, named)
    if page.own_ids is not None:
        key, (h1, h2) = page.own_ids
        made.identified(key, (h1[rows], h2[rows]))
    return made


def deferred_whole(
    some: Sequence[Page], le: I64, re: I64, re_new: I64 | None, tags: Tags | None
) -> DeferredPage:
    """One page with the rows of these, and these lifetimes; no column is gathered."""
    rows = Deferred.joined([_deferred(page) for page in some])
    return DeferredPage(le, re, rows, re_new, some[0].settled, tags, any(page.partial for page in some))


def _deferred(page: Page) -> Deferred:
    if isinstance(page, DeferredPage) and page.is_deferred and page.deferred is not None:
        return page.deferred
    return Deferred(((ReferredStore.over(page.payload), np.arange(len(page))),), (), page.schema)


__all__ = ["Deferred", "DeferredPage", "ReferredStore"]
