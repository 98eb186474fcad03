"""`group_by(k).alive().agg(...)`: aggregates of the rows that are alive, at every instant.

     LE  RE | id v |      group_by("id").alive().agg(n=count(), total=sum("v"))
      1 inf | 7  5 | +         1   4 | 7 1 5 | +
      4 inf | 7  6 | +   ->    4 inf | 7 2 11 | +

A view that is kept up to date: it changes where its value changes. What lies before the CTI is summed up
and forgotten, so that state is bounded by groups where rows only begin.

Laws: neighbours with equal results are one row; an instant without rows has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from caesura.ops.aggregate.kinds import Aggregate, read_by
from caesura.ops.aggregate.shape import aggregate_schema, of_groups
from caesura.ops.where import on_keys
from caesura.plan import FeedbackRule, Holding, Need, Node, Operator, Properties, Translation
from caesura.plan.lifetimes import Whole
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class Alive(Node):
    """Aggregates per group over what is alive."""

    group: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, Aggregate], ...]

    kind = "alive"
    partitioning = "key"
    punctuated_by: ClassVar[PunctuatedBy] = "rule"
    loop_remedy = "Aggregate what comes out of the loop, or use group_by(...).snapshot() inside."

    def output_schema(self) -> pa.Schema:
        return aggregate_schema(self, self.group, self.aggregates)

    joins_intervals = True

    def derive(self, *inputs: Properties) -> Properties:
        return Properties()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern if of_groups(pattern, self.group) else None

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return {*self.group, *read_by(self.aggregates)}

    def push_filter(self, where: Node) -> Node | None:
        return on_keys(where, self, self.group)

    def holds(self) -> tuple[Holding, ...]:
        """Starts and ends until time has passed them, and a sum of what began before that per group."""
        need = (Need(0, self.group),)
        each = 4 + len(self.aggregates)
        rows = Holding("rows", 0, need, each=each, one_per=self.group)
        return rows, *(Holding(f"values of {one}", 0, need) for one in self._with_values)

    @cached_property
    def _with_values(self) -> tuple[str, ...]:
        from caesura.ops.aggregate.alive_operator import slots_of

        return slots_of(self)[0].with_values

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Groups are given up whole."""
        translation = Translation.of(self.group, self.inputs[0].properties, Whole(1))
        return (FeedbackRule((translation,), "groups", purges=True, group=self.group),)

    def operator(self) -> Operator:
        from caesura.ops.aggregate.alive_operator import AliveOperator

        return AliveOperator(self)

    def describe(self) -> str:
        by = f"by {', '.join(self.group)}; " if self.group else ""
        return by + ", ".join(f"{name}={a}" for name, a in self.aggregates)
