"""Incremental modules over a grid: what changed is added and removed, and nothing is looked up.

Windows on a grid lie where they lie, so a change says by itself which windows it enters or leaves. Each
open window has a state. Where windows overlap and events only come, one state per group slides over
the windows as they close: an event is added once and removed once, in however many windows it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.delta import Deltas
from caesura.kernels import kernel
from caesura.kernels.grid import PIECES_LIMIT, Lattice, spread, tally
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.shape import check_pieces
from caesura.ops.ordered import sorting
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.frames import Grid
from caesura.ops.windows.node import Windows
from caesura.ops.windows.policy import clip
from caesura.ops.windows.regions import Regions, lay, scanned
from caesura.ops.windows.units import units
from caesura.ops.windows.work import Aggregation, Application, Rows
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.udm.adapters import Members
from caesura.udm.stepping import ENTER, GIVE, LEAVE, RESET, Stepping, Steps

NONE = np.zeros(0, np.int64)
Mode = Literal["windows", "slide", "panes"]


class Touched(NamedTuple):
    """Windows, by group and start."""

    group: I64
    start: I64
    row: I64
    """Where the keys of each lie."""


@kernel
def plan_grid(
    owner: I64, first: I64, after: I64, inside: I64, begin: I64, leave: I64, lo: I64, hi: I64, kind: I64,
    who: I64, which: I64, o_region: I64, o_number: I64, counts: I64,
) -> None:  # fmt: skip
    """The steps of sliding states over the windows [lo, hi) of each region, by number.

    A member is there from its ``first`` window until before ``after``; ``begin`` names those that come by
    (region, first), ``leave`` those that go by (region, after); ``inside`` counts those that are there.
    ``counts`` receives how many steps and windows there are.
    """
    steps = 0
    given = 0
    i = 0
    j = 0
    for r in range(len(lo)):
        number = lo[r]
        there = inside[r]
        while True:
            left = j
            while left < len(leave) and owner[leave[left]] == r and after[leave[left]] <= number:
                left += 1
            if left > j and left - j == there:
                kind[steps] = RESET
                who[steps] = r
                which[steps] = 0
                steps += 1
                there = 0
                j = left
            while j < left:
                kind[steps] = LEAVE
                who[steps] = r
                which[steps] = leave[j]
                steps += 1
                there -= 1
                j += 1
            if number >= hi[r]:
                break
            while i < len(begin) and owner[begin[i]] == r and first[begin[i]] <= number:
                kind[steps] = ENTER
                who[steps] = r
                which[steps] = begin[i]
                steps += 1
                there += 1
                i += 1
            if there > 0:
                kind[steps] = GIVE
                who[steps] = r
                which[steps] = given
                steps += 1
                o_region[given] = r
                o_number[given] = number
                given += 1
                number += 1
            elif i < len(begin) and owner[begin[i]] == r:
                number = min(first[begin[i]], hi[r])
            else:
                number = hi[r]
        inside[r] = there
    counts[0] = steps
    counts[1] = given


class Stepwise:
    """The incremental modules of a node over a grid, and their states."""

    def __init__(
        self, node: Windows, frame: Grid, events: WindowEvents, work: Aggregation | Application
    ) -> None:
        self.node, self.frame, self.events, self.work = node, frame, events, work
        self._uses = [(Stepping(call), first, last) for call, first, last in work.callers]
        self.grid = frame.grid

    def mode(self, speculate: str) -> Mode:
        """Whether every window has a state, or one per group slides, or panes have some."""
        return "slide" if self.node.slides and speculate == "watermark" else "windows"

    @property
    def count(self) -> int:
        """How many states there are."""
        return sum(use.count for use, _, _ in self._uses)

    # A state per window.

    def change(
        self, change: Deltas, values: Sequence[pa.Array], group: I64, done: I64, reached: I64
    ) -> Touched:
        """Takes changes into the windows that are open; gives those, with a row of the page for each."""
        mine = group[change.rows]
        ends = np.where(change.re == INFINITY, reached[mine], change.re)
        pick, number = self._windows(change.le, ends, self.grid.begin(done[mine]))
        start = self.grid.start(number)
        rows, weight = change.rows[pick], change.weight[pick]
        le, re = self._seen(change.le[pick], change.re[pick], start)
        if (weight < 0).any():
            net = self._net(rows, number, le, re, weight)
            rows, number, le, re, weight = (f[net] for f in (rows, number, le, re, weight))
        order = np.lexsort((number, group[rows]))
        rows, number = rows[order], number[order]
        return self._step(rows, group[rows], number, le[order], re[order], weight[order], values)

    def _windows(self, le: I64, ends: I64, least: I64) -> tuple[I64, I64]:
        """(change, number) of every window, from the least on, that a change is about."""
        first = np.maximum(self.grid.first(le), least)
        count, total = tally(first, self.grid.begin(ends))
        check_pieces(total, self.frame.size)
        return spread(first, count)

    def _seen(self, le: I64, re: I64, start: I64) -> tuple[I64, I64]:
        """Lifetimes as the modules see them; those that look at payloads only see none."""
        if not self.node.timed:
            none = np.zeros(len(le), np.int64)
            return none, none
        return clip(self.node.clip, le, re, start, self.grid.close(start))

    @staticmethod
    def _net(rows: I64, number: I64, le: I64, re: I64, weight: I64) -> I64:
        """What is left when a loss and a gain that look alike have cancelled."""
        order = np.lexsort((re, le, number, rows))
        fields = [f[order] for f in (rows, number, le, re)]
        new = np.ones(len(order), np.bool_)
        new[1:] = np.logical_or.reduce([f[1:] != f[:-1] for f in fields])
        total = np.add.reduceat(weight[order], np.flatnonzero(new)) if len(order) else weight
        return np.sort(order[(total != 0)[np.cumsum(new) - 1]])

    def _step(
        self,
        rows: I64,
        group: I64,
        number: I64,
        le: I64,
        re: I64,
        weight: I64,
        values: Sequence[pa.Array],
        spans: Lattice | None = None,
    ) -> Touched:
        """Adds and removes, sorted by window; or by other ``spans`` of time."""
        grid = spans or self.grid
        new = np.ones(len(rows), np.bool_)
        new[1:] = (group[1:] != group[:-1]) | (number[1:] != number[:-1])
        start = grid.start(number[new])
        end = grid.close(start)
        names = self._names(group[new])
        for use, first, last in self._uses:
            own = [v.take(pa.array(rows)) for v in values[first:last]]
            owner, n = np.cumsum(new) - 1, np.abs(weight)
            use.change(Members(start, end, start, end, owner, le, re, n, rows, own), weight, names)
        return Touched(group[new], start, rows[new])

    def _names(self, group: I64) -> list[Any]:
        table = self.events.groups
        return list(zip(table.k1[group].tolist(), table.k2[group].tolist(), strict=True))

    def advance(self, groups: I64, before: I64, now: I64, done: I64) -> Touched:
        """Lets events without end enter the windows that progress has reached."""
        rows = self.events.rows
        row = np.flatnonzero(rows.alive & (rows.get("re") == INFINITY))
        mine = self.events.group.view[row]
        was, is_ = (np.full(self.events.groups.count, MIN_TIME) for _ in range(2))
        was[groups], is_[groups] = before, now
        moved = is_[mine] > was[mine]
        row, mine = row[moved], mine[moved]
        if len(row) == 0:
            return Touched(NONE, NONE, NONE)
        le = rows.get("le")[row]
        pick, number = self._windows(le, is_[mine], self.grid.begin(np.maximum(done[mine], was[mine])))
        seen = self._seen(le[pick], rows.get("re")[row][pick], self.grid.start(number))
        order = np.lexsort((number, mine[pick]))
        pick, number, seen = pick[order], number[order], (seen[0][order], seen[1][order])
        values = self.events.values_of(row)
        return self._step(pick, mine[pick], number, *seen, rows.get("n")[row][pick], values)

    def hand_over(self, groups: I64, done: I64, reached: I64) -> None:
        """Makes the states again after a restore, from all members of the windows that are open."""
        regions = Regions(groups, done, np.full(len(groups), INFINITY))
        laid = lay(self.frame, self.events, regions, reached, dense=True)
        if len(laid.start) == 0:
            return
        todo = units(laid, self.events, self.node.clip, self.node.stamp, timed=self.node.timed)
        n = self.events.rows.get("n")[todo.row]
        seen = (todo.le, todo.re) if self.node.timed else (np.zeros(len(n), np.int64),) * 2
        values = self.events.values_of(todo.row)
        names = self._names(groups[todo.region])
        for use, first, last in self._uses:
            spans = todo.start, todo.end, todo.start, todo.end
            use.change(Members(*spans, todo.owner, *seen, n, todo.row, values[first:last]), n, names)
            use.caller.counts["handed_over"] += len(todo)

    def renew(self, groups: I64, done: I64, reached: I64, *, slides: bool) -> None:
        """Makes the states of some groups again, from the members that are left."""
        names = self._names(groups)
        for use, _, _ in self._uses:
            use.drop(names)
        if not slides:
            self.hand_over(groups, done[groups], reached[groups])

    def given(self, touched: Touched) -> tuple[I64, Rows]:
        """The rows of those windows that have members, and which windows they are."""
        names = self._names(touched.group)
        states = self._uses[0][0].states
        found = [
            states.get(name, {}).get(start) for name, start in zip(names, touched.start.tolist(), strict=True)
        ]
        there = [entry is not None and not entry.past for entry in found]
        present = np.flatnonzero(np.array(there, np.bool_))
        names = [names[i] for i in present.tolist()]
        members = self._units(touched.start[present])
        results = [use.results(members, names) for use, _, _ in self._uses]
        if self.node.past is not None:
            for i, value in zip(present.tolist(), results[0], strict=True):
                entry = found[i]
                if entry is not None and value is not None and value > self.node.past:
                    entry.past, entry.state = True, None
        return present, self.work.rows_of(members, results)

    def _units(self, start: I64) -> Members:
        end = self.grid.close(start)
        return Members(start, end, start, end, NONE, NONE, NONE, NONE, NONE, [])

    def due(self, groups: I64, before: I64, until: I64) -> Touched:
        """The windows that start in [before, until) and have a state, in order."""
        found: list[tuple[int, int]] = []
        states = self._uses[0][0].states
        spans = zip(self._names(groups), groups.tolist(), before.tolist(), until.tolist(), strict=True)
        for name, group, lo, hi in spans:
            found += sorted((group, start) for start in states.get(name, ()) if lo <= start < hi)
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return Touched(pairs[:, 0].copy(), pairs[:, 1].copy(), NONE)

    def forget(self, groups: I64, done: I64, *, over: Any, slides: bool) -> None:
        """Lets go of the states of windows that are done, and of groups that are over."""
        names = self._names(groups)
        for use, _, _ in self._uses:
            if slides:
                use.drop([names[g] for g in np.flatnonzero(over).tolist()])
                continue
            for name, bound in zip(names, done.tolist(), strict=True):
                use.forget(name, bound)

    def clear(self) -> None:
        """Lets all states go."""
        for use, _, _ in self._uses:
            use.clear()

    # A state per group, sliding.

    def slide(self, regions: Regions, reached: I64) -> tuple[I64, I64, Rows]:
        """(region, start) of the windows of some regions, one region per group, and their rows."""
        grid, rows = self.grid, self.events.rows
        lo, hi = grid.begin(regions.lo), grid.begin(regions.hi)
        owner, row = scanned(self.events, regions.group, grid.start(lo), grid.end(hi - 1) - 1)
        le, re = rows.get("le")[row], rows.get("re")[row]
        first = grid.first(le)
        after = self._after(re, owner, regions, hi, reached)
        near = np.flatnonzero(
            (after > np.maximum(first, lo[owner])) | ((re == INFINITY) & (first < lo[owner]))
        )
        owner, row, first, after = owner[near], row[near], first[near], after[near]
        names = self._names(regions.group)
        known = np.array([name in self._uses[0][0].states for name in names], np.bool_)
        there = (first < lo[owner]) & known[owner]
        inside = np.bincount(owner[there], minlength=len(lo)).astype(np.int64)
        anew = np.unique(owner[(first < lo[owner]) & ~there])
        plan, region, number = _planned(owner, first, after, inside, there, lo, hi)
        start = grid.start(number)
        members = self._units(start)._replace(
            owner=np.full(len(row), -1), le=le[near], re=re[near], n=rows.get("n")[row], ids=row
        )
        values, results = self.events.values_of(row), []
        for use, begin, end in self._uses:
            results.append(use.slide(members._replace(values=values[begin:end]), plan, names))
            use.caller.counts["handed_over"] += len(anew)
            use.drop([names[r] for r in np.flatnonzero(inside == 0).tolist()])
        return region, start, self.work.rows_of(members._replace(values=values), results)

    def _after(self, re: I64, owner: I64, regions: Regions, hi: I64, reached: I64) -> I64:
        """The number of the window before which each member leaves.

        What never ends stays while time goes on; at its end it is in the windows that time had reached.
        """
        stays = np.where(regions.hi == INFINITY, self.grid.begin(reached), hi + 1)[owner]
        return np.where(re == INFINITY, stays, self.grid.begin(re))


def _planned(
    owner: I64, first: I64, after: I64, inside: I64, there: Any, lo: I64, hi: I64
) -> tuple[Steps, I64, I64]:
    """The steps of a slide, and (region, number) of the windows on the way."""
    begin, leave = np.flatnonzero(~there), np.flatnonzero(after <= hi[owner])
    for_begin, for_leave = sorting(owner[begin], first[begin]), sorting(owner[leave], after[leave])
    begin = begin if for_begin is None else begin[for_begin]
    leave = leave if for_leave is None else leave[for_leave]
    spans, _ = tally(np.maximum(first, lo[owner]), np.minimum(after, hi[owner]))
    most = np.bincount(owner, weights=spans, minlength=len(lo))
    room = int(np.minimum(most, tally(lo, hi)[0]).sum())
    if room > PIECES_LIMIT:
        raise StreamError(
            f"{room:,} windows close at once.", remedy="Take a longer hop, or more punctuation."
        )
    most_steps = len(begin) + 2 * len(leave) + room + 1
    kind, who, which = (np.empty(most_steps, np.int64) for _ in range(3))
    region, number, counts = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(2, np.int64)
    plan_grid(owner, first, after, inside, begin, leave, lo, hi, kind, who, which, region, number, counts)
    count, given = counts.tolist()
    return Steps(kind[:count], who[:count], which[:count]), region[:given], number[:given]
