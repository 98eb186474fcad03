"""Retracts meet their inserts: the live versions of a source's events, and retracts that came too soon.

Past the matcher no retract precedes its insert. A version is forgotten once no retract can name it any
more: the CTI is past its end. A retract is given up once the CTI is past its sync time.

>>> from caesura.events.identity import LOCAL
>>> matcher = Matcher(pa.schema([("p", pa.string())]), LOCAL)
>>> early = Page.of(pa.record_batch({"p": ["P1"]}), le=[1], re=[INFINITY], re_new=[5])
>>> at = Origin(0, np.array([0]))
>>> matcher.match(early, early.le, lambda: np.array([MIN_TIME]), at)
>>> insert = Page.of(pa.record_batch({"p": ["P1"]}), le=[1], re=[INFINITY])
>>> matcher.match(insert, insert.le, lambda: np.array([MIN_TIME]), at).rows() == [
...     (1, INFINITY, None, ("P1",)), (1, INFINITY, 5, ("P1",))]
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events import Page, take_rows
from caesura.events.columns import empty_rows
from caesura.events.identity import Secret, identity_at
from caesura.events.rows import RowState
from caesura.io.ingress.match_kernels import Matrix, index_versions, look_up
from caesura.io.ingress.page_match import NamedRetracts, Origin, PageMatch, started
from caesura.io.ingress.runs import NOTHING, InsertRun, OpenedRows, keys_of, new_index
from caesura.kernels.hashing import I64
from caesura.kernels.sums import each_once
from caesura.punctuation import INFINITY, MIN_TIME, Promises

SLACK = 32_768  # versions that may be stale before the first purge
TAIL = 8  # times the rows of a page: versions looked through for a page with retracts, not indexed
KEY = {"k1": np.int64, "k2": np.int64}
VERSION = {**KEY, "re": np.int64, "count": np.int32}
RETRACT = dict.fromkeys(("k1", "k2", "n1", "n2", "sync", "le", "re", "new", "lane", "offset"), np.int64)


class UnmatchedRetracts(NamedTuple):
    """Retracts that will never match."""

    page: Page
    lanes: I64
    offsets: I64


class Matcher:
    """The live versions of all events, and the retracts that wait for one.

    The versions of recent pages are runs; those that live on are hashed and indexed one day, as ``live``.
    """

    def __init__(
        self, schema: pa.Schema, secret: Secret, *, with_payload: bool = False, adjusts: bool = False
    ) -> None:
        self.schema, self.secret = schema, secret
        begin = {"begin": np.int64} if adjusts else {}
        self.live = RowState({**VERSION, **begin}, schema if with_payload else None, reuses=True)
        self.held = RowState(RETRACT, schema)
        self.runs: list[InsertRun] = []
        self.adjusts = adjusts
        self._slots = new_index(0)
        self._indexed = 0
        self._ripe = SLACK
        self._soonest = INFINITY
        self._paged = 0
        self._disorder = False
        """Whether retracts wait, or some had to lately."""

    def match(
        self,
        page: Page,
        starts: I64,
        cti: Callable[[], I64],
        origin: Origin,
        opened: OpenedRows | None = None,
    ) -> Page | None:
        """What may leave of these rows, in order: the page itself where all may; None for nothing.

        ``page`` has the starts that sources gave, ``starts`` those that events get, ``cti`` gives the
        stream's bound before each row; it is asked only while retracts come before their inserts. ``opened``
        is known where all rows of the page were read together.
        """
        self._paged = max(len(page), self._paged // 2)
        run = InsertRun(page, starts, self.secret, adjusts=self.adjusts, opened=opened)
        self.runs.append(run)
        if len(run.retracts) == 0 and self.held.live == 0:
            return started(page, starts) if self.adjusts else page
        if not self.adjusts and self.held.live == 0 and self._paired(page, run):
            return page.with_retracts(run.retracts, shortens=run.shortens)
        if not self._disorder:
            result = PageMatch(self, page, starts, run)
            if result.run(NOTHING):
                return result.finish(origin)
        result = PageMatch(self, page, starts, run)
        result.run(cti())
        return result.finish(origin)

    def _paired(self, page: Page, run: InsertRun) -> bool:
        """Whether each retract of a page found an equal version that came before it, in the latest runs.

        Then they are paired. Of equal versions it does not matter which one goes.
        """
        named = NamedRetracts(page.payload, run, self.secret)
        for some in reversed(self.runs):
            if not named.take_from(some) or len(named.left) == 0:
                break
        if len(named.left):
            named.give_back()
            return False
        if run.shortens:
            le, _, new = run.named
            brought = np.flatnonzero(new > le)
            ids = identity_at(page.payload.columns, run.retracts[brought], self.secret)
            n1, n2 = keys_of(ids, le[brought], new[brought])
            fields = {"k1": n1, "k2": n2, "re": new[brought], "count": np.ones(len(brought), np.int32)}
            payload = take_rows(page.payload, run.retracts[brought]) if self.live.payload.columns else None
            self.live.append(fields, payload)
        return True

    def indexed(self, retracts: Matrix) -> I64:
        """The numbers of the indexed versions that some retracts name, ascending."""
        if self.live.live == 0:
            return NOTHING
        self._index()
        k1, k2 = self.live.get("k1"), self.live.get("k2")
        found = -1
        room = 2 * len(retracts) + 16
        while found < 0:
            picked = np.empty(room, np.int64)
            found = look_up(self._slots, k1, k2, self.live.alive, retracts, picked)
            room *= 4
        return each_once(picked[:found])

    def settle(self, numbers: I64, counts: I64, begin: I64) -> None:
        """Writes back what became of indexed versions."""
        here = counts > 0
        self.live.get("count")[numbers] = counts
        if self.adjusts:
            self.live.get("begin")[numbers] = begin
        if not here.all():
            self.live.kill(numbers[~here])
        self.live.touch(numbers[here])

    def release(self, taken: I64) -> None:
        """Forgets waiting retracts."""
        if len(taken):
            self.held.kill(taken)
            if self.held.live == 0 or self.held.wasteful:
                self.held.compact()
        self._soonest = _least(self.held.get("sync")[self.held.alive])
        self._disorder = self.held.live > 0 or len(taken) > 0

    def give_up(self, cti: int, promises: Promises | None = None) -> UnmatchedRetracts | None:
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
        taken = rows[over]
        if len(taken) == 0:
            return None
        le, re, new, lanes, offsets = (self.held.get(n)[taken] for n in ("le", "re", "new", "lane", "offset"))
        self.release(taken)
        page = Page.of(take_rows(payload, np.flatnonzero(over)), le=le, re=re, re_new=new)
        return UnmatchedRetracts(page, lanes, offsets)

    def purge(self, cti: int, promises: Promises | None = None, *, now: bool = False) -> None:
        """Forgets the versions that no retract can name any more, when there are enough or ``now``.

        Versions that live on are indexed at last, so that they are not looked through for ever.
        """
        self.runs = [run for run in self.runs if not run.over(cti)]
        over = sum(map(len, self.runs)) - TAIL * self._paged - SLACK
        while self.runs and over > 0:
            over -= len(self.runs[0])
            self._move(self.runs.pop(0), cti)
        if now:
            self.gather(cti)
        if self.live.size >= self._ripe or (now and self.live.size):
            self._forget(cti, promises)
            self._ripe = 2 * self.live.live + SLACK

    def gather(self, cti: int) -> None:
        """Moves all runs to the versions that a snapshot saves."""
        runs, self.runs = self.runs, []
        for run in runs:
            self._move(run, cti)

    def _move(self, run: InsertRun, cti: int) -> None:
        rows = run.alive(cti)
        if len(rows) == 0:
            return
        k1, k2 = run.keys(rows)
        fields: dict[str, Any] = {"k1": k1, "k2": k2, "re": run.re[rows], "count": run.counts[rows]}
        if self.adjusts:
            fields["begin"] = run.begin[rows]
        self.live.append(fields, run.take(rows) if self.live.payload.columns else None)

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
        state = self.live
        if self._indexed == state.size:
            return
        if self._indexed == 0 or 2 * state.size > len(self._slots):
            self._slots = new_index(state.size)
            self._indexed = 0
        taken = np.empty(state.size - self._indexed, np.int64)
        begin = state.get("begin") if self.adjusts else NOTHING
        k1, k2, counts = (state.get(n) for n in ("k1", "k2", "count"))
        dead = index_versions(self._slots, k1, k2, counts, begin, state.alive, self._indexed, taken)
        if dead:
            state.touch(np.flatnonzero(state.alive & (counts > 1)))
            state.kill(taken[:dead])
        self._indexed = state.size

    def rebuild(self) -> None:
        """Makes what is derived again after the row states were restored."""
        self._slots = new_index(0)
        self._indexed = 0
        self._soonest = _least(self.held.get("sync")[self.held.alive])
        self._disorder = self.held.live > 0
        self._ripe = 2 * self.live.live + SLACK


def _least(times: Any) -> int:
    return int(np.min(times)) if len(times) else INFINITY


__all__ = ["MIN_TIME", "Matcher", "Origin", "UnmatchedRetracts"]
