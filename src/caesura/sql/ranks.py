"""OVER: ranks within groups, and aggregates of the rows before each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import CaesuraError
from caesura.expr import col, lit
from caesura.ops.over import first_value, lag, lead
from caesura.punctuation import INFINITY
from caesura.sql.grouping import Grouping, is_aggregate
from caesura.sql.pairs import null_safe
from caesura.sql.relation import HeldColumn, Ranked, Relation
from caesura.sql.text import placed, refused
from caesura.sql.windows import duration, refuse_other_times

ENDLESS = 2**60
"""So many ticks as a frame without a bound reaches back."""
RANKS = ("row_number", "rank", "dense_rank")
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
    n = int(value.name) - isinstance(node, exp.LT)
    return (name, n) if n >= 1 and (n == 1 or not isinstance(node, exp.EQ)) else None


def ranked(
    relation: Relation, shown: list[exp.Expr], bounds: Mapping[str, int], text: str
) -> tuple[Relation, list[exp.Expr]]:
    """The rows with what OVER says of each, and the columns that are shown, over them."""
    made = []
    if sum(1 for one in shown for _ in one.find_all(exp.Window)) > 1:
        bounds = {}  # the others are of all rows
    for one in shown:
        windows = list(one.find_all(exp.Window))
        for window in windows:
            bound = bounds.get(one.alias.lower()) if one.unalias() is window else None
            relation, held = _over(relation, window, bound, text)
            column = exp.Column(this=exp.Identifier(this=held, quoted=True))
            one = _swapped(one, window, column)
        made.append(one)
    return relation, made


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
        elif order is None and node.args.get("spec") is None and is_aggregate(called):
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
        args = [relation.value(a, text) if n == 0 else int(a.name) for n, a in enumerate(called.expressions)]
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
    start, kind = spec.args.get("start"), str(spec.args.get("kind") or "").upper()
    end = str(spec.args.get("end") or "CURRENT ROW").upper()
    if start == "UNBOUNDED" and spec.args.get("start_side") == "PRECEDING" and end == "CURRENT ROW":
        return (INFINITY, None) if kind == "ROWS" else (None, ENDLESS)
    if end != "CURRENT ROW" or isinstance(start, str):
        raise refused(
            node,
            text,
            "this frame is not known here",
            "Write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or RANGE.",
        )
    if kind == "ROWS":
        return int(start.name) + 1, None
    return None, duration(start, text)
