"""`explode` makes a row for each element of a list, or entry of a map; lifetimes stay.

     LE  RE | id tags      |           explode("tags", as_="tag")
     10  20 | 3  ["a","b"] | +   ->    10  20 | 3 a | +
     12  22 | 4  []        | +         10  20 | 3 b | +

The list goes, and its elements stand in its place. With ``outer`` a list that is null or empty makes one
row with null. A retract explodes as its insert did, so every row that leaves is taken back.

Law: a pattern passes exactly when every attribute that it names survives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.nested import elements, is_list, offsets_of
from caesura.events.order import in_key_order
from caesura.events.page import Page
from caesura.expr import attributes, has_call
from caesura.kernels.hashing import I64, Mask
from caesura.ops.where import Where, below
from caesura.plan import FeedbackRule, Node, Operator, Properties, Translation, definite
from caesura.plan.lifetimes import Unchanged
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import Image, Pattern, SchemaMapping

ENTRY = ("key", "value")
"""What the parts of a map's entries are called by default."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Explode(Node):
    """A row for each element of the column ``of``."""

    of: str
    names: tuple[str, ...] = ()
    """What the element is called, by default as the list was; of a map the key and the value."""
    outer: bool = False
    """Whether a list without elements makes a row with null."""
    position: str = ""
    """The column for the element's place, from 0 on; none where it is empty."""

    kind = "explode"
    row_wise = True
    behind_gate = True
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0].schema
        t = self.column(self.of).type
        if not is_list(t):
            raise PlanError(
                f"'{self.of}' is of type {t}; wanted a list or a map.",
                remedy="Name a column of lists; array(...) and split(...) make one.",
            )
        made = [t.key_type, t.item_type] if pa.types.is_map(t) else [t.value_type]
        if len(self.made) != len(made):
            raise PlanError(
                f"'{self.of}' makes {len(made)} columns, and {len(self.made)} are named.",
                remedy="Write as_='element' for a list, as_=('key', 'value') for a map.",
            )
        place = [(self.position, pa.int32())] if self.position else []
        fields: list[pa.Field] = []
        for field in source:
            new = [*place, *zip(self.made, made, strict=True)]
            fields += [pa.field(*one) for one in new] if field.name == self.of else [field]
        names = [field.name for field in fields]
        for name in (*self.made, *([self.position] if self.position else [])):
            if names.count(name) > 1:
                raise PlanError(
                    f"there is a column '{name}' already.",
                    remedy="Name the element with as_='...', its place with position='...'.",
                )
        return pa.schema(fields)

    @cached_property
    def made(self) -> tuple[str, ...]:
        """The names of what an element gives."""
        t = self.inputs[0].schema.field(self.of).type
        return self.names or (ENTRY if pa.types.is_map(t) else (self.of,))

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The columns that pass."""
        return tuple(name for name in self.inputs[0].schema.names if name != self.of)

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    @cached_property
    def mapping(self) -> SchemaMapping:
        """The columns that pass keep their names."""
        return SchemaMapping({name: Image(name) for name in self.kept})

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return self.mapping.down(pattern)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered of the columns that pass is not looked at."""
        known = self.inputs[0].properties
        return (FeedbackRule((Translation(self.mapping, Unchanged(), known),), guard="output"),)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return (wanted & set(self.kept)) | {self.of}

    def push_filter(self, where: Node) -> Node | None:
        """A filter of columns that pass goes first."""
        if not isinstance(where, Where) or has_call(where.predicate):
            return None
        return below(where, self, where.predicate) if attributes(where.predicate) <= set(self.kept) else None

    def widened(self, inputs: tuple[Node, ...], names: tuple[str, ...]) -> Node:
        return replace(self, inputs=inputs)

    def operator(self) -> Operator:
        return Exploder(self)

    def describe(self) -> str:
        place = f"; place in {self.position}" if self.position else ""
        return f"{self.of} as {', '.join(self.made)}{'; also of none' if self.outer else ''}{place}"


class Exploder(Operator):
    """One gather per column and page."""

    def __init__(self, node: Explode) -> None:
        super().__init__()
        self._node = node

    def page(self, port: int, page: Page) -> Iterable[Item]:
        node = self._node
        offsets, values = elements(in_key_order(page.payload.column(node.of)))
        sizes = np.diff(offsets)
        copies = np.maximum(sizes, 1) if node.outer else sizes
        rows = np.repeat(np.arange(len(page)), copies)
        place = np.arange(len(rows)) - offsets_of(copies)[rows] if len(rows) else rows
        there = place < sizes[rows]
        taken = page.with_payload(page.payload.drop_columns([node.of])).take(rows)
        made = dict(zip(taken.schema.names, taken.payload.columns, strict=True))
        made |= self._made(values, offsets[rows] + place, place, there)
        arrays = [made[name] for name in node.schema.names]
        return [taken.with_payload(pa.RecordBatch.from_arrays(arrays, schema=node.schema))]

    def _made(self, values: pa.Array, at: I64, place: I64, there: Mask) -> dict[str, pa.Array]:
        """The columns that the elements make."""
        node = self._node
        missing = ~there if node.outer and not there.all() else None
        found = values.take(pa.array(np.where(there, at, 0), mask=missing)) if len(at) else values.slice(0, 0)
        keyed = pa.types.is_map(node.inputs[0].schema.field(node.of).type)
        parts = found.flatten() if keyed else [found]
        made = dict(zip(node.made, parts, strict=True))
        if node.position:
            made[node.position] = pa.array(place.astype(np.int32), mask=missing)
        return made

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self._node.carry(port, pattern))
