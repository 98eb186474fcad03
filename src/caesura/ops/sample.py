"""`sample` keeps a share of the rows, chosen by what they hold and a seed; lifetimes stay.

     LE  RE | id |                 sample(0.5, seed=1)
     10  20 | 3  | +         ->    10  20 | 3 | +
     12  22 | 4  | +

Whether a row is kept depends on its payload and the seed alone: copies of a row are kept or left out
together, and the choice is the same on every host, in any number of buckets and after a restart. A greater
share keeps all that a smaller one does.

Law: a retract passes exactly if its insert did, because both show the same payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.identity import Secret, identity
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.expr import col, has_call
from caesura.ops.where import Where, below
from caesura.plan import FeedbackRule, Node, Operator, Properties, RowForm, definite, row_rule
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import Pattern

SEEDS = 2**63


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(Node):
    """Keeps the rows whose hash, under the seed, lies in the share."""

    fraction: float
    seed: int = 0
    by: tuple[str, ...]
    """The columns that are hashed: those of the stream as the user saw it, whatever travels beside them."""

    kind = "sample"
    row_wise = True
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def output_schema(self) -> pa.Schema:
        if not 0 <= self.fraction <= 1:
            raise PlanError(
                f"{self.fraction} is no share of the rows.",
                remedy="Give a share from 0 to 1, like 0.1.",
            )
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not -SEEDS <= self.seed < SEEDS:
            raise PlanError(f"the seed is {self.seed!r}.", remedy="Give a whole number of 64 bits.")
        if not self.by:
            raise PlanError("rows without columns are all alike.", remedy="Sample before the columns go.")
        for name in self.by:
            self.column(name)
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered is not looked at."""
        return row_rule(self.schema.names, self.inputs[0].properties, guard="input")

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted | set(self.by)

    def push_filter(self, where: Node) -> Node | None:
        """Rows may be left out before the choice, unless the user's code says which."""
        if not isinstance(where, Where) or has_call(where.predicate):
            return None
        return below(where, self, where.predicate)

    def row_form(self) -> RowForm:
        return RowForm(tuple((name, col(name)) for name in self.schema.names))

    def operator(self) -> Operator:
        return Sampler(self)

    def describe(self) -> str:
        return f"{self.fraction} of the rows; seed {self.seed}"


class Sampler(Operator):
    """One hash per row."""

    def __init__(self, node: Sample) -> None:
        super().__init__()
        self._node = node
        self._key = Secret(node.seed.to_bytes(Secret.SIZE, "little", signed=True))
        self._limit = ceil(Fraction(node.fraction) * 2**64)
        """Hashes below it are kept."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self._limit >= 2**64:
            return [page]
        columns = [page.payload.column(name) for name in self._node.by]
        hashes, _ = identity(columns, len(page), self._key)
        return [page.filter(hashes < np.uint64(self._limit))]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self._node.carry(port, pattern))
