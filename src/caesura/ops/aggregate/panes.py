"""Overlapping windows over points from panes: a point is added once, windows are merged when they close.

A pane is as long as the greatest common divisor of size and hop, so that every window is whole panes.
Sums, counts and extremes of panes merge exactly; a window is merged once, when its CTI has come.

Law: panes give what the windows themselves would; they serve final output of inserted points only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.identity import identity
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, mix_int
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.ops.aggregate.exact import FULL, SPAN
from caesura.ops.aggregate.extremes import Grows, keep_extremes
from caesura.ops.aggregate.slots import Slots
from caesura.ops.aggregate.sums import Accumulator, Counted, FloatSum, WideSum, add_wide
from caesura.ops.aggregate.tumbling import Tumbling, TumblingOperator
from caesura.punctuation import INFINITY, MIN_TIME

MERGES = (Counted, FloatSum, WideSum, Grows)


@kernel
def merge_limbs(at: I64, row: I64, limbs: I64, base: Any, full: I64, wide: I64, out: I64) -> None:
    """Adds the float sums of panes to those of windows, limb by limb."""
    for i in range(len(at)):
        r = row[i]
        if full[r] >= 0:
            for k in range(FULL):
                out[at[i], k] += wide[full[r], k]
        elif base[r] >= 0:
            for k in range(SPAN):
                out[at[i], base[r] + k] += limbs[r, k]


class PaneOperator(TumblingOperator):
    """Slots are panes in watermark mode; with speculation windows are kept as they are."""

    def __init__(self, node: Tumbling) -> None:
        super().__init__(node)
        self.pane = math.gcd(node.size, node.every)

    @staticmethod
    def fits(operator: TumblingOperator) -> bool:
        """Whether every accumulator merges."""
        return all(isinstance(part, MERGES) for part in operator.slots.parts)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self.speculate == "arrival":
            return super().page(port, page)
        keys = page.payload.select(self._keys)
        values = [make(page.payload, page.le, page.re) for make in self.slots.makers]
        pane = (page.le - self.node.offset) // self.pane
        self._add(keys, values, pane, None, np.ones(len(page), np.int64))
        return []

    def _close(self) -> list[Item]:
        if self.speculate == "arrival":
            return super()._close()
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        start = rows.get("w")[live] * self.pane + self.node.offset
        told = self.promises[0]
        bound: int | I64 = told.cti if told.size == 0 else self._bound(rows.payload.take(live))
        last = self._until(start)
        far = 2 * (self.node.size + self.node.every + abs(self.node.offset))
        reached = self._first(np.clip(bound, MIN_TIME + far, INFINITY - far)) - 1
        due = np.where(np.equal(bound, INFINITY), last, np.minimum(last, reached))
        begin = np.maximum(self._first(start), rows.get("done")[live] + 1)
        count = np.maximum(due - begin + 1, 0)
        some = count > 0
        items = self._merged(live[some], begin[some], count[some])
        rows.get("done")[live[some]] = due[some]
        rows.touch(live[some])
        self.slots.drop(live[due >= last])
        self.sent.renumber(self.slots.tidy())
        return items

    def _merged(self, live: I64, begin: I64, count: I64) -> list[Item]:
        """The windows that close now, each from the panes that it has."""
        total = int(count.sum())
        if total == 0:
            return []
        keys = self.slots.rows.payload.take(live)
        pick = np.repeat(np.arange(len(live)), count)
        window = begin[pick] + np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        ids = identity(keys.columns, len(live))
        h1, h2 = np.empty(total, np.uint64), np.empty(total, np.uint64)
        mix_int(ids[0], ids[1], pick, window, h1, h2)
        at, first = KeyTable().encode(h1, h2)
        columns = [*(keys.take(pa.array(pick[first])).columns if self._keys else [])]
        columns += self._results(at, live[pick], len(first))
        le = window[first] * self.node.every + self.node.offset
        return [Page(le, le + self.node.size, pa.RecordBatch.from_arrays(columns, schema=self.schema))]

    def _results(self, at: I64, row: I64, count: int) -> list[pa.Array]:
        node, source = self.node, self.node.inputs[0]
        whole = Slots(node.aggregates, source.schema, node.group, time=node.time, insert_only=True, fields={})
        number = np.zeros(count, np.int64)
        add_weights(at, self.slots.rows.get("rows")[row], number)
        fields: dict[str, Any] = {"h1": np.zeros(count, np.uint64), "h2": np.zeros(count, np.uint64)}
        fields["rows"] = number
        for mine, theirs in zip(self.slots.parts, whole.parts, strict=True):
            fields.update(self._merge(mine, theirs, at, row, count))
        whole.rows.append(fields)
        return whole.results(np.arange(count))

    def _merge(self, mine: Accumulator, theirs: Accumulator, at: I64, row: I64, count: int) -> dict[str, Any]:
        """The fields of one accumulator, merged from panes to windows."""
        fields, rows = theirs.zeros(count), self.slots.rows
        if isinstance(mine, Counted):
            add_weights(at, rows.get(mine.name)[row], fields[mine.name])
        elif isinstance(mine, WideSum):
            low, high = (f"{mine.name}_{half}" for half in ("low", "high"))
            ones = np.ones(len(at), np.int64)
            add_wide(at, ones, rows.get(low)[row], rows.get(high)[row], fields[low], fields[high])
        elif isinstance(mine, Grows):
            best, seen = (f"{mine.name}_{part}" for part in ("best", "seen"))
            some = np.flatnonzero(rows.get(seen)[row] > 0)
            keep_extremes(at[some], rows.get(best)[row[some]], mine.sign, fields[seen], fields[best])
        elif isinstance(mine, FloatSum) and isinstance(theirs, FloatSum):
            self._merge_floats(mine, theirs, at, row, fields)
        return fields

    def _merge_floats(
        self, mine: FloatSum, theirs: FloatSum, at: I64, row: I64, fields: dict[str, Any]
    ) -> None:
        rows, name, count = self.slots.rows, mine.name, len(fields[f"{mine.name}_full"])
        limbs, base, full = (rows.get(f"{name}_{part}") for part in ("limbs", "base", "full"))
        wide = mine.full.get("limbs") if mine.full.size else np.zeros((1, FULL), np.int64)
        out = np.zeros((count, FULL), np.int64)
        merge_limbs(at, row, limbs, base, full, wide, out)
        theirs.full.append({"limbs": out})
        fields[f"{name}_full"] = np.arange(count)
        odd = rows.get(f"{name}_odd")[row]
        if odd.any():
            np.add.at(fields[f"{name}_odd"], at, odd)
