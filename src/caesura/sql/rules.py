"""Rewrite rules of conditions: what must hold is found where it can be looked at early.

>>> from sqlglot import parse_one
>>> [str(one) for one in factored(parse_one("(a = b AND c = 1) OR (a = b AND c = 2)"))]
['a = b', 'c = 1 OR c = 2']
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce

from sqlglot import exp

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def number_of_rows(node: exp.Expr) -> int | None:
    """So many rows as a literal says; None where it is none, or no number of rows."""
    node = bare(node)
    plain = isinstance(node, exp.Literal) and not node.is_string and re.fullmatch("[0-9]{1,18}", node.name)
    return int(node.name) if plain else None


def bare(node: exp.Expr) -> exp.Expr:
    """Without the brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that must all hold."""
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        inner = conjuncts(node.this)
        return inner if len(inner) > 1 else [node]
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def disjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions of which one must hold."""
    plain = bare(node)
    if isinstance(plain, exp.Or):
        return [*disjuncts(plain.this), *disjuncts(plain.expression)]
    return [plain]


def factored(node: exp.Expr) -> list[exp.Expr]:
    """``(a AND b) OR (a AND c)`` as ``a`` and ``b OR c``."""
    branches = [conjuncts(branch) for branch in disjuncts(node)]
    if len(branches) < 2:
        return [node]
    common = [one for one in branches[0] if all(one in branch for branch in branches[1:])]
    if not common:
        return [node]
    rest = [[one for one in branch if one not in common] for branch in branches]
    return common if not all(rest) else [*common, any_of([all_of(branch) for branch in rest])]


def implied(node: exp.Expr, local: Callable[[exp.Expr], bool]) -> exp.Expr | None:
    """What a condition with OR says of one table: ``(n = 1 AND m = 2) OR n = 3`` says n = 1 OR n = 3."""
    branches = [[one for one in conjuncts(branch) if local(one)] for branch in disjuncts(node)]
    if len(branches) < 2 or not all(branches):
        return None
    return any_of([all_of(branch) for branch in branches])


def all_of(nodes: list[exp.Expr]) -> exp.Expr:
    """The conditions as one that holds where all do."""
    return reduce(lambda a, b: exp.And(this=a, expression=b), [_wrapped(one) for one in nodes])


def any_of(nodes: list[exp.Expr]) -> exp.Expr:
    """The conditions as one that holds where one does."""
    return reduce(lambda a, b: exp.Or(this=a, expression=b), [_wrapped(one) for one in nodes])


def _wrapped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Connector) else node.copy()


def wants_value(node: exp.Expr, part: exp.Expr) -> bool:
    """Whether a condition cannot be true where a value in it is null: a comparison of arithmetic with it."""
    above = part.parent
    while above is not None and isinstance(
        above, exp.Paren | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Neg
    ):
        above = above.parent
    return isinstance(above, COMPARISONS) and above is bare(node)
