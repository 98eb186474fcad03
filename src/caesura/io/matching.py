"""Retracts meet their inserts: the live versions of a source's events, and retracts that came too soon.

Past the matcher no retract precedes its insert. A version is forgotten once no retract can name it any
more: the CTI is past its end. A retract is given up once the CTI is past its sync time.

>>> schema = pa.schema([("p", pa.string())])
>>> matcher = Matcher(schema)
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

from caesura.events import KEPT, Page, take_rows
from caesura.events.columns import empty_rows
from caesura.events.rows import RowState
from caesura.io.match_kernels import (
    DEAD,
    FREE,
    OUT,
    TOUCHED,
    WAITING,
    Held,
    Out,
    Versions,
    match_rows,
    place_keys,
    version_keys,
)
from caesura.kernels.hashing import I64, U64, Mask
from caesura.punctuation import INFINITY, MIN_TIME, Promises

SLACK = 32_768  # versions that may be stale before the first purge
KEY = {"k1": np.uint64, "k2": np.uint64}
VERSION = {**KEY, "re": np.int64, "count": np.int64, "begin": np.int64}
RETRACT = {**KEY, **dict.fromkeys(("sync", "le", "re", "new", "lane", "offset", "entry"), np.int64)}


class Origin(NamedTuple):
    """Where rows come from."""

    lane: int
    offsets: I64


class GivenUp(NamedTuple):
    """Held retracts that will never match."""

    page: Page
    lanes: I64
    offsets: I64


class Matcher:
    """The live versions of all events, and the retracts that wait for one."""

    def __init__(self, schema: pa.Schema, *, with_payload: bool = False) -> None:
        self.schema = schema
        self.live = RowState(VERSION, schema if with_payload else None)
        self.held = RowState(RETRACT, schema)
        self._index = _index(0)
        self._held_index = _index(0)
        self._ripe = SLACK
        self._soonest = INFINITY

    def match(self, page: Page, starts: I64, cti: I64, origin: Origin) -> Page | None:
        """What may leave of these rows, in order: the page itself where all may; None for nothing.

        ``page`` has the starts that sources gave, ``starts`` those that events get, ``cti`` the stream's
        bound before each row.
        """
        base, first = self.live.size, self.held.size
        retract = np.zeros(len(page), np.bool_) if page.retracts is None else page.retracts
        self._add_versions(page, retract)
        if page.re_new is not None:
            self._add_retracts(page, np.flatnonzero(retract), base, origin)
        else:
            self._grow(0)
        waiting = self.held.live - (self.held.size - first)
        out = _out(len(page), waiting)
        out.tally[WAITING] = waiting
        waits = np.copy(self.held.alive)
        waits[first:] = False
        held = self._held_arrays(waits)
        match_rows(
            _frozen(retract), _frozen(starts), _frozen(cti), base, first, self._live_arrays(), held, out
        )
        result = self._page(page, out, first)
        self._settle(out, waits, first)
        return result

    def _add_versions(self, page: Page, retract: Mask) -> None:
        ends = page.re if page.re_new is None else np.where(retract, page.re_new, page.re)
        k1, k2 = _keys(page.ids, page.le, ends)
        nothing = np.zeros(len(page), np.int64)
        fields = {"k1": k1, "k2": k2, "re": ends, "count": nothing, "begin": nothing}
        self.live.append(fields, page.payload)
        if 2 * self.live.size > len(self._index):
            self._index = _index(self.live.size)
            self._place(self._index, self.live, self.live.alive & (self.live.get("count") > 0))

    def _add_retracts(self, page: Page, rows: I64, base: int, origin: Origin) -> None:
        le, re, new = page.le[rows], page.re[rows], page.re_new[rows]  # type: ignore[index]
        k1, k2 = _keys((page.ids[0][rows], page.ids[1][rows]), le, re)
        fields: dict[str, Any] = {"k1": k1, "k2": k2, "sync": page.sync[rows], "le": le, "re": re, "new": new}
        fields["lane"] = np.full(len(rows), origin.lane)
        fields["offset"] = origin.offsets[rows]
        fields["entry"] = np.where(new <= le, -1, base + rows)
        self._grow(len(rows))
        self.held.append(fields, take_rows(page.payload, rows))

    def _grow(self, more: int) -> None:
        if 2 * (self.held.size + more) > len(self._held_index):
            self._held_index = _index(self.held.size + more)
            self._place(self._held_index, self.held, self.held.alive)

    def _place(self, index: I64, state: RowState, alive: Mask) -> None:
        place_keys(index, state.get("k1"), state.get("k2"), _frozen(alive))

    def _live_arrays(self) -> Versions:
        live = self.live
        return Versions(self._index, live.get("k1"), live.get("k2"), live.get("count"), live.get("begin"))

    def _held_arrays(self, waits: Mask) -> Held:
        get = self.held.get
        return Held(self._held_index, get("k1"), get("k2"), get("sync"), get("new"), get("entry"), waits)

    def _page(self, page: Page, out: Out, first: int) -> Page | None:
        count = int(out.tally[OUT])
        row, le, new = out.row[:count], out.le[:count], out.new[:count]
        if count == 0:
            return None
        foreign = row < 0
        if count == len(page) and not foreign.any():
            return (
                page if np.array_equal(le, page.le) else Page.of(page.payload, le=le, re=page.re, re_new=new)
            )
        if not foreign.any():
            return Page.of(take_rows(page.payload, row), le=le, re=page.re[row], re_new=new)
        numbers = -1 - row[foreign]
        re = np.empty(count, np.int64)
        re[foreign] = self.held.get("re")[numbers]
        re[~foreign] = page.re[row[~foreign]]
        place = np.empty(count, np.int64)
        place[~foreign] = row[~foreign]
        place[foreign] = len(page) + np.arange(len(numbers))
        return Page.of(self._payload(page.payload, numbers, place), le=le, re=re, re_new=new)

    def _payload(self, payload: pa.RecordBatch, numbers: I64, place: I64) -> pa.RecordBatch:
        if len(self.schema) == 0:
            return empty_rows(len(place))
        both = pa.concat_batches([payload, self.held.payload.take(numbers)])
        return take_rows(both, place)

    def _settle(self, out: Out, waits: Mask, first: int) -> None:
        dead = out.dead[: out.tally[DEAD]]
        if len(dead):
            self.live.kill(dead)
        if out.tally[TOUCHED]:
            some = np.unique(out.touched[: out.tally[TOUCHED]])
            self.live.touch(some[self.live.alive[some]])
        over = np.flatnonzero(self.held.alive & ~waits)
        if len(over):
            self.held.kill(over)
        if self.held.size and (self.held.live == 0 or self.held.wasteful):
            self._compact_held()
        self._soonest = _least(self.held.get("sync")[self.held.alive])

    def _compact_held(self) -> None:
        self.held.compact()
        self._held_index = _index(self.held.size)
        self._place(self._held_index, self.held, self.held.alive)

    def give_up(self, cti: int, promises: Promises | None = None) -> GivenUp | None:
        """Takes out the held retracts that a CTI, or other promises, will not let come any more."""
        more = promises is not None and promises.size > 0
        if self.held.live == 0 or (cti <= self._soonest and not more):
            return None
        rows = np.flatnonzero(self.held.alive)
        payload = self.held.payload.take(rows) if len(self.schema) else empty_rows(len(rows))
        sync = self.held.get("sync")[rows]
        over = sync < cti
        if more:
            assert promises is not None
            over |= promises.forbids(payload, sync)
        gone = rows[over]
        if len(gone) == 0:
            return None
        le, re, new, lanes, offsets, entry = (
            self.held.get(name)[gone] for name in ("le", "re", "new", "lane", "offset", "entry")
        )
        self.live.kill(entry[entry >= 0])
        self.held.kill(gone)
        self._compact_held()
        self._soonest = _least(self.held.get("sync"))
        page = Page.of(take_rows(payload, np.flatnonzero(over)), le=le, re=re, re_new=new)
        return GivenUp(page, lanes, offsets)

    def purge(self, cti: int, promises: Promises | None = None, *, now: bool = False) -> None:
        """Forgets the versions that no retract can name any more, when there are enough or ``now``."""
        if self.live.size < self._ripe and not (now and self.live.size):
            return
        bound: int | I64 = cti
        if promises is not None and promises.size and self.live.payload.columns:
            bound = np.maximum(promises.effective_cti(self.live.payload.all()), cti)
        gone = np.flatnonzero(self.live.alive & (self.live.get("re") < bound) & (self.live.get("count") > 0))
        if len(gone):
            self.live.kill(gone)
        if self.live.live < self.live.size:
            keep = self.live.compact()
            entry = self.held.get("entry")
            entry[:] = np.where(entry >= 0, np.searchsorted(keep, entry), -1)
            self.held.touch(np.flatnonzero(self.held.alive))
            self._reindex()
        self._ripe = 2 * self.live.live + SLACK

    def _reindex(self) -> None:
        self._index = _index(self.live.size)
        self._place(self._index, self.live, self.live.alive & (self.live.get("count") > 0))

    def rebuild(self) -> None:
        """Makes the indexes again after the row states were restored."""
        self._reindex()
        self._held_index = _index(self.held.size)
        self._place(self._held_index, self.held, self.held.alive)
        self._soonest = _least(self.held.get("sync")[self.held.alive])
        self._ripe = 2 * self.live.live + SLACK


def _least(times: Any) -> int:
    return int(np.min(times)) if len(times) else INFINITY


def _index(count: int) -> I64:
    size = 256
    while size < 3 * count:
        size *= 2
    return np.full(size, FREE, np.int64)


def _keys(ids: tuple[U64, U64], le: I64, re: I64) -> tuple[U64, U64]:
    k1, k2 = np.empty(len(le), np.uint64), np.empty(len(le), np.uint64)
    version_keys(ids[0], ids[1], _frozen(le), _frozen(re), k1, k2)
    return k1, k2


def _out(rows: int, waiting: int) -> Out:
    most = rows + waiting
    row, le, new = (np.empty(most, np.int64) for _ in range(3))
    return Out(
        row, le, new, np.empty(3 * most, np.int64), np.empty(3 * most, np.int64), np.zeros(4, np.int64)
    )


def _frozen(values: Any) -> Any:
    """The array, read-only: Arrow's memory is, and a kernel is compiled once per kind of array."""
    view = values.view()
    view.flags.writeable = False
    return view


__all__ = ["KEPT", "MIN_TIME", "GivenUp", "Matcher", "Origin"]
