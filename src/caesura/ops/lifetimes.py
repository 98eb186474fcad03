"""The stateless lifetime steps: shift, set_duration, forever, extend, scale, start_at, points.

Each moves [LE, RE) by a rule of its own; an event whose lifetime becomes empty vanishes.

     shift(5)           [10, 20) -> [15, 25)     CTI 12 -> 17
     set_duration(3)    [10, 20) -> [10, 13)
     forever()          [10, 20) -> [10, inf)
     extend(4)          [10, 20) -> [10, 24)
     scale(2)           [10, 20) -> [10, 30)
     start_at(8)        [10, 20) -> [16, 20)     the start rounded up to a multiple of 8
     points_at_end()    [10, 20) -> [20, 21)

A row that an `exact` step, which is one that a user has written, would move out of time stops the query:
its end would be told as never, or its start as one that it has not. Where a plan moves rows for reasons of
its own, times stop at the ends of time, so that no event is lost. What never ends stays so, and an amount of
infinity means that.

Law: none of them remembers anything; a retract moves as its event did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.draw import shown_time
from caesura.events.item import Item
from caesura.events.page import NO_NEW_END, Page, take_rows
from caesura.expr import RowError
from caesura.expr.faults import shown as shown_row
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.ticks import FIRST, LAST, later, lengthened, rounded_up, started
from caesura.plan import FeedbackRule, Node, Operator, Properties, definite, row_rule, shown
from caesura.plan.lifetimes import Lifetimes, Moved, Stepped
from caesura.plan.roles import ROW_BY_ROW, OnLoop, PunctuatedBy
from caesura.punctuation import INFINITY, Image, Pattern, SchemaMapping, lt

Rule = Literal[
    "shift", "set_duration", "forever", "extend", "scale", "start_at", "points_at_start", "points_at_end"
]
Move = Callable[[I64, I64], tuple[I64, I64]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lifetime(Node):
    """Moves every lifetime by a rule with an amount."""

    rule: Rule
    amount: int = 0
    per: int = 1
    """The denominator of `scale`."""
    exact: bool = False
    """Whether a row that would be moved out of time stops the query."""

    row_wise = True
    moves_time = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def counts(self, name: str) -> bool:
        """What is refused changes nothing of what comes out."""
        return name != "exact" and super().counts(name)

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.rule

    @property
    def forward(self) -> bool:  # type: ignore[override]
        """Whether no change comes out earlier than it went in."""
        shrinks = self.rule == "scale" and self.amount < self.per
        return not shrinks and (self.rule not in ("shift", "extend") or self.amount >= 0)

    @property
    def results_endless(self) -> bool:
        """Whether no event ends behind it, whatever ends it had, for contracts."""
        return self.rule == "forever" or self.unending

    @property
    def unending(self) -> bool:
        """Whether it gives rows an infinite length, so that none of them ends."""
        return self.rule in ("set_duration", "extend") and self.amount >= INFINITY

    def output_schema(self) -> pa.Schema:
        if self.rule == "start_at" and self.amount <= 0:
            raise PlanError(
                f"a period of {self.amount} has no multiples to start at.",
                remedy="Give a positive period, like start_at(10) or start_at('1m').",
            )
        if self.rule in ("set_duration", "scale") and self.amount <= 0:
            raise PlanError(
                f"{self.rule} by {self.amount} leaves no event a lifetime.",
                remedy="Give a positive amount; to take events out, use where.",
            )
        shrinks = self.rule == "scale" and self.amount < self.per
        if shrinks and not self.inputs[0].properties.fixed_ends:
            raise PlanError(
                f"scale by {self.amount}/{self.per} would move ends that may still change into the past.",
                remedy="Fix the ends first with set_duration, or scale by 1 or more.",
            )
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        known, longest = inputs[0].but(endless=self._never_ends(inputs[0])), inputs[0].max_duration
        match self.rule:
            case "set_duration":
                longest = None if self.amount >= INFINITY else self.amount
                return known.but(aligned=True, points=self.amount == 1, max_duration=longest)
            case "forever":
                return known.but(aligned=True, points=False, max_duration=None)
            case "points_at_start":
                return known.but(aligned=True, points=True, max_duration=1)
            case "points_at_end":
                return known.but(aligned=True, points=True, max_duration=1)
            case "extend":
                grown = None if longest is None or self.unending else max(0, longest + self.amount)
                return known.but(points=False, max_duration=grown)
            case "scale":
                grown = None if longest is None else -(-longest * self.amount // self.per)
                return known.but(points=False, max_duration=grown)
            case "start_at":
                return known.but(points=False)
        return known

    @property
    def rounds_starts(self) -> bool:
        return self.rule == "start_at"

    @property
    def start_delay(self) -> int | None:
        match self.rule:
            case "shift":
                return self.amount
            case "points_at_end":
                return 1 if self.inputs[0].properties.points else None
        return 0 if self.rule != "start_at" else None

    def _never_ends(self, known: Properties) -> bool:
        if self.results_endless:
            return True
        return known.endless and self.rule in ("shift", "start_at")

    @property
    def caution(self) -> str:
        """What is shortened by more than it lives is gone."""
        known = self.inputs[0].properties
        longest = 1 if known.points else known.max_duration
        if self.rule != "extend" or longest is None or longest + self.amount > 0:
            return ""
        lives = shown(longest, self.time)
        return f"leaves no row, because none lives longer than {lives}, and it takes as much off"

    @property
    def by(self) -> int:
        """How many ticks a change may come out from where it went in."""
        return self.amount if self.rule == "shift" else min(0, self.amount if self.rule == "extend" else 0)

    @cached_property
    def mapping(self) -> SchemaMapping:
        """How patterns pass: payload as it is, time moved by what a lifetime may move."""
        return SchemaMapping({n: Image(n) for n in self.schema.names}, time=Image("time", self.by))

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A bound on time stops where starts do; a pattern of other times that would pass there is lost."""
        bound = pattern.time_bound
        if bound == INFINITY:
            return pattern
        if bound is not None:
            return pattern.replace("time", lt(max(FIRST, min(LAST, bound + self.by))))
        moved = self.mapping.down(pattern) if self.rule == "shift" else None
        inside = moved is not None and all(FIRST < at < LAST for at, _ in moved["time"].cuts)
        return moved if inside else None

    def move(self, le: I64, re: I64) -> tuple[I64, I64]:
        """The rule on columns of starts and ends; what would lie beyond the end of time never ends."""
        match self.rule:
            case "shift":
                starts = started(later(le, self.amount))
                points = self.inputs[0].properties.points
                return starts, starts + 1 if points else np.maximum(later(re, self.amount), starts + 1)
            case "set_duration":
                return le, np.full(len(le), INFINITY) if self.unending else later(le, self.amount)
            case "forever":
                return le, np.full(len(le), INFINITY)
            case "extend":
                return le, np.full(len(le), INFINITY) if self.unending else later(re, self.amount)
            case "scale":
                return le, lengthened(le, re, self.amount, self.per)
            case "start_at":
                return np.minimum(rounded_up(le, self.amount), LAST), re
            case "points_at_start":
                return le, le + 1
            case "points_at_end":
                return re, later(re, 1)

    def refuse_lost(self, page: Page, le: I64, re: I64, new_re: I64) -> None:
        """Stops at the first row whose times the step would move out of time."""
        refuse_moved(self, page, (le, re), self._lost(le, re, new_re))

    def _lost(self, le: I64, re: I64, new_re: I64) -> Mask:
        """Which rows would get a start or an end that there is not."""
        lost = np.zeros(len(le), np.bool_)
        if self.rule == "shift" and self.amount:
            far = later(le, self.amount)
            lost = (far < FIRST) | (far > LAST)
        elif self.rule == "start_at":
            lost = (re == INFINITY) & (rounded_up(le, self.amount) > LAST)
        ends = self.rule in ("shift", "set_duration", "extend", "scale", "points_at_end")
        if ends and not self.unending:
            had = self.rule == "set_duration" or re != INFINITY
            lost = lost | ((new_re == INFINITY) & had)
        return lost

    @property
    def moves(self) -> Lifetimes:
        """How output lifetimes come from input ones, for feedback."""
        by = self.amount
        if self.unending:
            return Moved(("LE", 0), None)
        match self.rule:
            case "shift":
                return Moved(("LE", by), ("RE", by))
            case "set_duration":
                return Moved(("LE", 0), ("LE", by))
            case "extend":
                return Moved(("LE", 0), ("RE", by))
            case "start_at":
                return Stepped(by)
            case "points_at_start":
                return Moved(("LE", 0), ("LE", 1))
            case "points_at_end":
                return Moved(("RE", 0), ("RE", 1))
        return Moved(("LE", 0), None)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Columns as they are, times moved back."""
        return row_rule(self.schema.names, self.inputs[0].properties, self.moves)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        """A shift or a longer end moves a row in pieces as it does the whole."""
        return replace(ROW_BY_ROW, reads_lifetimes=self.rule not in ("shift", "extend"))

    def operator(self) -> Operator:
        return Mover(self)

    def describe(self) -> str:
        if self.rule.startswith("points") or self.rule == "forever":
            return ""
        if self.rule == "scale":
            return f"{self.amount}" if self.per == 1 else f"{self.amount}/{self.per}"
        return shown(self.amount, self.time)


def refuse_moved(node: Node, page: Page, times: tuple[I64, I64], lost: Mask) -> None:
    """Stops at the first row that a step would move out of time."""
    if not lost.any():
        return
    rows = np.flatnonzero(lost)
    row = int(rows[0])
    what = f"{node.kind}({node.describe()})"
    start, end = (shown_time(int(some[row]), node.time) for some in times)
    held = f"; the row is ({shown_row(page.payload, row)})" if page.payload.num_columns else ""
    raise RowError(
        f"{what} would move [{start}, {end}) beyond the times that there are{held}.",
        remedy="Give a shorter amount; or leave such rows out before it, with where on cz.start() or "
        "cz.end(). Where rows are not to end, write forever().",
    ).of(rows, [f"{what} would move it beyond the times that there are"] * len(rows))


class Mover(Operator):
    """Moves a page at a time."""

    def __init__(self, node: Lifetime) -> None:
        super().__init__()
        self._node = node

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if page.re_new is None:
            forever = self._node.rule == "forever"  # whatever ends points have, if somebody asks
            le, re = self._node.move(page.le, page.le if forever else page.re)
            if self._node.exact and not forever:
                self._node.refuse_lost(page, page.le, page.re, re)
            moved = Page(le, re, page.payload, tags=page.tags)
            return [moved if forever else moved.filter(le < re)]
        le, re = self._node.move(page.le, page.re)
        assert page.retracts is not None
        ends = np.where(page.retracts, page.re_new, page.re)
        new_le, new_re = self._node.move(page.le, ends)
        if self._node.exact:
            self._node.refuse_lost(page, page.le, page.re, re)
            self._node.refuse_lost(page, page.le, ends, new_re)
        new_re = np.where(page.retracts & (page.re_new <= page.le), new_le, new_re)
        return [_changes(page, le, re, new_le, new_re)]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self._node.carry(port, pattern))


def _changes(page: Page, le: I64, re: I64, new_le: I64, new_re: I64) -> Page:
    """Inserts as they are; a retract as one where its start stays, as a loss and a gain where not."""
    assert page.retracts is not None
    had, has = le < re, new_le < new_re
    insert = ~page.retracts & had
    stays = page.retracts & had & has & (le == new_le)
    end = stays & (re != new_re)
    loss = page.retracts & had & ~stays
    gain = page.retracts & has & ~stays
    rows, starts, ends, news = [], [], [], []
    for mask, s, e, n in (
        (insert, le, re, np.full(len(page), NO_NEW_END)),
        (end, le, re, new_re),
        (loss, le, re, le),
        (gain, new_le, new_re, np.full(len(page), NO_NEW_END)),
    ):
        some = np.flatnonzero(mask)
        rows.append(some)
        starts.append(s[some])
        ends.append(e[some])
        news.append(n[some])
    order = np.argsort(np.concatenate(rows), kind="stable")
    row = np.concatenate(rows)[order]
    return Page.of(
        take_rows(page.payload, row),
        le=np.concatenate(starts)[order],
        re=np.concatenate(ends)[order],
        re_new=np.concatenate(news)[order],
    )
