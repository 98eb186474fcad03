"""GROUP BY and aggregates: over what is alive, or over the windows that rows are assigned to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from inspect import signature
from typing import Any

import pyarrow as pa
from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, col, end, lit, start
from caesura.expr.nodes import Apply, Cast, Constant, as_expr
from caesura.expr.sql_read import as_written
from caesura.expr.sql_text import WHOLE
from caesura.expr.types import kind
from caesura.ops.aggregate import kinds
from caesura.sql.functions import user_function
from caesura.sql.relation import AssignedWindow, HeldColumn, Ranked, Relation
from caesura.sql.text import placed, refused
from caesura.sql.windows import group_window, mark_of, refuse_other_mark, refuse_other_times, steps

NAMED = (
    "approx_count_distinct avg bool_and bool_or collect_list collect_set corr count covar_pop covar_samp "
    "first last listagg max max_by median min min_by mode percentile some stddev string_agg sum variance"
)
AGGREGATES: dict[str, Callable[..., Any]] = {
    **{name: getattr(kinds, name) for name in NAMED.split()},
    "any_value": kinds.first,
    "array_agg": kinds.collect_list,
    "count_if": lambda condition, *, where=None: kinds.count(
        where=condition if where is None else condition & where
    ),
    "every": kinds.bool_and,
    "mean": kinds.avg,
    "percentile_approx": lambda value, q, accuracy=None, *, where=None: kinds.quantile(value, q, where=where),
    "percentile_disc": kinds.quantile,
    "stddev_samp": kinds.stddev,
    "var_samp": kinds.variance,
}
VALUES = (exp.Column, exp.Anonymous, exp.Binary, exp.Func, exp.Paren, exp.Case)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a part of a query is an aggregate of many rows."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    own = user_function(node)
    if own is not None:
        return own.aggregates
    return isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES


def aggregates_in(node: exp.Expr) -> bool:
    """Whether it has any, those of OVER aside."""
    return any(is_aggregate(part) for part in node.walk(prune=_apart) if not _apart(part))


def _apart(node: exp.Expr) -> bool:
    """Whether what is in it is not of the rows around: queries, and OVER."""
    return isinstance(node, exp.Query | exp.Window | exp.Placeholder)


@dataclass
class Grouping:
    """The groups of a SELECT: their keys, their aggregates, and what each is called behind them."""

    relation: Relation
    text: str
    keys: dict[str, Expr] = field(default_factory=dict)
    """The columns that rows are grouped by, by the name that they are held under."""
    written: dict[str, str] = field(default_factory=dict)
    """What a key was written as, so that it is known where it is written again."""
    window: AssignedWindow | None = None
    made: dict[str, Any] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)
    """Which ends of windows the query speaks of."""
    sets: list[list[str]] = field(default_factory=list)
    """The sets of keys that rows are grouped by, where it is not all of them."""
    asked: dict[str, list[str]] = field(default_factory=dict)
    """What GROUPING is asked of, by the name of its column."""

    def add_key(self, node: exp.Expr) -> str:
        """One of GROUP BY; gives the name that it is held under, none for that of a window."""
        own = group_window(node, self.text)
        if own is not None:
            refuse_other_times(self.relation, node.expressions[0], self.text)
        if own is not None or mark_of(node, self.relation.window):
            before = self.window or (self.relation.window if own is not None else None)
            self.window = own or self.relation.window
            if before is not None and before != self.window:
                problem = "the rows are grouped by two windows"
                raise refused(node, self.text, problem, "Group by one, and by the other around that query.")
            return ""
        known = self.written.get(self._written(node))
        if known is not None:
            return known
        held = next((c.held for c in self._plain(node)), f"key {len(self.keys)}")
        self.keys[held] = self.relation.value(node, self.text)
        self.written[self._written(node)] = held
        return held

    def _plain(self, node: exp.Expr) -> list[HeldColumn]:
        """The column that a key is, where it is nothing else."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or len(node.parts) > 2:
            return []
        return self.relation.find(node.name, node.table)

    def _written(self, node: exp.Expr) -> str:
        return self.relation.bound(node, self.text).sql("spark").lower()

    def behind(self, node: exp.Expr) -> exp.Expr:
        """A part of SELECT or HAVING, over what comes out of the groups; queries in it stay as they are."""
        if isinstance(node.unalias(), exp.Query):
            return node
        node = node.copy()
        queries = [one for one in node.find_all(exp.Query) if one.find_ancestor(exp.Query) is None]
        for at, one in enumerate(queries):
            one.replace(exp.Placeholder(this=str(at)))

        def replaced(part: exp.Expr) -> exp.Expr:
            if part.meta.get("held") or isinstance(part, exp.Star):
                return part
            mark = mark_of(part, self.window)
            if mark:
                refuse_other_mark(self.relation, part, self.window, self.text)
                self.marks.add(mark)
                return _column(f"window {mark}", part)
            if self.sets and isinstance(part, exp.Anonymous) and part.name.lower() == "grouping":
                return _column(self._grouping(part), part)
            framed = isinstance(part.parent, exp.Window) and part.arg_key == "this"
            if is_aggregate(part) and not framed:
                return _column(self.aggregate(part), part)
            if isinstance(part, VALUES) and self.relation.has(part) and not aggregates_in(part):
                held = self.written.get(self._written(part))
                if held is not None:
                    return _column(held, part)
            if isinstance(part, exp.Column):
                raise self._ungrouped(part)
            return part

        node = node.transform(replaced)
        for held in list(node.find_all(exp.Placeholder)):
            held.replace(queries[int(held.name)])
        return node

    def _grouping(self, node: exp.Anonymous) -> str:
        """The column that tells which keys a set has not."""
        held = [self.written.get(self._written(key), "") for key in node.expressions]
        if not held or not all(held):
            raise refused(node, self.text, "GROUPING takes keys of GROUP BY", "Write GROUPING(k).")
        name = f"grouping {', '.join(held)}"
        self.asked[name] = held
        return name

    def _ungrouped(self, node: exp.Column) -> CaesuraError:
        if not self.relation.find(node.name, node.table):
            return self.relation.unknown(node, self.text)
        return refused(
            node,
            self.text,
            f"'{node.sql('spark')}' is neither grouped by nor aggregated",
            "Put it into GROUP BY, or take one of its values: min, max, first, last.",
        )

    def aggregate(self, node: exp.Expr) -> str:
        """The name under which an aggregate is held."""
        where, held = None, f"agg {self._written(node)}"
        if isinstance(node, exp.Filter):
            where = self.relation.value(node.expression.this, self.text)
            node = node.this
        args = list(node.expressions)
        order = args[0] if args and isinstance(args[0], exp.Order) else None
        args[:1] = [order.this] if order is not None else args[:1]
        distinct = bool(args) and isinstance(args[0], exp.Distinct)
        if distinct:
            args = list(args[0].expressions)
        stars = [one for one in args if isinstance(one, exp.Star)]
        if stars and (node.name.lower() != "count" or len(args) > 1 or distinct):
            problem = f"'*' is no argument of {node.name.upper()}"
            raise refused(stars[0], self.text, problem, "Name a column; of rows, write count(*).")
        inner = next((one for arg in args for one in arg.walk() if is_aggregate(one) or _apart(one)), None)
        if inner is not None:
            of = "a query" if _apart(inner) else as_written(inner)
            problem = f"{node.name.upper()} is of {of}, which is no value of a row"
            raise refused(inner, self.text, problem, "Compute it in FROM, and aggregate that.")
        given = [self.relation.value(a, self.text) for a in args if a not in stars]
        if node.name.lower() in TEXTS and given and kind(self.relation.type_of(given[0])) != "string":
            given[0] = Cast(given[0], pa.string())
        given = [self._of_a_type(one) for one in given]
        if held not in self.made:
            try:
                options = {} if order is None else self._ordered(node, order)
                self.made[held] = _made(node, given, distinct, {"where": where, **options})
            except CaesuraError as error:
                raise placed(error, node, self.text) from None
        return held

    def _of_a_type(self, value: Expr) -> Expr:
        """A value; NULL by itself has a type that no stream carries, and is a number that is null."""
        return Cast(value, pa.int64()) if pa.types.is_null(self.relation.type_of(value)) else value

    def _ordered(self, node: exp.Expr, order: exp.Order) -> dict[str, Any]:
        """ORDER BY within string_agg."""
        by = Ranked.order(self.relation, order.expressions, self.text)
        if node.name.lower() not in TEXTS or len(set(by.descending)) > 1:
            problem = f"ORDER BY within {node.name.upper()} is not known here"
            if node.name.lower() in TEXTS:
                problem = f"ORDER BY within {node.name.upper()} goes all up or all down"
            remedy = "Write string_agg(s, ', ' ORDER BY v), with DESC for all or for none."
            raise refused(order, self.text, problem, remedy)
        return {"order": list(by.by), "descending": by.descending[0]}

    def relation_behind(self, parts: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        """What comes out of the groups, and the parts of the query over it."""
        rewritten = [self.behind(part) for part in parts]
        source = self.relation.stream
        added = {held: value for held, value in self.keys.items() if held not in source.columns}
        if added:
            source = source.with_columns(added)
        endless = source.node.properties.endless and self.window is not None
        stays = endless and self.window is not None and self.window.kind != "snapshot"
        try:
            made = [
                self._padded(
                    self._marked(one.agg({**self._last(), **self.made} or {"agg": kinds.count()})), keys
                )
                for keys in self.sets or [list(self.keys)]
                for one in self._grouped(source, keys)
            ]
        except CaesuraError as error:
            raise placed(error, parts[0], self.text) from None
        out = reduce(lambda one, other: one.union(other), made)
        out = out.forever() if stays else out
        return Relation(out, tuple(HeldColumn("", name, name) for name in out.columns)), rewritten

    def _padded(self, out: Stream, keys: list[str]) -> Stream:
        """With null for keys that a set has not, and what GROUPING says of them."""
        if not self.sets:
            return out
        types = self.relation.stream.with_columns(self.keys).schema
        missing = {held: Constant(None, types.field(held).type) for held in self.keys if held not in keys}
        asked = {
            name: lit(sum((held not in keys) << n for n, held in enumerate(reversed(some))))
            for name, some in self.asked.items()
        }
        names = [*self.keys, *(n for n in out.columns if n not in self.keys)]
        return out.select({**{n: missing.get(n, col(n)) for n in names}, **asked})

    @property
    def _session(self) -> bool:
        return self.window is not None and self.window.kind == "session"

    def _last(self) -> dict[str, Any]:
        """A session's last row: its end moves with it."""
        return {"window last": kinds.max(start())} if self._session and "end" in self.marks else {}

    def _marked(self, out: Stream) -> Stream:
        """With the starts and ends of windows, where the query speaks of them."""
        if self.window is None or not self.marks:
            return out
        if self.window.kind == "count" and "end" in self.marks:
            raise PlanError(
                "COUNT_WINDOW has no window_end: it ends with rows that are still to come.",
                remedy="Take the time of its last row: max(ts).",
            )
        last: Any = col("window last") + self.window.size if self._session else end()
        marks = {"window start": start(), "window end": last}
        return out.with_columns({name: value for name, value in marks.items() if name[7:] in self.marks})

    def _grouped(self, source: Stream, keys: list[str]) -> list[Any]:
        window = self.window
        if window is None:
            return [source.group_by(*map(col, keys)).alive()]
        if window.kind == "snapshot":
            return [source.group_by(*map(col, keys)).snapshot()]
        points = source if source.node.properties.points else source.points_at_start()
        groups = points.group_by(*map(col, keys))
        if window.kind == "session":
            return [groups.session(window.size)]
        if window.kind == "tumble":
            return [groups.tumbling(window.size)]
        if window.kind == "count":
            return [groups.count_by_start(window.size)]
        if window.kind == "cumulate":
            return [groups.hopping(size, every=window.size) for size in steps(window)]
        return [groups.hopping(window.size, every=window.every)]


TEXTS = ("string_agg", "listagg")
PLAIN = (*TEXTS, "percentile", "percentile_approx", "percentile_disc", "approx_count_distinct")
"""Aggregates whose further arguments are plain values."""


def _plain_value(name: str, given: Expr) -> Any:
    value = given.value if isinstance(given, Constant) else None
    if not isinstance(value, str if name in TEXTS else int | float | Decimal):
        wanted, written = ("a text", "s, ', '") if name in TEXTS else ("a number", "v, 0.5")
        problem = f"what {name.upper()} takes behind its value is {wanted}, and the same for all rows"
        raise PlanError(problem, remedy=f"Write {name}({written}).")
    return float(value) if isinstance(value, Decimal) else value


def _refuse_count(name: str, given: list[Expr], known: Callable[..., Any]) -> None:
    """Refuses an aggregate of more or fewer arguments than it has."""
    places = [p for p in signature(known).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    fewest = sum(p.default is p.empty for p in places)
    if not fewest <= len(given) <= len(places):
        wanted = str(fewest) if fewest == len(places) else f"{fewest} to {len(places)}"
        noun = "argument" if wanted == "1" else "arguments"
        problem = f"{name.upper()} takes {wanted} {noun}, and not {len(given)}"
        raise PlanError(problem, remedy=f"Write {name}({', '.join(p.name for p in places)}).")


def _counted(given: list[Expr], where: Any) -> Any:
    """count(x, y): of the rows where none is null."""
    filled = reduce(lambda one, other: one & other, (value.is_not_null() for value in given))
    return kinds.count(where=filled if where is None else filled & where)


def _made(node: exp.Expr, given: list[Expr], distinct: bool, options: dict[str, Any]) -> Any:
    where = options["where"]
    name, own = node.name.lower(), user_function(node)
    if own is not None:
        if distinct or where is not None:
            raise PlanError(
                f"'{name}' is an aggregate of yours, and takes neither DISTINCT nor FILTER.",
                remedy="Take those rows first: FROM (SELECT DISTINCT ... WHERE ...).",
            )
        return own.call(*given)
    if name == "count" and len(given) > 1 and not distinct:
        return _counted(given, where)
    if distinct and len(given) > 1:
        problem = f"{name.upper()}(DISTINCT ...) is of one value here, and not of {len(given)}"
        raise PlanError(problem, remedy="Take the distinct rows first: FROM (SELECT DISTINCT ...).")
    _refuse_count(name, given, AGGREGATES[name])
    if name == "avg" and node.meta.get(WHOLE) and not distinct:
        total, rows = kinds.sum(*given, where=where), kinds.count(*given, where=where)
        return Apply("quotient", (as_expr(total), as_expr(rows)))
    if name in PLAIN:
        given = [given[0], *(_plain_value(name, one) for one in given[1:])]
    if not distinct or name in ("min", "max", "every", "some", "bool_and", "bool_or"):
        return AGGREGATES[name](*given, **options)
    if name == "count" and given:
        return kinds.count_distinct(*given, where=where)
    if name in ("collect_list", "array_agg"):
        return kinds.collect_set(*given, where=where)
    raise PlanError(
        f"{name.upper()}(DISTINCT ...) is not known here",
        remedy="Take the distinct rows first: FROM (SELECT DISTINCT ...).",
    )


def _column(held: str, like: exp.Expr) -> exp.Column:
    made = exp.Column(this=exp.Identifier(this=held, quoted=True))
    named = like.name if isinstance(like, exp.Column) else like.sql("spark").lower()
    made.meta.update({**like.meta, "held": True, "written": named})
    return made
