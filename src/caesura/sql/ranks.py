"""OVER: ranks within groups, and aggregates of the rows before each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from caesura.errors import CaesuraError
from caesura.expr import Expr, col
from caesura.ops.over import first_value, lag, lead
from caesura.sql.grouping import Grouping, is_aggregate
from caesura.sql.relation import HeldColumn, Relation
from caesura.sql.text import placed, refused
from caesura.sql.windows import duration, refuse_other_times

RANKS = ("row_number", "rank", "dense_rank")
NEIGHBOURS: dict[str, Any] = {"lag": lag, "lead": lead, "first_value": first_value}


@dataclass(frozen=True)
class Ranked:
    """By what rows stand, and which come first."""

    by: tuple[Expr, ...]
    descending: tuple[bool, ...]

    @staticmethod
    def order(relation: Relation, parts: Sequence[exp.Expr], text: str) -> Ranked:
        """ORDER BY; null stands first, and last where it is descending, as in Spark."""
        by, descending = [], []
        for part in parts:
            down = bool(part.args.get("desc"))
            if part.args.get("nulls_first") not in (None, not down):
                raise refused(
                    part, text, "null stands first, or last with DESC", "Leave NULLS FIRST and LAST out."
                )
            by.append(relation.value(part.this, text))
            descending.append(down)
        return Ranked(tuple(by), tuple(descending))


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
        else:
            out = _framed(relation, groups.group_by(*map(col, keys)), node, called, held, text)
    except CaesuraError as error:
        raise placed(error, node, text) from None
    out = out.drop(*keys) if keys else out
    return Relation(out, (*relation.columns, HeldColumn("", held, held, shown=False))), held


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
        return groups.over(rows=rows or 1).agg(**{held: NEIGHBOURS[name](*args)})
    if not is_aggregate(called):
        raise refused(
            node, text, f"{name.upper()} OVER is not known here", "See docs/sql.md for those that are."
        )
    grouping = Grouping(relation, text)
    return groups.over(rows=rows, range=span).agg(**{held: grouping.made[grouping.aggregate(called)]})


def _frame(node: exp.Window, text: str) -> tuple[int | None, Any]:
    spec = node.args.get("spec")
    if spec is None:
        return None, None
    start, kind = spec.args.get("start"), str(spec.args.get("kind") or "").upper()
    if str(spec.args.get("end") or "").upper() != "CURRENT ROW" or isinstance(start, str):
        raise refused(
            node,
            text,
            "this frame is not known here",
            "Write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or RANGE.",
        )
    if kind == "ROWS":
        return int(start.name) + 1, None
    return None, duration(start, text)
