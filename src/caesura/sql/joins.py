"""FROM: tables, queries and table functions, and what meets whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from caesura.errors import CaesuraError, closest
from caesura.expr import Expr, lit
from caesura.ops.join import How
from caesura.sql.relation import HeldColumn, Relation, columns_of, conjuncts
from caesura.sql.text import placed, refused
from caesura.sql.windows import TABLE_FUNCTIONS, refuse_other_times, table_window

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

HOWS: dict[tuple[str, str], How] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
}


def read_from(query: Lowering, select: exp.Select, where: list[exp.Expr]) -> Relation:
    """All of FROM, joined; conditions of WHERE that join tables are taken out of it."""
    first = select.args.get("from_")
    if first is None:
        raise refused(select, query.text, "there is no FROM", "A query over streams reads from one.")
    made = table(query, first.this)
    joins = select.args.get("joins") or ()
    outer = any((join.side or "").upper() in ("RIGHT", "FULL") for join in joins)
    for join in joins:
        made = _joined(query, made, join, [] if outer else where)  # an outer join keeps rows without a match
    return made


def table(query: Lowering, node: exp.Expr) -> Relation:
    """One entry of FROM."""
    alias = node.args.get("alias")
    name = alias.name if alias is not None else ""
    columns = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    if isinstance(node, exp.Subquery):
        return query.lower(node.this, {}).named(name, columns)
    if isinstance(node, exp.Values):
        return query.values(node).named(name, columns)
    if not isinstance(node, exp.Table):
        raise refused(
            node, query.text, f"'{node.sql('spark')}' is not known in FROM", "Name a table or a query."
        )
    if node.args.get("version") is not None:
        raise refused(
            node,
            query.text,
            "FOR SYSTEM_TIME AS OF is not known here",
            "Lifetimes join as they are: write JOIN.",
        )
    if isinstance(node.this, exp.Anonymous):
        if node.this.name.lower() not in TABLE_FUNCTIONS:
            raise refused(
                node,
                query.text,
                f"there is no table function '{node.this.name}'",
                closest(node.this.name, TABLE_FUNCTIONS),
            )
        source, time, window = table_window(node.this, query.text)
        made = query.relation(source, node).named(name or source, columns)
        refuse_other_times(made, time, query.text)
        return replace(made, window=window)
    return query.relation(node.name, node).named(name or node.name, columns)


def _joined(query: Lowering, left: Relation, join: exp.Join, where: list[exp.Expr]) -> Relation:
    kind = (join.side or "").upper(), (join.kind or "").upper()
    how = HOWS.get(kind)
    if how is None or left.window is not None:
        told = "a join of rows that are assigned to windows" if how else f"{' '.join(kind).strip()} JOIN"
        raise refused(join, query.text, f"{told} is not known here", "Group by the window first, then join.")
    right = apart(left, table(query, join.this))
    both = Relation(left.stream, (*left.columns, *right.columns))
    conditions = conjuncts(join.args.get("on"))
    using = join.args.get("using") or ()
    for name in using:
        conditions.append(exp.EQ(this=_only(left, name, query), expression=_only(right, name, query)))
    merged = {name.name.lower() for name in using}
    if merged and how in ("right", "full"):
        raise refused(join, query.text, f"USING in a {how} join is not known here", "Write ON.")
    if how == "inner":
        taken = [one for one in where if both.has(one) and not left.has(one) and not right.has(one)]
        taken = [one for one in taken if columns_of(one) and not _has_query(one)]
        for one in taken:
            where.remove(one)
        conditions += taken
    made = matched(query, left, right, conditions, join, how)
    mine = {c.held for c in right.columns if c.name.lower() in merged}
    return replace(
        made, columns=tuple(replace(c, shown=c.shown and c.held not in mine) for c in made.columns)
    )


def matched(
    query: Lowering, left: Relation, right: Relation, conditions: list[exp.Expr], node: exp.Expr, how: How
) -> Relation:
    """Two sides by conditions: equalities of both are keys, the rest is looked at for each pair."""
    on: list[tuple[Expr, Expr]] = []
    rest: list[exp.Expr] = []
    for one in conditions:
        pair = _equal(left, right, one, query.text)
        if pair is None:
            rest.append(one)
        else:
            on.append(pair)
    return meeting(query, left, right, on, rest, node, how)


def _only(side: Relation, name: exp.Expr, query: Lowering) -> exp.Expr:
    found = side.find(name.name)
    if len(found) != 1:
        raise refused(
            name, query.text, f"USING ({name.name}) wants one column of that name on both sides", "Write ON."
        )
    return exp.column(found[0].name, found[0].table or None)


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Select) is not None


def _equal(left: Relation, right: Relation, node: exp.Expr, text: str) -> tuple[Expr, Expr] | None:
    """The two sides of an equality of the two tables."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.EQ):
        return None
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        if columns_of(one) and columns_of(other) and left.has(one) and right.has(other):
            return left.value(one, text), right.value(other, text)
    return None


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
    return Relation(
        stream,
        tuple(HeldColumn(c.table, c.name, names.get(c.held, c.held)) for c in right.columns),
        right.window,
    )


def meeting(
    query: Lowering,
    left: Relation,
    right: Relation,
    on: list[tuple[Expr, Expr]],
    rest: list[exp.Expr],
    node: exp.Expr,
    how: How,
) -> Relation:
    """Joins on keys that are computed on both sides, so that all columns of both stay."""
    pairs = on or [(lit(1), lit(1))]
    keys = {f"key {n}": pair for n, pair in enumerate(pairs)}
    one = left.stream.with_columns({name: a for name, (a, _) in keys.items()})
    other = right.stream.with_columns({name: b for name, (_, b) in keys.items()})
    both = Relation(one, (*left.columns, *right.columns))
    residual: Expr | None = None
    for condition in rest:
        value = both.value(condition, query.text)
        residual = value if residual is None else residual & value
    try:
        joined = one.join(other, on=list(keys), how=how, where=residual).drop(*keys)
    except CaesuraError as error:
        raise placed(error, node, query.text) from None
    held = set(joined.columns)
    return Relation(joined, tuple(c for c in both.columns if c.held in held))
