"""OVER: ranks within groups, and aggregates of the rows before each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import CaesuraError
from caesura.expr import col, lit
from caesura.expr.sql_read import as_written
from caesura.ops.over import first_value, lag, lead
from caesura.punctuation import INFINITY
from caesura.sql.grouping import Grouping, is_aggregate
from caesura.sql.pairs import null_safe
from caesura.sql.relation import HeldColumn, Ranked, Relation
from caesura.sql.rules import number_of_rows
from caesura.sql.text import placed, refused
from caesura.sql.windows import duration, refuse_other_times

ENDLESS = 2**60
"""So many ticks as a frame without a bound reaches back."""
RANKS = ("row_number", "rank", "dense_rank")
ARGUMENTS = {**dict.fromkeys(RANKS, (0, 0)), "lag": (1, 2), "lead": (1, 2), "first_value": (1, 1)}
"""How many arguments they have: at least, at most."""
NEIGHBOURS: dict[str, Any] = {"lag": lag, "lead": lead, "first_value": first_value}


def is_row_number(node: exp.Expr) -> bool:
    """Whether a column is ROW_NUMBER() OVER (...)."""
    return isinstance(node, exp.Window) and node.this.name.lower() == "row_number"


def bound_of(node: exp.Expr, names: set[str]) -> tuple[str, int] | None:
    """Of ``rank <= 10``, which rank and how many; None where a condition says nothing of this kind."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.LTE | exp.LT | exp.EQ) or not isinstance(node.this, exp.Column):
        return None
    name, value = node.this.name.lower(), node.expression
    if name not in names or not isinstance(value, exp.Literal) or value.is_string:
        return None
    rows = number_of_rows(value)
    n = 0 if rows is None else rows - isinstance(node, exp.LT)
    return (name, n) if n >= 1 and (n == 1 or not isinstance(node, exp.EQ)) else None


def ranked(
    relation: Relation, shown: list[exp.Expr], bounds: Mapping[str, int], text: str
) -> tuple[Relation, list[exp.Expr]]:
    """The rows with what OVER says of each, and the columns that are shown, over them."""
    if sum(1 for one in shown for _ in one.find_all(exp.Window)) > 1:
        bounds = {}  # the others are of all rows
    made = list(shown)
    for framed in (True, False):  # frames first: behind a rank, rows are in parts
        for at, one in enumerate(made):
            for window in list(one.find_all(exp.Window)):
                if _is_framed(window) is not framed:
                    continue
                _refuse_arguments(window, text)
                bound = bounds.get(one.alias.lower()) if one.unalias() is window else None
                relation, held = _over(relation, window, bound, text)
                column = exp.Column(this=exp.Identifier(this=held, quoted=True))
                one = made[at] = _swapped(one, window, column)
    return relation, made


def _is_framed(node: exp.Window) -> bool:
    """Whether it is of the rows before each, not of all that are alive."""
    plain = node.args.get("order") is None and node.args.get("spec") is None
    return node.this.name.lower() not in RANKS and not (plain and is_aggregate(node.this))


def _refuse_arguments(node: exp.Window, text: str) -> None:
    """Refuses what ranks and neighbours have no use for."""
    called, name = node.this, node.this.name.lower()
    if node.find_ancestor(exp.Window) is not None or called.find(exp.Window) is not None:
        raise refused(node, text, "OVER within OVER is not known here", "Compute the inner one in FROM.")
    fewest, most = ARGUMENTS.get(name, (0, None))
    if most is not None and not fewest <= len(called.expressions) <= most:
        problem = f"{name.upper()} does not take {len(called.expressions)} arguments here"
        raise refused(node, text, problem, "Write LAG(v), LAG(v, 2), FIRST_VALUE(v) or RANK().")
    if node.args.get("spec") is not None and (name in RANKS or name in ("lag", "lead")):
        problem = f"{name.upper()} has no frame"
        raise refused(node, text, problem, "It is of all rows of the partition: write ORDER BY alone.")


def _swapped(one: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    if one is old:
        return new
    old.replace(new)
    return one


def _over(relation: Relation, node: exp.Window, bound: int | None, text: str) -> tuple[Relation, str]:
    called, name = node.this, node.this.name.lower()
    held = f"over {len(relation.columns)}"
    parts = [relation.value(part, text) for part in node.args.get("partition_by") or ()]
    keys = {f"{held} key {n}": part for n, part in enumerate(parts)}
    groups = relation.stream.with_columns(keys) if keys else relation.stream
    order = node.args.get("order")
    try:
        if name in RANKS:
            by = Ranked.order(relation, order.expressions if order is not None else [], text)
            options: dict[str, Any] = {"by": list(by.by), "descending": list(by.descending), name: held}
            grouped = groups.group_by(*map(col, keys))
            out = grouped.rank(**options) if bound is None else grouped.top(bound, **options)
        elif not _is_framed(node):
            out = _total(relation, groups, list(keys), called, held, text)
        else:
            out = _framed(relation, groups.group_by(*map(col, keys)), node, called, held, text)
    except CaesuraError as error:
        raise placed(error, node, text) from None
    out = out.drop(*keys) if keys else out
    return Relation(out, (*relation.columns, HeldColumn("", held, held, shown=False))), held


def _total(
    relation: Relation, rows: Stream, keys: list[str], called: exp.Expr, held: str, text: str
) -> Stream:
    """Rows beside an aggregate of all that are alive of their group."""
    grouping = Grouping(relation, text)
    made = {held: grouping.made[grouping.aggregate(called)]}
    totals = rows.group_by(*map(col, keys)).alive().agg(made)
    on = {f"{held} on {n}": value for n, value in enumerate(null_safe(rows, keys))} or {f"{held} on": lit(1)}
    joined = rows.with_columns(on).join(totals.select({**on, held: col(held)}), on=list(on))
    return joined.drop(*on)


def _framed(relation: Relation, groups: Any, node: exp.Window, called: exp.Expr, held: str, text: str) -> Any:
    name = called.name.lower()
    order = node.args.get("order")
    parts = list(order.expressions) if order is not None else []
    if len(parts) != 1 or parts[0].args.get("desc"):
        raise refused(node, text, "a frame wants ORDER BY the time of rows, ascending", "Write ORDER BY ts.")
    refuse_other_times(relation, parts[0].this, text)
    rows, span = _frame(node, text)
    if name in NEIGHBOURS:
        value, *by = called.expressions
        args = [relation.value(value, text), *(_offset(one, text) for one in by)]
        frame = {"rows": rows, "range": span} if name == "first_value" else {"rows": 1}
        return groups.over(**frame).agg(**{held: NEIGHBOURS[name](*args)})
    if not is_aggregate(called):
        raise refused(
            node, text, f"{name.upper()} OVER is not known here", "See docs/sql.md for those that are."
        )
    grouping = Grouping(relation, text)
    return groups.over(rows=rows, range=span).agg(**{held: grouping.made[grouping.aggregate(called)]})


def _frame(node: exp.Window, text: str) -> tuple[int | None, Any]:
    spec = node.args.get("spec")
    if spec is None:
        return None, None if node.this.name.lower() in ("lag", "lead") else ENDLESS
    told = {
        name: str(spec.args.get(name) or "").upper() for name in ("kind", "start_side", "end", "end_side")
    }
    start, before = spec.args.get("start"), told["start_side"] == "PRECEDING"
    known = told["kind"] in ("ROWS", "RANGE") and before and told["end"] in ("", "CURRENT ROW")
    if known and str(start).upper() == "UNBOUNDED":
        return (INFINITY, None) if told["kind"] == "ROWS" else (None, ENDLESS)
    if not known or not isinstance(start, exp.Expr):
        raise refused(
            node,
            text,
            "this frame is not known here",
            "Write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or RANGE.",
        )
    if told["kind"] == "ROWS":
        return _offset(start, text) + 1, None
    return None, duration(start, text)


def _offset(node: exp.Expr, text: str) -> int:
    rows = number_of_rows(node)
    if rows is None:
        raise refused(node, text, f"{as_written(node)} is no number of rows", "Write a whole number.")
    return rows
