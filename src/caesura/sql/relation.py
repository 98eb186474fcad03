"""What a name in a query stands for: relations with columns, each held under a name of its own.

Columns of a stream have one name each, and those of a join may share theirs: a column is found by what users
write, `P.name`, and held under what no other is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError, closest
from caesura.events.types import RESERVED
from caesura.expr import Expr, col, start, type_of
from caesura.expr.nodes import Boundary, Column
from caesura.expr.sql_text import lowered
from caesura.io.ingress.arrival import ArrivalShape
from caesura.io.sources.source import Source
from caesura.ops.join import Join
from caesura.ops.lifetimes import Lifetime
from caesura.ops.match import MatchRows
from caesura.ops.over import OverFrame
from caesura.ops.select import Select
from caesura.ops.where import Where
from caesura.plan import Duration, Node
from caesura.sql.dialects import ARRIVAL
from caesura.sql.text import placed, refused


@dataclass(frozen=True)
class HeldColumn:
    """A column: of which table, by which name, and how the stream calls it."""

    table: str
    name: str
    held: str
    shown: bool = True
    """Whether ``*`` has it."""


@dataclass(frozen=True)
class AssignedWindow:
    """What rows are assigned to: windows of a size, each so often; sessions; so many rows; or lifetimes."""

    kind: Literal["tumble", "hop", "session", "cumulate", "snapshot", "count"]
    size: Any = 0
    every: Duration = 0


@dataclass(frozen=True)
class Relation:
    """A stream whose columns are known by the names of a query."""

    stream: Stream
    columns: tuple[HeldColumn, ...]
    window: AssignedWindow | None = None
    """The windows that rows are assigned to, until they are grouped by them."""

    @staticmethod
    def of(stream: Stream, table: str, mentions: Callable[[str], bool] = bool) -> Relation:
        """A stream under a name; where a query mentions it, the column of its time is one of its columns."""
        time = _time_column(stream.node)
        if time and time not in stream.columns and mentions(time):
            stream = stream.with_columns({time: start()})
        return Relation(stream, tuple(HeldColumn(table, name, name) for name in stream.columns))

    def named(self, table: str, columns: Sequence[str] = ()) -> Relation:
        """The same under another name of the table, and, where they are given, of its columns."""
        if len(columns) > len(self.columns):
            problem = f"'{table}' names {len(columns)} columns, and has {len(self.columns)}."
            raise PlanError(problem, remedy="Name as many as there are.")
        names = [*columns, *(c.name for c in self.columns[len(columns) :])]
        return replace(
            self,
            columns=tuple(replace(c, table=table, name=n) for c, n in zip(self.columns, names, strict=True)),
        )

    def unmerged(self) -> Relation:
        """The same with a column of its own for each: those that a join made equal are one before."""
        columns: list[HeldColumn] = []
        copies: dict[str, Expr] = {}
        for at, column in enumerate(self.columns):
            if any(column.held == other.held for other in columns):
                copies[f"copy {at}"] = col(column.held)
                column = replace(column, held=f"copy {at}")
            columns.append(column)
        if not copies:
            return self
        return replace(self, stream=self.stream.with_columns(copies), columns=tuple(columns))

    def find(self, name: str, table: str = "") -> list[HeldColumn]:
        """The columns that a name may mean; case does not matter where it does not tell two apart."""
        of_table = [c for c in self.columns if not table or c.table.lower() == table.lower()]
        exact = [c for c in of_table if c.name == name]
        alike = exact or [c for c in of_table if c.name.lower() == name.lower()]
        return [c for c in alike if c.shown] or alike

    def has(self, node: exp.Expr) -> bool:
        """Whether all columns of a part of a query are its own."""
        return all(self._of(column) for column in columns_of(node))

    def _of(self, node: exp.Column) -> tuple[HeldColumn, list[str]] | None:
        """The column that is meant, and the fields that are taken out of it."""
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and len(found := self.find(parts[1], parts[0])) == 1:
            return found[0], parts[2:]
        found = self.find(parts[0])
        return (found[0], parts[1:]) if len(found) == 1 else None

    def bound(self, node: exp.Expr, text: str) -> exp.Expr:
        """A part of a query, with every column under the name that the stream has for it."""

        def bind(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
                return part
            found = self._of(part)
            if found is None:
                raise self.unknown(part, text)
            made: exp.Expr = exp.Column(this=exp.Identifier(this=found[0].held, quoted=True))
            made.meta.update(next((n.meta for n in part.walk() if "start" in n.meta), {}))
            for name in found[1]:
                made = exp.Dot(this=made, expression=exp.Identifier(this=name))
            return made

        return node.copy().transform(bind)

    def unknown(self, node: exp.Column, text: str) -> CaesuraError:
        """What is wrong with a column that is not found, or found twice."""
        name, table = node.name, node.table
        if len({c.table for c in self.find(name, table)}) > 1:
            tables = [f"{c.table}.{c.name}" for c in self.find(name, table)]
            return refused(node, text, f"'{name}' may be {' or '.join(tables)}", f"Write {tables[0]}.")
        here = [c.name for c in self.columns if not table or c.table.lower() == table.lower()]
        if table and not here:
            tables = sorted({c.table for c in self.columns if c.table})
            return refused(node, text, f"there is no table '{table}' in FROM", closest(table, tables))
        return refused(node, text, f"there is no column '{name}'", closest(name, here))

    def is_time(self, node: exp.Expr) -> bool:
        """Whether a part of a query is the time of the rows: the column that told it, or where they start."""
        if isinstance(node, exp.Column) and not self.find(node.name, node.table):
            return node.name == _time_column(self.stream.node)
        found = self._of(node) if isinstance(node, exp.Column) else None
        return found is not None and not found[1] and _starts(self.stream.node, found[0].held)

    def value(self, node: exp.Expr, text: str) -> Expr:
        """A part of a query as an expression over the stream's columns."""
        arrives = next((part for part in node.walk() if part.meta.get(ARRIVAL)), None)
        if arrives is not None and not _timed_by_clock(self.stream.node):
            raise refused(
                node,
                text,
                "PROCTIME() is when a row came, and these rows have their time from their data",
                "Read them by the clock: TIME ingestion_time where a script declares the stream.",
            )
        try:
            return lowered(self.bound(node, text))
        except CaesuraError as error:
            raise placed(error, node, text) from None

    def type_of(self, value: Expr) -> pa.DataType:
        """The type of an expression over the stream's columns."""
        return type_of(value, self.stream.schema, time=self.stream.node.time)

    def star(self, table: str = "") -> Iterator[HeldColumn]:
        """The columns of ``*``."""
        mine = (c for c in self.columns if not table or c.table.lower() == table.lower())
        yield from (c for c in mine if c.shown)


@dataclass(frozen=True)
class Ranked:
    """By what rows stand, and which come first."""

    by: tuple[Expr, ...]
    descending: tuple[bool, ...]

    @staticmethod
    def order(relation: Relation, parts: Sequence[exp.Expr], text: str) -> Ranked:
        """ORDER BY; where nothing is said, null stands first, and last if it is descending, as in Spark."""
        by, descending = [], []
        for part in parts:
            value, down = relation.value(part.this, text), bool(part.args.get("desc"))
            first = part.args.get("nulls_first")
            if first not in (None, not down):
                by.append(value.is_null())
                descending.append(bool(first))
            by.append(value)
            descending.append(down)
        return Ranked(tuple(by), tuple(descending))


def _keeps_starts(node: Node) -> bool:
    return isinstance(node, Where) or (isinstance(node, Lifetime) and node.rule == "forever")


def _time_column(node: Node) -> str:
    """The column that told the starts of a stream's rows, where they still are those."""
    while _keeps_starts(node):
        node = node.inputs[0]
    told = isinstance(node, Source) and node.shape.columns and node.shape.time not in RESERVED
    return node.shape.time if told and isinstance(node, Source) else ""


def _timed_by_clock(node: Node) -> bool:
    while isinstance(node, Select) or _keeps_starts(node):
        node = node.inputs[0]
    return isinstance(node, Source) and isinstance(node.shape, ArrivalShape)


def _starts(node: Node, name: str) -> bool:
    """Whether a column holds where each row starts; rows that meet points start where those do."""
    while True:
        if isinstance(node, Select | MatchRows):
            value = node.of_shown_row(name) if isinstance(node, MatchRows) else dict(node.columns).get(name)
            if not isinstance(value, Column):
                return isinstance(value, Boundary) and value.side == "start"
            name = value.name
        elif isinstance(node, Join) and node.how in ("inner", "left"):
            sides = [side for side in node.inputs if name in side.schema.names]
            if len(sides) != 1 or not sides[0].properties.points:
                return False
            if node.how == "left" and sides[0] is not node.inputs[0]:
                return False
            node = sides[0]
            continue
        elif isinstance(node, OverFrame):
            if name not in node.inputs[0].schema.names:
                return False
        elif not _keeps_starts(node):
            return False
        node = node.inputs[0]


def columns_of(node: exp.Expr) -> list[exp.Column]:
    """All columns that a part of a query names."""
    return [column for column in node.find_all(exp.Column) if not isinstance(column.this, exp.Star)]


def has_query(node: exp.Expr) -> bool:
    """Whether a part of a query has a query in it."""
    return node.find(exp.Query) is not None


def with_names(node: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """A SELECT whose columns have the names that WITH gives them, where it gives any."""
    shown = node.expressions if isinstance(node, exp.Select) else []
    plain = [one.unalias() for one in shown]
    if len(names) > len(shown) or any(one.find(exp.Star) for one in plain):
        return node
    made = [exp.alias_(one, name, quoted=True) for one, name in zip(plain, names, strict=False)]
    copy = node.copy()
    copy.set("expressions", [*made, *shown[len(made) :]])
    return copy
