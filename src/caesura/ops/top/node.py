"""`Top`: of the rows of a group that are alive, the first n in an order, with their ranks if asked.

     LE RE | id v |      top(1, by="v")
      1  9 | a  3 | +         1  4 | a 3 | +
      4  7 | b  5 | +   ->    4  7 | b 5 | +
                              7  9 | a 3 | +

Ties go to the row that began first, then to the lesser values. A row keeps its lifetime as long as it is
among the first, and each stretch of it is a row of the output; of two rows that begin together and are
alike, the one that lives longer comes first.

Law: with no n, and without ranks, the output is the input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, has_call, reads_end, type_of
from caesura.ops.aggregate.shape import of_groups
from caesura.ops.where import Where, on_keys
from caesura.plan import FeedbackRule, Holding, Need, Node, Operator, Properties, Translation
from caesura.plan.lifetimes import Whole
from caesura.plan.node import unchecked
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import Pattern

Rank = Literal["row_number", "rank", "dense_rank"]
RANKS: tuple[Rank, ...] = ("row_number", "rank", "dense_rank")
LARGEST = 1_000_000
"""The greatest n: more rows than that are a table, not its top."""


@dataclass(frozen=True)
class Order:
    """One expression that rows are ordered by; null is the least value, NaN the greatest."""

    value: Expr
    descending: bool = True

    @property
    def key(self) -> object:
        """Equal for equal orders."""
        return (self.value.key, self.descending)

    def __str__(self) -> str:
        return f"{self.value}{' descending' if self.descending else ''}"


@dataclass(frozen=True)
class First:
    """The first n rows in an order, or all, and the columns that hold their ranks."""

    order: tuple[Order, ...]
    n: int | None
    ranks: tuple[tuple[str, Rank], ...] = ()

    @property
    def key(self) -> object:
        """Equal for equal choices."""
        return (tuple(order.key for order in self.order), self.n, self.ranks)

    def schema(self, source: pa.Schema, time: pa.DataType) -> pa.Schema:
        """The columns of the rows, then the ranks; refuses what makes no sense."""
        if self.n is not None and not 1 <= self.n <= LARGEST:
            raise PlanError(
                f"the first {self.n} rows say nothing.", remedy=f"Give a whole n from 1 to {LARGEST:,}."
            )
        for order in self.order:
            type_of(order.value, source, time=time)
            if reads_end(order.value):
                raise PlanError(
                    f"rows are ordered by '{order.value}', but an end may change long after a row has begun.",
                    remedy="Order by columns, or by cz.start().",
                )
        names = [name for name, _ in self.ranks]
        taken = [name for name in names if name in source.names or names.count(name) > 1]
        if taken:
            raise PlanError(
                f"there is a column '{taken[0]}' already.",
                remedy=f"Give the rank another name, like row_number='{taken[0]}_number'.",
            )
        return pa.schema([*source, *(pa.field(name, pa.int64()) for name in names)])

    def __str__(self) -> str:
        parts = [f"the first {self.n}"] if self.n is not None else []
        parts += [f"ordered by {', '.join(map(str, self.order))}"] if self.order else ["in order of time"]
        return "; ".join([*parts, *(f"{name}={rank}" for name, rank in self.ranks)])


@dataclass(frozen=True, eq=False, kw_only=True)
class Top(Node):
    """The first n rows of each group, of those that are alive."""

    group: tuple[str, ...] = ()
    order: tuple[Order, ...] = ()
    n: int | None = None
    ranks: tuple[tuple[str, Rank], ...] = ()
    """The columns that hold ranks, by name."""
    up_to: tuple[str, int] | None = None
    """A column of ranks, and the greatest that somebody wants: rows behind it are not shown."""

    kind = "top"
    partitioning = "key"
    punctuated_by: ClassVar[PunctuatedBy] = "rule"
    loop_remedy = "Take the first rows of what comes out of the loop."

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0]
        for name in self.group:
            self.column(name)
        return self.first.schema(source.schema, source.time)

    @property
    def first(self) -> First:
        """Which rows of a group are taken."""
        return First(self.order, self.n, self.ranks)

    def derive(self, *inputs: Properties) -> Properties:
        if self.n is None and not self.ranks:
            return inputs[0]
        return Properties(max_duration=inputs[0].max_duration)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A pattern on whole groups passes: a row of another value may still push others out."""
        return pattern if of_groups(pattern, self.group) else None

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        """All columns: rows that are alike in the order are told apart by the others."""
        return set(self.inputs[0].schema.names)

    def counts(self, name: str) -> bool:
        return super().counts(name) and (name != "up_to" or self.up_to is not None)

    def push_filter(self, where: Node) -> Node | None:
        """A filter of groups goes first; of one of ranks only the greatest that may pass is known here."""
        if not isinstance(where, Where) or has_call(where.predicate):
            return None
        first = on_keys(where, self, self.group)
        if first is not None:
            return first
        for name, kind in self.ranks:
            greatest = where.greatest(name)
            if greatest is None or not 1 <= greatest <= LARGEST or self.up_to is not None:
                continue
            if kind != "row_number":
                return replace(where, inputs=(unchecked(self, up_to=(name, greatest)),))
            if self.n is None or self.n > greatest:
                return replace(where, inputs=(unchecked(self, n=greatest),))
        return None

    def holds(self) -> tuple[Holding, ...]:
        """Rows stay to their ends; where none is taken back, only those among the first."""
        need = (Need(0, self.group),)
        return (Holding("rows", 0, need, each=2, one_per=self.group if self._keeps_few else None),)

    @property
    def _keeps_few(self) -> bool:
        return not (self.n is None and self.up_to is None) and self.inputs[0].properties.insert_only

    @property
    def remark(self) -> str:
        known = self.inputs[0].properties
        if not self._keeps_few or known.points or known.max_duration is not None or known.endless:
            return ""
        return (
            f"'{self.step}' also keeps a row that ends later than those before it in the order, since it "
            "comes up when they end: where each row is worse than the last and ends later, that is every row."
        )

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Groups are given up whole."""
        translation = Translation.of(self.group, self.inputs[0].properties, Whole(1))
        return (FeedbackRule((translation,), "groups", purges=True, group=self.group),)

    def operator(self) -> Operator:
        from caesura.ops.top.physical import TopOperator

        return TopOperator(self)

    def describe(self) -> str:
        parts = [f"by {', '.join(self.group)}"] if self.group else []
        parts += [str(self.first)]
        parts += [f"{self.up_to[0]} up to {self.up_to[1]}"] if self.up_to is not None else []
        return "; ".join(parts)
