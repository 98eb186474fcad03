"""Mergeable modules over overlapping windows: a point is added to one pane, and panes merge to windows.

A pane is as long as the greatest common divisor of size and hop. When windows close, each pane's state
enters the two stacks of its group once and leaves them once (`udm.merging`); nothing is removed from a state.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import RAISED
from caesura.events.delta import Deltas
from caesura.kernels.grid import lattice
from caesura.kernels.hashing import I64
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.frames import Grid
from caesura.ops.windows.node import Windows
from caesura.ops.windows.regions import Regions
from caesura.ops.windows.stepwise import Mode, Stepwise, Touched
from caesura.ops.windows.work import Aggregation, Application, Rows
from caesura.udm.merging import TwoStacks
from caesura.udm.stepping import Stepping


class Paned(Stepwise):
    """States of panes in watermark mode; with speculation windows have states as they are."""

    def __init__(
        self, node: Windows, frame: Grid, events: WindowEvents, work: Aggregation | Application
    ) -> None:
        super().__init__(node, frame, events, work)
        length = math.gcd(frame.size, frame.hop)
        self.panes = lattice(length, length, frame.offset)
        self._stacks: list[dict[Any, TwoStacks]] = [{} for _ in self._uses]
        self._paned = False

    def mode(self, speculate: str) -> Mode:
        self._paned = speculate == "watermark"
        return "panes" if self._paned else "windows"

    @property
    def count(self) -> int:
        return super().count + sum(len(stack) for own in self._stacks for stack in own.values())

    def change(
        self, change: Deltas, values: Sequence[pa.Array], group: I64, done: I64, reached: I64
    ) -> Touched:
        if not self._paned:
            return super().change(change, values, group, done, reached)
        self._add(group, change.le, change.weight, values)
        return Touched(group[:0], group[:0], group[:0])

    def _add(self, group: I64, le: I64, weight: I64, values: Sequence[pa.Array]) -> None:
        pane = self.panes.last(le)
        order = np.lexsort((pane, group))
        none = np.zeros(len(le), np.int64)
        self._step(order, group[order], pane[order], none, none, weight[order], values, self.panes)

    def hand_over(self, groups: I64, done: I64, reached: I64) -> None:
        if not self._paned:
            super().hand_over(groups, done, reached)
            return
        rows = self.events.rows
        live = np.flatnonzero(rows.alive)
        live = live[np.isin(self.events.group.view[live], groups)]
        own = self.events.group.view[live]
        self._add(own, rows.get("le")[live], rows.get("n")[live], self.events.values_of(live))
        for use, _, _ in self._uses:
            use.caller.counts["handed_over"] += use.count

    def renew(self, groups: I64, done: I64, reached: I64, *, slides: bool) -> None:
        for stacks in self._stacks:
            for name in self._names(groups):
                stacks.pop(name, None)
        super().renew(groups, done, reached, slides=slides)

    def forget(self, groups: I64, done: I64, *, over: Any, slides: bool) -> None:
        if not self._paned:
            super().forget(groups, done, over=over, slides=slides)

    def clear(self) -> None:
        super().clear()
        for stacks in self._stacks:
            stacks.clear()

    def slide(self, regions: Regions, reached: I64) -> tuple[I64, I64, Rows]:
        """(region, start) of the windows that close, and their rows."""
        names = self._names(regions.group)
        windows: list[tuple[int, int]] = []
        results: list[list[Any]] = [[] for _ in self._uses]
        spans = zip(names, regions.lo.tolist(), regions.hi.tolist(), strict=True)
        for number, (name, lo, hi) in enumerate(spans):
            for place, (use, _, _) in enumerate(self._uses):
                given = self._closed(use, self._stacks[place], name, lo, hi)
                results[place] += [state for _, state in given]
                if place == 0:
                    windows += [(number, start) for start, _ in given]
        pairs = np.array(windows, np.int64).reshape(-1, 2)
        region, start = pairs[:, 0].copy(), pairs[:, 1].copy()
        members = self._units(start)
        for place, (use, _, _) in enumerate(self._uses):
            results[place] = [use.caller.answer(members, i, s) for i, s in enumerate(results[place])]
        return region, start, self.work.rows_of(members, results)

    def _closed(
        self, use: Stepping, stacks: dict[Any, TwoStacks], name: Any, lo: int, hi: int
    ) -> list[tuple[int, Any]]:
        """(start, merged state) of one group's windows that start in [lo, hi) and have members."""
        grid, panes = self.grid, use.states.get(name, {})
        target = use.caller.target
        if name not in stacks:
            stacks[name] = TwoStacks(target.merge, getattr(target, "copy", copy.deepcopy))
        stack, todo, out = stacks[name], sorted(panes), list[tuple[int, Any]]()
        number, stop, place = grid.begin(lo), grid.begin(hi), 0
        while number < stop and (len(stack) or place < len(todo)):
            if not len(stack):
                number = max(number, grid.first(todo[place]))
                if number >= stop:
                    break
            start, end = grid.start(number), grid.end(number)
            try:
                stack.leave(start)
                while place < len(todo) and todo[place] < end:
                    stack.push(todo[place], panes.pop(todo[place]).state)
                    place += 1
                stack.leave(start)
                if len(stack):
                    out.append((start, stack.merged()))
            except RAISED as error:  # whatever the user's code raises is reported alike
                problem = f"raised {type(error).__name__} in merge: {error}"
                use.caller.refuse(self._units(np.array([start])), 0, problem, error)
            number += 1
        stack.leave(grid.start(stop))
        use.caller.counts["merges"] = use.caller.counts.get("merges", 0) + stack.merges
        stack.merges = 0
        if not panes:
            use.states.pop(name, None)
            if not len(stack):
                del stacks[name]
        return out
