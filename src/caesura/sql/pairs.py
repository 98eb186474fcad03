"""Two sides of a join: what must be equal, what else must hold, and what each column is called behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, col, lit
from caesura.expr.functions import coalesce
from caesura.expr.nodes import Cast, Column, Constant
from caesura.expr.types import common_type
from caesura.ops.join import How
from caesura.sql.relation import Relation, columns_of, has_query
from caesura.sql.rules import bare
from caesura.sql.text import placed, refused

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

MERGES: tuple[How, ...] = ("inner", "semi", "anti")
"""Joins behind which a column of the right that equals one of the left is that one."""

LEFT_STAYS: tuple[How, ...] = ("left", "semi", "anti")
"""Joins of which the right side only says what becomes of the left one's rows."""


def matched(
    query: Lowering,
    left: Relation,
    right: Relation,
    conditions: list[exp.Expr],
    node: exp.Expr,
    how: How,
    equal: Sequence[tuple[Expr, Expr]] = (),
) -> Relation:
    """Two sides by conditions: equalities of both are keys, the rest is looked at for each pair.

    What is said of the right side alone leaves out its rows first, where the left side's stay all the same.
    """
    both = Relation(left.stream, (*left.columns, *right.columns))
    own = [c for c in conditions if how in LEFT_STAYS and columns_of(c) and both.has(c) and right.has(c)]
    own = [c for c in own if not has_query(c)]
    right = query.filtered(right, own)
    on = list(equal)
    rest: list[exp.Expr] = []
    for one in [c for c in conditions if c not in own]:
        pair = equal_sides(left, right, one)
        if pair is None:
            rest.append(one)
        else:
            on.append((left.value(pair[0], query.text), right.value(pair[1], query.text)))
    return meeting(query, left, right, on, rest, node, how)


def equal_sides(left: Relation, right: Relation, node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality of the two tables."""
    node = bare(node)
    if not isinstance(node, exp.EQ):
        return None
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        if columns_of(one) and columns_of(other) and left.has(one) and right.has(other):
            return one, other
    return None


def null_safe(stream: Stream, names: Sequence[str]) -> list[Expr]:
    """Columns as keys of a join where null equals null."""
    made: list[Expr] = []
    for name in names:
        type = stream.schema.field(name).type
        made += [col(name).is_null(), coalesce(col(name), Constant(_any_value(type), type))]
    return made


def _any_value(type: pa.DataType) -> object:
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return ""
    try:
        return pa.scalar(0, pa.int32() if pa.types.is_date32(type) else pa.int64()).cast(type).as_py()
    except pa.ArrowNotImplementedError:
        raise PlanError(
            f"rows are not told apart by values of type {type} here.",
            remedy="Take a number, a text or a time that tells them apart.",
        ) from None


def apart(left: Relation, right: Relation) -> Relation:
    """The right side with columns that the left has not, so that both lie in one row."""
    taken = {c.held for c in left.columns}
    names: dict[str, str] = {}
    for column in right.columns:
        if column.held in taken:
            name = f"{column.table or 'right'}.{column.name}"
            while name in taken or name in names.values():
                name += "'"
            names[column.held] = name
    if not names:
        return right
    stream = right.stream.rename(names)
    columns = tuple(replace(c, held=names.get(c.held, c.held)) for c in right.columns)
    return Relation(stream, columns, right.window)


@dataclass
class JoinKeys:
    """The keys of a join, with the columns that are computed for them."""

    left: Relation
    right: Relation
    how: How
    on: dict[str, str] = field(default_factory=dict)
    """Columns of the left, with those of the right that they must equal."""
    computed: tuple[dict[str, Expr], dict[str, Expr]] = field(default_factory=lambda: ({}, {}))
    merged: dict[str, str] = field(default_factory=dict)
    """Columns of the right that are one of the left behind the join."""

    def add(self, one: Expr, other: Expr) -> None:
        """One more equality."""
        types = [self.left.type_of(one), self.right.type_of(other)]
        alike = types[0] == types[1] and not pa.types.is_floating(types[0]) and self.how in MERGES
        if alike and isinstance(one, Column) and isinstance(other, Column) and self._fresh(one, other):
            self.on[one.name], self.merged[other.name] = other.name, one.name
            return
        wanted = common_type(*types)
        name = f"join key {len(self.on)}"
        for made, value, found in zip(self.computed, (one, other), types, strict=True):
            made[name] = value if wanted in (None, found) else Cast(value, wanted)
        self.on[name] = name

    def _fresh(self, one: Column, other: Column) -> bool:
        return one.name not in self.on and other.name not in self.on.values()

    def sides(self) -> list[Relation]:
        """Both sides with the columns that are computed; equal columns of the right are found in the left."""
        made = []
        for side, values in zip((self.left, self.right), self.computed, strict=True):
            made.append(replace(side, stream=side.stream.with_columns(values)) if values else side)
        columns = tuple(replace(c, held=self.merged.get(c.held, c.held)) for c in self.right.columns)
        return [made[0], replace(made[1], columns=columns)]


def meeting(
    query: Lowering,
    left: Relation,
    right: Relation,
    on: list[tuple[Expr, Expr]],
    rest: list[exp.Expr],
    node: exp.Expr,
    how: How,
) -> Relation:
    """Joins on keys; all columns of both stay, under what each is held as behind the join."""
    stays = left.window if how in ("semi", "anti") and left.stream.node.properties.points else None
    if right.window is not None or stays != left.window:
        problem = "rows that are assigned to windows meet others here"
        raise refused(node, query.text, problem, "Group by the window first, then join.")
    keys = JoinKeys(left, right, how)
    try:
        for one, other in on or [(lit(1), lit(1))]:
            keys.add(one, other)
        one_side, other_side = keys.sides()
        both = Relation(one_side.stream, (*one_side.columns, *other_side.columns))
        residual: Expr | None = None
        for condition in rest:
            value = both.value(condition, query.text)
            residual = value if residual is None else residual & value
        joined = one_side.stream.join(other_side.stream, on=keys.on, how=how, where=residual)
    except CaesuraError as error:
        raise placed(error, node, query.text) from None
    held = [name for name in joined.columns if name not in keys.computed[0]]
    joined = joined.select({name: col(name) for name in held})  # what nobody reads behind it goes here
    columns = one_side.columns if how in ("semi", "anti") else both.columns
    return Relation(joined, tuple(c for c in columns if c.held in held), stays)
