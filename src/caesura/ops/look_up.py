"""A join with a table whose rows hold over all time: each row finds its matches, and keeps its lifetime.

     LE  RE | id |          join(names, on="id", how="left")         names: id  name
     10  20 | 3  | +   ->   10  20 | 3  Ada  | +                            3   Ada
     12  22 | 9  | +        12  22 | 9  null | +

It keeps nothing, waits for nothing and needs no exchange: every process holds the table. Equal keys meet as
in every join; a null equals none.

Law: a retract meets what its insert met, because the table never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.expr import Expr, attributes, col, compile_predicate, has_call
from caesura.kernels.hashing import I64, Mask
from caesura.ops.held import HeldTable, TableRows, is_static
from caesura.ops.join.node import How, Join
from caesura.ops.select import Select
from caesura.ops.where import Where, below
from caesura.plan import FeedbackRule, Node, Operator, Properties, Translation, definite
from caesura.plan.lifetimes import Unchanged
from caesura.plan.prune import prune
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import Image, Pattern, SchemaMapping

LOOKED_UP = ("inner", "left", "semi", "anti")


@dataclass(frozen=True, eq=False, kw_only=True)
class LookUp(Node):
    """Rows with what a table holds for their keys."""

    table: HeldTable
    on: tuple[tuple[str, str], ...]
    how: How = "inner"
    residual: Expr | None = None

    kind = "join"
    row_wise = True
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "rule"

    def output_schema(self) -> pa.Schema:
        if self.how in ("semi", "anti"):
            return self.inputs[0].schema
        return self.pair_schema

    @cached_property
    def added(self) -> list[str]:
        """The table's columns that are not keys."""
        keys = {other for _, other in self.on}
        return [name for name in self.table.schema.names if name not in keys]

    @cached_property
    def pair_schema(self) -> pa.Schema:
        """The columns of a row beside one of the table's, which the residual predicate may read."""
        return pa.schema([*self.inputs[0].schema, *(self.table.schema.field(n) for n in self.added)])

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    @cached_property
    def mapping(self) -> SchemaMapping:
        """The columns that come through."""
        return SchemaMapping({name: Image(name) for name in self.inputs[0].schema.names})

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Patterns on the stream's own columns go on; the table's are guarded behind."""
        return (FeedbackRule((Translation(self.mapping, Unchanged(), self.inputs[0].properties),)),)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        read = wanted if self.residual is None else wanted | attributes(self.residual)
        keys = {name for name, _ in self.on}
        return keys | {name for name in self.inputs[0].schema.names if name in read}

    def narrowed(self, wanted: set[str]) -> LookUp:
        """Without columns of the table that nobody reads; the table is read without them."""
        if self.table.node is None:
            return self
        read = wanted if self.residual is None else wanted | attributes(self.residual)
        keys = {other for _, other in self.on}
        names = [n for n in self.table.schema.names if n in keys or (n in read and n in self.added)]
        if len(names) == len(self.table.schema) or not names:
            return self
        chosen = Select(inputs=(self.table.node,), columns=tuple((n, col(n)) for n in names))
        return replace(self, table=HeldTable.of(prune({"table": chosen})["table"]))

    def push_filter(self, where: Node) -> Node | None:
        """Rows may be left out before they look anything up."""
        if not isinstance(where, Where) or has_call(where.predicate):
            return None
        own = set(self.inputs[0].schema.names)
        return below(where, self, where.predicate) if attributes(where.predicate) <= own else None

    def operator(self) -> Operator:
        return Finder(self)

    def describe(self) -> str:
        keys = ", ".join(a if a == b else f"{a} = {b}" for a, b in self.on)
        where = f" and {self.residual}" if self.residual is not None else ""
        return f"{self.how} on {keys or 'nothing'}{where}, looked up in table '{self.table.title}'"


class Finder(Operator):
    """One search per page; the table is read when the first page comes."""

    def __init__(self, node: LookUp) -> None:
        super().__init__()
        self._node = node
        self._table: TableRows | None = None
        self._places = [node.inputs[0].schema.get_field_index(name) for name, _ in node.on]
        self._test = None
        if node.residual is not None:
            self._test = compile_predicate(node.residual, node.pair_schema, time=node.time)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        if self._table is None:
            self._table = self._node.table.loaded(tuple(other for _, other in self._node.on))
        row, link = self._table.find([page.payload.column(i) for i in self._places], len(page))
        pairs: pa.RecordBatch | None = None
        if self._test is not None:
            pairs = self._pairs(page, row, link)
            true = self._test(pairs)
            row, link = row[true], link[true]
        match self._node.how:
            case "inner":
                return [self._met(page, row, link)]
            case "left":
                return [self._with_lonely(page, row, link)]
        found = _among(row, len(page))
        return [page.filter(found if self._node.how == "semi" else ~found)]

    def _met(self, page: Page, row: I64, link: I64) -> Page:
        whole = len(row) == len(page) and bool((row == np.arange(len(page))).all())
        some = page if whole else page.take(row)
        return some.with_payload(self._beside(some.payload, pa.array(link)))

    def _with_lonely(self, page: Page, row: I64, link: I64) -> Page:
        """Pairs, and rows that met nothing, in the order in which the rows came."""
        alone = np.flatnonzero(~_among(row, len(page)))
        if len(alone) == 0:
            return self._met(page, row, link)
        rows = np.concatenate([row, alone])
        order = np.argsort(rows, kind="stable")
        links = np.concatenate([link, np.zeros(len(alone), np.int64)])[order]
        none = (np.arange(len(rows)) >= len(row))[order]
        some = page.take(rows[order])
        return some.with_payload(self._beside(some.payload, pa.array(links, mask=none)))

    def _pairs(self, page: Page, row: I64, link: I64) -> pa.RecordBatch:
        return self._beside(take_rows(page.payload, row), pa.array(link))

    def _beside(self, mine: pa.RecordBatch, link: pa.Array) -> pa.RecordBatch:
        """Rows beside the table's rows that they meet, null where there is none."""
        assert self._table is not None
        theirs = [self._table.rows.column(name).take(link) for name in self._node.added]
        return pa.RecordBatch.from_arrays([*mine.columns, *theirs], schema=self._node.pair_schema)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self._node.carry(port, pattern))


def _among(row: I64, count: int) -> Mask:
    found = np.zeros(count, np.bool_)
    found[row] = True
    return found


def looked_up(join: Join) -> Node:
    """The join as a look-up where its right side is a table that holds over all time, and else as it is."""
    left, right = join.inputs
    plain = join.how in LOOKED_UP and not join.thrifty and not join.impatient
    if not plain or is_static(left) or not is_static(right):
        return join
    return LookUp(
        inputs=(left,),
        table=HeldTable.of(right),
        on=join.on,
        how=join.how,
        residual=join.residual,
        name=join.name,
        place=join.place,
    )


__all__ = ["LookUp", "looked_up"]
