"""Reading and rewriting expression trees.

>>> sorted(attributes((col("a") > 1) & (col("b") < start())))
['a', 'b']
>>> rename(col("a") + 1, {"a": "z"})
Expr(z + 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from caesura.expr.lambdas import Each, Element, ListFold, parts, with_parts
from caesura.expr.nodes import Alias, Apply, Boundary, Call, Case, Cast, Column, Constant, Expr, Field, Member
from caesura.expr.nodes import col as col
from caesura.expr.nodes import start as start


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in evaluation order."""
    if type(expr) is Column:  # most are
        return ()
    match expr:
        case Apply() | Call():
            return expr.args
        case Cast() | Alias() | Field() | Member():
            return (expr.arg,)
        case Each() | ListFold():
            return parts(expr)
        case Case():
            return (*(part for branch in expr.branches for part in branch), expr.default)
    return ()


def with_children(expr: Expr, new: Sequence[Expr]) -> Expr:
    """The same node over other sub-expressions."""
    match expr:
        case Apply():
            return Apply(expr.name, tuple(new), expr.options)
        case Call():
            return replace(expr, args=tuple(new))
        case Cast():
            return Cast(new[0], expr.type, expr.attempts)
        case Alias():
            return Alias(new[0], expr.name)
        case Field():
            return Field(new[0], expr.name)
        case Member():
            return Member(new[0], expr.values)
        case Each() | ListFold():
            return with_parts(expr, list(new))
        case Case():
            return Case(tuple(zip(new[:-1:2], new[1:-1:2], strict=True)), new[-1])
    return expr


def attributes(expr: Expr) -> frozenset[str]:
    """The columns an expression reads; the lifetime is not a column."""
    if isinstance(expr, Column):
        return frozenset() if isinstance(expr, Element) else frozenset((expr.name,))
    return frozenset().union(*(attributes(c) for c in children(expr)))


def reads_time(expr: Expr) -> bool:
    """Whether it reads start() or end()."""
    return isinstance(expr, Boundary) or any(reads_time(c) for c in children(expr))


def reads_end(expr: Expr) -> bool:
    """Whether it reads end()."""
    own = isinstance(expr, Boundary) and expr.side == "end"
    return own or any(reads_end(c) for c in children(expr))


def has_call(expr: Expr) -> bool:
    """Whether it calls a user's function, which may answer differently each time."""
    return isinstance(expr, Call) or any(has_call(c) for c in children(expr))


def substitute(
    expr: Expr, mapping: Mapping[str, Expr], *, start: Expr | None = None, end: Expr | None = None
) -> Expr:
    """The expression with columns, and the lifetime's ends if given, replaced.

    >>> substitute(col("a") * 2, {"a": col("b") + 1})
    Expr((b + 1) * 2)
    """
    match expr:
        case Column():
            return mapping.get(expr.name, expr)
        case Boundary():
            given = start if expr.side == "start" else end
            return expr if given is None else given
        case _ if parts := children(expr):
            return with_children(expr, [substitute(p, mapping, start=start, end=end) for p in parts])
    return expr


def rename(expr: Expr, mapping: Mapping[str, str]) -> Expr:
    """The expression over columns of other names."""
    return substitute(expr, {old: Column(new) for old, new in mapping.items()})


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The predicates that must all be true for the whole to be true.

    >>> conjuncts((col("a") > 1) & ((col("b") < 2) & (col("c") == 3)))
    (Expr(a > 1), Expr(b < 2), Expr(c = 3))
    """
    match expr:
        case Apply(name="and"):
            return tuple(part for arg in expr.args for part in conjuncts(arg))
        case Alias():
            return conjuncts(expr.arg)
    return (expr,)


def strip(expr: Expr) -> Expr:
    """The expression without an outer alias."""
    return strip(expr.arg) if isinstance(expr, Alias) else expr


def name_of(expr: Expr) -> str:
    """The output column's name: the alias, the column's own, or the text."""
    return expr.name if isinstance(expr, Alias | Column) else str(expr)


def is_column(expr: Expr) -> str | None:
    """The column's name when the expression is one column, perhaps under an alias."""
    bare = strip(expr)
    return bare.name if isinstance(bare, Column) else None


def shifted_column(expr: Expr) -> tuple[str, Any] | None:
    """The column and the number added to it; a bare column is shifted by 0.

    >>> shifted_column(col("t") - 5), shifted_column(7.5 + col("t")), shifted_column(col("t") * 2)
    (('t', -5), ('t', 7.5), None)
    """
    match strip(expr):
        case Column(name=name):
            return name, 0
        case Apply(name="add", args=(Column(name=name), Constant(value=int() | float() | Decimal() as by))):
            return (name, by) if not isinstance(by, bool) else None
        case Apply(name="add", args=(Constant(value=int() | float() | Decimal() as by), Column(name=name))):
            return (name, by) if not isinstance(by, bool) else None
        case Apply(
            name="subtract", args=(Column(name=name), Constant(value=int() | float() | Decimal() as by))
        ):
            return (name, -by) if not isinstance(by, bool) else None
    return None
