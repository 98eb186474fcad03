"""The columns that a stream is grouped by; a key that is computed becomes a column in front of the groups."""

from __future__ import annotations

from collections.abc import Mapping

from caesura.api.planned import column_name
from caesura.errors import PlanError
from caesura.expr import Column, Expr, as_column, as_expr, col, name_of, same
from caesura.expr.nodes import of_pyspark
from caesura.expr.rewrite import strip
from caesura.ops.select import Select
from caesura.plan import Node, here

STEP = "group_by"


def keyed(node: Node, keys: tuple[object, ...], named: Mapping[str, object]) -> tuple[Node, tuple[str, ...]]:
    """The stream with its keys as columns, and their names."""
    names: list[str] = []
    made: dict[str, Expr] = {}
    for given in keys:
        key = as_expr(given) if of_pyspark(given) else given
        if isinstance(key, Expr) and not isinstance(key, Column):
            names.append(name_of(key))
            made[names[-1]] = strip(key)
        else:
            names.append(column_name(key, STEP, STEP))
    for name, value in named.items():
        names.append(name)
        made[name] = strip(as_column(value))
    made = {name: value for name, value in made.items() if not same(value, col(name))}
    taken = [name for name in made if name in node.schema.names]
    if taken:
        raise PlanError(
            f"the key '{taken[0]}' is {made[taken[0]]}, and there is a column '{taken[0]}' already.",
            remedy=f"Call the key otherwise, for example group_by({taken[0]}_key=...).",
        ).at(STEP, here())
    if not made:
        return node, tuple(names)
    pairs = [*((name, col(name)) for name in node.schema.names), *made.items()]
    return Select(inputs=(node,), columns=tuple(pairs)), tuple(names)
