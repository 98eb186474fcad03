"""A step whose first input goes through as it is, while it sends feedback to the steps above."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from caesura.plan import FeedbackRule, Holding, Node, Properties, row_rule
from caesura.punctuation import Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class PassThrough(Node):
    """A step whose first input goes through as it is."""

    sends_feedback = True

    def output_schema(self) -> pa.Schema:
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        return row_rule(self.schema.names, self.inputs[0].properties)

    def holds(self) -> tuple[Holding, ...]:
        return ()
