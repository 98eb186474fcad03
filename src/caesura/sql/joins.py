"""FROM: tables, queries and table functions, and what meets whom."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from caesura.api.tables import table as table_of
from caesura.errors import CaesuraError, closest
from caesura.expr.functions import coalesce
from caesura.ops.join import How
from caesura.sql.asof import as_of, at_starts
from caesura.sql.functions import called_on_streams, user_function
from caesura.sql.match import match_rows
from caesura.sql.order import InnerJoins, plain
from caesura.sql.pairs import apart, matched
from caesura.sql.relation import HeldColumn, Relation, columns_of, has_query
from caesura.sql.rules import bare, conjuncts, factored
from caesura.sql.text import refused
from caesura.sql.unnest import exploded
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
    """All of FROM, joined; conditions of WHERE that rows meet there are taken out of it."""
    first = select.args.get("from_")
    if first is None:
        return Relation(table_of([{"row": 1}]), ())  # one row that always holds
    joins = list(select.args.get("joins") or ())
    made = table(query, first.this)
    if joins:
        where[:] = [one for each in where for one in factored(each)]
        made = From(query, made, joins, where).joined()
    for lateral in select.args.get("laterals") or ():
        made = exploded(query, made, lateral)
    return made


@dataclass
class From:
    """Several tables of FROM on their way to one."""

    query: Lowering
    made: Relation
    """What is joined so far."""
    joins: list[exp.Join]
    where: list[exp.Expr]
    waiting: list[Relation] = field(default_factory=list)
    """Tables that are joined by inner joins, in any order."""
    conditions: list[exp.Expr] = field(default_factory=list)
    """What must hold of them; by the names that columns are held under."""

    def joined(self) -> Relation:
        """All tables in one."""
        text = self.query.text
        hows = [_how(self.query, join) for join in self.joins]
        tables: list[Relation] = []
        scope = everything = self.made
        for join in self.joins:
            tables.append(apart(everything, table(self.query, join.this)))
            everything = Relation(everything.stream, (*everything.columns, *tables[-1].columns))
        for one in (self.made, *tables):
            if one.window is not None:
                problem = "a join of rows that are assigned to windows is not known here"
                raise refused(self.joins[0], text, problem, "Group by the window first, then join.")
        outer = any(how in ("right", "full") for how in hows)  # they keep rows without a match
        for at, (join, how) in enumerate(zip(self.joins, hows, strict=True)):
            right = tables[at]
            scope = Relation(scope.stream, (*scope.columns, *right.columns))
            if how == "inner" and not join.args.get("using") and not _by_time(join):
                self.waiting.append(right)
                told = conjuncts(join.args.get("on"))
                asks = [one for one in told if has_query(one) and not outer]
                self.where += asks  # of an inner join it is all the same
                self.conditions += [scope.bound(one, text) for one in told if one not in asks]
                continue
            self._settle(everything, outer)
            scope = self.made = self._placed(right, join, how)
            later = (c for one in tables[at + 1 :] for c in one.columns)
            everything = Relation(scope.stream, (*scope.columns, *later))
        self._settle(everything, outer)
        return self.made

    def _placed(self, right: Relation, join: exp.Join, how: How) -> Relation:
        """A join that keeps its place: an outer one, one with USING, or one that goes by times."""
        if join.args.get("method"):
            return as_of(self.query, self.made, right, join, how)
        if join.this.args.get("version") is not None:
            return at_starts(
                self.query, self.made, join, lambda left: _joined(self.query, left, right, join, how)
            )
        return _joined(self.query, self.made, right, join, how)

    def _settle(self, everything: Relation, outer: bool) -> None:
        """Joins the tables that wait."""
        if not self.waiting:
            return
        tables = [self.made, *self.waiting]
        if not outer:
            tables = self._members(tables)
        columns = tuple(c for one in tables for c in one.columns)
        scope = Relation(self.made.stream, columns)
        for one in [] if outer else list(self.where):
            if not has_query(one) and columns_of(one) and everything.has(one) and scope.has(one):
                self.conditions.append(scope.bound(one, self.query.text))
                self.where.remove(one)
        inner = InnerJoins(self.query, self.joins[0], [plain(one) for one in tables], self.conditions)
        found = inner.joined()
        held = {c.name: c.held for c in found.columns}
        self.made = Relation(found.stream, tuple(replace(c, held=held[c.held]) for c in columns))
        self.waiting, self.conditions = [], []

    def _members(self, tables: list[Relation]) -> list[Relation]:
        """IN over a query that speaks of one table leaves out rows of that one, before it meets others."""
        for one in list(self.where):
            plain_in = isinstance(bare(one), exp.In) and bare(one).args.get("query") is not None
            near = [at for at, t in enumerate(tables) if plain_in and t.has(bare(one).this)]
            if len(near) != 1:
                continue
            with suppress(CaesuraError):  # one that speaks of other tables too waits until they are joined
                tables[near[0]] = self.query.filtered(tables[near[0]], [one])
                self.where.remove(one)
        return tables


def _how(query: Lowering, join: exp.Join) -> How:
    kind = (join.side or "").upper(), (join.kind or "").upper()
    how = HOWS.get(kind)
    method = (join.args.get("method") or "").upper()
    timed = join.this.args.get("version") is not None or method == "ASOF"
    if how is None or method not in ("", "ASOF") or (timed and how not in ("inner", "left")):
        told = f"{method} {' '.join(kind).strip()}".strip()
        remedy = "Joins are INNER, LEFT, RIGHT, FULL, SEMI, ANTI, CROSS and ASOF [LEFT]."
        raise refused(join, query.text, f"{told} JOIN is not known here", remedy)
    return how


def table(query: Lowering, node: exp.Expr) -> Relation:
    """One entry of FROM."""
    if node.args.get("match") is not None:
        unmatched = node.copy()
        unmatched.set("match", None)
        return match_rows(query, table(query, unmatched), node.args["match"])
    alias = node.args.get("alias")
    name = alias.name if alias is not None else ""
    columns = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    if isinstance(node, exp.Subquery):
        with query.names_of(node):
            return query.called(query.lower(node.this, {}), alias)
    if isinstance(node, exp.Values):
        return query.called(query.values(node), alias)
    if not isinstance(node, exp.Table):
        raise refused(
            node, query.text, f"'{node.sql('spark')}' is not known in FROM", "Name a table or a query."
        )
    if node.args.get("version") is not None and not isinstance(node.parent, exp.Join):
        problem = "FOR SYSTEM_TIME AS OF stands behind JOIN only"
        raise refused(node, query.text, problem, "Lifetimes join as they are: write JOIN.")
    if isinstance(node.this, exp.Anonymous):
        own = user_function(node.this)
        if own is not None:
            given = [query.relation(arg.name, arg).stream for arg in node.this.expressions]
            called = called_on_streams(own, node.this.name, given)
            return Relation.of(called, node.this.name).named(name or node.this.name, columns)
        if node.this.name.lower() not in TABLE_FUNCTIONS:
            raise refused(
                node,
                query.text,
                f"there is no table function '{node.this.name}'",
                closest(node.this.name, TABLE_FUNCTIONS),
            )
        source, time, window = table_window(node.this, query.text)
        made = query.relation(source, node).named(name or source, columns)
        if time is not None:
            refuse_other_times(made, time, query.text)
        return replace(made, window=window)
    return query.relation(node.name, node).named(name or node.name, columns)


def _by_time(join: exp.Join) -> bool:
    return bool(join.args.get("method")) or join.this.args.get("version") is not None


def _joined(query: Lowering, left: Relation, right: Relation, join: exp.Join, how: How) -> Relation:
    """One join; columns of USING are one behind it."""
    conditions = conjuncts(join.args.get("on"))
    names = [name.name.lower() for name in join.args.get("using") or ()]
    pairs = [(_only(left, name, query), _only(right, name, query)) for name in join.args.get("using") or ()]
    own = [(left.value(a, query.text), right.value(b, query.text)) for a, b in pairs]
    made = matched(query, left, right, conditions, join, how, own)
    if not names:
        return made
    mine, both = len(left.columns), how in ("right", "full")
    columns = tuple(
        replace(c, shown=c.shown and (c.name.lower() not in names or (at < mine and not both)))
        for at, c in enumerate(made.columns)
    )
    if not both:
        return replace(made, columns=columns)
    values = {f"using {n}": coalesce(*pair) for n, pair in zip(names, own, strict=True)}
    merged = tuple(HeldColumn("", name, f"using {name}") for name in names)
    return Relation(made.stream.with_columns(values), (*merged, *columns))


def _only(side: Relation, name: exp.Expr, query: Lowering) -> exp.Expr:
    found = side.find(name.name)
    if len(found) != 1:
        raise refused(
            name, query.text, f"USING ({name.name}) wants one column of that name on both sides", "Write ON."
        )
    return exp.column(found[0].name, found[0].table or None)
