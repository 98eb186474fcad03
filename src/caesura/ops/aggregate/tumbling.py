"""`tumbling` and `hopping` windows: one row per group and window, over every event that overlaps it.

     LE  RE | id speed |      group_by("id").tumbling(10).agg(n=count(), top=max("speed"))
      3   4 | 7  50    | +           0  10 | 7 2 60 | +
      8  12 | 7  60    | +    ->    10  20 | 7 1 60 | +

A hop shorter than the size makes windows overlap; a longer one leaves gaps, whose events count nowhere:

      3   4 | 7  50    | +    hopping(10, every=5)  ->   -5 5 | 7 1 | +   and   0 10 | 7 1 | +

Laws: a window that ends at or before the CTI is final; the output CTI is the start of the earliest
window still open. An event without end belongs to the windows that start before the CTI: progress
bounds them. A late event or a retract corrects the windows that it overlaps, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from caesura.kernels.grid import Lattice, lattice
from caesura.ops.aggregate.kinds import Aggregate, directions, read_by
from caesura.ops.aggregate.shape import aggregate_schema, check_grid, of_groups
from caesura.ops.where import on_keys
from caesura.plan import (
    FeedbackRule,
    Holding,
    Need,
    Node,
    Operator,
    OwnFeedback,
    Properties,
    Translation,
    shown,
)
from caesura.plan.lifetimes import OverlappedWindows
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import INFINITY, Pattern, lt


@dataclass(frozen=True, eq=False, kw_only=True)
class Tumbling(Node):
    """Aggregates per group over windows of one size; one starts at ``offset``, and at every hop from it."""

    group: tuple[str, ...] = ()
    size: int
    hop: int | None = None
    """From one start to the next; None lays windows end to end."""
    offset: int = 0
    aggregates: tuple[tuple[str, Aggregate], ...]
    scattered: bool = False
    """Whether rows are taken wherever they lie, so that every bucket has a share of the result."""
    skewed: bool = False
    """Whether a key may have so many rows that buckets shall have shares of its results."""
    thrifty: bool = False
    """Whether windows say which values can no longer count."""

    loop_remedy = "Window the input before it enters the loop, or use snapshot(), which moves nothing."
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "tumbling" if self.every == self.size else "hopping"

    @property
    def every(self) -> int:
        """From one start to the next."""
        return self.size if self.hop is None else self.hop

    @property
    def partitioning(self) -> str:  # type: ignore[override]
        return "any" if self.scattered else "key"

    def combined(self) -> Node | None:
        from caesura.ops.aggregate.combine import combined

        return combined(self)

    @property
    def spreads(self) -> bool:
        return self.scattered and self.skewed

    def counts(self, name: str) -> bool:
        """Skew says where rows lie once a plan is cut, and nothing before."""
        return self.spreads if name == "skewed" else super().counts(name)

    def output_schema(self) -> pa.Schema:
        check_grid(self.size, self.every)
        schema = aggregate_schema(self, self.group, self.aggregates)
        if self.skewed and not self.scattered:
            from caesura.ops.aggregate.combine import check_skewed

            check_skewed(self)
        if self.thrifty:
            from caesura.ops.aggregate.thrifty import check_thrifty

            check_thrifty(self)
        return schema

    def derive(self, *inputs: Properties) -> Properties:
        return Properties(aligned=True, max_duration=self.size)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        bound = pattern.time_bound
        if bound is None or not of_groups(pattern, self.group):
            return None
        return pattern if bound == INFINITY else pattern.replace("time", lt(self.earliest(bound)))

    @property
    def grid(self) -> Lattice:
        """Where windows lie; a share of the last one ends, so that it is put into that window alone."""
        limit = INFINITY - 1 if self.scattered else INFINITY
        return lattice(self.size, self.every, self.offset, limit)

    def earliest(self, t: int) -> int:
        """The start of the earliest window that ends after t."""
        return self.grid.start(self.grid.first(t))

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return {*self.group, *read_by(self.aggregates)}

    def push_filter(self, where: Node) -> Node | None:
        return on_keys(where, self, self.group)

    def holds(self) -> tuple[Holding, ...]:
        need = (Need(0, self.group),)
        windows = Holding("open windows", 0, need, "start", size=self.size, each=2 + len(self.aggregates))
        return windows, Holding("events", 0, need, until="forever", endless=True)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Windows are given up whole, by group and by start (thesis, 4.2.7)."""
        grid = OverlappedWindows(self.size, self.every, self.offset)
        known = self.inputs[0].properties
        translation = Translation.of(self.group, known, grid)
        bounds = directions(self.aggregates) if known.insert_only else ()
        return (FeedbackRule((translation,), "groups", purges=True, bounds=bounds, group=self.group),)

    @property
    def sends_feedback(self) -> bool:  # type: ignore[override]
        return self.thrifty

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        from caesura.ops.aggregate.thrifty import feedback_sent

        return feedback_sent(self) if self.thrifty else ()

    def operator(self) -> Operator:
        """Panes where windows overlap and only points come, and none goes."""
        from caesura.ops.aggregate.panes import PaneOperator
        from caesura.ops.aggregate.thrifty import ThriftyTumbling
        from caesura.ops.aggregate.tumbling_operator import TumblingOperator

        known = self.inputs[0].properties
        if self.thrifty:
            return ThriftyTumbling(self)
        plain = TumblingOperator(self)
        panes = self.every < self.size and known.points and known.insert_only
        return PaneOperator(self) if panes and PaneOperator.fits(plain) else plain

    def describe(self) -> str:
        by = f"by {', '.join(self.group)}; " if self.group else ""
        by += "in each bucket; " if self.scattered else ""
        what = ", ".join(f"{name}={a}" for name, a in self.aggregates)
        hop = "" if self.every == self.size else f" every {shown(self.every, self.time)}"
        more = ("; thrifty" if self.thrifty else "") + ("; skewed" if self.skewed else "")
        return f"{by}{shown(self.size, self.time)}{hop}; {what}{more}"
