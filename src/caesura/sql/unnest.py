"""Elements of arrays as rows: LATERAL VIEW explode(tags) x AS tag, and CROSS JOIN UNNEST(tags) AS x(tag)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from caesura.errors import CaesuraError
from caesura.expr.functions import explode, explode_outer
from caesura.sql.relation import HeldColumn, Relation
from caesura.sql.text import placed, refused

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

CALLS = {"explode": explode, "explode_outer": explode_outer}


def as_laterals(node: exp.Select) -> None:
    """UNNEST in FROM, written as LATERAL VIEW explode."""
    for join in list(node.args.get("joins") or ()):
        unnest = join.this
        if not isinstance(unnest, exp.Unnest) or len(unnest.expressions) != 1 or join.args.get("using"):
            continue
        on, left = join.args.get("on"), (join.side or "").upper() == "LEFT"
        plain = not join.args.get("method") and (join.kind or "").upper() in ("", "CROSS", "INNER", "OUTER")
        if (on is not None and on != exp.true()) or (join.side and not left) or not plain:
            continue
        called = exp.Anonymous(this="explode_outer" if left else "explode", expressions=unnest.expressions)
        node.append("laterals", exp.Lateral(this=called, view=True, alias=unnest.args.get("alias")))
        join.pop()


def exploded(query: Lowering, relation: Relation, node: exp.Lateral) -> Relation:
    """The rows of a relation, one for each element of an array."""
    call, alias = node.this, node.args.get("alias")
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    name += "_outer" if name == "explode" and node.args.get("outer") else ""
    columns = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    if name not in CALLS or len(columns) > 1 or len(call.expressions) != 1:
        raise refused(
            node,
            query.text,
            "LATERAL is known as LATERAL VIEW [OUTER] explode(array) t AS element only",
            "Write that, or UNNEST(array) AS t(element).",
        )
    held = f"element {len(relation.columns)}"
    try:
        value = CALLS[name](relation.value(call.expressions[0], query.text))
        stream = relation.stream.with_columns({held: value})
    except CaesuraError as error:
        raise placed(error, node, query.text) from None
    column = HeldColumn(alias.name if alias is not None else "", columns[0] if columns else "col", held)
    return replace(relation, stream=stream, columns=(*relation.columns, column))
