"""IN and EXISTS as values: within OR, CASE and SELECT, where no join can leave rows out.

EXISTS is a count that is not 0. IN is true where one is equal, and null where none is but some may be: the
value or a member is null. `x = ANY (SELECT ...)` is IN, `x <> ALL (SELECT ...)` is NOT IN.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from caesura.sql import joins
from caesura.sql.grouping import aggregates_in
from caesura.sql.relation import HeldColumn, Relation, columns_of
from caesura.sql.rules import all_of, bare
from caesura.sql.text import refused

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

MORE = ("group", "having", "limit", "order", "offset", "qualify")
"""Clauses behind which a query is more than the rows of its tables."""


def asked(node: exp.Expr) -> exp.Expr:
    """The condition that NOT and brackets stand around."""
    wanted = bare(node)
    return bare(wanted.this) if isinstance(wanted, exp.Not) else wanted


def is_question(node: exp.Expr) -> bool:
    """Whether it is IN or EXISTS over a query."""
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def without_any(node: exp.Expr, text: str) -> exp.Expr:
    """A condition whose ANY and ALL over queries are written as IN."""
    for one in list(node.find_all(exp.Any, exp.All)):
        compared = one.parent
        if one.find(exp.Query) is None or not isinstance(compared, exp.Binary):
            continue
        kinds = {(exp.EQ, exp.Any): False, (exp.NEQ, exp.All): True}
        absent = kinds.get((type(compared), type(one)))
        if absent is None or compared.expression is not one:
            name = type(one).__name__.upper()
            problem = f"this comparison with {name} (SELECT ...) is not known here"
            raise refused(compared, text, problem, "Write x IN (SELECT ...), or x > (SELECT max(v) FROM t).")
        inner = one.this if isinstance(one.this, exp.Subquery) else exp.Subquery(this=one.this)
        made: exp.Expr = exp.In(this=compared.this, query=inner)
        made = exp.Not(this=made) if absent else made
        node = made if compared is node else node
        compared.replace(made)
    return node


def is_plain(select: exp.Expr) -> bool:
    """Whether a query has a row for every row of its tables, DISTINCT aside."""
    return (
        isinstance(select, exp.Select)
        and not any(select.args.get(name) for name in MORE)
        and not any(aggregates_in(one) or one.find(exp.Window, exp.Star) for one in select.expressions)
    )


def correlated(query: Lowering, relation: Relation, node: exp.Expr) -> bool:
    """Whether a query of IN speaks of the row around it; refuses such that are more than plain rows."""
    select = _inner(node)
    if not isinstance(select, exp.Select):
        return False
    with query.names_of(select):
        own = joins.read_from(query, select.copy(), [])
    where = select.args.get("where")
    parts = [*select.expressions, *([where.this] if where is not None else [])]
    names = [c for part in parts for c in columns_of(part) if c.find_ancestor(exp.Query) is select]
    if not any(not own.has(c) and relation.has(c) for c in names):
        return False
    if not is_plain(select):
        problem = "a query with groups, aggregates or LIMIT cannot speak of the row around it within IN"
        raise refused(node, query.text, problem, "Group by what is equal there in WITH, and join with it.")
    return True


def _inner(node: exp.Expr) -> exp.Expr:
    return bare(node.this if isinstance(node, exp.Subquery) else node)


def equal_members(
    query: Lowering, relation: Relation, node: exp.In
) -> tuple[Relation, exp.Select, list[exp.Expr]]:
    """The rows of a query of IN that are equal; its values stand under names that only this row has."""
    values = list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]
    relation, names = _held(query, relation, values)
    select = members(node)
    found = [one.unalias() for one in select.expressions]
    if len(found) != len(values):
        raise refused(node, query.text, "IN takes a query of one column", "Select one, or use EXISTS.")
    where = [exp.EQ(this=one.copy(), expression=name) for one, name in zip(found, names, strict=True)]
    old = select.args.get("where")
    select.set("where", exp.Where(this=all_of([*([old.this] if old is not None else []), *where])))
    return relation, select, names


def members(node: exp.In) -> exp.Select:
    """The query of IN as a plain one."""
    inner = _inner(node.args["query"]).copy()
    if is_plain(inner) and isinstance(inner, exp.Select):
        inner.set("distinct", None)
        return inner
    width = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
    names = [exp.to_identifier(f"member {n}", quoted=True) for n in range(width)]
    alias = exp.TableAlias(this=exp.to_identifier("members"), columns=names)
    table = exp.From(this=exp.Subquery(this=inner, alias=alias))
    return exp.Select(expressions=[exp.Column(this=name.copy()) for name in names], from_=table)


def _held(query: Lowering, relation: Relation, values: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
    made = {f"in {len(relation.columns)} {n}": relation.value(v, query.text) for n, v in enumerate(values)}
    columns = (*relation.columns, *(HeldColumn("", name, name, shown=False) for name in made))
    names: list[exp.Expr] = [exp.column(name, quoted=True) for name in made]
    return replace(relation, stream=relation.stream.with_columns(made), columns=columns), names


def as_value(
    query: Lowering, relation: Relation, node: exp.Expr, *, true_only: bool
) -> tuple[Relation, exp.Expr]:
    """IN or EXISTS as an expression over queries of one value; ``true_only`` where false and null are one."""
    if isinstance(node, exp.Exists):
        return relation, exp.Paren(this=exp.GT(this=_of(_rows(node), _count()), expression=_number(0)))
    assert isinstance(node, exp.In)
    correlated(query, relation, node.args["query"])
    relation, equal, names = equal_members(query, relation, node)
    there = exp.GT(this=_of(equal, _count()), expression=_number(0))
    if true_only:
        return relation, exp.Paren(this=there)
    if len(names) > 1:
        problem = "IN with several columns is known as a condition that must hold, or within OR and AND"
        raise refused(node, query.text, problem, "Write EXISTS (SELECT 1 FROM t WHERE t.a = a AND t.b = b).")
    every = members(node)
    known = _count(every.expressions[0].unalias())
    some_null = exp.If(this=exp.GT(this=_count(), expression=known), true=_number(2))
    none = exp.If(this=exp.EQ(this=_count(), expression=_number(0)), true=_number(0))
    state = _of(every, exp.Case(ifs=[none, some_null], default=_number(1)))
    unknown = exp.Or(
        this=exp.Is(this=names[0].copy(), expression=exp.Null()),
        expression=exp.EQ(this=state, expression=_number(2)),
    )
    ifs = [
        exp.If(this=there, true=exp.true()),
        exp.If(this=exp.EQ(this=state.copy(), expression=_number(0)), true=exp.false()),
        exp.If(this=unknown, true=exp.Null()),
    ]
    return relation, exp.Paren(this=exp.Case(ifs=ifs, default=exp.false()))


def _rows(node: exp.Exists) -> exp.Select:
    """What EXISTS counts: the rows of a plain query, or of what a query gives."""
    inner = without_limit(_inner(node.this).copy())
    if isinstance(inner, exp.Select) and not any(inner.args.get(name) for name in MORE):
        inner.set("distinct", None)
        return inner
    alias = exp.TableAlias(this=exp.to_identifier("members"))
    return exp.Select(expressions=[exp.true()], from_=exp.From(this=exp.Subquery(this=inner, alias=alias)))


def without_limit(select: exp.Expr) -> exp.Expr:
    """A query of EXISTS without what takes no row away if there are any."""
    limit = select.args.get("limit")
    count = limit.expression if limit is not None else None
    if isinstance(count, exp.Literal) and not count.is_string and int(count.name) > 0:
        select.set("limit", None)
        select.set("order", None)
    if select.args.get("group") is not None and select.args.get("having") is None:
        select.set("group", None)
    return select


def only_true_counts(node: exp.Expr, part: exp.Expr) -> bool:
    """Whether a condition holds for the same rows if a part of it is false instead of null."""
    above = part.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren) and above is not node:
        above = above.parent
    return above is None or (above is node and isinstance(node, exp.And | exp.Or | exp.Paren))


def _of(select: exp.Select, value: exp.Expr) -> exp.Subquery:
    """A query with one value in place of its columns."""
    made = select.copy()
    made.set("expressions", [value])
    return exp.Subquery(this=made)


def _count(value: exp.Expr | None = None) -> exp.Anonymous:
    return exp.Anonymous(this="count", expressions=[value.copy() if value is not None else exp.Star()])


def _number(n: int) -> exp.Expr:
    return exp.Literal.number(n)
