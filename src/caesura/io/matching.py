"""Retracts meet their inserts: the live versions of a source's events, and retracts that came too soon.

Past the matcher no retract precedes its insert. A version is forgotten once no retract can name it any
more: the CTI is past its end. A retract is given up once the CTI is past its sync time.

>>> matcher = Matcher(pa.schema([("p", pa.string())]))
>>> early = Page.of(pa.record_batch({"p": ["P1"]}), le=[1], re=[INFINITY], re_new=[5])
>>> at = Origin(0, np.array([0]))
>>> matcher.match(early, early.le, np.array([MIN_TIME]), at)
>>> insert = Page.of(pa.record_batch({"p": ["P1"]}), le=[1], re=[INFINITY])
>>> matcher.match(insert, insert.le, np.array([MIN_TIME]), at).rows() == [
...     (1, INFINITY, None, ("P1",)), (1, INFINITY, 5, ("P1",))]
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events import KEPT, Page, concat, take_rows
from caesura.events.columns import empty_rows
from caesura.events.rows import RowState
from caesura.io.match_kernels import (
    BEGIN,
    BRINGS,
    COUNT,
    FREE,
    K1,
    K2,
    NEW,
    START,
    SYNC,
    WAITS,
    Matrix,
    index_versions,
    look_up,
    match_events,
    pick_wanted,
    place_distinct,
    version_keys,
)
from caesura.io.row_kernels import frozen
from caesura.kernels.hashing import I64, U64
from caesura.punctuation import INFINITY, MIN_TIME, Promises

SLACK = 32_768  # versions that may be stale before the first purge
TAIL = 8  # times the rows of a page: versions looked through for a page with retracts, not indexed
KEY = {"k1": np.int64, "k2": np.int64}
VERSION = {**KEY, "re": np.int64, "count": np.int32}
RETRACT = dict.fromkeys(("k1", "k2", "n1", "n2", "sync", "le", "re", "new", "lane", "offset"), np.int64)
NOTHING = np.zeros(0, np.int64)


class Origin(NamedTuple):
    """Where rows come from."""

    lane: int
    offsets: I64


class GivenUp(NamedTuple):
    """Retracts that will never match."""

    page: Page
    lanes: I64
    offsets: I64


class Matcher:
    """The live versions of all events, and the retracts that wait for one."""

    def __init__(self, schema: pa.Schema, *, with_payload: bool = False, adjusts: bool = False) -> None:
        self.schema = schema
        begin = {"begin": np.int64} if adjusts else {}
        self.live = RowState({**VERSION, **begin}, schema if with_payload else None, reuses=True)
        self.held = RowState(RETRACT, schema)
        self.adjusts = adjusts
        self._slots = new_index(0)
        self._indexed = 0
        self._ripe = SLACK
        self._soonest = INFINITY
        self._paged = 0

    def match(self, page: Page, starts: I64, cti: I64, origin: Origin) -> Page | None:
        """What may leave of these rows, in order: the page itself where all may; None for nothing.

        ``page`` has the starts that sources gave, ``starts`` those that events get, ``cti`` the stream's
        bound before each row.
        """
        retract = page.retracts
        self._paged = max(len(page), self._paged // 2)
        base = self._add_versions(page, starts)
        if retract is None and self.held.live == 0:
            return _started(page, starts) if self.adjusts else page
        rows = NOTHING if retract is None else np.flatnonzero(retract)
        return _Match(self, page, starts, base, rows).run(cti, origin)

    def _add_versions(self, page: Page, starts: I64) -> int:
        k1, k2, ends = _keys(page.ids, page.le, page.re, page.re_new)
        counts = np.ones(len(page), np.int32)
        fields: dict[str, Any] = {"k1": k1, "k2": k2, "re": ends, "count": counts, "begin": starts}
        return self.live.append(fields, page.payload)

    def named_by(self, retracts: Matrix, sure: I64) -> I64:
        """The numbers of the versions that some retracts name, and these, ascending."""
        wants = new_index(4 * len(retracts))  # sparse, for nearly all versions must miss it
        place_distinct(wants, retracts)
        k1, k2 = self.live.get("k1"), self.live.get("k2")
        picked = np.empty(len(k1) - self._indexed, np.int64)
        loose = picked[: pick_wanted(wants, retracts, k1, k2, self._indexed, sure, picked)]
        loose = loose[self.live.alive[loose]]
        found = -1
        room = 2 * len(retracts) + 16
        while found < 0:
            picked = np.empty(room, np.int64)
            found = look_up(self._slots, k1, k2, self.live.alive, retracts, picked)
            room *= 4
        return np.concatenate([np.unique(picked[:found]), loose])  # loose ones have higher numbers

    def settle(self, numbers: I64, counts: I64, begin: I64) -> None:
        """Writes back what became of versions."""
        here = counts > 0
        self.live.get("count")[numbers] = counts
        if self.adjusts:
            self.live.get("begin")[numbers] = begin
        if not here.all():
            self.live.kill(numbers[~here])
        self.live.touch(numbers[here])

    def release(self, gone: I64) -> None:
        """Forgets waiting retracts."""
        if len(gone):
            self.held.kill(gone)
            if self.held.live == 0 or self.held.wasteful:
                self.held.compact()
        self._soonest = _least(self.held.get("sync")[self.held.alive])

    def give_up(self, cti: int, promises: Promises | None = None) -> GivenUp | None:
        """Takes out the waiting retracts that a CTI, or other promises, will not let come any more."""
        more = promises is not None and promises.size > 0
        if self.held.live == 0 or (cti <= self._soonest and not more):
            return None
        rows = np.flatnonzero(self.held.alive)
        payload = self.held.payload.take(rows) if len(self.schema) else empty_rows(len(rows))
        sync = self.held.get("sync")[rows]
        over = sync < cti
        if promises is not None and more:
            over |= promises.forbids(payload, sync)
        gone = rows[over]
        if len(gone) == 0:
            return None
        le, re, new, lanes, offsets = (self.held.get(n)[gone] for n in ("le", "re", "new", "lane", "offset"))
        self.release(gone)
        page = Page.of(take_rows(payload, np.flatnonzero(over)), le=le, re=re, re_new=new)
        return GivenUp(page, lanes, offsets)

    def purge(self, cti: int, promises: Promises | None = None, *, now: bool = False) -> None:
        """Forgets the versions that no retract can name any more, when there are enough or ``now``.

        Versions that live on are indexed at last, so that they are not looked through for ever.
        """
        if self.live.size >= self._ripe or (now and self.live.size):
            self._forget(cti, promises)
            self._ripe = 2 * self.live.live + SLACK
        if self.live.size - self._indexed > TAIL * self._paged + SLACK:
            self._index()

    def _forget(self, cti: int, promises: Promises | None) -> None:
        bound: int | I64 = cti
        if promises is not None and promises.size and self.live.payload.columns:
            bound = np.maximum(promises.effective_cti(self.live.payload.all()), cti)
        over = (self.live.get("re") < bound) | (bound == INFINITY)
        over &= self.live.alive
        self.live.kill(np.flatnonzero(over))
        if self.live.live < self.live.size:
            self.live.compact()
            self._slots = new_index(0)
            self._indexed = 0

    def _index(self) -> None:
        """Indexes the versions that are not indexed yet; equal ones become one."""
        if self._indexed == 0 or 2 * self.live.size > len(self._slots):
            self._slots = new_index(self.live.size)
            self._indexed = 0
        state = self.live
        gone = np.empty(state.size - self._indexed, np.int64)
        begin = state.get("begin") if self.adjusts else NOTHING
        k1, k2, counts = (state.get(n) for n in ("k1", "k2", "count"))
        dead = index_versions(self._slots, k1, k2, counts, begin, state.alive, self._indexed, gone)
        if dead:
            state.touch(np.flatnonzero(state.alive & (counts > 1)))
            state.kill(gone[:dead])
        self._indexed = state.size

    def rebuild(self) -> None:
        """Makes what is derived again after the row states were restored."""
        self._slots = new_index(0)
        self._indexed = 0
        self._soonest = _least(self.held.get("sync")[self.held.alive])
        self._ripe = 2 * self.live.live + SLACK


class _Match:
    """A page with retracts, or while retracts wait: the few versions and retracts that matter, as tables."""

    def __init__(self, matcher: Matcher, page: Page, starts: I64, base: int, rows: I64) -> None:
        self.matcher, self.page, self.starts = matcher, page, starts
        self.base, self.rows = base, rows
        self.old = np.flatnonzero(matcher.held.alive)
        self.retracts = self._retracts()
        self.numbers = matcher.named_by(self.retracts, base + rows)
        self.versions = self._versions()

    def _retracts(self) -> Matrix:
        """Those that wait, then those at hand."""
        table = np.zeros((len(self.old) + len(self.rows), 7), np.int64)
        old, new = table[: len(self.old)], table[len(self.old) :]
        for place, name in ((K1, "k1"), (K2, "k2"), (SYNC, "sync"), (NEW, "new"), (START, "le")):
            old[:, place] = self.matcher.held.get(name)[self.old]
        old[:, WAITS] = 1
        page, rows = self.page, self.rows
        if page.re_new is not None:
            ids = page.ids[0][rows], page.ids[1][rows]
            le, re, ends = page.le[rows], page.re[rows], page.re_new[rows]
            new[:, K1], new[:, K2], _ = _keys(ids, le, re, None)
            new[:, SYNC], new[:, NEW], new[:, START] = np.minimum(re, ends), ends, le
        return table

    def _versions(self) -> Matrix:
        """Those that are named or brought at hand, by number; then what waiting retracts would bring."""
        state, numbers = self.matcher.live, self.numbers
        table = np.full((len(numbers) + len(self.old), 4), MIN_TIME, np.int64)
        table[:, COUNT] = 0
        known, brought = table[: len(numbers)], table[len(numbers) :]
        known[:, K1], known[:, K2] = state.get("k1")[numbers], state.get("k2")[numbers]
        known[:, COUNT] = np.where(numbers < self.base, state.get("count")[numbers], 0)
        if self.matcher.adjusts:
            known[:, BEGIN] = state.get("begin")[numbers]
        held = self.matcher.held.get
        brought[:, K1], brought[:, K2] = held("n1")[self.old], held("n2")[self.old]
        self.retracts[: len(self.old), BRINGS] = len(numbers) + np.arange(len(self.old))
        self.retracts[len(self.old) :, BRINGS] = np.searchsorted(numbers, self.base + self.rows)
        return table

    def run(self, cti: I64, origin: Origin) -> Page | None:
        """Matches, and tells the matcher what became of it."""
        waiting, present = len(self.old), int(np.searchsorted(self.numbers, self.base))
        row = self.numbers[present:] - self.base
        what = np.arange(present, len(self.numbers))
        if len(self.rows):
            place = np.searchsorted(row, self.rows)
            what[place] = -1 - waiting - np.arange(len(self.rows))
        events = np.column_stack([row, what, cti[row]])
        freed = np.empty((len(self.retracts), 2), np.int64)
        slots, waits = new_index(len(self.versions)), new_index(len(self.retracts))
        count = match_events(events, self.versions, present, self.retracts, waiting, freed, slots, waits)
        result = self._leaving(freed[:count])
        known, brought = self.versions[: len(self.numbers)], self.versions[len(self.numbers) :]
        self._bring(np.flatnonzero(brought[:, COUNT]), brought)
        self.matcher.settle(self.numbers, known[:, COUNT], known[:, BEGIN])
        self._hold(origin)
        self.matcher.release(self.old[self.retracts[:waiting, WAITS] == 0])
        return result

    def _bring(self, some: I64, brought: Matrix) -> None:
        """Adds the versions that released retracts brought."""
        if len(some) == 0:
            return
        held, numbers = self.matcher.held, self.old[some]
        fields = {"k1": brought[some, K1], "k2": brought[some, K2], "re": held.get("new")[numbers]}
        fields |= {"count": brought[some, COUNT], "begin": brought[some, BEGIN]}
        payload = held.payload.take(numbers) if len(self.matcher.schema) else empty_rows(len(numbers))
        self.matcher.live.append(fields, payload)

    def _hold(self, origin: Origin) -> None:
        """Keeps the retracts at hand that found no version."""
        mine = np.flatnonzero(self.retracts[len(self.old) :, WAITS])
        if len(mine) == 0:
            return
        table, rows, page = self.retracts[len(self.old) :][mine], self.rows[mine], self.page
        fields = {"k1": table[:, K1], "k2": table[:, K2], "sync": table[:, SYNC], "new": table[:, NEW]}
        fields["n1"], fields["n2"] = (self.matcher.live.get(k)[self.base + rows] for k in ("k1", "k2"))
        fields |= {"le": page.le[rows], "re": page.re[rows], "offset": origin.offsets[rows]}
        fields["lane"] = np.full(len(rows), origin.lane)
        self.matcher.held.append(fields, take_rows(page.payload, rows))

    def _leaving(self, freed: Matrix) -> Page | None:
        """The page with its starts, without the retracts that wait, and with those released."""
        waiting = len(self.old)
        mine, held = self.retracts[waiting:], self.matcher.held
        le = self.starts
        if self.matcher.adjusts and len(self.rows):
            le = le.copy()
            le[self.rows] = mine[:, START]
        page = _started(self.page, le)
        away = np.concatenate(
            [self.rows[mine[:, WAITS] == 1], self.rows[freed[freed[:, 1] >= waiting, 1] - waiting]]
        )
        if len(away) == 0 and len(freed) == 0:
            return page
        stay = np.setdiff1d(np.arange(len(page)), away)
        foreign = freed[:, 1] < waiting
        numbers = self.old[freed[foreign, 1]]
        payload = held.payload.take(numbers) if len(self.matcher.schema) else empty_rows(len(numbers))
        start = self.retracts[freed[foreign, 1], START]
        end, new = held.get("re")[numbers], np.maximum(held.get("new")[numbers], start)
        both = concat([page, Page.of(payload, le=start, re=end, re_new=new)], page.schema)
        source = np.empty(len(freed), np.int64)
        source[foreign] = len(page) + np.arange(len(numbers))
        source[~foreign] = self.rows[freed[~foreign, 1] - waiting]
        order = np.argsort(np.concatenate([stay, freed[:, 0]]), kind="stable")
        rows = np.concatenate([stay, source])[order]
        return both.take(rows) if len(rows) else None


def _least(times: Any) -> int:
    return int(np.min(times)) if len(times) else INFINITY


def new_index(count: int) -> I64:
    """An index with room for so many rows."""
    size = 256
    while size < 4 * count:
        size *= 2
    return np.full(size, FREE, np.int64)


def _keys(ids: tuple[U64, U64], le: I64, re: I64, re_new: I64 | None) -> tuple[I64, I64, I64]:
    """The keys of the versions that rows bring, and their ends."""
    k1, k2, ends = (np.empty(len(le), np.int64) for _ in range(3))
    news = frozen(NOTHING if re_new is None else re_new)
    version_keys(ids[0], ids[1], frozen(le), frozen(re), news, k1, k2, ends)
    return k1, k2, ends


def _started(page: Page, le: I64) -> Page:
    """The page with these starts; no new end is before one."""
    if le is page.le or np.array_equal(le, page.le):
        return page
    if page.re_new is None:
        return Page(le, page.re, page.payload)
    ends = np.where(page.re_new == KEPT, KEPT, np.maximum(page.re_new, le))
    return Page.of(page.payload, le=le, re=page.re, re_new=ends)


__all__ = ["MIN_TIME", "GivenUp", "Matcher", "Origin"]
