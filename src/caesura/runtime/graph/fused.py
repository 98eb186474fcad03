"""Filters, column choices and a look-up before tumbling windows, done as one pass over a page of points.

     where(kind == 0) -> select(ad) -> join(campaigns) -> group_by(campaign).tumbling(1s)

A page goes from the first step's edge into the windows' slots; the steps between see none of its rows, and
count them as theirs. Retracts are taken out of the windows in the same pass; where events are shortened, and
only final rows leave, they follow step by step behind the inserts of their page. What one pass is not made
for goes its usual way, page by page: other retracts, tokens and labels, feedback, keys that are no small
whole numbers, a joined side that may still change, lifetimes that cross windows.

Law: what leaves the windows is what would leave them without this, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.expr.rewrite import has_call, is_column
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable
from caesura.kernels.memo import whole_numbers
from caesura.kernels.placing import NO_ROWS
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.aggregate.tumbling_operator import TumblingOperator
from caesura.ops.join.node import Join
from caesura.ops.select import Project, Select
from caesura.ops.where import Filter, Where
from caesura.plain_arrays import plain_array
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.row_ranges import Learned, RowRange, RowRanges

if TYPE_CHECKING:
    from caesura.ops.join.physical import JoinOperator

PAUSE = 64
"""For so many pages it is not tried again, where one did not fit."""
Place = Callable[[RowRange], None]
FOUND = "\0"
"""In the place of a column of the first step: one that a look-up brings."""


@dataclass(frozen=True)
class ColumnRoute:
    """Which columns of the first step's input the windows read, through all steps between."""

    key: str
    """The column that a row's group follows from."""
    values: tuple[str, ...]
    """The columns that are aggregated."""


class FusedSteps:
    """The steps from a first one to tumbling windows."""

    def __init__(self, cells: list[Cell], route: ColumnRoute) -> None:
        self.cells = cells
        self.last = cells[-1]
        assert isinstance(self.last.operator, TumblingOperator)
        self.windows = self.last.operator
        self._route = route
        self._join = next((cast("JoinOperator", c.operator) for c in cells if isinstance(c.node, Join)), None)
        self._points = cells[0].node.inputs[0].properties.points
        self._ranges = RowRanges()
        self._table = KeyTable()
        self._groups: list[pa.RecordBatch] = []
        """The keys of all groups, in the order of their numbers."""
        self._since, self._until = MIN_TIME, INFINITY
        """From when until when all that was looked up lives."""
        self._held = 0
        """How many rows could be looked up when the first was."""
        self._paused = 0

    def took(self, page: Page) -> bool:
        """Whether a page was brought into the windows, and what follows was sent."""
        if self._paused:
            self._paused -= 1
            return False
        if page.tags is not None or page.settled or page.partial:
            return False
        if page.shortens and self.windows.speculate != "watermark":
            return False  # what leaves at once is the net change of a page
        if not self._free():
            return False
        keys = whole_numbers([page.payload.column(self._route.key)], len(page))
        done = keys is not None and self._bring(page, keys)
        self._paused = 0 if done else PAUSE
        for cell in self.cells[1:] if done else ():
            cell.rest -= cell.responder is not None
            if cell.rest < 0:
                cell.feedback.wake()
        return done

    def _step_by_step(self, page: Page) -> None:
        """Has retracts go their usual way."""
        pages = [page]
        for cell in self.cells:
            cell.operator.counters.rows_in += sum(map(len, pages))
            if cell is self.last:
                break
            made = [item for one in pages for item in cell.guarded(cell.operator.page, 0, one)]
            pages = [item for item in made if isinstance(item, Page) and len(item)]
            cell.operator.counters.rows_out += sum(map(len, pages))
        for one in pages:
            self.last.send(self.last.guarded(self.windows.page, 0, one))

    def _free(self) -> bool:
        """Whether nobody looks at what passes between the steps, and nothing waits there."""
        for cell in self.cells:
            if cell.awake is not None or cell.watch is not None:
                return False
            if cell is not self.last and (len(cell.outputs) != 1 or cell.taps or cell.outputs[0].items):
                return False
        if self._join is not None:
            if self._join.promises[1].cti < INFINITY:
                return False
            if self._held != self._join.sides[1].rows.live:
                self._forget()
        return not self.last.blocked

    def divide(self, threads: Executor, count: int) -> None:
        """Has large pages worked on by so many threads; functions of the user's stay on one."""
        first = self.cells[0].node
        if not isinstance(first, Where) or not has_call(first.predicate):
            self._ranges.divide(threads, count)

    def _bring(self, page: Page, keys: I64) -> bool:
        """Brings a page into the windows; False where it does not fit.

        Retracts that shorten events go step by step, and all others of their page with them.
        """
        test, ranges, points = self._test, self._ranges, self._points or page.all_points

        def begin(one: RowRange, start: int, stop: int) -> None:
            one.pick(page, start, stop, test, inserts=page.shortens)
            place(one)

        def place(one: RowRange) -> None:
            one.place(page, keys, self.windows.grid, points=points, numbered=bool(self._route.values))

        ranges.each(begin, *ranges.cut(len(page)))
        if not self._fits(page, keys, place):
            return False
        self._send(page, len(page) - (len(page.retract_rows) if page.shortens else 0))
        if page.shortens:
            self._step_by_step(page.take(page.retract_rows))
        return True

    def _fits(self, page: Page, keys: I64, place: Place) -> bool:
        """Whether all rows that were placed have a group that lives as long as their window, or get one."""
        ranges = self._ranges
        unknown = [one for one in ranges.used if one.missing > 0]
        if not all(self._learn(page, keys, one) for one in unknown):
            ranges.empty()
            self._forget()
            return False
        ranges.each(place, *((one,) for one in unknown))
        passed = any(one.passed for one in ranges.used)
        if any(one.missing for one in ranges.used) or (passed and not self._covered()):
            ranges.empty()
            return False
        return True

    def _send(self, page: Page, came: int) -> None:
        """Brings what was placed into the windows, or out of them, and sends what follows."""
        passed = sum(one.passed for one in self._ranges.used)
        self._count(came, passed)
        if passed:
            self.last.send(self.last.guarded(self._add, page))

    @cached_property
    def _test(self) -> Callable[[Page], Mask] | None:
        """The filter, where there is one."""
        first, operator = self.cells[0], self.cells[0].operator
        if not isinstance(operator, Filter):
            return None
        return lambda page: first.guarded(operator.masks, page)[0]

    def _covered(self) -> bool:
        """Whether what was looked up lives as long as the windows."""
        if self._since == MIN_TIME and self._until == INFINITY:
            return True
        windows = np.concatenate([one.places.windows for one in self._ranges.used])
        start = self.windows.grid.start(windows)
        return int(start.min()) >= self._since and int(start.max()) + self.windows.grid.hop <= self._until

    def _learn(self, page: Page, keys: I64, one: RowRange) -> bool:
        """Finds the groups of keys that came for the first time; False where one has not exactly one."""
        self._ranges.learn(one)
        rows = one.unknown(keys)
        if len(rows) == 0:
            return True
        some = page.take(rows)
        for cell in self.cells[:-1]:
            operator = cell.operator
            if isinstance(cell.node, Where) and cell.node.keep:
                some = some.with_payload(some.payload.select(cell.node.keep))
            elif isinstance(operator, Project):
                [item] = cell.guarded(operator.page, 0, some)
                assert isinstance(item, Page)
                some = item
            elif self._join is operator:
                found = self._join.look_up(some)
                if found is None:
                    return False
                some, since, until = found
                self._since, self._until = max(self._since, since), min(self._until, until)
        batch = plain_zeros(some.payload.select(list(self.windows.node.group)))
        number, fresh = self._table.encode(*identity(batch.columns, len(some), self.windows.secret))
        self._groups.append(batch.take(plain_array(fresh)))
        self._ranges.teach(one, Learned(keys[rows], number, self._table.count))
        return True

    def _forget(self) -> None:
        """Nothing that was looked up counts any more."""
        self._ranges.forget()
        self._table, self._groups = KeyTable(), []
        self._since, self._until = MIN_TIME, INFINITY
        self._held = 0 if self._join is None else self._join.sides[1].rows.live

    def _add(self, page: Page) -> list[Item]:
        """Brings what was placed into the windows' slots, or out of them."""
        if len(self._groups) > 1:
            self._groups = [pa.concat_batches(self._groups)]
        numbered = self._ranges.numbered() if self._route.values else NO_ROWS
        group, window, count = self._ranges.found()
        keys = self._groups[0].take(plain_array(group))
        if not self._route.values:
            return self.windows.counted(keys, window, count)
        values = [page.payload.column(name) for name in self._route.values]
        rows, weight = self._ranges.rows(), np.ones(len(numbered), np.int64)
        if page.retracts is not None and not page.shortens:
            weight -= 2 * (page.retracts if rows is None else page.retracts[rows])
        if rows is not None:
            wanted = plain_array(rows)
            values = [column.take(wanted) for column in values]
        return self.windows.placed(keys, window, numbered, values, weight)

    def _count(self, came: int, passed: int) -> None:
        """The rows as the counters of every step would have them."""
        for number, cell in enumerate(self.cells):
            counters = cell.operator.counters
            counters.pages_in += 1
            counters.rows_in += came if number == 0 else passed
            if cell is not self.last:
                counters.rows_out += passed


def fuse(cells: list[Cell]) -> None:
    """Lets pages pass whole chains of steps before tumbling windows at once, where that is possible."""
    for cell in cells:
        if isinstance(cell.node, Tumbling) and type(cell.operator) is TumblingOperator:
            chain = _chain(cell)
            route = _route(chain)
            if route is not None:
                chain[0].fused = FusedSteps(chain, route)


def _chain(last: Cell) -> list[Cell]:
    """The steps in front of windows that a row passes alone: at most one filter, which is the first."""
    chain = [last]
    joined = False
    while not isinstance(chain[0].node, Where):
        above = chain[0].inputs[0].source
        if above is None or len(above.outputs) != 1 or above.around is not None:
            return chain
        node = above.node
        if isinstance(node, Join):
            from caesura.ops.join.physical import JoinOperator

            plain = node.how == "inner" and node.residual is None and len(node.on) == 1
            if joined or not plain or type(above.operator) is not JoinOperator:
                return chain
            joined = True
        elif not isinstance(node, (Select, Where)) or node.on_error == "late":
            return chain
        chain.insert(0, above)
    return chain


def _route(chain: list[Cell]) -> ColumnRoute | None:
    """Where the columns that the windows read come from; None where one pass cannot find them."""
    windows = chain[-1].node
    assert isinstance(windows, Tumbling) and isinstance(chain[-1].operator, TumblingOperator)
    if windows.every != windows.size or not windows.group:
        return None
    origin: dict[str, str | None] = {name: name for name in chain[0].node.inputs[0].schema.names}
    key: str | None = None
    for cell in chain[:-1]:
        node = cell.node
        if isinstance(node, Where):
            origin = {name: origin[name] for name in node.schema.names}
        elif isinstance(node, Select):
            made = {name: is_column(expr) for name, expr in node.columns}
            origin = {name: None if old is None else origin[old] for name, old in made.items()}
        elif isinstance(node, Join):
            key = origin[node.on[0][0]]
            origin |= dict.fromkeys(node.right_columns, FOUND)
    values = [None if name is None else origin[name] for name in chain[-1].operator.slots.plain_values]
    known = [name for name in values if name not in (None, FOUND)]
    reads = {key if origin[name] == FOUND else origin[name] for name in windows.group}
    reads |= {key} if any(isinstance(cell.node, Join) for cell in chain) else set()
    if len(reads) != 1 or None in reads or len(known) < len(values):
        return None
    return ColumnRoute(str(reads.pop()), tuple(map(str, known)))
