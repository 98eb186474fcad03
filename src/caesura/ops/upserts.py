"""`upserts` names the key by which a table holds the stream: one row a key, replaced by what corrects it.

     LE  RE    | id v |      upserts("id")
     1   inf   | 7  5 | +       7 | 5        put
     1   inf->4| 7  5 | -
     4   inf   | 7  6 | +       7 | 6        put in its place

With columns alone, a row is in the table while it has no end: the table is what holds now. With `LE` among
the key the table is the history: a row a key and start, with its end, until it is taken back.

Law: rows pass as they are; what the table makes of them follows from an epoch's net change alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.expr import col
from caesura.ops.where import Where, below
from caesura.plan import FeedbackRule, Node, Operator, Properties, RowForm, definite, row_rule
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import Pattern

START = "LE"


@dataclass(frozen=True, eq=False, kw_only=True)
class Upserts(Node):
    """A stream that a table holds by key."""

    key: tuple[str, ...]

    kind = "upserts"
    row_wise = True
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    @property
    def history(self) -> bool:
        """Whether the table holds rows that have ended too, a row a key and start."""
        return START in self.key and START not in self.schema.names

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(name for name in self.key if not (name == START and self.history))

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0]
        if not self.key:
            raise PlanError(
                "a table without a key can hold one row.",
                remedy='Name the columns of the key: upserts(key="id"), or upserts(key=["id", "LE"]).',
            )
        history = START in self.key and START not in source.schema.names
        for name in self.key:
            if not (name == START and history):
                self._check_key(self.column(name))
        if not history and _ends(source.properties):
            raise PlanError(
                "rows of this stream end by themselves: a table of what holds now would have none of them.",
                remedy="Add 'LE' to the key for a table of the history, a row a key and start; "
                "or give rows no end with .forever(), .latest(key=...) or .alive().",
            )
        return source.schema

    def _check_key(self, field: pa.Field) -> None:
        t = field.type
        if pa.types.is_nested(t) or pa.types.is_floating(t):
            raise PlanError(
                f"'{field.name}' is {t}, by which tables do not tell rows apart.",
                remedy="Take columns of whole numbers, texts, dates or truths for the key.",
            )

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered is not looked at."""
        return row_rule(self.schema.names, self.inputs[0].properties, guard="input")

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted | set(self.columns)

    def push_filter(self, where: Node) -> Node | None:
        return below(where, self, where.predicate) if isinstance(where, Where) else None

    def row_form(self) -> RowForm:
        return RowForm(tuple((name, col(name)) for name in self.schema.names))

    def operator(self) -> Operator:
        return Passing(self)

    def describe(self) -> str:
        return f"by {', '.join(self.key)}; {'the history' if self.history else 'what has no end'}"


def _ends(known: Properties) -> bool:
    """Whether every row comes with its end."""
    return not known.endless and (known.fixed_ends or known.max_duration is not None)


class Passing(Operator):
    """Everything as it is."""

    def __init__(self, node: Upserts) -> None:
        super().__init__()
        self._node = node

    def page(self, port: int, page: Page) -> Iterable[Item]:
        return [page]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self._node.carry(port, pattern))
