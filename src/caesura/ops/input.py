"""A stream that is fed by hand: the start of a test, a fragment, or a subscription.

>>> import pyarrow as pa
>>> Input(label="clicks", payload=pa.schema([("id", pa.int64())])).describe()
'clicks'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page
from caesura.plan import OUTPUT_ONLY, TICKS, FeedbackRule, Holding, Node, Operator, Properties, Up, definite
from caesura.punctuation import Pattern, Punctuation


@dataclass(frozen=True, eq=False, kw_only=True)
class Input(Node):
    """A named port with a schema; whatever is fed must be a legal stream."""

    label: str
    payload: pa.Schema
    time_type: pa.DataType = TICKS
    known: Properties = field(default_factory=Properties)

    kind = "input"

    def output_schema(self) -> pa.Schema:
        return self.payload

    @property
    def fed(self) -> str:
        return self.label

    @property
    def time(self) -> pa.DataType:
        return self.time_type

    def derive(self, *inputs: Properties) -> Properties:
        return self.known

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def holds(self) -> tuple[Holding, ...]:
        return ()

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered goes no further; whoever feeds the port may ask what that is."""
        return OUTPUT_ONLY

    def operator(self) -> Operator:
        return PassOn()

    def describe(self) -> str:
        return self.label


class Turn(Operator):
    """Gives what it gets."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        return [page] if len(page) else []

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(pattern)

    def signal(self, port: int, punctuation: Punctuation) -> Iterable[Item]:
        return [punctuation]


class PassOn(Turn):
    """Gives what it gets, and hands feedback to who feeds it."""

    def control(self, message: Punctuation) -> Iterable[Up]:
        super().control(message)
        return [(0, message)]
