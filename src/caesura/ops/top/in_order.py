"""`Top` for pages in order of time: sends what a page changes at once, and keeps what of it may still matter.

A page is filed when the next one comes, or somebody asks for the state. By then a punctuation has often
settled most of what it began and ended, and that is never written down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.deferred import Deferred, DeferredPage
from caesura.events.identity import Secret
from caesura.events.page import NO_NEW_END, Page
from caesura.events.referred import ReferredStore
from caesura.events.rows import SMALL, RowState
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.sums import distinct
from caesura.ops.top.order import ties
from caesura.ops.top.running import Arrivals, Moves, Running, inverse
from caesura.punctuation import INFINITY

MOST_RECENT = 16
"""So many pages may have stretches that are not filed."""


class PendingPage(NamedTuple):
    """Rows of a page that were shown, and their moves; rows from ``first`` on are those of the page."""

    rows: pa.RecordBatch
    ids: tuple[U64, U64]
    le: I64
    moves: Moves
    first: int


class InOrder:
    """What is shown now, over the rows and stretches that an operator keeps."""

    def __init__(self, rows: RowState, sent: RowState, ranks: int, schema: pa.Schema, secret: Secret) -> None:
        self._rows, self._sent, self._ranks = rows, sent, ranks
        self._schema, self._secret = schema, secret
        self.running: Running | None = None
        """None where the last page changed the past."""
        self._pending: PendingPage | None = None
        self._recent: list[PendingPage] = []
        """Stretches that ended lately, of rows that are not shown: the next CTI settles most of them."""

    def take(self, page: Page, slot: I64, words: I64, groups: int) -> Page | None:
        """The change that a page makes; None where it changes the past. The page before must be filed."""
        running = self.running
        assert running is not None
        running.reach(groups)
        if (page.le[1:] < page.le[:-1]).any():
            place = np.argsort(page.le, kind="stable")
            page, slot, words = page.take(place), slot[place], words[place]
        first, touched = self._rows.size, distinct(slot, groups)
        tie = self._ties(running, page, slot, words, touched)
        rows = Arrivals(slot, page.le, np.ascontiguousarray(words).reshape(-1), tie)
        moves = running.follow(rows, first, touched)
        if moves is None:
            self.running = None
            return None
        self._pending = pending = self._shown(page, moves, first)
        return self._change(pending)

    def _ties(self, running: Running, page: Page, slot: I64, words: I64, touched: I64) -> I64:
        """What tells rows apart that begin together; nothing where none do."""
        le = page.le
        if le[0] > running.latest and not (le[1:] == le[:-1]).any():
            return le[:0]
        group, place, row, start, order = running.begun_since(touched, int(le[0]))
        keys = [np.concatenate(pair) for pair in ((slot, group), (le, start))]
        keys += list(np.concatenate([words, order]).T)

        def values(at: I64) -> list[pa.Array]:
            own, others = page.payload_of(at[at < len(le)]), row[at[at >= len(le)] - len(le)]
            pairs = zip(own.columns, self._rows.payload.take(others).columns, strict=True)
            return [pa.concat_arrays(pair) for pair in pairs]

        tie = ties(keys, values)
        running.tell_apart(group, place, tie[len(le) :])
        return tie[: len(le)]

    def _shown(self, page: Page, moves: Moves, first: int) -> PendingPage:
        """The page, or where fewer than half of its rows are shown a copy of those."""
        used = np.zeros(len(page), np.bool_)
        used[moves.row[moves.row >= first] - first] = True
        some = np.flatnonzero(used)
        if 2 * len(some) >= len(page):
            return PendingPage(page.payload, page.ids(self._secret), page.le, moves, first)
        number = np.concatenate([np.arange(first), first - 1 + np.cumsum(used)])
        moves = moves._replace(row=number[moves.row])
        part = page.take(some)
        return PendingPage(part.payload, part.ids(self._secret), part.le, moves, first)

    def _change(self, pending: PendingPage) -> Page:
        """Ends of stretches that were sent, new stretches of old rows, then those of the page's rows."""
        moves, rows = pending.moves, self._rows
        was_sent, own = moves.sent >= 0, moves.row >= pending.first
        old, new = np.flatnonzero(was_sent), np.flatnonzero(own)
        moved = np.flatnonzero(~(was_sent | own)) if self._ranks else old[:0]
        before = np.concatenate([old, moved])
        every = np.concatenate([before, new])
        at, fresh = moves.row[before], moves.row[new] - pending.first
        ids = tuple(np.concatenate([rows.get(f"p{k + 1}")[at], pending.ids[k][fresh]]) for k in range(2))
        ranks = tuple(moves.number[every] for _ in range(self._ranks))
        if ranks:
            ids = mixed((ids[0], ids[1]), *ranks)
        assert isinstance(rows.payload, ReferredStore)
        parts = ((rows.payload.frozen(), at), (ReferredStore.over(pending.rows), fresh))
        named = Deferred(tuple(part for part in parts if len(part[1])), ranks, self._schema)
        re, re_new = moves.re[every], None
        if len(old):
            re_new = np.full(len(every), NO_NEW_END)
            re_new[: len(old)] = re[: len(old)]
            re[: len(old)] = INFINITY
        made = DeferredPage(moves.le[every], re, named, re_new)
        return made.identified(self._secret.start, (ids[0], ids[1]))

    def file(self, cti: int, *, whole: bool) -> int:
        """Keeps what is shown of the last page, and says how many stretches ended.

        Those that ended before a CTI are forgotten; others are kept when the ``whole`` state is wanted.
        """
        pending, self._pending = self._pending, None
        ended = 0 if pending is None else self._file_page(pending, cti)
        self._recent = [page for page in self._recent if (page.moves.re >= cti).any()]
        if whole or len(self._recent) > MOST_RECENT:
            for page in self._recent:
                some = np.flatnonzero(page.moves.re >= cti)
                self._keep(page, some)
                ended += len(some)
            self._recent = []
        return ended

    def _file_page(self, pending: PendingPage, cti: int) -> int:
        assert self.running is not None
        moves, sent = pending.moves, self._sent
        old = np.flatnonzero(moves.sent >= 0)
        before, re = moves.sent[old], moves.re[old]
        sent.get("re")[before] = re
        sent.touch(before)
        sent.kill(before[(moves.le[old] == re) | (re < cti)])
        new = np.flatnonzero((moves.sent < 0) & (moves.re >= cti))
        lasts = moves.entry[new] >= 0
        if self._ranks == 0:  # then a row has one stretch, and those that ended have rows of their own
            if not lasts.all():
                self._recent.append(pending._replace(moves=moves.take(new[~lasts])))
            new, lasts = new[lasts], lasts[lasts]
        row, number = self._keep(pending, new)
        self.running.settle(moves.entry[new[lasts]], row[lasts], number[lasts])
        return len(old) + len(new) - int(lasts.sum())

    def _keep(self, pending: PendingPage, some: I64) -> tuple[I64, I64]:
        """Keeps some new stretches of a page; gives the numbers of their rows, and their own."""
        moves, rows = pending.moves, self._rows
        row = self._keep_rows(pending, moves.row[some])
        fields = {name: rows.get(name)[row] for name in ("p1", "p2")}
        fields |= {"from": rows.get("le")[row], "row": row, "le": moves.le[some], "re": moves.re[some]}
        fields |= {f"r{k}": moves.number[some] for k in range(self._ranks)}
        return row, self._sent.append(fields) + np.arange(len(some))

    def _keep_rows(self, pending: PendingPage, row: I64) -> I64:
        """Keeps the rows of a page that are named, and gives the numbers of all that are."""
        fresh = row >= pending.first
        own = row[fresh] - pending.first
        used = np.zeros(len(pending.le), np.bool_)
        used[own] = True
        some = np.flatnonzero(used)
        fields = {"p1": pending.ids[0][some], "p2": pending.ids[1][some], "le": pending.le[some]}
        fields |= {"re": np.full(len(some), INFINITY), "n": np.ones(len(some), np.int64)}
        first = self._rows.append(fields, pending.rows, None if len(some) == len(used) else some)
        row = row.copy()
        row[fresh] = (first - 1 + np.cumsum(used))[own]
        return row

    def purge(self, cti: int) -> int:
        """Lets go of stretches that end before a CTI, and rows not shown; gives how many end later."""
        rows, sent = self._rows, self._sent
        assert self.running is not None
        sent.kill(np.flatnonzero(sent.alive & (sent.get("re") < cti)))
        needed = np.zeros(rows.size, np.bool_)
        needed[sent.get("row")[sent.alive]] = True
        dropped = np.flatnonzero(rows.alive & ~needed)
        rows.get("n")[dropped] = 0
        rows.kill(dropped)
        stretches_kept = sent.compact() if sent.size > 2 * sent.live + SMALL else None
        rows_kept = rows.compact() if rows.size > 2 * rows.live + SMALL else None
        if rows_kept is not None:
            live = np.flatnonzero(sent.alive)
            sent.get("row")[live] = inverse(rows_kept)[sent.get("row")[live]]
        self.running.renumber(rows_kept, stretches_kept)
        return int((sent.get("re")[sent.alive] != INFINITY).sum())
