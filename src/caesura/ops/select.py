"""`select` keeps, renames and computes payload columns; lifetimes stay.

     LE  RE | id speed |           select("id", kmh=col("speed") * 1.6)
     10  20 | 3  50    | +   ->    10  20 | 3 80.0 | +

Law: a pattern passes exactly when every attribute that it names survives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.columns import empty_rows
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.expr import (
    Expr,
    attributes,
    col,
    compile_all,
    is_column,
    reads_end,
    reads_time,
    shifted_column,
    type_of,
)
from caesura.ops.refused import OnError, Refused
from caesura.ops.timed import refuse_moving_ends
from caesura.plan import FeedbackRule, Node, Operator, Properties, Translation, definite
from caesura.plan.lifetimes import Unchanged
from caesura.plan.node import alike_for, unchecked
from caesura.plan.roles import ROW_BY_ROW, OnLoop, PunctuatedBy, RowForm
from caesura.punctuation import Image, Pattern, SchemaMapping
from caesura.punctuation.additions import Sum
from caesura.punctuation.values import Values, ge, le, value


@dataclass(frozen=True, eq=False, kw_only=True)
class Select(Node):
    """Computes the output columns, in order, from the input row."""

    columns: tuple[tuple[str, Expr], ...]
    on_error: OnError = "stop"
    """Where a row goes for which a column has no value."""

    kind = "select"
    row_wise = True
    narrows_first = True
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0]
        if not self.columns:
            raise PlanError("no column is selected.", remedy="Name at least one column to keep.")
        for _, expr in self.columns:
            refuse_moving_ends(expr, source)
        return pa.schema([(name, type_of(e, source.schema, time=self.time)) for name, e in self.columns])

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    @cached_property
    def mapping(self) -> SchemaMapping:
        """Which output columns are input columns, perhaps moved by a constant."""
        images: dict[str, Image] = {}
        for name, expr in self.columns:
            plain, moved = is_column(expr), shifted_column(expr)
            if plain is not None:
                images[name] = Image(plain)
            elif moved is not None and (image := self._sum(name, *moved)) is not None:
                images[name] = image
        return SchemaMapping(images)

    def _sum(self, name: str, column: str, by: Any) -> Image | None:
        """A column plus a constant, where both have the type that is added."""
        made, given = self.schema.field(name).type, self.inputs[0].schema.field(column).type
        if pa.types.is_integer(given) and pa.types.is_integer(made) and isinstance(by, int):
            return Sum(column, by, "int", _with_a_sum(given, made, by))
        if given == made == pa.float64() and math.isfinite(by):
            return Sum(column, float(by), "float")
        if (
            pa.types.is_integer(given)
            and made == pa.float64()
            and isinstance(by, float)
            and math.isfinite(by)
        ):
            return Sum(column, by, "float", among=_limits(given))
        if pa.types.is_decimal(given) and pa.types.is_decimal(made) and not isinstance(by, float):
            return Sum(column, Decimal(by), "decimal") if made.precision < DIGITS else None
        return None

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return self.mapping.down(pattern)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Patterns on columns that come through go on; computed ones are guarded behind (thesis, 4.2.3)."""
        return (FeedbackRule((Translation(self.mapping, Unchanged(), self.inputs[0].properties),)),)

    def narrowed(self, wanted: set[str]) -> Select:
        """Without columns that nobody reads; but one that may send rows to the late table stays."""
        columns = self._read_for(wanted)
        schema = pa.schema([self.schema.field(name) for name, _ in columns])
        return unchecked(self, schema, columns=columns) if columns else replace(self, columns=columns)

    def fits(self, inputs: tuple[Node, ...]) -> bool:
        return alike_for(inputs[0], self.inputs[0], self.needs(0, set()))

    def _read_for(self, wanted: set[str]) -> tuple[tuple[str, Expr], ...]:
        late = self.on_error == "late"
        return tuple((n, e) for n, e in self.columns if n in wanted or (late and is_column(e) is None))

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        columns = self._read_for(wanted) if wanted else self.columns
        return set().union(*(attributes(expr) for _, expr in columns))

    def row_form(self) -> RowForm:
        return RowForm(self.columns)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return replace(ROW_BY_ROW, reads_lifetimes=any(reads_time(expr) for _, expr in self.columns))

    def widened(self, inputs: tuple[Node, ...], names: tuple[str, ...]) -> Node:
        return replace(self, inputs=inputs, columns=(*self.columns, *((n, col(n)) for n in names)))

    def operator(self) -> Operator:
        return Project(self)

    def describe(self) -> str:
        return ", ".join(n if is_column(e) == n else f"{n}={e}" for n, e in self.columns)


DIGITS = 38
"""Decimals of so many digits may round or have no sum."""


def _with_a_sum(given: pa.DataType, made: pa.DataType, by: int) -> Values | None:
    """The whole numbers of a type to which another can add so much, and null; None where that is all."""
    (least, most), (low, high) = _limits(given), _limits(made)
    if least + by >= low and most + by <= high:
        return None
    return (le(high - by) if by > 0 else ge(low - by)).union(value(None))


def _limits(t: pa.DataType) -> tuple[int, int]:
    """The least and the greatest whole number of a type."""
    if pa.types.is_unsigned_integer(t):
        return 0, (1 << t.bit_width) - 1
    return -(1 << (t.bit_width - 1)), (1 << (t.bit_width - 1)) - 1


class Project(Operator):
    """One evaluation per column and page; kept columns are not copied."""

    def __init__(self, node: Select) -> None:
        super().__init__()
        self._node = node
        schema = node.inputs[0].schema
        self._make = compile_all([expr for _, expr in node.columns], schema, time=node.time)
        self._ends = any(reads_end(expr) for _, expr in node.columns)
        self._refused = Refused(schema, node.time) if node.on_error == "late" else None

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self._refused is None:
            return [self._made(page, self._columns(page))]
        return [self._made(*self._refused.attempt(page, self._columns))]

    def _columns(self, page: Page) -> list[pa.Array]:
        return self._make(page.payload, *page.times(ends=self._ends))

    def _made(self, page: Page, arrays: list[pa.Array]) -> Page:
        payload = (
            pa.RecordBatch.from_arrays(arrays, schema=self._node.schema) if arrays else empty_rows(len(page))
        )
        return page.with_payload(payload)

    def drain_notes(self) -> pa.Table | None:
        return None if self._refused is None else self._refused.drain()

    def states(self) -> dict[str, RowState]:
        return {} if self._refused is None else {"refused": self._refused.rows}

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self._node.carry(port, pattern))
