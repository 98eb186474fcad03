"""The rows of windows: members laid out and computed over, or swept, then stamped.

What is computed may be kept from one time to the next, by user's modules; it is let go of here too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.page import take_rows
from caesura.kernels.hashing import I64
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.first_rows import FirstRows
from caesura.ops.windows.frames import Grid, Snapshot
from caesura.ops.windows.node import Windows
from caesura.ops.windows.policy import stamp
from caesura.ops.windows.regions import Regions, lay
from caesura.ops.windows.sweep import Sweep, sweep
from caesura.ops.windows.units import Units, ordered, units
from caesura.ops.windows.work import Aggregation, Application, Rows, UnitMembers
from caesura.plan import Counters


class WindowRows:
    """Computes the rows of the windows in some regions."""

    def __init__(
        self,
        node: Windows,
        events: WindowEvents,
        work: Aggregation | Application | FirstRows,
        counters: Counters,
    ) -> None:
        self.node, self.frame, self.events, self.work = node, node.frame, events, work
        self.counters = counters
        self._sweep: Sweep | None = None
        if isinstance(self.frame, Snapshot) and isinstance(work, Aggregation):
            fits = Sweep.fits([o for _, o in node.outputs], work.slots)
            if fits and node.stamp != "time_bound":
                self._sweep = Sweep(work.slots)

    def of(
        self, regions: Regions, reached: I64, *, dense: bool
    ) -> tuple[tuple[I64, I64], I64, I64, pa.RecordBatch]:
        """The rows of the windows in some regions: (region, window start), lifetimes, payload."""
        if self._sweep is not None:
            return self._swept(self._sweep, regions, dense=dense)
        laid = lay(self.frame, self.events, regions, reached, dense=dense)
        if self.work.incremental and len(laid.start) == 0:
            self.retain(regions, [])
        self.counters.extra["windows"] = self.counters.extra.get("windows", 0) + len(laid.start)
        if len(laid.start) == 0:
            none = np.zeros(0, np.int64)
            empty = pa.RecordBatch.from_pylist([], self.node.schema)
            return (none, none), none, none, empty
        todo = units(laid, self.events, self.node.clip, self.node.stamp, timed=self.node.timed)
        todo = ordered(todo, self.events, timed=self.node.timed) if self.work.ordered else todo
        made = self.work.rows(todo, self._given(todo, regions))
        window = made.unit
        where = (todo.start[window], todo.end[window], todo.low[window], todo.high[window])
        le, re, there = stamp(self.node.stamp, made.le, made.re, *where)
        self._refuse_past(le, todo.start[window])
        members = todo.row[np.searchsorted(todo.owner, window)]
        columns = [*self.events.keys_of(members), *made.columns]
        payload = pa.RecordBatch.from_arrays(columns, schema=self.node.schema)
        if not there.all():
            present = np.flatnonzero(there)
            window, le, re, payload = (
                window[present],
                le[present],
                re[present],
                payload.take(pa.array(present)),
            )
        return (todo.region[window], todo.start[window]), le, re, payload

    def _swept(
        self, over: Sweep, regions: Regions, *, dense: bool
    ) -> tuple[tuple[I64, I64], I64, I64, pa.RecordBatch]:
        """Snapshots of what comes and goes need no list of members."""
        swept = sweep(self.events, regions, steps=over.steps, dense=dense)
        start, end = swept.start, swept.end
        self.counters.extra["windows"] = self.counters.extra.get("windows", 0) + len(start)
        values, n = self.events.values_of(swept.row), self.events.rows.get("n")[swept.row]
        columns = [*self.events.keys_of(swept.example), *over.columns(swept, values, n)]
        payload = pa.RecordBatch.from_arrays(columns, schema=self.node.schema)
        le, re, there = stamp(self.node.stamp, start, end, start, end, start, end)
        if there.all():
            return (swept.region, start), le, re, payload
        present = np.flatnonzero(there)
        return (
            (swept.region[present], start[present]),
            le[present],
            re[present],
            payload.take(pa.array(present)),
        )

    def _given(self, todo: Units, regions: Regions) -> UnitMembers:
        keys: list[Any] = []
        if self.work.incremental:
            rows = todo.row[np.searchsorted(todo.owner, np.arange(len(todo)))]
            h1, h2 = (self.events.rows.get(f)[rows].tolist() for f in ("h1", "h2"))
            names = zip(zip(h1, h2, strict=True), todo.start.tolist(), todo.low.tolist(), strict=True)
            keys = [(group, (start, low)) for group, start, low in names]
            self.retain(regions, keys)
        return UnitMembers(
            self.events.rows.get("n")[todo.row], self.events.values_of(todo.row), keys, todo.row
        )

    def retain(self, regions: Regions, keys: list[Any]) -> None:
        """Lets go of the states of windows that are no longer there."""
        there: dict[Any, set[Any]] = {}
        for group, own in keys:
            there.setdefault(group, set()).add(own)
        k1, k2 = self.events.groups.k1, self.events.groups.k2
        for g, lo, hi in zip(*(f.tolist() for f in regions), strict=True):
            name = int(k1[g]), int(k2[g])
            self.work.retain(name, lo, hi, there.get(name, set()))

    def _refuse_past(self, le: I64, start: I64) -> None:
        early = np.flatnonzero(le < start)
        if len(early) == 0:
            return
        name = self.node.apply.module.name if self.node.apply is not None else self.node.kind
        raise StreamError(
            f"udo '{name}' stamped a row at {le[early[0]]}, before its window from {start[early[0]]} on.",
            remedy="Stamp rows within their window or later, cut members by clip='left' or 'full', or take "
            "stamp='clipped'.",
        )

    def stamped(
        self, made: Rows, start: I64, keys: pa.RecordBatch, row: I64
    ) -> tuple[I64, I64, I64, pa.RecordBatch]:
        """(window, LE, RE, payload) of rows over a grid; ``row`` is where the keys of each window lie."""
        assert isinstance(self.frame, Grid)
        mine = start[made.unit]
        end = self.frame.grid.close(mine)
        le, re, there = stamp(self.node.stamp, made.le, made.re, mine, end, mine, end)
        self._refuse_past(le, mine)
        columns = [*take_rows(keys, row[made.unit]).columns, *made.columns]
        payload = pa.RecordBatch.from_arrays(columns, schema=self.node.schema)
        if there.all():
            return made.unit, le, re, payload
        present = np.flatnonzero(there)
        return made.unit[present], le[present], re[present], payload.take(pa.array(present))

    def forget(self, groups: I64, start: I64) -> None:
        """Lets go of the states of windows that are done."""
        k1, k2 = self.events.groups.k1, self.events.groups.k2
        self.work.forget(
            [((int(k1[g]), int(k2[g])), s) for g, s in zip(groups.tolist(), start.tolist(), strict=True)]
        )
