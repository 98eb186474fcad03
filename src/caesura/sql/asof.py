"""Joins that go by times: ASOF JOIN, and FOR SYSTEM_TIME AS OF.

The first finds the row of the other table that started last before each row (or first behind it); the second
the rows that were there when each row started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from caesura.errors import CaesuraError
from caesura.expr import col
from caesura.ops.join import How
from caesura.sql.pairs import JoinKeys, equal_sides
from caesura.sql.relation import Relation
from caesura.sql.rules import bare, conjuncts
from caesura.sql.text import placed, refused

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

ORDERS: dict[type[exp.Expr], tuple[str, bool]] = {
    exp.GTE: ("backward", True),
    exp.GT: ("backward", False),
    exp.LTE: ("forward", True),
    exp.LT: ("forward", False),
}
"""Which way to look from a time of the left, and whether the same instant counts."""
TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
}


def as_of(query: Lowering, left: Relation, right: Relation, join: exp.Join, how: How) -> Relation:
    """ASOF [LEFT] JOIN: equalities, and one comparison of the two times."""
    keys = JoinKeys(left, right, "left")
    looks: list[tuple[str, bool]] = []
    for one in conjuncts(join.args.get("on")):
        pair = equal_sides(left, right, one)
        if pair is None:
            looks.append(_looks(query, left, right, one))
        else:
            keys.add(left.value(pair[0], query.text), right.value(pair[1], query.text))
    if len(looks) != 1:
        problem = f"ASOF JOIN wants one comparison of times, not {len(looks)}"
        raise refused(join, query.text, problem, "Write ON a.k = b.k AND a.ts >= b.ts.")
    one_side, other_side = keys.sides()
    direction, exact = looks[0]
    options: dict[str, Any] = {"direction": direction, "allow_exact_matches": exact, "how": how}
    try:
        joined = one_side.stream.join_asof(other_side.stream, on=keys.on, **options)
    except CaesuraError as error:
        raise placed(error, join, query.text) from None
    held = [name for name in joined.columns if name not in keys.computed[0]]
    return Relation(joined.select({name: col(name) for name in held}), (*left.columns, *right.columns))


def _looks(query: Lowering, left: Relation, right: Relation, node: exp.Expr) -> tuple[str, bool]:
    plain, kind = bare(node), type(bare(node))
    if kind in ORDERS:
        one, other = plain.this, plain.expression
        if right.has(one) and left.has(other):
            one, other, kind = other, one, TURNED[kind]
        if left.is_time(one) and right.is_time(other):
            return ORDERS[kind]
    problem = f"ASOF JOIN compares the times of rows; '{node.sql('spark')}' does not"
    raise refused(node, query.text, problem, "Write ON a.k = b.k AND a.ts >= b.ts, with the times of both.")


def at_starts(
    query: Lowering, left: Relation, join: exp.Join, joined: Callable[[Relation], Relation]
) -> Relation:
    """FOR SYSTEM_TIME AS OF a.ts: each row of the left meets what is there when it starts."""
    version = join.this.args["version"]
    asked = version.expression
    if version.name.upper() != "TIMESTAMP" or str(version.args.get("kind")).upper() != "AS OF":
        problem = "a table is read FOR SYSTEM_TIME AS OF a time only"
        raise refused(join, query.text, problem, "Write FOR SYSTEM_TIME AS OF a.ts.")
    stream, known = left.stream, left.stream.node.properties
    if not isinstance(asked, exp.Column) or not left.is_time(asked) or not (known.points or known.endless):
        problem = "FOR SYSTEM_TIME AS OF takes the time of rows that are points, or that stay"
        raise refused(join, query.text, problem, "Lifetimes join as they are: write JOIN.")
    if known.points:
        return joined(left)
    made = joined(replace(left, stream=stream.points_at_start()))
    return replace(made, stream=made.stream.forever())
