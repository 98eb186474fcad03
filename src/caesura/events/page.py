"""A page: a batch of events with lifetimes, inserts and retracts side by side.

An event lives on [LE, RE). A retract names an event by value and gives its new end; a new end equal
to LE takes the event away. A page of inserts only carries no ``re_new`` at all.

>>> page = Page.of(pa.record_batch({"id": [1, 2]}), le=[10, 12], re=[20, 15])
>>> page.sync.tolist()
[10, 12]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from caesura.events.columns import empty_rows, from_words, joined_batches, taken, words
from caesura.events.far_times import values
from caesura.events.identity import Secret, identity
from caesura.events.nested import NO_MASK
from caesura.events.referred import SHARED, Deferred
from caesura.events.types import is_words
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, frozen
from caesura.plain_arrays import plain_array
from caesura.punctuation import MIN_TIME

NO_NEW_END = MIN_TIME
"""What ``re_new`` holds for an insert: no change of its end."""
NO_ENDS: I64 = np.zeros(0, np.int64)


@kernel
def pick_lifetimes(
    mask: Mask, le: I64, re: I64, re_new: I64, rows: I64, o_le: I64, o_re: I64, o_new: I64
) -> tuple[int, int]:
    """The rows where the mask is true, with their lifetimes; gives how many, and how many are retracts.

    An empty ``re`` says that they are points, whose ends are not wanted. All rows are
    written, the others over and over, so that there is no branch to guess.
    """
    count = 0
    if len(re) == 0:
        for i in range(len(mask)):
            rows[count] = i
            o_le[count] = le[i]
            count += mask[i]
        return count, 0
    if len(re_new) == 0:
        for i in range(len(mask)):
            rows[count] = i
            o_le[count] = le[i]
            o_re[count] = re[i]
            count += mask[i]
        return count, 0
    for i in range(len(mask)):
        rows[count] = i
        o_le[count] = le[i]
        o_re[count] = re[i]
        o_new[count] = re_new[i]
        count += mask[i]
    retracts = 0
    for i in range(count):
        retracts += o_new[i] != NO_NEW_END
    return count, retracts


class Tags(Protocol):
    """What the runtime lets rows carry beside their payload; it goes where the rows go."""

    def take(self, rows: I64, /) -> Tags | None: ...
    def slice(self, start: int, length: int, /) -> Tags | None: ...
    def join(self, others: Sequence[Any], lengths: Sequence[int], /) -> Tags | None: ...


@dataclass(frozen=True)
class Page:
    """Events of one schema; the unit that operators work on."""

    le: I64
    re: I64
    payload: pa.RecordBatch
    re_new: I64 | None = None
    settled: bool = False
    """A page of reminders: these rows were given before and have become final (drawn as ``=``)."""
    tags: Tags | None = None
    partial: bool = False
    """Whether its inserts are what there is so far, given on demand, to be corrected (drawn as ``~``)."""

    @staticmethod
    def of(
        payload: pa.RecordBatch,
        *,
        le: Sequence[int] | I64,
        re: Sequence[int] | I64,
        re_new: Sequence[int] | I64 | None = None,
    ) -> Page:
        """A page from anything that NumPy takes; ``re_new`` of inserts is NO_NEW_END."""
        ends = None if re_new is None else np.asarray(re_new, np.int64)
        if ends is not None and not (ends != NO_NEW_END).any():
            ends = None
        return Page(np.asarray(le, np.int64), np.asarray(re, np.int64), payload, ends)

    def __len__(self) -> int:
        return len(self.le)

    @property
    def schema(self) -> pa.Schema:
        """The payload columns."""
        return self.payload.schema

    @property
    def has_retracts(self) -> bool:
        """Whether there are retracts among its rows."""
        return self.re_new is not None

    @property
    def all_points(self) -> bool:
        """Whether it is known that each row ends right behind its start."""
        return False

    @cached_property
    def retracts(self) -> Mask | None:
        """Which rows are retracts; None when all are inserts."""
        return None if self.re_new is None else self.re_new != NO_NEW_END

    @cached_property
    def retract_rows(self) -> I64:
        """The numbers of the rows that are retracts."""
        return NO_ENDS if self.retracts is None else np.flatnonzero(self.retracts)

    @cached_property
    def shortens(self) -> bool:
        """Whether a retract leaves something of its event behind."""
        rows = self.retract_rows
        return self.re_new is not None and bool((self.re_new[rows] > self.le[rows]).any())

    def with_retracts(self, rows: I64, *, shortens: bool) -> Page:
        """The same page, of which it is known which rows are retracts, and whether one shortens an event."""
        self.__dict__["retract_rows"], self.__dict__["shortens"] = rows, shortens
        return self

    @cached_property
    def sync(self) -> I64:
        """The earliest time that each row changes."""
        if self.re_new is None:
            return self.le
        return np.where(self.re_new == NO_NEW_END, self.le, np.minimum(self.re, self.re_new))

    def ids(self, secret: Secret) -> tuple[U64, U64]:
        """The identity of each row's payload under a secret, computed once."""
        known = self.own_ids
        if known is None or known[0] is not secret.start:
            known = secret.start, identity(self.payload.columns, len(self), secret)
            self.__dict__["_ids"] = known
        return known[1]

    @property
    def own_ids(self) -> tuple[object, tuple[U64, U64]] | None:
        """The identities that are known already, and the key under which they were made."""
        known: tuple[object, tuple[U64, U64]] | None = self.__dict__.get("_ids")
        return known

    def identified(self, key: object, ids: tuple[U64, U64]) -> Page:
        """The same page, whose identities under a secret's key are known."""
        self.__dict__["_ids"] = key, ids
        return self

    @cached_property
    def nbytes(self) -> int:
        return int(self.payload.nbytes + 16 * len(self) * (2 if self.has_retracts else 1))

    def take(self, rows: I64) -> Page:
        """These rows, in this order."""
        ends = None if self.re_new is None else self.re_new[rows]
        if ends is not None and not (ends != NO_NEW_END).any():
            ends = None
        tags = None if self.tags is None else self.tags.take(rows)
        payload = take_rows(self.payload, rows)
        return self._part(taken(self.le, rows), taken(self.re, rows), payload, ends, tags)

    def filter(self, mask: Mask) -> Page:
        """The rows where mask is true; the page itself when all are."""
        count, passed = len(self), np.count_nonzero(mask)
        if passed == count:
            return self
        if SPARSE * passed < count:
            return self.take(np.flatnonzero(mask))
        news = NO_ENDS if self.re_new is None else self.re_new
        rows, le, re = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
        ends = np.empty(len(news), np.int64)
        picked, retracts = pick_lifetimes(
            mask, frozen(self.le), frozen(self.re), frozen(news), rows, le, re, ends
        )
        rows = rows[:picked]
        tags = None if self.tags is None else self.tags.take(rows)
        payload = take_rows(self.payload, rows)
        new = ends[:picked] if retracts else None
        return self._part(le[:picked], re[:picked], payload, new, tags)

    def slice(self, start: int, length: int) -> Page:
        """Some of its rows, as they lie."""
        end = start + length
        ends = None if self.re_new is None else self.re_new[start:end]
        if ends is not None and not (ends != NO_NEW_END).any():
            ends = None
        tags = None if self.tags is None else self.tags.slice(start, length)
        return self._part(
            self.le[start:end], self.re[start:end], self.payload.slice(start, length), ends, tags
        )

    def payload_of(self, rows: I64) -> pa.RecordBatch:
        """The payload of these rows."""
        return take_rows(self.payload, rows)

    @property
    def is_deferred(self) -> bool:
        """Whether its columns are not gathered yet."""
        return False

    @property
    def lazy_ends(self) -> bool:
        """Whether these are points whose ends nobody has asked for."""
        return False

    def ends_after(self, bound: int | I64) -> Mask:
        """Which rows of a page of inserts end after a bound; points need no ends for that."""
        later: Mask = self.le >= bound if self.lazy_ends else self.re > bound
        return later

    def times(self, *, ends: bool) -> tuple[I64, I64 | None]:
        """The starts, and the ends where those are wanted."""
        return self.le, self.re if ends else None

    def deferred_of(self, rows: I64) -> Deferred | None:
        """These rows without their columns, where those were not looked at yet."""
        return None

    def inserts(self, rows: I64, le: I64, re: I64) -> Page:
        """These rows as inserts with these lifetimes; of many, columns are gathered when somebody looks."""
        if len(rows) <= SHORT or SHARED * len(rows) < len(self):
            return Page(le, re, self.payload_of(rows))
        from caesura.events.deferred import deferred_rows

        return deferred_rows(self, rows, le, re)

    def as_inserts(self) -> Page:
        """All rows as inserts with the lifetimes that they have; nothing is copied."""
        return Page(self.le, self.re, self.payload)

    def joined(
        self, some: Sequence[Page], le: I64, re: I64 | None, re_new: I64 | None, tags: Tags | None
    ) -> Page:
        """One page with the rows of these, of which it is the first, and these lifetimes; points without."""
        waiting = sum(page.is_deferred for page in some)
        if re is not None and (waiting == len(some) or (waiting and len(le) > SHORT)):
            from caesura.events.deferred import deferred_whole

            return deferred_whole(some, le, re, re_new, tags)
        whole = joined_batches([p.payload for p in some]) if len(self.schema) else empty_rows(len(le))
        rest = whole, re_new, self.settled, tags, any(p.partial for p in some)
        return PointPage(le, None, *rest) if re is None else Page(le, re, *rest)

    def _part(self, le: I64, re: I64, payload: pa.RecordBatch, re_new: I64 | None, tags: Tags | None) -> Page:
        """A page of rows of this one, of the same kind."""
        return Page(le, re, payload, re_new, self.settled, tags, self.partial)

    def with_payload(self, payload: pa.RecordBatch) -> Page:
        """The same events with other columns."""
        return self._part(self.le, self.re, payload, self.re_new, self.tags)

    def rows(self) -> list[tuple[int, int, int | None, tuple[object, ...]]]:
        """(LE, RE, RE_new or None, payload) of each row; for tests and drawings."""
        ends = [None] * len(self) if self.re_new is None else self.re_new.tolist()
        columns = zip(*map(values, self.payload.columns), strict=True)
        payload = list(columns) if self.payload.num_columns else [()] * len(self)
        return [
            (le, re, None if new == NO_NEW_END else new, row)
            for le, re, new, row in zip(self.le.tolist(), self.re.tolist(), ends, payload, strict=True)
        ]


class PointPage(Page):
    """Points: each ends right behind its start. Their ends are made when somebody asks for them."""

    def __init__(
        self,
        le: I64,
        re: I64 | None,
        payload: pa.RecordBatch,
        re_new: I64 | None = None,
        settled: bool = False,
        tags: Tags | None = None,
        partial: bool = False,
    ) -> None:
        own = {"le": le, "payload": payload, "re_new": re_new, "settled": settled, "tags": tags}
        self.__dict__.update(own, partial=partial)
        if re is not None:
            self.__dict__["re"] = re

    @cached_property
    def re(self) -> I64:
        ends: I64 = self.le + 1
        return ends

    @property
    def all_points(self) -> bool:
        """Each ends right behind its start."""
        return True

    @property
    def lazy_ends(self) -> bool:
        """Whether nobody has asked for their ends."""
        return "re" not in self.__dict__ and self.re_new is None

    def take(self, rows: I64) -> Page:
        """These rows, in this order."""
        if not self.lazy_ends:
            return super().take(rows)
        tags = None if self.tags is None else self.tags.take(rows)
        return self._points(taken(self.le, rows), take_rows(self.payload, rows), tags)

    def filter(self, mask: Mask) -> Page:
        """The rows where mask is true; the page itself when all are."""
        if not self.lazy_ends:
            return super().filter(mask)
        count, passed = len(self), np.count_nonzero(mask)
        if passed == count:
            return self
        if SPARSE * passed < count:
            return self.take(np.flatnonzero(mask))
        rows, le = np.empty(count, np.int64), np.empty(count, np.int64)
        none = frozen(NO_ENDS)
        picked, _ = pick_lifetimes(mask, frozen(self.le), none, none, rows, le, NO_ENDS, NO_ENDS)
        rows = rows[:picked]
        tags = None if self.tags is None else self.tags.take(rows)
        return self._points(le[:picked], take_rows(self.payload, rows), tags)

    def slice(self, start: int, length: int) -> Page:
        """Some of its rows, as they lie."""
        if not self.lazy_ends:
            return super().slice(start, length)
        tags = None if self.tags is None else self.tags.slice(start, length)
        return self._points(self.le[start : start + length], self.payload.slice(start, length), tags)

    def as_inserts(self) -> Page:
        """All rows as inserts with the lifetimes that they have; nothing is copied."""
        return PointPage(self.le, None, self.payload) if self.lazy_ends else super().as_inserts()

    def with_payload(self, payload: pa.RecordBatch) -> Page:
        """The same events with other columns."""
        return self._points(self.le, payload, self.tags) if self.lazy_ends else super().with_payload(payload)

    def _points(self, le: I64, payload: pa.RecordBatch, tags: Tags | None) -> Page:
        return PointPage(le, None, payload, None, self.settled, tags, self.partial)


class ChangedPage(Page):
    """Inserts and retracts as they were read: new ends of all rows are made when somebody asks for them."""

    @staticmethod
    def read(
        le: I64, re: I64, payload: pa.RecordBatch, retracts: Mask, rows: I64, ends: I64, *, points: bool
    ) -> Page:
        """A page of these rows, some of which are retracts with these new ends."""
        page = ChangedPage(le, re, payload)
        known = {"retracts": retracts, "retract_rows": rows, "_ends": ends, "_points": points}
        del page.__dict__["re_new"]
        page.__dict__.update(known)
        return page

    @cached_property
    def re_new(self) -> I64 | None:
        ends = np.full(len(self), NO_NEW_END, np.int64)
        ends[self.retract_rows] = self.__dict__["_ends"]
        return ends

    @property
    def has_retracts(self) -> bool:
        """Whether there are retracts among its rows."""
        return "_ends" in self.__dict__ or super().has_retracts

    @property
    def all_points(self) -> bool:
        """Whether it is known that each row ends right behind its start."""
        return bool(self.__dict__.get("_points", False))


SPARSE = 8
"""Where at most one of so many rows is wanted, their numbers are looked for first."""
FEW, SHORT = 2048, 8192
"""Up to so many rows Arrow is faster with a batch: of plain numbers, of all else. Beyond, our gather is."""


def take_rows(batch: pa.RecordBatch, rows: I64) -> pa.RecordBatch:
    """The named rows of a batch, also of one without columns."""
    if batch.num_columns == 0:
        return empty_rows(len(rows))
    if len(rows) == batch.num_rows and _in_order(rows):
        return batch
    if _arrow_is_faster(batch, len(rows)):
        return batch.take(plain_array(rows))
    return pa.RecordBatch.from_arrays([take_values(c, rows) for c in batch.columns], schema=batch.schema)


def take_columns(batch: pa.RecordBatch, rows: I64) -> list[pa.Array]:
    """The named rows of each column of a batch."""
    some = batch.take(plain_array(rows)) if _arrow_is_faster(batch, len(rows)) else None
    return [take_values(c, rows) for c in batch.columns] if some is None else some.columns


def _arrow_is_faster(batch: pa.RecordBatch, rows: int) -> bool:
    few = rows <= FEW or (rows <= SHORT and not all(map(is_words, batch.schema.types)))
    return few and batch.num_columns > 0


def _in_order(rows: I64) -> bool:
    """Whether so many different rows, of as many, are named as they lie."""
    last = len(rows) - 1
    return last < 0 or (rows[0] == 0 and rows[last] == last and bool((rows[1:] > rows[:-1]).all()))


def take_values(column: pa.Array, rows: I64) -> pa.Array:
    """The named values of a long column."""
    if is_words(column.type) and column.null_count == 0:
        return from_words(taken(words(column), rows), NO_MASK, column.type)
    return column.take(plain_array(rows))


def empty_page(schema: pa.Schema) -> Page:
    """A page with no rows."""
    nothing = np.zeros(0, np.int64)
    batch = pa.RecordBatch.from_arrays(list(map(_no_values, schema.types)), schema=schema)
    return Page(nothing, nothing, batch if len(schema) else empty_rows(0))


@cache
def _no_values(t: pa.DataType) -> pa.Array:
    return pa.array([], t)


def concat(pages: Iterable[Page], schema: pa.Schema) -> Page:
    """One page with the rows of all, which are of one kind."""
    some = [page for page in pages if len(page)]
    if len(some) == 1:
        return some[0]
    if not some:
        return empty_page(schema)
    ends = None
    if any(page.re_new is not None for page in some):
        kept = [np.full(len(p), NO_NEW_END, np.int64) if p.re_new is None else p.re_new for p in some]
        ends = np.concatenate(kept)
    le = np.concatenate([p.le for p in some])
    re = None if all(p.lazy_ends for p in some) else np.concatenate([p.re for p in some])
    tags = some[0].tags
    if tags is not None:
        tags = tags.join([p.tags for p in some[1:]], [len(p) for p in some])
    whole = some[0].joined(some, le, re, ends, tags)
    known = [page.own_ids for page in some]
    if all(k is not None and known[0] is not None and k[0] is known[0][0] for k in known):
        h1, h2 = (np.concatenate([k[1][half] for k in known if k is not None]) for half in (0, 1))
        whole.identified(known[0][0], (h1, h2))  # type: ignore[index]
    return whole
