"""`latest` keeps the current row of every key, from events that replace each other.

     LE | id | v |                     latest(key="id")
      1 | 7  | a | +            ->      1   5 | 7 a | +
      5 | 7  | b | +                    5 inf | 7 b | +

Each event lives from its start until the next event of its key; its own end does not matter. Where several of
a key start together, the last one in the given order counts, then the last in canonical order. Null is a key
like others. An event that says so deletes: it ends the row before it and gives none.

Law: behind a CTI one row per key is kept, the one that may still be replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.ops.where import on_keys
from caesura.plan import FeedbackRule, Holding, Need, Node, Operator, Properties, Translation
from caesura.plan.lifetimes import Whole
from caesura.plan.roles import OnLoop, PunctuatedBy
from caesura.punctuation import Pattern


@dataclass(frozen=True)
class Ops:
    """Which texts of a column say that a row is there, and which that it is deleted."""

    column: str
    present: tuple[str, ...]
    deleted: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Latest(Node):
    """The current row of every key."""

    group: tuple[str, ...]
    order: tuple[str, ...] = ()
    """Which of several that start together counts: the last by these columns."""
    ops: Ops | None = None
    """How rows say that they delete; None where none does."""
    wanted: Literal["history", "current"] = "history"
    """Whether rows are wanted that another has replaced, or those alone that none has yet."""

    partitioning = "key"
    punctuated_by: ClassVar[PunctuatedBy] = "rule"
    loop_remedy = "Take the current rows of what comes out of the loop."

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "latest" if self.ops is None else "changelog"

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0].schema
        for name in (*self.group, *self.order):
            self.column(name)
        if not self.group:
            raise PlanError("no column tells which row replaces which.", remedy="Name the key: key='id'.")
        if self.ops is None:
            return source
        kind = self.column(self.ops.column).type
        if kind != pa.string():
            raise PlanError(
                f"the column '{self.ops.column}', which says what a row does, is of type {kind}.",
                remedy=f"It must hold texts such as 'c', 'u', 'd': col('{self.ops.column}').cast('string').",
            )
        if self.ops.column in self.group:
            raise PlanError(
                f"'{self.ops.column}' says what a row does, so it is no part of the key.",
                remedy="Leave it out of key=.",
            )
        return pa.schema([field for field in source if field.name != self.ops.column])

    def counts(self, name: str) -> bool:
        """Its state is the same whichever rows are wanted, and so is a checkpoint."""
        return name != "wanted" and super().counts(name)

    def for_current_table(self) -> Latest:
        """The same for a table that holds what has no end: where nothing is taken back, other rows go."""
        insert_only = self.inputs[0].properties.insert_only
        return replace(self, wanted="current") if insert_only else self

    def derive(self, *inputs: Properties) -> Properties:
        return Properties()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A pattern on whole keys passes: a row with another value may still replace one."""
        whole = set(pattern.without_time().attributes) <= set(self.group)
        return pattern if whole and pattern.time_bound is not None else None

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def push_filter(self, where: Node) -> Node | None:
        return on_keys(where, self, self.group)

    def holds(self) -> tuple[Holding, ...]:
        return (Holding("rows", 0, (Need(0, self.group),), one_per=self.group),)

    @property
    def results_endless(self) -> bool:
        return True

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Keys are given up whole."""
        translation = Translation.of(self.group, self.inputs[0].properties, Whole(1))
        return (FeedbackRule((translation,), "groups", purges=True, group=self.group),)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return OnLoop(monotone=False)

    def operator(self) -> Operator:
        from caesura.ops.latest.physical import LatestOperator

        return LatestOperator(self)

    def describe(self) -> str:
        order = f"; of equal times the last by {', '.join(self.order)}" if self.order else ""
        ops = "" if self.ops is None else f"; '{self.ops.column}' deletes by {', '.join(self.ops.deleted)}"
        return f"by {', '.join(self.group)}{order}{ops}"
