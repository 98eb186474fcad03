"""`union` merges two streams of one schema as bags; a promise holds when both have given it.

10  20 | 3 | +                 10  20 | 3 | +
                 union   ->    12  15 | 3 | +
12  15 | 3 | +
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.plan import AlignedOperator, FeedbackRule, Holding, Node, Operator, Properties, Translation, both
from caesura.plan.roles import ROW_BY_ROW, OnLoop, PunctuatedBy
from caesura.punctuation import Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class Union(Node):
    """All events of two or more streams."""

    kind = "union"
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "slowest"
    shows_all = True

    @property
    def start_delay(self) -> int:
        return 0

    def output_schema(self) -> pa.Schema:
        first = self.inputs[0]
        for number, other in enumerate(self.inputs[1:], 2):
            self._check(first, other, number)
        return first.schema

    def _check(self, first: Node, other: Node, number: int) -> None:
        if first.schema.names != other.schema.names or first.schema.types != other.schema.types:
            got, wanted = signature(other.schema), signature(first.schema)
            raise PlanError(
                f"stream {number} has the columns {got}; wanted {wanted}.",
                remedy="Bring both to the same columns, in the same order, with select and cast.",
            )
        if first.time != other.time:
            raise PlanError(
                f"stream {number} has time of type {other.time}; wanted {first.time}.",
                remedy="Read both with integers, or both with timestamps, as their time column.",
            )

    def derive(self, *inputs: Properties) -> Properties:
        known = inputs[0]
        for more in inputs[1:]:
            known = both(known, more)
        return known

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def holds(self) -> tuple[Holding, ...]:
        return ()

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Feedback goes to every input (thesis, 4.2.4)."""
        names = self.schema.names
        return (FeedbackRule(tuple(Translation.of(names, child.properties) for child in self.inputs)),)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return ROW_BY_ROW

    def operator(self) -> Operator:
        return Merge(len(self.inputs))


def signature(schema: pa.Schema) -> str:
    """The columns of a stream, for messages."""
    return "(" + ", ".join(f"{f.name} {f.type}" for f in schema) + ")"


class Merge(AlignedOperator):
    """Passes pages; holds punctuation until every input has given it."""

    def __init__(self, ports: int) -> None:
        super().__init__(ports)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        return [page]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        items = self.aligned(port, pattern)
        behind = min(range(len(self.promises)), key=lambda p: self.promises[p].cti)
        self.counters.held_by = f"input {behind + 1}" if not items else ""
        return items
