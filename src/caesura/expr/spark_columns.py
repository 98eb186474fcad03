"""Columns of PySpark, taken where they mean exactly what an expression does, node by node.

A `pyspark.sql.Column` holds a tree of Spark's; its names, constants, casts, conditions and calls become ours.
What else there is, is refused, with the text of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caesura.errors import CaesuraError, ExprError
from caesura.expr import functions
from caesura.expr.nodes import Alias, Apply, Case, Cast, Column, Constant, Expr, Field, Member, lit
from caesura.expr.sql_text import by_name, from_text
from caesura.expr.types import as_type

OPERATORS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "remainder",
    "=": "equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "<=>": "equal_null_safe",
    "and": "and",
    "or": "or",
    "!": "not",
    "not": "not",
    "negative": "negate",
    "isnull": "is_null",
    "isnotnull": "is_not_null",
    "&": "bit_and",
    "|": "bit_or",
    "^": "bit_xor",
}


def translated(column: Any) -> Expr:
    """The expression that a column of PySpark means."""
    inner = getattr(column, "_jc", None)
    if type(column).__name__ != "Column" or inner is None:
        raise ExprError(
            f"{column!r} is PySpark's, and no column that can be read here.",
            remedy="Write it with cz.col and cz.functions, or as text: cz.expr('id > 3').",
        )
    try:
        return _lowered(inner.node())
    except (UntakenError, CaesuraError) as error:
        why = error.problem if isinstance(error, CaesuraError) else f"it has {error}."
        raise ExprError(
            f"PySpark's '{inner.toString()}' is not known here: {why}",
            remedy="Names, plain constants, casts, conditions and the functions of cz.functions are taken; "
            "write it with cz.col and those.",
        ) from None


class UntakenError(ValueError):
    """A part of Spark's tree that has no counterpart here."""


def _lowered(node: Any) -> Expr:
    kind = node.getClass().getSimpleName()
    if kind not in LOWER:
        raise UntakenError(f"a {kind}")
    return LOWER[kind](node)


def _items(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]


def _attribute(node: Any) -> Expr:
    first, *rest = _items(node.nameParts())
    made: Expr = Column(first)
    for name in rest:
        made = Field(made, name)
    return made


def _literal(node: Any) -> Expr:
    value = node.value()
    if value is None or isinstance(value, bool | int | float | str):
        return lit(value)
    raise UntakenError(f"the constant {value}")


def _call(node: Any) -> Expr:
    name, args = node.functionName().lower(), [_lowered(arg) for arg in _items(node.arguments())]
    if name in OPERATORS:
        return Apply(OPERATORS[name], tuple(args))
    constants = tuple(arg for arg in args[1:] if isinstance(arg, Constant))
    if name == "in" and len(constants) == len(args) - 1:
        return Member(args[0], constants)
    if name not in functions.__all__:
        raise UntakenError(f"a call of '{name}'")
    return by_name(name, args)


def _case(node: Any) -> Expr:
    branches = tuple((_lowered(b._1()), _lowered(b._2())) for b in _items(node.branches()))
    rest = node.otherwise()
    return Case(branches, _lowered(rest.get()) if rest.isDefined() else lit(None))


LOWER: dict[str, Callable[[Any], Expr]] = {
    "UnresolvedAttribute": _attribute,
    "Literal": _literal,
    "UnresolvedFunction": _call,
    "Cast": lambda node: Cast(_lowered(node.child()), as_type(node.dataType().sql())),
    "Alias": lambda node: Alias(_lowered(node.child()), _items(node.name())[0]),
    "CaseWhenOtherwise": _case,
    "SqlExpression": lambda node: from_text(node.expression()),
}
"""What each kind of Spark's nodes becomes."""
