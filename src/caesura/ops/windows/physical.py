"""`Windows` at work: live events in ordered indexes, what was sent per window, what may still change.

A page changes events, and with them regions of windows; those are laid anew, computed, and compared
with what was sent. In watermark mode windows are computed once, when they can no longer change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.delta import Deltas, deltas
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64
from caesura.ops.layers import covered
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.first_rows import FirstRows
from caesura.ops.windows.frames import Count, Grid, Session, Snapshot
from caesura.ops.windows.liveness import holds, settled, to_come
from caesura.ops.windows.node import Windows
from caesura.ops.windows.paned import Paned
from caesura.ops.windows.regions import Regions, affected, changed, joined
from caesura.ops.windows.results import WindowRows
from caesura.ops.windows.sent_by_start import SentByStart
from caesura.ops.windows.stepwise import Stepwise, Touched
from caesura.ops.windows.work import Aggregation, Application
from caesura.plan import Counters, GivenUp, Operator, Speculate, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, lt

SPARE = 4096
DENSE = 4
"""Where up to so many rows are alive for each that changes, all are looked at, and no index is made."""


class WindowsOperator(Operator):
    """Windows of any frame, over built-in or user-defined work."""

    def __init__(self, node: Windows) -> None:
        super().__init__()
        self.node, self.frame = node, node.frame
        source = node.inputs[0]
        self.work: Aggregation | Application | FirstRows
        if node.first is not None:
            self.work = FirstRows(node.first, node.group, source.schema, node.time)
        elif node.apply is not None:
            self.work = Application(node.apply, source.schema, node.time)
        else:
            self.work = Aggregation(node.outputs, source.schema, node.time)
        self._keys = [source.schema.get_field_index(name) for name in node.group]
        keys = pa.schema([source.schema.field(i) for i in self._keys])
        self._key_schema = keys
        self.events = WindowEvents(
            keys, self.work.fields, self.secret, counted=not source.properties.insert_only
        )
        self.sent = SentByStart(node.schema, len(self._keys), self.secret)
        self._done, self._reached = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._closed: tuple[int, int | None] | None = None
        """Which windows had ended, and had begun for events without end, where all groups are as far."""
        self._endless = False
        """Whether an event without end has come."""
        self._latest = MIN_TIME
        """The latest start that came."""
        self._results = WindowRows(node, self.events, self.work, self.counters)
        self._steps: Stepwise | None = None
        if isinstance(self.frame, Grid) and node.stepwise and not isinstance(self.work, FirstRows):
            form = Paned if node.merges else Stepwise
            self._steps = form(node, self.frame, self.events, self.work)
        # Members that may outlive their windows are let go early; what comes about them is passed over.
        self._early = isinstance(self.frame, Session) or (
            isinstance(self.frame, Count) and self.frame.by == "start"
        )

    def keep_pace(self, speculate: Speculate) -> None:
        at_once = self.node.prompt or (speculate == "passed" and not self._passes)
        self.speculate = "arrival" if at_once else speculate

    @property
    def _passes(self) -> bool:
        """Whether rows tell where their window ends, and are made when they are asked for."""
        return self._steps is None and self.node.stamp in ("aligned", "point_at_end")

    # Pages.

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        keys = plain_zeros(page.payload.select(self._keys))
        ids = identity(keys.columns, len(page), self.secret)
        group, _ = self.events.groups.encode(*ids)
        self._know(group, keys)
        if self._early and (late := page.le < self._done[group]).any():
            return self.page(port, page.filter(~late))
        values = [make(page.payload, page.le, page.re) for make in self.work.makers]
        change = deltas(page)
        if not self._endless and bool((change.re == INFINITY).any()):
            self._endless = True  # only now does it matter how far time was when no window closed
            self._reached = np.maximum(self._reached, self.promises[0].cti)
        self.events.apply(change, keys, values, ids)
        items: list[Item] = []
        if self._steps is not None and not self._slides:
            items = self._stepped(self._steps, change, keys, values, group)
        elif self.speculate == "arrival":
            row, a, b = changed(
                self.frame,
                page,
                reads_ends=self.node.reads_ends,
                timed=self.node.timed,
                reached=self._reached[group],
            )
            items = self._correct(*joined(group[row], a, b), changes=len(row))
        elif self.speculate == "passed":
            items = self._passed(page, np.unique(group))
        if self.events.rows.size > 2 * self.events.rows.live + SPARE:
            self._tidy()
        return items

    def _passed(self, page: Page, groups: I64) -> list[Item]:
        """The windows that time has passed, as they are now: of groups that changed, or of all."""
        before, self._latest = self._latest, max(self._latest, int(page.le.max()))
        m = max(self._latest, self.promises[0].cti)
        if self._latest > before:
            groups, _ = self.events.live_groups()
        ended = Pattern(RE=lt(m + 1)) if self.node.stamp == "aligned" else Pattern(LE=lt(m + 1))
        return self._shown(np.union1d(groups, self.sent.groups), ended)

    # Incremental modules over a grid.

    @property
    def _slides(self) -> bool:
        """Whether states wait for windows to close, and then slide over them."""
        return self._steps is not None and self._steps.mode(self.speculate) == "slide"

    def _stepped(
        self, steps: Stepwise, change: Deltas, keys: pa.RecordBatch, values: list[pa.Array], group: I64
    ) -> list[Item]:
        """Lets modules add and remove what changed."""
        touched = steps.change(change, values, group, self._done, self._reached)
        if self.speculate == "watermark":
            return []
        return self._replaced(steps, touched, keys)

    def _replaced(self, steps: Stepwise, touched: Touched, keys: pa.RecordBatch) -> list[Item]:
        """Sends what modules compute for some windows instead of what was sent before."""
        if len(touched.start) == 0:
            return []
        present, made = steps.given(touched)
        at, le, re, payload = self._results.stamped(made, touched.start[present], keys, touched.row[present])
        at = present[at]
        regions = Regions(touched.group, touched.start, touched.start + 1)
        page = self.sent.replace(regions, touched.group[at], touched.start[at], le, re, payload)
        self.counters.extra.update(self.work.counts())
        return [page] if len(page) else []

    def _closed_steps(self, steps: Stepwise, regions: Regions) -> list[Item]:
        """Sends the windows that have become fixed, from the states that modules keep."""
        groups, row = self.events.live_groups()
        keys = pa.RecordBatch.from_arrays(self.events.keys_of(row), schema=self._key_schema)
        if steps.mode(self.speculate) != "windows":
            region, start, made = steps.slide(regions, self._reached[regions.group])
            group = regions.group[region]
        else:
            touched = steps.due(*regions)
            present, made = steps.given(touched)
            group, start = touched.group[present], touched.start[present]
        self.counters.extra.update(self.work.counts())
        if len(start) == 0:
            return []
        _, le, re, payload = self._results.stamped(made, start, keys, np.searchsorted(groups, group))
        return [Page(le, re, payload)] if len(le) else []

    def _know(self, group: I64, keys: pa.RecordBatch) -> None:
        """Makes room for new groups: how far they are, and how far their windows are done with."""
        count = self.events.groups.count
        if count <= len(self._done):
            return
        bound = np.broadcast_to(np.asarray(self._bound(keys.columns)), len(group))
        fresh = group >= len(self._done)
        new = np.full(count - len(self._done), MIN_TIME, np.int64)
        new[group[fresh] - len(self._done)] = bound[fresh]
        self._reached = np.append(self._reached, new)
        self._done = np.append(self._done, to_come(self.frame, new)[0])

    def _bound(self, columns: list[pa.Array]) -> int | I64:
        """The time before which nothing changes, for all groups or for each."""
        return self.promises[0].effective_cti(columns=dict(zip(self.node.group, columns, strict=True)))

    def _correct(self, group: I64, a: I64, b: I64, *, changes: int) -> list[Item]:
        """What changes because of so many changes on these stretches of time."""
        few = isinstance(self.frame, Snapshot) and self.events.rows.live <= DENSE * changes
        dense = few and bool((group[1:] != group[:-1]).all())
        regions = affected(self.frame, self.events, group, a, b, dense=dense)
        lo = np.maximum(regions.lo, self._done[group])
        there = lo < regions.hi
        regions = Regions(*joined(group[there], lo[there], regions.hi[there]))
        if len(regions.group) == 0:
            return []
        laid, le, re, payload = self._computed(regions, dense=dense)
        page = self.sent.replace(regions, regions.group[laid[0]], laid[1], le, re, payload)
        self.counters.extra.update(self.work.counts())
        return [page] if len(page) else []

    def _computed(
        self, regions: Regions, *, dense: bool = True
    ) -> tuple[tuple[I64, I64], I64, I64, pa.RecordBatch]:
        """The rows of the windows in some regions: (region, window start), lifetimes, payload."""
        return self._results.of(regions, self._reached[regions.group], dense=dense)

    # Punctuation.

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        if self._nothing_closes(pattern):
            start, end = to_come(self.frame, np.array([self.promises[0].cti]))
            return definite(self._promise(pattern, [], start, end))
        groups, row = self.events.live_groups()
        keys = self.events.keys_of(row)
        c = np.broadcast_to(np.asarray(self._bound(keys)), len(groups)).copy()
        items: list[Item] = []
        if isinstance(self.frame, Grid) and (self.speculate == "arrival" or self._steps is not None):
            items = self._advance(groups, c, row)
        finite = c < INFINITY
        self._reached[groups[finite]] = np.maximum(self._reached[groups], c)[finite]
        start, end = holds(self.frame, self.events, groups, c, reads_ends=self.node.reads_ends)
        start = np.maximum(start, self._done[groups])
        if self.speculate != "arrival":
            items = [*self._renewed(), *self._finish(groups, start)]
        out = self._promise(pattern, keys, start, end)
        self._settle(groups, c, start)
        return [*items, *definite(out)]

    def _nothing_closes(self, pattern: Pattern) -> bool:
        """Whether a CTI for all groups passes no window's end: then no event need be looked at."""
        if self.speculate == "arrival" or not isinstance(self.frame, Grid) or self.node.reads_ends:
            return False
        if self.sent.rows.live:  # what was given on demand is corrected first
            return False
        if self.promises[0].size or pattern.without_time().attributes:
            return False
        grid, cti = self.frame.grid, self.promises[0].cti
        now = grid.first(cti), grid.begin(cti) if self._endless else None
        before, self._closed = self._closed, now
        return before == now

    def _advance(self, groups: I64, c: I64, row: I64) -> list[Item]:
        """Lets events without end enter the windows that progress has reached."""
        rows = self.events.rows
        endless = np.unique(self.events.group.view[rows.alive & (rows.get("re") == INFINITY)])
        some = np.isin(groups, endless) & (c < INFINITY) & (c > self._reached[groups])
        if not some.any():
            return []
        at, before = groups[some], self._reached[groups[some]]
        self._reached[at] = c[some]
        if self._steps is None:
            return self._correct(at, before, c[some], changes=len(at))
        if self._slides:
            return []
        touched = self._steps.advance(at, before, c[some], self._done)
        if self.speculate == "watermark":
            return []
        keys = pa.RecordBatch.from_arrays(self.events.keys_of(row), schema=self._key_schema)
        return self._replaced(self._steps, touched._replace(row=np.searchsorted(groups, touched.group)), keys)

    def _finish(self, groups: I64, start: I64) -> list[Item]:
        """Sends the windows that have become fixed, once."""
        before = self._done[groups]
        some = before < start
        regions = Regions(groups[some], before[some], start[some])
        if len(regions.group) == 0:
            return []
        if self._steps is not None:
            return self._closed_steps(self._steps, regions)
        laid, le, re, payload = self._computed(regions)
        self.counters.extra.update(self.work.counts())
        if self.sent.rows.live == 0:
            return [Page(le, re, payload)] if len(le) else []
        page = self.sent.replace(regions, regions.group[laid[0]], laid[1], le, re, payload)
        return [page] if len(page) else []

    def _promise(self, pattern: Pattern, keys: list[pa.Array], start: I64, end: I64) -> Pattern | None:
        """The punctuation that leaves, held back by the open windows that it speaks of."""
        carried = self.node.carry(0, pattern)
        bound = pattern.time_bound
        if carried is None or bound is None or bound == INFINITY:
            self.counters.held_by = ""
            return carried
        eager = self.node.eager and self.speculate == "arrival"
        promised = int(carried.time_bound or 0)
        if self.node.eager and not eager:
            ends = self.node.stamp == "point_at_end"
            promised = int(to_come(self.frame, np.array([bound]))[1 if ends else 0][0])
        held = end if self.node.stamp == "point_at_end" else start
        if not eager and len(held):
            rest = pattern.without_time()
            if rest.attributes:
                held = held[rest.matches(dict(zip(self.node.group, keys, strict=True)), None)]
            promised = min(promised, int(held.min(initial=INFINITY)))
        first = int(start.min(initial=INFINITY))
        self.counters.held_by = (
            "" if promised >= bound else f"the window from {min(first, promised)} on is open"
        )
        return pattern.replace("time", lt(promised))

    def _settle(self, groups: I64, c: I64, start: I64) -> None:
        """Lets go of what no open window needs."""
        rows = self.events.rows
        self._done[groups] = start
        gone = settled(self.frame, self.events, groups, c, start, early=self._early)
        if self._steps is not None:
            self._steps.forget(groups, start, over=c == INFINITY, slides=self._slides)
        elif self.work.incremental:
            self._results.forget(groups, start)
        rows.kill(gone)
        self.sent.settle(groups, start)
        if self.promises[0].cti == INFINITY:
            self._end()
        if rows.wasteful or self.sent.rows.wasteful:
            self._tidy()

    def _end(self) -> None:
        """Lets go of what retracts have left whose events were given up: their groups have no events."""
        self.sent.rows.kill(np.flatnonzero(self.sent.rows.alive))
        if self._steps is not None:
            self._steps.clear()

    # Feedback.

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the rows that match, unless one begins in the settled past; events go with groups."""
        found = covered(self.sent.rows, pattern)
        le, re = self.sent.rows.get("le")[found], self.sent.rows.get("re")[found]
        payload = self.sent.rows.payload.take(found)
        frozen = np.asarray(self._bound(payload.columns[: len(self._keys)]))
        if self.node.eager and (le < frozen).any():
            return None
        self.sent.rows.kill(found)
        rows = self.events.rows
        own, times = self.node.given_up(pattern)
        dropped = self.events.matching(own, times, [*self.node.group, *(f.name for f in self.work.fields)])
        if len(dropped):
            owners = np.unique(self.events.group.view[dropped])
            rows.get("n")[dropped] = 0
            rows.kill(dropped)
            self._renew(owners)
        until = max(int(re.max(initial=MIN_TIME)), int(rows.get("re")[dropped].max(initial=MIN_TIME)))
        if rows.wasteful or self.sent.rows.wasteful:
            self._tidy()
        items: list[Item] = [Page.of(payload, le=le, re=re, re_new=le)] if len(found) else []
        return GivenUp(items, until, len(found) + len(dropped))

    def _renew(self, groups: I64) -> None:
        """Makes the states of modules anew, for groups that have lost events."""
        if self._steps is not None:
            self._steps.renew(groups, self._done, self._reached, slides=self._slides)
        elif self.work.incremental:
            self._results.forget(groups, np.full(len(groups), INFINITY))

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """The results of open windows so far; with speculation they were sent already."""
        if self.speculate == "arrival" or self._steps is not None:
            return []
        groups, _ = self.events.live_groups()
        return self._shown(groups, pattern)

    def _renewed(self) -> list[Item]:
        """Corrects what was given on demand, before more is promised: windows may have moved since."""
        return self._shown(self.sent.groups, None)

    def _shown(self, groups: I64, pattern: Pattern | None) -> list[Item]:
        """The open windows of some groups as they are now, instead of what was shown of them.

        With a pattern those with a row that matches, and those that were shown before.
        """
        if len(groups) == 0:
            return []
        regions = Regions(groups, self._done[groups], np.full(len(groups), INFINITY))
        laid, le, re, payload = self._computed(regions)
        group, window = regions.group[laid[0]], laid[1]
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        asked = None if pattern is None else pattern.matches({**columns, "LE": le, "RE": re})
        some = np.zeros(len(le), np.bool_) if asked is None else asked
        shown = np.flatnonzero(self.sent.windows_of(group, window, some))
        rows = (group[shown], window[shown], le[shown], re[shown])
        page = self.sent.replace(regions, *rows, payload.take(pa.array(shown)))
        if self.work.incremental:  # of groups that show nothing, nobody would look at the states again
            silent = ~np.isin(groups, self.sent.groups)
            self._results.retain(Regions(*(field[silent] for field in regions)), [])
        return [replace(page, partial=self.speculate == "watermark")] if len(page) else []

    # State.

    def _tidy(self) -> None:
        """Compacts: groups and members are renumbered."""
        before = self.events.groups
        moved = self.events.index()
        self.sent.index(self.events.groups)
        now = self.events.groups
        place = before.find(now.k1[: now.count], now.k2[: now.count])
        self._done, self._reached = self._done[place], self._reached[place]
        if moved is not None:
            self.work.renumber(moved)

    def meta(self) -> dict[str, Any]:
        own = super().meta()
        return {**own, "latest": self._latest} if self.speculate == "passed" else own

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._latest = meta.get("latest", self._latest)

    def states(self) -> dict[str, RowState]:
        return {"events": self.events.rows, "sent": self.sent.rows}

    def rebuild(self) -> None:
        self.events.index()
        self._endless = bool((self.events.rows.get("re") == INFINITY).any())
        self.work.restored(self.events.rows.size)
        self.sent.index(self.events.groups)
        groups, row = self.events.live_groups()
        count = self.events.groups.count
        c = np.full(count, self.promises[0].cti, np.int64)
        c[groups] = np.broadcast_to(np.asarray(self._bound(self.events.keys_of(row))), len(groups))
        self._reached = c
        self._done = to_come(self.frame, c)[0]
        start, _ = holds(self.frame, self.events, groups, c[groups], reads_ends=self.node.reads_ends)
        self._done[groups] = start
        if self._steps is not None and not self._slides:
            self._steps.hand_over(groups, self._done[groups], self._reached[groups])

    def measure(self) -> Counters:
        counters = super().measure()
        counters.state_rows += self.work.held + (0 if self._steps is None else self._steps.count)
        return counters
