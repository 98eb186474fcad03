"""`where` keeps the events whose payload satisfies a predicate; lifetimes stay.

     LE  RE | speed |              where(col("speed") >= 50)
     10  20 | 51    | +      ->    10  20 | 51 | +
     12  22 | 17    | +

Law: a retract passes exactly if its insert did, because both show the same payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.expr import (
    Expr,
    attributes,
    col,
    compile_predicate,
    conjuncts,
    has_call,
    pattern_of,
    reads_end,
    reads_time,
    type_of,
)
from caesura.expr.nodes import Constant
from caesura.kernels.hashing import Mask
from caesura.ops.refused import OnError, Refused
from caesura.ops.timed import refuse_moving_ends
from caesura.plan import FeedbackRule, Node, Operator, Properties, definite, row_rule
from caesura.plan.node import alike_for, unchecked
from caesura.plan.roles import ROW_BY_ROW, OnLoop, PunctuatedBy, RowForm
from caesura.punctuation import MIN_TIME, TIME, Pattern, Promises, Values

VALUES_LIMIT = 64
"""So many values, or combinations of them, that a filter lets pass are looked at one by one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Where(Node):
    """Keeps the rows where the predicate is true."""

    predicate: Expr
    keep: tuple[str, ...] = ()
    """The columns that go on; all where none is named."""
    on_error: OnError = "stop"
    """Where a row goes for which the predicate has no value."""

    kind = "where"
    row_wise = True
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0]
        got = type_of(self.predicate, source.schema, time=self.time)
        if not pa.types.is_boolean(got):
            raise PlanError(
                f"the predicate '{self.predicate}' is of type {got}; wanted boolean.",
                remedy=f"Compare it with something, for example ({self.predicate}) != 0.",
            )
        refuse_moving_ends(self.predicate, source)
        return pa.schema([source.schema.field(name) for name in self.keep]) if self.keep else source.schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A constraint that all rows that pass satisfy says nothing more, and goes."""
        if pattern.attributes in ((), (TIME,)):
            return pattern
        known = self.passing
        left = {n: v for n, v in pattern.items() if n == TIME or not v.covers(known[n])}
        hidden = self.keep and not set(left) - {TIME} <= set(self.keep)
        return None if hidden else Pattern.of(left)

    @cached_property
    def passing(self) -> Pattern:
        """A pattern that all rows match that pass."""
        found: dict[str, Values] = {}
        for part in conjuncts(self.predicate):
            for name, values in (pattern_of(part, self.inputs[0].schema) or Pattern()).items():
                found[name] = values.intersect(found[name]) if name in found else values
        return Pattern.of(found)

    @property
    def caution(self) -> str:
        never = any(isinstance(p, Constant) and p.value is not True for p in conjuncts(self.predicate))
        if never or any(values.is_empty for _, values in self.passing.items()):
            return f"passes no row, because '{self.predicate}' is never true"
        return ""

    def greatest(self, column: str) -> int | None:
        """The greatest whole number of a column that may pass; None where there is no such bound."""
        values = self.passing[column]
        last = values.intervals[-1].hi if values.kind == "int" and values.intervals else None
        return None if values.null else last

    @cached_property
    def enumerated(self) -> dict[str, pa.Array]:
        """The columns of which a few known values pass, with all combinations; none where there is one."""
        names: list[str] = []
        rows: list[tuple[Any, ...]] = [()]
        for name, values in self.passing.items():
            members = values.members(VALUES_LIMIT) if values.kind in ("", "int", "str", "bool") else None
            if members is not None and len(rows) * len(members) <= VALUES_LIMIT:
                names.append(name)
                rows = [(*row, member) for row in rows for member in members]
        if len(rows) <= 1:
            return {}  # `carry` sees that, also where nothing passes
        types = [self.inputs[0].schema.field(name).type for name in names]
        columns = zip(*rows, strict=True)
        return {n: pa.array(some, t) for n, t, some in zip(names, types, columns, strict=True)}

    def together(self, port: int, known: Promises) -> int:
        """Once `id = 1` and `id = 2` are promised, nothing passes `id in (1, 2)` any more."""
        if not self.enumerated:
            return MIN_TIME
        return int(np.min(known.effective_cti(columns=self.enumerated)))

    def limited(self, port: int) -> Mapping[str, Literal["few", "bounded"]]:
        found: dict[str, Literal["few", "bounded"]] = {}
        for name, values in self.passing.items():
            if values.is_point or values.is_empty or name in self.enumerated:
                found[name] = "few"
            elif not values.null and values.intervals and values.intervals[-1].hi is not None:
                found[name] = "bounded"
        return found

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered is not looked at (thesis, 4.2.2)."""
        return row_rule(self.schema.names, self.inputs[0].properties, guard="input")

    def narrowed(self, wanted: set[str]) -> Where:
        keep = tuple(n for n in self.inputs[0].schema.names if n in wanted)
        return unchecked(self, pa.schema([self.schema.field(name) for name in keep]), keep=keep)

    def fits(self, inputs: tuple[Node, ...]) -> bool:
        return alike_for(inputs[0], self.inputs[0], {*self.keep, *attributes(self.predicate)})

    def schema_over(self, inputs: tuple[Node, ...]) -> pa.Schema | None:
        return None if self.keep else inputs[0].schema

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted | attributes(self.predicate)

    def pushed(self) -> Node:
        stays = self.keep or self.on_error == "late"
        return (None if stays else self.inputs[0].push_filter(self)) or self

    def row_form(self) -> RowForm:
        return RowForm(tuple((n, col(n)) for n in self.schema.names), tuple(conjuncts(self.predicate)))

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return replace(ROW_BY_ROW, reads_lifetimes=reads_time(self.predicate))

    def widened(self, inputs: tuple[Node, ...], names: tuple[str, ...]) -> Node:
        return replace(self, inputs=inputs, keep=(*self.keep, *names) if self.keep else ())

    def operator(self) -> Operator:
        return Filter(self)

    def describe(self) -> str:
        return str(self.predicate)


class Filter(Operator):
    """One mask per page."""

    def __init__(self, node: Where) -> None:
        super().__init__()
        self._node = node
        schema = node.inputs[0].schema
        self._condition = compile_predicate(node.predicate, schema, time=node.time)
        self._ends = reads_end(node.predicate)
        self._refused = Refused(schema, node.time) if node.on_error == "late" else None
        self._reached = MIN_TIME
        """Up to where all that passes was promised to be over because of several promises together."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self._refused is None:
            mask = self._test(page)
        else:
            page, mask = self._refused.attempt(page, self._test)
        if self._node.keep:
            page = page.with_payload(page.payload.select(self._node.keep))
        return [page.filter(mask)]

    def masks(self, page: Page) -> Iterable[Mask]:
        """The mask of a page, alone; not where rows may be refused."""
        return [self._test(page)]

    def _test(self, page: Page) -> Mask:
        return self._condition(page.payload, *page.times(ends=self._ends))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        items = definite(self._node.carry(port, pattern))
        if not self.promises[0].size:
            return items
        reached = self._node.together(port, self.promises[0]) if self._node.enumerated else MIN_TIME
        if reached > max(self._reached, self.promises[0].cti):
            self._reached = reached
            items += definite(Pattern.before(reached))
        return items

    def drain_notes(self) -> pa.Table | None:
        return None if self._refused is None else self._refused.drain()

    def states(self) -> dict[str, RowState]:
        return {} if self._refused is None else {"refused": self._refused.rows}


def below(where: Where, node: Node, predicate: Expr) -> Node:
    """A step over an input that a filter, written for that input, has passed."""
    moved = replace(where, inputs=node.inputs, predicate=predicate)
    return replace(node, inputs=(moved.pushed(),))


def on_keys(where: Node, node: Node, group: tuple[str, ...]) -> Node | None:
    """A step by group behind a filter of whole groups; None where the filter reads anything else."""
    if not isinstance(where, Where) or reads_time(where.predicate) or has_call(where.predicate):
        return None
    known = attributes(where.predicate)
    return below(where, node, where.predicate) if known and known <= set(group) else None
