"""`chop` cuts lifetimes at the multiples of a period.

      3  17 | x | +      chop(5)  ->     3   5 | x | +
                                         5  10 | x | +
                                        10  15 | x | +
                                        15  17 | x | +

Law: an event without end is cut as far as progress has come: its pieces that start before the CTI.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.events.delta import net_page
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.kernels.grid import LONGEST, PIECES_LIMIT, lattice, spread, tally
from caesura.kernels.hashing import I64
from caesura.ops.endless import Endless
from caesura.plan import FeedbackRule, Holding, Need, Node, Operator, Properties, definite, row_rule, shown
from caesura.plan.lifetimes import Inside
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import INFINITY, MIN_TIME, Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class Chop(Node):
    """Cuts every lifetime at the multiples of a period."""

    period: int

    kind = "chop"
    waits = True
    loop_remedy = "Cut lifetimes before the loop or behind it."
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def output_schema(self) -> pa.Schema:
        if not 0 < self.period <= LONGEST:
            raise PlanError(
                f"a period of {self.period} cuts nothing.", remedy="Give a positive period, like 10 or '1m'."
            )
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        longest = inputs[0].max_duration
        longest_possible = self.period if longest is None else min(longest, self.period)
        return inputs[0].but(max_duration=longest_possible, endless=False)

    @property
    def rounds_starts(self) -> bool:
        return not self.inputs[0].properties.points

    @property
    def start_delay(self) -> int | None:
        return 0 if self.inputs[0].properties.points else None

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return None if pattern.time_bound is None else pattern

    def holds(self) -> tuple[Holding, ...]:
        return (Holding("events", 0, (Need(0, tuple(self.schema.names)),), until="forever", endless=True),)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """A row's pieces are its own; rows without end that came before are cut on."""
        return row_rule(self.schema.names, self.inputs[0].properties, Inside(), guard="input")

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted

    def operator(self) -> Operator:
        return Chopper(self)

    def describe(self) -> str:
        return shown(self.period, self.time)


class Chopper(Operator):
    """Keeps only the events that have no end yet."""

    def __init__(self, node: Chop) -> None:
        super().__init__()
        self.node = node
        self._period = node.period
        self._grid = lattice(node.period, node.period)
        self.endless = Endless(node.schema, [])

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        bound = np.broadcast_to(np.asarray(self.promises[0].effective_cti(page.payload)), len(page))
        old = page.re
        new = page.re
        retracts = np.zeros(len(page), np.bool_)
        if page.re_new is not None and page.retracts is not None:
            retracts, new = page.retracts, np.where(page.retracts, page.re_new, page.re)
        self._keep_endless(page, retracts, new, bound)
        had = np.where(retracts, self._last(page.le, old, bound), page.le // self._period - 1)
        has = self._last(page.le, new, bound)
        first = np.maximum(np.minimum(had, has), page.le // self._period)
        losses = self._cut(page.payload, page.le, old, first, had, -1)
        gains = self._cut(page.payload, page.le, new, first, has, 1)
        return [_joined([losses, gains])]

    def _last(self, le: I64, ends: I64, bound: I64) -> I64:
        """The number of the last piece that a lifetime has now."""
        endless = ends == INFINITY
        reached = np.where(le < bound, (np.maximum(bound, MIN_TIME + 1) - 1) // self._period, -1)
        none = le // self._period - 1
        open_last = np.where(le < bound, reached, none)
        last = np.where(endless, open_last, (np.where(endless, 0, ends) - 1) // self._period)
        return np.where(ends <= le, none, last)

    def _cut(
        self, payload: pa.RecordBatch, le: I64, re: I64, first: I64, last: I64, weight: int
    ) -> tuple[Any, ...]:
        count, total = tally(first, last + 1)
        if total > PIECES_LIMIT:
            raise StreamError(
                f"events of one page fall into {total:,} pieces of {self._period} ticks.",
                remedy="Take a longer period, or bound the lifetimes first with set_duration.",
            )
        rows, number = spread(first, count)
        starts = np.maximum(le[rows], self._grid.start(number))
        ends = np.minimum(re[rows], self._grid.end(number))
        return take_rows(payload, rows), starts, ends, np.full(total, weight, np.int64)

    def _keep_endless(self, page: Page, retracts: Any, new: I64, bound: I64) -> None:
        was = (page.re == INFINITY) & retracts
        now = new == INFINITY
        change = now.astype(np.int64) - was.astype(np.int64)
        if change.any():
            reached = self._last(page.le, np.full(len(page), INFINITY), bound)
            self.endless.change(page.payload, [], page.le, change, reached)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        return [*self._advance(), *definite(self.node.carry(port, pattern))]

    def _advance(self) -> list[Item]:
        """Cuts the events without end as far as the new bound reaches."""
        rows = self.endless.rows
        if rows.live == 0:
            return []
        live = np.flatnonzero(rows.alive)
        batch = rows.payload.take(live).rename_columns(self.node.schema.names)
        bound = np.broadcast_to(np.asarray(self.promises[0].effective_cti(batch)), len(live))
        going = bound < INFINITY
        le, before, n = (rows.get(name)[live] for name in ("le", "reached", "n"))
        ends = np.full(len(live), INFINITY)
        last = np.where(going, self._last(le, ends, np.where(going, bound, MIN_TIME)), before)
        first = np.maximum(before + 1, le // self._period)
        payload, starts, stops, weight = self._cut(batch, le, ends, first, last, 1)
        copies = np.repeat(n, tally(first, last + 1)[0])
        rows.get("reached")[live] = np.maximum(before, last)
        rows.touch(live)
        self.endless.drop(live[~going])
        return [net_page(payload, starts, stops, weight * copies)]

    def states(self) -> dict[str, RowState]:
        return {"endless": self.endless.rows}

    def rebuild(self) -> None:
        self.endless.rebuild()


def _joined(parts: list[tuple[Any, ...]]) -> Page:
    payload = pa.concat_batches([p[0] for p in parts])
    le, re, weight = (np.concatenate([p[i] for p in parts]) for i in (1, 2, 3))
    return net_page(payload, le, re, weight)
