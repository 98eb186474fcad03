"""A query over streams, clause by clause, as the calls that a user would write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from caesura.api.sources import table as table_of
from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError, closest
from caesura.expr import Expr, col
from caesura.expr.nodes import Cast, Constant
from caesura.expr.sql_text import lowered
from caesura.expr.types import common_type
from caesura.plan import here
from caesura.sql import joins
from caesura.sql.grouping import Grouping, aggregates_in, is_aggregate
from caesura.sql.ranks import Ranked, bound_of, is_row_number, ranked
from caesura.sql.relation import HeldColumn, Relation, conjuncts
from caesura.sql.text import parsed, placed, refused
from caesura.sql.windows import TIMED


def sql(text: str, /, **streams: Stream) -> Stream:
    """A query over streams: at each instant, the query over the rows alive then.

    Streams are named by keywords, and have their lifetimes as they are: ``bids=bids.forever()`` is a table
    that rows are added to. Windows assign rows by their times. `docs/sql.md` says what there is.

    >>> import caesura as cz
    >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}, {"ts": 12, "item": 7, "price": 5}], time="ts")
    >>> print(cz.sql('''
    ...     SELECT item, max(price) AS best, window_end
    ...     FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10))
    ...     GROUP BY item, window_start, window_end
    ... ''', bids=bids).run())
     LE  RE | item best window_end |
      0  10 | 7    3    10         | +
     10  20 | 7    5    20         | +
    """
    place = here()
    try:
        _refuse_others(text, streams)
        query = parsed(text)
        return Lowering(text, dict(streams), mentioned(query)).lower(query, {}).stream
    except CaesuraError as error:
        raise error.at("sql", place) from None


def _refuse_others(text: object, streams: Mapping[str, object]) -> None:
    if not isinstance(text, str):
        raise PlanError(f"a query is a text; got {text!r}.", remedy='Write cz.sql("SELECT ...", bids=bids).')
    wrong = next((name for name, one in streams.items() if not isinstance(one, Stream)), None)
    if wrong is not None:
        raise PlanError(
            f"'{wrong}' is no stream.", remedy=f"Make it one: {wrong}=cz.table(...), or cz.from_rows(...)."
        )


def mentioned(query: exp.Query) -> frozenset[str] | None:
    """The columns that a query speaks of, beside those that tell windows their time; None for ``*``."""
    for star in query.find_all(exp.Star):
        if not isinstance(star.parent, exp.Anonymous):  # count(*)
            return None
    names = set()
    for column in query.find_all(exp.Column):
        around = column.parent
        called = isinstance(around, exp.Anonymous) and around.name.lower() in TIMED
        if not (called and around is not None and around.expressions[0] is column):
            names.add(column.name.lower())
    return frozenset(names)


@dataclass
class Lowering:
    """One query on its way to a plan: its text, and what its names stand for."""

    text: str
    streams: dict[str, Stream]
    names: frozenset[str] | None
    """The columns that the query speaks of; None for all."""
    with_: dict[str, Relation] = field(default_factory=dict)

    # -- names --------------------------------------------------------------------------------------------

    def relation(self, name: str, node: exp.Expr) -> Relation:
        """What a name in FROM stands for."""
        known = {**{n: n for n in self.streams}, **{n: n for n in self.with_}}
        found = known.get(name) or next((n for n in known if n.lower() == name.lower()), None)
        if found is None:
            raise refused(
                node,
                self.text,
                f"there is no table '{name}'",
                f"{closest(name, known)} Give it: cz.sql(text, {name}=...).",
            )
        return (
            self.with_[found]
            if found in self.with_
            else Relation.of(self.streams[found], found, self._mentions)
        )

    def _mentions(self, name: str) -> bool:
        return self.names is None or name.lower() in self.names

    def values(self, node: exp.Values) -> Relation:
        """VALUES as a table that always holds."""
        rows = []
        for row in node.expressions:
            values = [lowered(one) for one in row.expressions]
            if not all(isinstance(value, Constant) for value in values):
                raise refused(
                    row, self.text, "VALUES takes constants", "Compute them in the SELECT around it."
                )
            rows.append({f"col{n}": v.value for n, v in enumerate(values, 1) if isinstance(v, Constant)})
        return Relation.of(table_of(rows), "")

    # -- queries ------------------------------------------------------------------------------------------

    def lower(self, node: exp.Expr, bounds: Mapping[str, int]) -> Relation:
        """A query of any kind; ``bounds`` says of ranks how many rows of each group are wanted."""
        outer = dict(self.with_)
        held = node.args.get("with_")
        if held is not None and held.args.get("recursive"):
            raise refused(
                held, self.text, "WITH RECURSIVE is not known here", "Write the loop with cz.fixpoint."
            )
        for one in held.expressions if held is not None else ():
            columns = [c.name for c in one.args["alias"].args.get("columns") or ()]
            self.with_[one.alias] = self.lower(one.this, {}).named(one.alias, columns)
        try:
            if isinstance(node, exp.Subquery | exp.Paren):
                return self.lower(node.this, bounds)
            if isinstance(node, exp.SetOperation):
                return self._limited(self._together(node), node)
            if isinstance(node, exp.Select):
                return self._select(node, bounds)
        finally:
            self.with_ = outer
        raise refused(node, self.text, f"'{node.key.upper()}' is not known here", "Write a SELECT.")

    def _together(self, node: exp.SetOperation) -> Relation:
        left, right = self.lower(node.this, {}), self.lower(node.expression, {})
        if len(left.columns) != len(right.columns):
            raise refused(
                node,
                self.text,
                f"one side has {len(left.columns)} columns, the other {len(right.columns)}",
                "Select as many on both sides.",
            )
        one, other = self._alike(left, right, node)
        distinct = bool(node.args.get("distinct"))
        if isinstance(node, exp.Union):
            made = one.union(other)
            return Relation(made.distinct() if distinct else made, left.columns)
        if distinct:
            one, other = one.distinct(), other.distinct()
        without = one.difference(other)
        return Relation(one.difference(without) if isinstance(node, exp.Intersect) else without, left.columns)

    def _alike(self, left: Relation, right: Relation, node: exp.Expr) -> tuple[Stream, Stream]:
        """Both sides with the columns of the left, of types that hold the values of both."""
        sides: tuple[dict[str, Expr], dict[str, Expr]] = {}, {}
        for a, b in zip(left.columns, right.columns, strict=True):
            types = [side.stream.schema.field(c.held).type for side, c in ((left, a), (right, b))]
            wanted = common_type(*types)
            if wanted is None:
                problem = f"'{a.name}' is of type {types[0]} on one side, {types[1]} on the other"
                raise refused(node, self.text, problem, "CAST one of them to the type of the other.")
            for made, column, t in zip(sides, (a, b), types, strict=True):
                made[a.held] = col(column.held) if t == wanted else Cast(col(column.held), wanted)
        return left.stream.select(sides[0]), right.stream.select(sides[1])

    # -- SELECT -------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select, bounds: Mapping[str, int]) -> Relation:
        where = conjuncts(node.args["where"].this) if node.args.get("where") else []
        inner, where = self._bounded(node, where)
        relation = inner if inner is not None else joins.read_from(self, node, where)
        relation = self._filtered(relation, where)
        shown = list(node.expressions)
        having = node.args.get("having")
        group = node.args.get("group")
        parts = [*shown, *([having.this] if having is not None else [])]
        if group is not None or any(aggregates_in(part) for part in parts):
            relation, parts = self._grouped(relation, group, shown, parts)
            if having is not None:
                relation = self._filtered(relation, conjuncts(parts.pop()))
            shown = parts
        elif relation.window is not None:
            raise refused(
                node,
                self.text,
                "rows of windows are not grouped by them",
                "GROUP BY window_start, window_end, ...",
            )
        for at, one in enumerate(shown):
            relation, shown[at] = self._scalars(relation, one)
        relation, shown = ranked(relation, shown, bounds, self.text)
        distinct = node.args.get("distinct") is not None
        if distinct:
            return self._limited(self._projected(relation, shown, distinct=True), node)
        named = {one.alias.lower(): one.this for one in shown if isinstance(one, exp.Alias)}
        return self._projected(self._limited(relation, node, named), shown, distinct=False)

    def _bounded(self, node: exp.Select, where: list[exp.Expr]) -> tuple[Relation | None, list[exp.Expr]]:
        """A query in FROM with row numbers of which only the first are wanted: WHERE n <= 10."""
        first = node.args.get("from_")
        if first is None or node.args.get("joins") or not isinstance(first.this, exp.Subquery):
            return None, where
        alias, inner = first.this.alias, first.this.this
        plain = isinstance(inner, exp.Select) and not inner.args.get("limit")
        shown = inner.expressions if plain else []
        names = {one.alias.lower() for one in shown if is_row_number(one.unalias())}
        bounds: dict[str, int] = {}
        rest = []
        for one in where:
            found = bound_of(one, names)
            if found is None:
                rest.append(one)
            else:
                bounds[found[0]] = min(found[1], bounds.get(found[0], found[1]))
        if not bounds:
            return None, where
        return self.lower(inner, bounds).named(alias), rest

    def _filtered(self, relation: Relation, where: list[exp.Expr]) -> Relation:
        for one in where:
            relation, one = self._scalars(relation, one)
            if one.find(exp.Select):
                relation = self._met(relation, one)
                continue
            try:
                stream = relation.stream.where(relation.value(one, self.text))
            except CaesuraError as error:
                raise placed(error, one, self.text) from None
            relation = replace(relation, stream=stream)
        return relation

    def _scalars(self, relation: Relation, node: exp.Expr) -> tuple[Relation, exp.Expr]:
        """Queries of one value within an expression: the value stands beside every row."""
        node = node.copy()
        for one in list(node.find_all(exp.Subquery)):
            if isinstance(one.parent, exp.In | exp.Exists):
                continue
            self._refuse_several(one)
            counts = one.this.expressions[0].unalias().sql("spark").lower().startswith("count(")
            value, held = self.lower(one.this, {}), f"query {len(relation.columns)}"
            stream = value.stream.select({held: col(value.columns[0].held)})
            beside = Relation(stream, (HeldColumn("", held, held, shown=False),))
            relation = joins.meeting(self, relation, beside, [], [], one, "left")
            column = exp.Column(this=exp.Identifier(this=held, quoted=True))
            none = exp.Anonymous(this="coalesce", expressions=[column, exp.Literal.number(0)])
            one.replace(none if counts else column)  # of no rows there is no aggregate, and their count is 0
        return relation, node

    def _refuse_several(self, node: exp.Subquery) -> None:
        """Refuses what may be more than one value, or be one of no rows that is not null."""
        inner = node.this
        if isinstance(inner, exp.Select) and not inner.args.get("group") and len(inner.expressions) == 1:
            value = inner.expressions[0].unalias()
            counted = [part for part in value.walk() if part.name.lower() == "count" and is_aggregate(part)]
            if is_aggregate(value) or (aggregates_in(value) and not counted):
                return
        raise refused(
            node, self.text, "a query in an expression must be one aggregate", "Write (SELECT max(v) FROM t)."
        )

    def _met(self, relation: Relation, node: exp.Expr) -> Relation:
        """IN and EXISTS over a query: rows that meet one there, or none."""
        wanted = node
        absent = isinstance(wanted, exp.Not)
        if absent:
            wanted = wanted.this
        while isinstance(wanted, exp.Paren):
            wanted = wanted.this
        if isinstance(wanted, exp.In) and wanted.args.get("query") is not None and not absent:
            inner = joins.apart(relation, self.lower(wanted.args["query"], {}))
            if len(inner.columns) != 1:
                raise refused(node, self.text, "IN takes a query of one column", "Select one, or use EXISTS.")
            pair = (relation.value(wanted.this, self.text), col(inner.columns[0].held))
            return joins.meeting(self, relation, inner, [pair], [], node, "semi")
        if isinstance(wanted, exp.Exists):
            return self._exists(relation, wanted.this, node, "anti" if absent else "semi")
        raise refused(
            node,
            self.text,
            "a query in a condition is known as IN (SELECT ...) and [NOT] EXISTS (SELECT ...) only",
            "Join with it, or with what NOT EXISTS says: a null in NOT IN (SELECT ...) makes nothing true.",
        )

    def _exists(self, relation: Relation, inner: exp.Expr, node: exp.Expr, how: Any) -> Relation:
        if not isinstance(inner, exp.Select) or inner.args.get("group") or inner.args.get("limit"):
            raise refused(node, self.text, "EXISTS takes a plain SELECT", "Join with the query instead.")
        where = conjuncts(inner.args["where"].this) if inner.args.get("where") else []
        own = joins.read_from(self, inner, where)
        local = [one for one in where if own.has(one)]
        own = joins.apart(relation, self._filtered(own, local))
        return joins.matched(self, relation, own, [one for one in where if one not in local], node, how)

    def _grouped(
        self, relation: Relation, group: exp.Group | None, shown: list[exp.Expr], parts: list[exp.Expr]
    ) -> tuple[Relation, list[exp.Expr]]:
        made = Grouping(relation, self.text)
        if group is not None and any(group.args.get(n) for n in ("rollup", "cube", "grouping_sets")):
            raise refused(
                group, self.text, "ROLLUP, CUBE and GROUPING SETS are not known here", "UNION ALL the groups."
            )
        named = {one.alias.lower(): one.this for one in shown if isinstance(one, exp.Alias)}
        for key in group.expressions if group is not None else ():
            if isinstance(key, exp.Literal) and not key.is_string:
                key = shown[int(key.name) - 1].unalias() if 0 < int(key.name) <= len(shown) else key
            elif isinstance(key, exp.Column) and not key.table and not relation.find(key.name):
                key = named.get(key.name.lower(), key)
            made.add_key(key)
        if any(isinstance(part.unalias(), exp.Star) for part in parts):
            raise refused(
                shown[0], self.text, "'*' is not one value of a group", "Name the columns of GROUP BY."
            )
        return made.relation_behind(parts)

    def _projected(self, relation: Relation, shown: list[exp.Expr], *, distinct: bool) -> Relation:
        made: dict[str, Expr] = {}
        for one in shown:
            for name, value in self._columns(relation, one):
                if name in made:
                    problem = f"two columns are called '{name}'"
                    raise refused(one, self.text, problem, f"Name one of them: AS {name}2.")
                made[name] = value
        try:
            stream = relation.stream.select(made)
        except CaesuraError as error:
            raise placed(error, shown[0], self.text) from None
        stream = stream.distinct() if distinct else stream
        return Relation(stream, tuple(HeldColumn("", name, name) for name in made))

    def _columns(self, relation: Relation, node: exp.Expr) -> list[tuple[str, Expr]]:
        plain = node.unalias()
        of_table = isinstance(plain, exp.Column) and isinstance(plain.this, exp.Star)
        if isinstance(plain, exp.Star) or of_table:
            star, table = (plain.this, plain.text("table")) if of_table else (plain, "")
            left_out = {c.name.lower() for c in star.args.get("except_") or ()}
            return [(c.name, col(c.held)) for c in relation.star(table) if c.name.lower() not in left_out]
        written = plain.meta.get("written") or (plain.name if isinstance(plain, exp.Column) else "")
        name = node.alias or written or plain.sql("spark").lower()
        return [(name, relation.value(plain, self.text))]

    def _limited(self, relation: Relation, node: exp.Expr, named: Mapping[str, exp.Expr] = {}) -> Relation:
        """ORDER BY and LIMIT; ``named`` has what columns of SELECT stand for."""
        order, limit = node.args.get("order"), node.args.get("limit")
        if limit is None and order is None:
            return relation
        if limit is None:
            raise refused(
                order or node,
                self.text,
                "ORDER BY without LIMIT: rows still come and are corrected, so that none is last",
                "Say how many are wanted, LIMIT 10; or sort what .table() gives.",
            )
        count = limit.expression
        if not isinstance(count, exp.Literal) or count.is_string:
            raise refused(limit, self.text, "LIMIT takes a number", "Write LIMIT 10.")
        parts = [part.copy() for part in (order.expressions if order is not None else ())]
        for part in parts:
            plain = part.this
            known = (
                named.get(plain.name.lower()) if isinstance(plain, exp.Column) and not plain.table else None
            )
            if known is not None:
                part.set("this", known.copy())
        by = Ranked.order(relation, parts, self.text)
        options: dict[str, Any] = {"by": list(by.by), "descending": list(by.descending)}
        return replace(relation, stream=relation.stream.group_by().top(int(count.name), **options))
