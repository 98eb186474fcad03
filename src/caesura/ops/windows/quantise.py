"""Trill's reading of windows: lifetimes moved to a grid, so that a snapshot of them is a window's content.

      3   4 | x | +    tumbling_lifetimes(10)  ->  10 20 | x | +
     12  13 | y | +                                20 30 | y | +

An event that starts in a period lives from the end of that period for the window's size: at time t it
is there what started in the window that ended last. Its own end does not count. The other reading is
`tumbling` and `hopping`: a window is an interval, and collects what overlaps it.

A row that an `exact` step would move out of time stops the query.

Law: starts move up to the next multiple of the period, and punctuation with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import NO_NEW_END, Page
from caesura.kernels.grid import Lattice, lattice
from caesura.kernels.ticks import LAST, later, started
from caesura.ops.aggregate.shape import check_grid
from caesura.ops.lifetimes import refuse_moved
from caesura.plan import FeedbackRule, Node, Operator, Properties, definite, row_rule, shown
from caesura.plan.lifetimes import Stepped
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import INFINITY, Pattern, lt


@dataclass(frozen=True, eq=False, kw_only=True)
class Quantise(Node):
    """Every event from the end of its period on, for the size of a window."""

    size: int
    period: int
    offset: int = 0
    exact: bool = False
    """Whether a row that would be moved out of time stops the query."""

    row_wise = True
    moves_time = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "tumbling_lifetimes" if self.size == self.period else "hopping_lifetimes"

    def counts(self, name: str) -> bool:
        """What is refused changes nothing of what comes out."""
        return name != "exact" and super().counts(name)

    def output_schema(self) -> pa.Schema:
        check_grid(self.size, self.period)
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0].but(aligned=True, points=self.size == 1, max_duration=self.size, endless=False)

    @property
    def rounds_starts(self) -> bool:
        return True

    @property
    def grid(self) -> Lattice:
        """The periods."""
        return lattice(self.period, self.period, self.offset)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        bound = pattern.time_bound
        if bound is None or bound == INFINITY:
            return None if bound is None else pattern
        return pattern.replace("time", lt(min(LAST, self.grid.start(self.grid.last(bound) + 1))))

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Columns as they are, starts by the period that they fall into."""
        moves = Stepped(self.period, self.offset, past=True, size=self.size)
        return row_rule(self.schema.names, self.inputs[0].properties, moves)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted

    def operator(self) -> Operator:
        return Quantiser(self)

    def describe(self) -> str:
        every = "" if self.size == self.period else f" every {shown(self.period, self.time)}"
        return f"{shown(self.size, self.time)}{every}"


class Quantiser(Operator):
    """Moves a page at a time; only events that come or go whole show."""

    def __init__(self, node: Quantise) -> None:
        super().__init__()
        self.node = node

    def page(self, port: int, page: Page) -> Iterable[Item]:
        grid = self.node.grid
        starts = grid.start(grid.last(page.le) + 1)
        le = started(starts)
        re = later(le, self.node.size)
        if self.node.exact:
            refuse_moved(self.node, page, (page.le, page.re), (starts > LAST) | (re == INFINITY))
        if page.re_new is None or page.retracts is None:
            return [Page(le, re, page.payload)]
        removed = page.retracts & (page.re_new <= page.le)
        new = np.where(removed, le, NO_NEW_END)
        rows = np.flatnonzero(~page.retracts | removed)
        whole = Page.of(page.payload, le=le, re=re, re_new=new)
        return [whole if len(rows) == len(page) else whole.take(rows)]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self.node.carry(port, pattern))
