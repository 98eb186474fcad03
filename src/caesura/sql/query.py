"""A query over streams, clause by clause, as the calls that a user would write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from sqlglot import exp

from caesura.api.stream import Stream
from caesura.api.tables import table as table_of
from caesura.errors import CaesuraError, PlanError, closest
from caesura.expr import Expr, col
from caesura.expr.nodes import Cast, Constant
from caesura.expr.sql_text import lowered
from caesura.expr.types import common_type
from caesura.plan import here
from caesura.runtime.query.result import delivered
from caesura.sql import joins
from caesura.sql.clauses import ours, refuse_unread
from caesura.sql.dialects import SqlFlavour, in_dialect, refuse_lengths
from caesura.sql.functions import with_functions
from caesura.sql.grouping import Grouping, aggregates_in
from caesura.sql.ranks import bound_of, is_row_number, ranked
from caesura.sql.recursion import declare
from caesura.sql.relation import HeldColumn, Ranked, Relation, has_query, with_names
from caesura.sql.rules import conjuncts, number_of_rows
from caesura.sql.sets import key_sets
from caesura.sql.subqueries import met, with_values
from caesura.sql.text import IN_PARTS, placed, read_query, refused
from caesura.sql.windows import TIMED, duration, refuse_other_times
from caesura.udm import Module


def sql(text: str, /, *, dialect: SqlFlavour = "spark", **given: Any) -> Stream:
    """A query over streams in SQL: at each instant, the query over the rows alive then.

    Windows assign rows by their times. The page on SQL says what there is.

    Parameters
    ----------
    text
        A SELECT; its FROM names the streams that are given.
    dialect
        Whose functions they are: ``"spark"`` or ``"flink"``.
    **given
        Streams by name, with their lifetimes as they are: ``bids=bids.forever()`` is a table that rows are
        added to. And functions: a udf, a uda, or a function from stream to stream that FROM calls.

    Returns
    -------
    Stream
        The rows of the query.

    Notes
    -----
    Promises, State, Feedback, Spark: those of the steps that it is made of; ``explain`` shows them. Needs
    the extra ``sql``.

    See Also
    --------
    script : several statements of SQL.
    table : rows that hold over all time.

    Examples
    --------
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
        _refuse_others(text, given)
        query = read_query(text)
        streams = {name: one for name, one in given.items() if isinstance(one, Stream)}
        functions = {name: one for name, one in given.items() if name not in streams}
        made = meaning(query.tree, text, streams, functions, dialect=dialect)
        return made if query.emit is None else Stream(delivered(made.node, query.emit))
    except CaesuraError as error:
        raise error.at("sql", place) from None


def meaning(
    tree: exp.Query,
    text: str,
    streams: Mapping[str, Stream],
    functions: Mapping[str, Any] | None = None,
    *,
    dialect: SqlFlavour = "spark",
) -> Stream:
    """The stream that a query of a text means."""
    try:
        refuse_unread(tree, text)
        refuse_lengths(tree, text, dialect)
        tree = ours(with_functions(in_dialect(tree, dialect, text), functions or {}), text)
        return Lowering(text, dict(streams), mentioned(tree), dialect).lower(tree, {}).stream
    except RecursionError:
        problem = "the query is nested too deeply"
        raise refused(tree, text, problem, IN_PARTS) from None


def _refuse_others(text: object, given: Mapping[str, object]) -> None:
    if not isinstance(text, str):
        raise PlanError(f"a query is a text; got {text!r}.", remedy='Write cz.sql("SELECT ...", bids=bids).')
    wrong = next(
        (name for name, one in given.items() if not isinstance(one, Stream | Module | Callable)), None
    )
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
    dialect: SqlFlavour = "spark"
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
                f"{closest(name, known)} In a script declare it, CREATE STREAM {name} FROM ...; "
                f"in Python give it, cz.sql(text, {name}=...).",
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
            if len(row.expressions) != len(node.expressions[0].expressions):
                problem = "VALUES has rows of different lengths"
                raise refused(row, self.text, problem, "Give every row as many values; NULL is one.")
            try:
                values = [lowered(one) for one in row.expressions]
            except CaesuraError as error:
                raise placed(error, row, self.text) from None
            if not all(isinstance(value, Constant) for value in values):
                raise refused(
                    row, self.text, "VALUES takes constants", "Compute them in the SELECT around it."
                )
            rows.append({f"col{n}": v.value for n, v in enumerate(values, 1) if isinstance(v, Constant)})
        return Relation.of(table_of(rows), "")

    @contextmanager
    def names_of(self, node: exp.Expr) -> Iterator[None]:
        """Within it, the names that a query gives with WITH are known."""
        outer = dict(self.with_)
        held = node.args.get("with_")
        self._refuse_twice(held)
        if held is not None and held.args.get("recursive"):
            declare(self, held)
        else:
            for one in held.expressions if held is not None else ():
                self.declare(one)
        try:
            yield
        finally:
            self.with_ = outer

    def _refuse_twice(self, held: exp.With | None) -> None:
        """Refuses two tables of one WITH under one name."""
        seen: set[str] = set()
        for table in held.expressions if held is not None else ():
            if table.alias.lower() in seen:
                problem = f"WITH has two tables called '{table.alias}'"
                raise refused(table.args["alias"], self.text, problem, "Give one of them another name.")
            seen.add(table.alias.lower())

    # -- queries ------------------------------------------------------------------------------------------

    def lower(self, node: exp.Expr, bounds: Mapping[str, int]) -> Relation:
        """A query of any kind; ``bounds`` says of ranks how many rows of each group are wanted."""
        try:
            with self.names_of(node):
                if isinstance(node, exp.Subquery | exp.Paren):
                    return self.lower(node.this, bounds)
                if isinstance(node, exp.SetOperation):
                    return self._limited(self._together(node), node)
                if isinstance(node, exp.Select):
                    return self._select(node, bounds)
        except CaesuraError as error:
            raise placed(error, node, self.text) from None
        raise refused(node, self.text, f"'{node.key.upper()}' is not known here", "Write a SELECT.")

    def declare(self, table: exp.CTE) -> None:
        """Makes a table of WITH known."""
        columns = [c.name for c in table.args["alias"].args.get("columns") or ()]
        made = self.lower(with_names(table.this, columns), {})
        self.with_[table.alias] = self.called(made, table.args["alias"])

    def called(self, made: Relation, alias: exp.TableAlias | None) -> Relation:
        """A table under the name that a query gives it, and its columns under theirs."""
        if alias is None:
            return made.named("")
        columns = [column.name for column in alias.args.get("columns") or ()]
        if columns and len(columns) != len(made.columns):
            problem = f"'{alias.name}' names {len(columns)} columns, and has {len(made.columns)}"
            raise refused(alias, self.text, problem, "Name all of them, or none.")
        return made.named(alias.name, columns)

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
            made = self._united(node, one, other, left)
            return Relation(made.distinct() if distinct else made, left.columns)
        if distinct:
            one, other = one.distinct(), other.distinct()
        without = one.difference(other)
        return Relation(one.difference(without) if isinstance(node, exp.Intersect) else without, left.columns)

    def _united(self, node: exp.Union, one: Stream, other: Stream, left: Relation) -> Stream:
        pace = node.args.get("pace")
        if pace is None:
            return one.union(other)
        column, length = pace.expressions
        for side in (one, other):
            refuse_other_times(Relation(side, left.columns), column, self.text)
        return one.pace(other, within=duration(length, self.text))

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
        relation = self.filtered(relation, where)
        shown = list(node.expressions)
        having = node.args.get("having")
        group = node.args.get("group")
        parts = [*shown, *([having.this] if having is not None else [])]
        if group is not None or any(aggregates_in(part) for part in parts):
            relation, parts = self._grouped(relation, group, shown, parts)
            if having is not None:
                relation = self.filtered(relation, conjuncts(parts.pop()))
            shown = parts
        else:
            self.refuse_assigned(relation, node)
        for at, one in enumerate(shown):
            relation, shown[at] = with_values(self, relation, one)
        relation, shown = ranked(relation, shown, bounds, self.text)
        distinct = node.args.get("distinct") is not None
        if distinct:
            return self._limited(self._projected(relation, shown, distinct=True), node)
        named = {one.alias.lower(): one.this for one in shown if isinstance(one, exp.Alias)}
        return self._projected(self._limited(relation, node, named), shown, distinct=False)

    def _bounded(self, node: exp.Select, where: list[exp.Expr]) -> tuple[Relation | None, list[exp.Expr]]:
        """A query in FROM with row numbers of which only the first are wanted: WHERE n <= 10."""
        first = node.args.get("from_")
        held = first.this if first is not None else None
        more = node.args.get("joins") or node.args.get("laterals")
        if more or not isinstance(held, exp.Subquery) or held.args.get("match") is not None:
            return None, where
        inner = held.this
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
        with self.names_of(held):
            return self.called(self.lower(inner, bounds), held.args.get("alias")), rest

    def refuse_assigned(self, relation: Relation, node: exp.Expr) -> None:
        """Refuses rows that are assigned to windows where nothing goes by those."""
        if relation.window is not None:
            problem = "the rows are assigned to windows, and GROUP BY does not name the window"
            raise refused(node, self.text, problem, "GROUP BY window_start, window_end, ...")

    def filtered(self, relation: Relation, where: list[exp.Expr]) -> Relation:
        """The rows for which all conditions hold."""
        for one in where:
            relation, one = with_values(self, relation, one, filters=True)
            if has_query(one):
                relation = met(self, relation, one)
                continue
            try:
                stream = relation.stream.where(relation.value(one, self.text))
            except CaesuraError as error:
                raise placed(error, one, self.text) from None
            relation = replace(relation, stream=stream)
        return relation

    def _grouped(
        self, relation: Relation, group: exp.Group | None, shown: list[exp.Expr], parts: list[exp.Expr]
    ) -> tuple[Relation, list[exp.Expr]]:
        keys = key_sets(group) if group is not None else []
        relation = relation.unmerged() if len(keys) > 1 else relation
        made = Grouping(relation, self.text)
        named = {one.alias.lower(): one.this for one in shown if isinstance(one, exp.Alias)}

        def added(key: exp.Expr) -> str:
            if isinstance(key, exp.Literal) and not key.is_string:
                at = number_of_rows(key) or 0
                if not 0 < at <= len(shown):
                    problem = f"SELECT has no column {key.name}, and that is what GROUP BY names"
                    raise refused(key, self.text, problem, f"It has columns 1 to {len(shown)}.")
                key = shown[at - 1].unalias()
            elif isinstance(key, exp.Column) and not key.table and not relation.find(key.name):
                key = named.get(key.name.lower(), key)
            return made.add_key(key)

        sets = [[added(key) for key in some] for some in keys]
        if made.window is None:
            self.refuse_assigned(relation, group or shown[0])
        elif not all("" in some for some in sets):
            problem = "a set of keys has no window, and the others have one"
            raise refused(group or shown[0], self.text, problem, "Name the window in every set.")
        if len(sets) > 1:
            made.sets = [list(dict.fromkeys(held for held in some if held)) for some in sets]
        if any(isinstance(part.unalias(), exp.Star) for part in parts):
            raise refused(
                shown[0], self.text, "'*' is not one value of a group", "Name the columns of GROUP BY."
            )
        return made.relation_behind(parts)

    def _projected(self, relation: Relation, shown: list[exp.Expr], *, distinct: bool) -> Relation:
        made: dict[str, Expr] = {}
        for one in shown:
            for name, value in self._columns(relation, one):
                if name in made and self.dialect == "flink":
                    name = next(f"{name}{n}" for n in count() if f"{name}{n}" not in made)
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
                "Say how many are wanted, LIMIT 10; or leave ORDER BY out, and sort the answer.",
            )
        rows = number_of_rows(limit.expression)
        if rows is None:
            raise refused(limit, self.text, "LIMIT takes a number of rows", "Write LIMIT 10.")
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
        return replace(relation, stream=relation.stream.group_by().top(rows, **options))
