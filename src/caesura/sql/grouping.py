"""GROUP BY and aggregates: over what is alive, or over the windows that rows are assigned to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, col, end, start
from caesura.ops.aggregate import kinds
from caesura.sql.relation import AssignedWindow, HeldColumn, Relation
from caesura.sql.text import placed, refused
from caesura.sql.windows import group_window, mark_of, refuse_other_times

NAMED = (
    "approx_count_distinct avg bool_and bool_or collect_list collect_set corr count covar_pop covar_samp "
    "first last listagg max max_by median min min_by mode percentile some stddev string_agg sum variance"
)
AGGREGATES: dict[str, Callable[..., Any]] = {
    **{name: getattr(kinds, name) for name in NAMED.split()},
    "any_value": kinds.first,
    "every": kinds.bool_and,
    "mean": kinds.avg,
    "stddev_samp": kinds.stddev,
    "var_samp": kinds.variance,
}
VALUES = (exp.Column, exp.Anonymous, exp.Binary, exp.Func, exp.Paren, exp.Case)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a part of a query is an aggregate of many rows."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES


def aggregates_in(node: exp.Expr) -> bool:
    """Whether it has any, those of OVER aside."""
    return any(is_aggregate(part) and part.find_ancestor(exp.Window) is None for part in node.walk())


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

    def add_key(self, node: exp.Expr) -> None:
        """One of GROUP BY."""
        own = group_window(node, self.text)
        if own is not None:
            refuse_other_times(self.relation, node.expressions[0], self.text)
        if own is not None or mark_of(node, self.relation.window):
            self.window = own or self.relation.window
            return
        held = next((c.held for c in self._plain(node)), f"key {len(self.keys)}")
        self.keys[held] = self.relation.value(node, self.text)
        self.written[self._written(node)] = held

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
        """A part of SELECT or HAVING, over what comes out of the groups."""

        def replaced(part: exp.Expr) -> exp.Expr:
            if part.meta.get("held") or isinstance(part, exp.Star):
                return part
            mark = mark_of(part, self.window)
            if mark:
                self.marks.add(mark)
                return _column(f"window {mark}", part)
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

        return node.copy().transform(replaced)

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
        distinct = bool(args) and isinstance(args[0], exp.Distinct)
        if distinct:
            args = list(args[0].expressions)
        given = [self.relation.value(a, self.text) for a in args if not isinstance(a, exp.Star)]
        if held not in self.made:
            try:
                self.made[held] = _made(node.name.lower(), given, distinct, where)
            except CaesuraError as error:
                raise placed(error, node, self.text) from None
        return held

    def relation_behind(self, parts: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        """What comes out of the groups, and the parts of the query over it."""
        rewritten = [self.behind(part) for part in parts]
        source = self.relation.stream
        added = {held: value for held, value in self.keys.items() if held not in source.columns}
        if added:
            source = source.with_columns(added)
        endless = source.node.properties.endless
        try:
            out = self._marked(
                self._grouped(source).agg({**self._last(), **self.made} or {"agg": kinds.count()})
            )
        except CaesuraError as error:
            raise placed(error, parts[0], self.text) from None
        out = out.forever() if self.window is not None and endless else out
        return Relation(out, tuple(HeldColumn("", name, name) for name in out.columns)), rewritten

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
        last: Any = col("window last") + self.window.size if self._session else end()
        marks = {"window start": start(), "window end": last}
        return out.with_columns({name: value for name, value in marks.items() if name[7:] in self.marks})

    def _grouped(self, source: Stream) -> Any:
        window = self.window
        if window is None:
            return source.group_by(*map(col, self.keys)).alive()
        points = source if source.node.properties.points else source.points_at_start()
        groups = points.group_by(*map(col, self.keys))
        if window.kind == "session":
            return groups.session(window.size)
        if window.kind == "tumble":
            return groups.tumbling(window.size)
        return groups.hopping(window.size, every=window.every)


def _made(name: str, given: list[Expr], distinct: bool, where: Expr | None) -> Any:
    if not distinct or name in ("min", "max", "every", "some", "bool_and", "bool_or"):
        return AGGREGATES[name](*given, where=where)
    if name == "count":
        return kinds.count_distinct(*given, where=where)
    if name == "collect_list":
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
