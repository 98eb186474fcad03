"""Queries within expressions: one value, IN and EXISTS, also such that speak of the row around them.

A query of one value becomes groups by what it says of the row around it, joined on that. Of no rows there is
no group: then the value is what the expression says of none, where counts are 0 and all others null.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from caesura.api.pairing import replaced
from caesura.api.stream import Stream
from caesura.expr import Expr, col, lit, when
from caesura.expr.evaluation import evaluate
from caesura.expr.nodes import Column, Constant
from caesura.ops.aggregate import kinds
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.join import How, Join
from caesura.ops.where import Where
from caesura.plan import Node, walk
from caesura.sql import joins
from caesura.sql.grouping import Grouping, aggregates_in, is_aggregate
from caesura.sql.members import (
    as_value,
    asked,
    correlated,
    equal_members,
    is_question,
    only_true_counts,
    without_any,
    without_limit,
)
from caesura.sql.pairs import apart, equal_sides, matched, meeting, null_safe
from caesura.sql.relation import HeldColumn, Relation, has_query
from caesura.sql.rules import bare, conjuncts, wants_value
from caesura.sql.text import refused

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

COUNTS = ("count", "count_distinct", "approx_count_distinct")
TIMELESS = ("sum", "count", "avg", "min", "max")
"""Aggregates that do not look at when their rows began."""
HOLDING = ("group", "limit", "order", "distinct", "offset", "qualify")
"""Clauses behind which a query is more than rows of tables."""


@dataclass(frozen=True)
class InnerRows:
    """The rows of a query that conditions join to the row around it."""

    own: Relation
    outer: list[exp.Expr]
    """Conditions that speak of both."""


def inner_rows(query: Lowering, select: exp.Select) -> InnerRows:
    """FROM and WHERE of a query within an expression."""
    where = conjuncts(select.args["where"].this) if select.args.get("where") else []
    own = joins.read_from(query, select, where)
    query.refuse_assigned(own, select)
    local = [one for one in where if own.has(one) or has_query(one)]
    return InnerRows(query.filtered(own, local), [one for one in where if one not in local])


# -- one value ---------------------------------------------------------------------------------------------


def with_values(
    query: Lowering, relation: Relation, node: exp.Expr, *, filters: bool = False
) -> tuple[Relation, exp.Expr]:
    """Queries of one value within an expression: the value stands beside every row.

    Where the expression ``filters`` rows, those go for which it cannot be true.
    """
    if not has_query(node):
        return relation, node
    node = node.copy()
    node = _as_aggregates(without_any(node, query.text))
    relation, node = _answered(query, relation, node, filters=filters)
    for one in list(node.find_all(exp.Subquery)):
        if isinstance(one.parent, exp.In | exp.Exists) or one.find_ancestor(exp.Query) is not None:
            continue
        relation, held = _value(query, relation, one, needed=filters and wants_value(node, one))
        node = _replaced(node, one, exp.Column(this=exp.Identifier(this=held, quoted=True)))
    return relation, node


def _as_aggregates(node: exp.Expr) -> exp.Expr:
    """EXISTS and IN over one row of aggregates, as conditions on its value."""
    for question in list(node.find_all(exp.Exists)):
        if isinstance(question.this, exp.Select) and _of_all(question.this):
            node = _replaced(node, question, _there(question.this))
    for member in list(node.find_all(exp.In)):
        query = member.args.get("query")
        inner = query.this if query is not None else None
        if isinstance(inner, exp.Select) and _of_all(inner) and not inner.args.get("having"):
            node = _replaced(node, member, exp.Paren(this=exp.EQ(this=member.this, expression=query)))
    return node


def _answered(
    query: Lowering, relation: Relation, node: exp.Expr, *, filters: bool
) -> tuple[Relation, exp.Expr]:
    """IN and EXISTS as values, but for one that leaves out rows by itself."""
    alone = asked(node) if filters else None
    if isinstance(alone, exp.In) and alone is not bare(node) and is_question(alone):
        alone = None if correlated(query, relation, alone.args["query"]) else alone
    for one in [one for one in node.find_all(exp.Exists, exp.In) if is_question(one) and one is not alone]:
        if one.find_ancestor(exp.Query) is None:
            true_only = filters and only_true_counts(node, one)
            relation, made = as_value(query, relation, one, true_only=true_only)
            node = _replaced(node, one, made)
    return relation, node


def _there(select: exp.Select) -> exp.Expr:
    """EXISTS over one row of aggregates: it is there unless its HAVING leaves it out."""
    one = select.copy()
    one.set("expressions", [exp.true()])
    return exp.Paren(this=exp.Not(this=exp.Is(this=exp.Subquery(this=one), expression=exp.Null())))


def _replaced(node: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    if node is old:
        return new
    old.replace(new)
    return node


def _of_all(select: exp.Select) -> bool:
    """Whether a query is one row of aggregates."""
    having = select.args.get("having")
    parts = [*select.expressions, *([having.this] if having is not None else [])]
    return not select.args.get("group") and any(aggregates_in(part) for part in parts)


def _value(query: Lowering, relation: Relation, node: exp.Subquery, *, needed: bool) -> tuple[Relation, str]:
    """The rows with the value of a query beside each; where it is ``needed``, those that have one."""
    held = f"query {len(relation.columns)}"
    made = _groups(query, relation, _refuse_several(query, node))
    there, names = f"{held} there", [f"{held} key {n}" for n in range(len(made.on))]
    marks = {} if made.empty is None else {there: lit(True)}
    keys = {name: key for name, (_, key) in zip(names, made.on, strict=True)}
    stream = made.stream.select({**keys, held: made.value, **marks})
    right = Relation(stream, tuple(HeldColumn("", n, n, shown=False) for n in stream.columns))
    how: How = "inner" if made.empty is None and needed else "left"
    on = [(outer, col(name)) for name, (outer, _) in zip(names, made.on, strict=True)]
    joined = meeting(query, relation, right, on, [], node, how)
    if made.empty is None:
        return joined, held
    value = when(col(there).is_null(), made.empty).otherwise(col(held))
    return replace(joined, stream=joined.stream.with_columns({held: value})), held


@dataclass(frozen=True)
class Valued:
    """A query of one value as groups: what each meets, its value, and the value where there is no group."""

    stream: Stream
    on: list[tuple[Expr, Expr]]
    """Values of the row around it, with those of the groups that they equal."""
    value: Expr
    empty: Constant | None


def _groups(query: Lowering, relation: Relation, select: exp.Select) -> Valued:
    having = select.args.get("having")
    parts = [select.expressions[0].unalias(), *([having.this] if having is not None else [])]
    with query.names_of(select):
        inner = inner_rows(query, select)
    pairs = [_correlated(query, relation, inner.own, one) for one in inner.outer]
    equal = [pair for pair in pairs if pair is not None]
    if len(equal) < len(pairs):
        rows, outer = _beside_values(query, relation, inner, select)
        grouping = Grouping(rows, query.text)
        held = [grouping.add_key(exp.column(name, quoted=True)) for name in outer]
        keys = null_safe(relation.stream, list(outer.values())), null_safe(rows.stream, held)
        on = list(zip(*keys, strict=True))
    else:
        grouping = Grouping(_asked_for(query, relation, inner.own, equal, parts), query.text)
        on = [(relation.value(outer, query.text), col(grouping.add_key(own))) for outer, own in equal]
    groups, parts = grouping.relation_behind(parts)
    value = groups.value(parts[0], query.text)
    if having is not None:
        value = when(groups.value(parts[1], query.text), value)
    return Valued(groups.stream, on, value, _of_none(value, groups.stream.schema, grouping))


def _asked_for(
    query: Lowering,
    relation: Relation,
    own: Relation,
    equal: list[tuple[exp.Expr, exp.Expr]],
    parts: list[exp.Expr],
) -> Relation:
    """The rows of a query whose groups some row around it asks for, where conditions leave out most of those.

    Rows that are only added are not held for that: their groups are sums, and they would be kept for ever.
    Nor are rows of joins, which leave out rows by themselves.
    """
    called = [one for part in parts for one in part.walk() if is_aggregate(one)]
    timeless = all(isinstance(one, exp.Filter) or one.name.lower() in TIMELESS for one in called)
    plain = own.window is None and not any(isinstance(one, Join) for one in walk(own.stream.node))
    changing = plain and not own.stream.node.properties.insert_only
    if not equal or not (timeless and changing and _has_conditions(relation.stream.node)):
        return own
    names = {f"asked {n}": relation.value(outer, query.text) for n, (outer, _) in enumerate(equal)}
    stream = relation.stream.select(names).distinct()
    asked_keys = apart(own, Relation(stream, tuple(HeldColumn("", n, n, shown=False) for n in names)))
    on = [
        (own.value(value, query.text), col(column.held))
        for (_, value), column in zip(equal, asked_keys.columns, strict=True)
    ]
    return replace(meeting(query, own, asked_keys, on, [], parts[0], "inner"), columns=own.columns)


def _has_conditions(node: Node) -> bool:
    return any(isinstance(one, Where) or (isinstance(one, Join) and one.how == "semi") for one in walk(node))


def _refuse_several(query: Lowering, node: exp.Subquery) -> exp.Select:
    """Refuses what may be more than one value."""
    select = node.this
    one = isinstance(select, exp.Select) and len(select.expressions) == 1
    plain = one and not any(select.args.get(name) for name in HOLDING)
    if not isinstance(select, exp.Select) or not plain or not (_of_all(select) or _is_true(select)):
        problem = "a query in an expression must be one aggregate"
        raise refused(node, query.text, problem, "Write (SELECT max(v) FROM t).")
    having = select.args.get("having")
    for part in (select.expressions[0], *([having.this] if having is not None else [])):
        if has_query(part):
            problem = "a query within the SELECT or HAVING of a query of one value is not known here"
            raise refused(part, query.text, problem, "Compute the inner one in WITH, and join with it.")
    return select


def _is_true(select: exp.Select) -> bool:
    return select.expressions == [exp.true()]


def _of_none(value: Expr, schema: pa.Schema, grouping: Grouping) -> Constant | None:
    """What an expression over aggregates is where there are no rows; None for null."""

    def none(leaf: Column) -> Expr:
        made = grouping.made.get(leaf.name)
        counts = isinstance(made, Aggregate) and made.kind in COUNTS
        return Constant(0 if counts else None, schema.field(leaf.name).type)

    found = evaluate(replaced(value, none), pa.record_batch({"": pa.array([None])}))[0]
    return Constant(found.as_py(), found.type) if found.is_valid else None


def _correlated(
    query: Lowering, outer: Relation, own: Relation, node: exp.Expr
) -> tuple[exp.Expr, exp.Expr] | None:
    """An equality of the row around a query with its own rows; None for another condition."""
    pair = equal_sides(own, outer, node)
    if pair is None:
        for column in node.find_all(exp.Column):
            if not own.has(column) and not outer.has(column):
                raise own.unknown(column, query.text)
        return None
    return pair[1], pair[0]


def _beside_values(
    query: Lowering, relation: Relation, inner: InnerRows, node: exp.Expr
) -> tuple[Relation, dict[str, str]]:
    """The rows of a query beside the values of the rows around it that they go with, each once."""
    held: dict[str, str] = {}

    def named(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or inner.own.has(part):
            return part
        name = relation.bound(part, query.text).name
        found = next((outer for outer, column in held.items() if column == name), f"outer {len(held)}")
        held[found] = name
        return exp.column(found, quoted=True)

    conditions = [one.copy().transform(named) for one in inner.outer]
    values = relation.stream.select({outer: col(name) for outer, name in held.items()}).distinct()
    around = Relation(values, tuple(HeldColumn("", name, name, shown=False) for name in held))
    return matched(query, inner.own, around, conditions, node, "inner"), held


# -- IN and EXISTS -----------------------------------------------------------------------------------------


def met(query: Lowering, relation: Relation, node: exp.Expr) -> Relation:
    """IN and EXISTS over a query: rows that meet one there, or none."""
    wanted = bare(node)
    absent = isinstance(wanted, exp.Not)
    wanted = bare(wanted.this) if absent else wanted
    if isinstance(wanted, exp.In) and wanted.args.get("query") is not None:
        return _member(query, relation, wanted, absent)
    if isinstance(wanted, exp.Exists):
        return _exists(query, relation, wanted.this, node, "anti" if absent else "semi")
    raise refused(
        node,
        query.text,
        "a query in a condition must be [NOT] IN (SELECT ...) or [NOT] EXISTS (SELECT ...)",
        "Write conditions that must all hold, or join with the query.",
    )


def _member(query: Lowering, relation: Relation, node: exp.In, absent: bool) -> Relation:
    if not absent and correlated(query, relation, node.args["query"]):
        relation, equal, _ = equal_members(query, relation, node)
        return _exists(query, relation, equal, node, "semi")
    inner = apart(relation, query.lower(node.args["query"], {}))
    values = list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]
    if len(inner.columns) != len(values):
        raise refused(node, query.text, "IN takes a query of one column", "Select one, or use EXISTS.")
    outer = [relation.value(value, query.text) for value in values]
    pairs = list(zip(outer, [col(c.held) for c in inner.columns], strict=True))
    if not absent:
        return meeting(query, relation, inner, pairs, [], node, "semi")
    if len(pairs) > 1:
        problem = "NOT IN with several columns is not known here"
        raise refused(node, query.text, problem, "Write NOT EXISTS.")
    return _no_member(query, relation, inner, pairs[0], node)


def _no_member(
    query: Lowering, relation: Relation, inner: Relation, pair: tuple[Expr, Expr], node: exp.Expr
) -> Relation:
    """NOT IN: no row there is equal. A null there leaves no row; a null here is left if there is nothing."""
    value, other = pair
    made = meeting(query, relation, inner, [pair], [], node, "anti")
    nulls = Relation(_any(inner.stream.where(other.is_null())), ())
    made = meeting(query, made, nulls, [(lit(1), col("any"))], [], node, "anti")
    rows = Relation(_any(inner.stream), ())
    return meeting(query, made, rows, [(when(value.is_null(), lit(1)), col("any"))], [], node, "anti")


def _any(stream: Stream) -> Stream:
    """One row while there are any."""
    return stream.select({"any": lit(1)}).group_by().alive().agg({"any": kinds.max(col("any"))})


def _exists(query: Lowering, relation: Relation, inner: exp.Expr, node: exp.Expr, how: Any) -> Relation:
    inner = without_limit(inner.copy())
    if not isinstance(inner, exp.Select) or any(inner.args.get(n) for n in ("group", "limit", "offset")):
        rows = Relation(_any(query.lower(inner, {}).stream), ())
        return meeting(query, relation, rows, [(lit(1), col("any"))], [], node, how)
    with query.names_of(inner):
        found = inner_rows(query, inner)
    own = apart(relation, found.own)
    if not found.outer:
        rows = Relation(_any(own.stream), ())
        return meeting(query, relation, rows, [(lit(1), col("any"))], [], node, how)
    return matched(query, relation, own, found.outer, node, how)
