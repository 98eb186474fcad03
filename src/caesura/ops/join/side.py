"""One side of a join: its stored rows, linked by key, and what was sent about them.

Rows are found by key number, changed by value, and dropped when no future event of the other side
can meet them. A preserved side also keeps the pieces that it sent and that may still change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import ColumnStore, taken
from caesura.events.delta import net_page
from caesura.events.ending import EndingRows
from caesura.events.identity import Secret, identity
from caesura.events.labels import Labels
from caesura.events.nested import validity
from caesura.events.page import NO_NEW_END, Page
from caesura.events.paging import StatePages
from caesura.events.referred import ReferredStore
from caesura.events.rows import RowState, wasteful
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, Mask, frozen, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import distinct
from caesura.ops.join.kernel import (
    FRESH,
    REMOVED,
    look_up,
    meet_inserts,
    move_and_link,
    outlive,
    probe,
    retract_rows,
)
from caesura.ops.join.lookups import LONG, SLACK, ByValue
from caesura.punctuation import INFINITY

NO_NEW: I64 = np.zeros(0, np.int64)
MOVED = ("le", "re", "key")
"""The fields of a row that are moved while it is linked anew."""
PAUSE = 15
STRETCH = 1 << 14
"""So many rows of a page are looked up at a time, so that what is found stays in fast memory."""
SIDE_SALT = (np.uint64(0x5BD1E995), np.uint64(0x1B873593))


class Side:
    """Stored rows of one input."""

    def __init__(
        self,
        number: int,
        schema: pa.Schema,
        keys: list[str],
        secret: Secret,
        *,
        by_value: bool,
        preserved: bool,
        nulls_match: bool = False,
        store: type[ColumnStore] = ColumnStore,
    ) -> None:
        self.nulls_match = nulls_match
        self.number = number
        self._secret = secret
        self.schema = schema
        self.key_places = [schema.get_field_index(name) for name in keys]
        self.by_value = by_value
        self.preserved = preserved
        own: dict[str, Any] = {"le": np.int64, "re": np.int64, "key": np.int64}
        if by_value:
            own.update({"h1": np.uint64, "h2": np.uint64})
        self._store = store
        self.rows = RowState(own, schema, reuses=True, store=store)
        self.sources: tuple[int, ...] = ()
        self.sent = RowState({"row": np.int64, "le": np.int64, "re": np.int64})
        self.chains = Chains()
        self.sent_chains = Chains()
        self.ending, self.sent_ending = EndingRows(), EndingRows()
        self._by_value: ByValue | None = None
        """Where keys have many rows each."""
        self._failed = 0
        """For so many pages it is not tried whether this side is a table to look things up in."""

    def heed(self, sources: tuple[int, ...]) -> None:
        """Keeps the labels of rows too, for these sources."""
        self.sources = sources
        fields = {**self.rows.dtypes, **{f"label{k}": np.dtype(np.int64) for k in sources}}
        self.rows = RowState(fields, self.schema, reuses=True, store=self._store)

    def page_to(self, pages: StatePages) -> None:
        """Wide values are referred to from now on, and those beyond a budget lie on the disk."""
        self._store = ReferredStore
        self.rows = RowState(self.rows.dtypes, self.schema, reuses=True, store=ReferredStore)
        self.rows.page_to(pages)

    def labels(self) -> dict[int, I64]:
        """The labels of all stored rows by source."""
        return {k: self.rows.get(f"label{k}") for k in self.sources}

    def key_ids(self, payload: pa.RecordBatch) -> tuple[U64, U64]:
        """The identity of each row's key; a key with a null in it equals none of the other side's."""
        return self._ids([payload.column(i) for i in self.key_places], payload.num_rows)

    def _ids(self, columns: list[pa.Array], count: int) -> tuple[U64, U64]:
        if self.nulls_match:
            return identity(columns, count, self._secret)
        return key_ids(columns, count, self._secret, self.number)

    def look_up(self, key: I64, page: Page) -> I64 | None:
        """The row here that each row of the other side's page meets all its life; None if one does not."""
        if self._failed or self.rows.live == 0:
            self._failed = max(0, self._failed - 1)
            return None
        news = NO_NEW if page.re_new is None else page.re_new
        found = np.empty(len(page), np.int64)
        links = self.chains.head, self.chains.follow
        own = self.rows.get("le"), self.rows.get("re")
        times = frozen(page.le), frozen(NO_NEW if page.lazy_ends else page.re)
        if look_up(key, *times, frozen(news), *links, *own, found):
            return found
        self._failed = PAUSE
        return None

    def probe(self, key: I64, page: Page) -> tuple[I64, I64, I64, I64 | None, I64 | None]:
        """Meets a page of the other side with the rows here: (page row, row here, LE, RE, RE_new).

        Without RE the pairs are points, at the starts of the page's rows.
        """
        if page.re_new is None:
            return (*self._probe_inserts(key, page), None)
        resume = np.array([0, FRESH], np.int64)
        parts: list[tuple[I64, ...]] = []
        room = max(1024, len(page) + len(page) // 4)
        while resume[0] < len(page):
            buffers = tuple(np.empty(room, np.int64) for _ in range(5))
            links = self.chains.head, self.chains.follow
            own = self.rows.get("le"), self.rows.get("re")
            made = probe(key, page.le, page.re, page.re_new, *links, *own, resume, *buffers)
            parts.append(tuple(b[:made] for b in buffers))
            room *= 2
        return _joined(parts)  # type: ignore[return-value]

    def _probe_inserts(self, key: I64, page: Page) -> tuple[I64, I64, I64, I64 | None]:
        points = page.lazy_ends
        times = frozen(page.le), frozen(NO_NEW if points else page.re)
        own = self.chains.head, self.chains.follow, self.rows.get("le"), self.rows.get("re")
        count = len(page)
        stretch, room = min(count, STRETCH) + 1, max(1024, count + count // 4)
        resume, scratch = np.zeros(3, np.int64), (np.empty(stretch, np.int64), np.empty(stretch, np.int64))
        parts: list[tuple[I64, ...]] = []
        while resume[0] < count or resume[1] < resume[2]:
            buffers = [np.empty(room, np.int64) for _ in range(2 if points else 4)]
            times_out = (NO_NEW, NO_NEW) if points else ()
            made = meet_inserts(key, *times, *own, resume, *scratch, *buffers, *times_out)
            parts.append(tuple([b[:made] for b in buffers]))
            room *= 2
        if points:
            row, link = _joined(parts)
            return row, link, taken(page.le, row), None
        return _joined(parts)  # type: ignore[return-value]

    def insert(self, page: Page, at: I64 | None, key: I64) -> int:
        """Stores these rows of a page, or all; gives the number of the first."""
        at = None if at is None or len(at) == len(page) else at
        if len(page if at is None else at) == 0:
            return self.rows.size
        fields = self._fields(page, key)
        if at is not None:
            fields = {name: taken(values, at) for name, values in fields.items()}
        refers = isinstance(self.rows.payload, ReferredStore) and page.is_deferred
        deferred = page.deferred_of(np.arange(len(page)) if at is None else at) if refers else None
        if deferred is not None:
            first = self.rows.append(fields, deferred)
        else:
            first = self.rows.append(fields, page.payload, at)
        self.chains.add(fields["key"])
        if self._by_value is not None:
            self._by_value.add(fields["h1"], fields["h2"])
        self.ending.came(first, fields["re"])
        return first

    def _fields(self, page: Page, key: I64) -> dict[str, Any]:
        """What is kept of the rows of a page beside their columns."""
        fields: dict[str, Any] = {"le": page.le, "re": page.re, "key": key}
        if page.re_new is not None:
            fields["re"] = np.where(page.re_new == NO_NEW_END, page.re, page.re_new)
        if self.by_value:
            fields["h1"], fields["h2"] = page.ids(self._secret)
        for k in self.sources:
            label = page.tags.cols.get(k) if isinstance(page.tags, Labels) else None
            fields[f"label{k}"] = np.zeros(len(page), np.int64) if label is None else label
        return fields

    def added(self, first: int) -> I64:
        """The numbers of the rows from this one on."""
        return np.arange(first, self.rows.size)

    def retract(self, page: Page, at: I64, key: I64) -> I64:
        """Changes stored rows by value; gives their numbers, -1 for those not stored."""
        found = np.full(len(at), -1, np.int64)
        if len(at) == 0 or self.rows.size == 0:
            return found
        assert page.re_new is not None
        chains = self.chains
        if self._by_value is not None:
            chains, key = self._by_value.chains, np.full(len(page), -1, np.int64)
            key[at] = self._by_value.find(*(half[at] for half in page.ids(self._secret)))
        chains.reach(int(key.max(initial=-1)) + 1)
        h1, h2, re = self.rows.get("h1"), self.rows.get("h2"), self.rows.get("re")
        looked = retract_rows(
            at,
            key,
            *page.ids(self._secret),
            page.le,
            page.re,
            page.re_new,
            chains.head,
            chains.follow,
            h1,
            h2,
            self.rows.get("le"),
            re,
            found,
        )
        if self._by_value is None and looked > LONG * len(at) + SLACK:
            self._by_value = ByValue(h1, h2)
        if self.sources and isinstance(page.tags, Labels):
            there = found >= 0
            for k in self.sources:
                if k in page.tags.cols:
                    np.maximum.at(self.rows.get(f"label{k}"), found[there], page.tags.cols[k][at[there]])
        some = distinct(found[found >= 0], self.rows.size)
        self.ending.add(some, re[some])
        self.rows.touch(some)
        self.rows.kill(some[(re[some] == REMOVED) & self.rows.alive[some]])
        return found

    def revive(self, page: Page, lost: I64, key: I64, store: Mask) -> I64:
        """Stores what retracts of rows that are not stored lead to; gives their numbers.

        A row that was let go may be corrected several times in a page, and one correction then takes back
        what another made: only where a chain of them ends is a row stored.
        """
        if len(lost) == 0:
            return lost
        assert page.re_new is not None
        gains = lost[store[lost] & (page.re_new[lost] > page.le[lost])]
        if len(gains) and len(lost) > 1:
            rows = np.concatenate([gains, lost])
            ends = np.concatenate([page.re_new[gains], page.re[lost]])
            number, _ = KeyTable().encode(*mixed(page.ids(self._secret), page.le[rows], ends, rows=rows))
            gains = gains[uncancelled(number[: len(gains)], number[len(gains) :])]
        return self.added(self.insert(page, gains, key))

    def pieces_of(self, rows: I64) -> tuple[I64, I64]:
        """(place in ``rows``, piece) of every piece sent about these rows."""
        owner, piece = self.sent_chains.gather(rows)
        live = self.sent.alive[piece]
        return owner[live], piece[live]

    def resend(self, rows: I64, new: I64, le: I64, re: I64, payload: Callable[[I64], pa.RecordBatch]) -> Page:
        """The change from the pieces sent about some rows to new ones (row, LE, RE), which are kept."""
        owner, old = self.pieces_of(rows)
        weight = np.concatenate([np.full(len(old), -1, np.int64), np.ones(len(new), np.int64)])
        page = net_page(
            payload(np.concatenate([rows[owner], new])),
            np.concatenate([self.sent.get("le")[old], le]),
            np.concatenate([self.sent.get("re")[old], re]),
            weight,
        )
        self.sent.kill(old)
        first = self.sent.append({"row": new, "le": le, "re": re})
        self.sent_chains.add(new)
        self.sent_ending.add(np.arange(first, first + len(new)), re)
        return page

    def drop(self, rows: I64) -> None:
        """Lets stored rows go, with the pieces that were sent about them."""
        self.rows.get("re")[rows] = REMOVED
        self.rows.kill(rows)
        if self.preserved and len(rows):
            _, piece = self.pieces_of(rows)
            self.sent.kill(piece)

    def ends_before(self, bound: int) -> I64:
        """The live rows that end at a bound or before it."""
        return self._over(self._near(bound), bound)

    def _near(self, bound: int) -> I64 | None:
        """The rows that are listed as ending; None where all are to be looked at."""
        return self.ending.rows(self.rows.size) if bound < INFINITY else None

    def _over(self, near: I64 | None, bound: int) -> I64:
        ends = self.rows.get("re")
        if near is None:
            return np.flatnonzero(self.rows.alive & (ends <= bound))
        near = near[self.rows.alive[near]]
        self.ending.keep(near)
        return near[ends[near] <= bound]

    def expire(self, bound: int) -> None:
        """Lets go of the rows that end at a bound or before it, of a side that is not preserved.

        Where many do, the others are moved together at once.
        """
        near = self._near(bound)
        if near is None:
            rows = np.empty(self.rows.size + 1, np.int64)
            left, ending = outlive(self.rows.alive, self.rows.get("re"), bound, rows)
            if left == self.rows.live:
                return
            if wasteful(left, self.rows.size):
                rows = rows[:left]
                le, re, key = (self.rows.get(name) for name in MOVED)
                move_and_link(rows, le, re, key, self.chains.head, self.chains.follow)
                self.rows.compact(rows, moved=MOVED)
                self.chains.size = left
                self._listed_anew(ending)
                return
        self.drop(self._over(near, bound))

    def settled_pieces(self, bound: int) -> I64:
        """The live pieces that end before a bound."""
        near = self.sent_ending.rows(self.sent.size)
        ends = self.sent.get("re")
        if near is None:
            return np.flatnonzero(self.sent.alive & (ends < bound))
        near = near[self.sent.alive[near]]
        self.sent_ending.keep(near)
        return near[ends[near] < bound]

    @property
    def wasteful(self) -> bool:
        return self.rows.wasteful or self.sent.wasteful

    def compact(self) -> None:
        """Moves live rows and pieces together; chains must be linked anew."""
        if self.rows.live < self.rows.size:
            keep = self.rows.compact()
            if self.sent.size:
                new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
                new[keep] = np.arange(len(keep))
                row = self.sent.get("row")
                live = self.sent.alive
                row[live] = new[row[live]]
                self.sent.touch(np.flatnonzero(live))
        if self.sent.live < self.sent.size:
            self.sent.compact()

    def link(self, table: KeyTable) -> None:
        """Chains anew, from the rows alone."""
        self.chains, self.sent_chains = Chains(), Chains()
        if self.rows.size:
            every, held = np.arange(self.rows.size), self.rows.payload.columns
            columns = [held[i].take(every) for i in self.key_places]
            self.rows.get("key")[:] = table.encode(*self._ids(columns, len(every)))[0]
        self.relink()

    def relink(self) -> None:
        """Chains anew, from the key numbers that the rows have."""
        self.chains.clear()
        self.chains.add(self.rows.get("key"))
        if self.preserved:
            self.sent_chains.clear()
            self.sent_chains.add(self.sent.get("row"))
            self.sent_ending.relist(self.sent.get("re"))
        self._listed_anew()

    def _listed_anew(self, ending: int | None = None) -> None:
        """Rows have other numbers; so many end, where that is known."""
        self.ending.relist(self.rows.get("re"), ending)
        self._by_value = None


def _joined(parts: list[tuple[I64, ...]]) -> tuple[I64, ...]:
    """Columns that came in parts, each as one."""
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(p) for p in zip(*parts, strict=True))


def key_ids(columns: list[pa.Array], count: int, secret: Secret, side: int) -> tuple[U64, U64]:
    """The identity of each row's key on a side; one with a null in it equals none of the other side's."""
    h1, h2 = identity(columns, count, secret)
    nulls = [c for c in columns if c.null_count]
    if nulls:
        valid = np.logical_and.reduce([validity(column) for column in nulls])
        h1[~valid] ^= SIDE_SALT[side]
    return h1, h2


def uncancelled(gains: I64, losses: I64) -> I64:
    """The places of gains that losses of the same number leave over; the last ones of each.

    >>> uncancelled(np.array([4, 3, 4, 4]), np.array([4, 5, 4]))
    array([1, 3])
    """
    count = int(max(gains.max(initial=-1), losses.max(initial=-1))) + 1
    lost = np.bincount(losses, minlength=count)
    order = np.argsort(gains, kind="stable")
    first = np.searchsorted(gains[order], gains[order])
    return np.sort(order[np.arange(len(order)) - first >= lost[gains[order]]])
