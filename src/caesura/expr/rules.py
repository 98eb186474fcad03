"""What a rule is: from a node and its arguments' types to a result type and a column kernel.

A rule is a function; a new built-in is one more of them, and one line in its family's table.

>>> from caesura.expr.nodes import col
>>> print(wrong(col("a") + 1, "numbers", [pa.string(), pa.int32()], remedy="Cast it."))
in 'a + 1': wanted numbers, got a (string) and 1 (int).
Cast it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyarrow.types import is_dictionary

from caesura.errors import ExprError
from caesura.expr.faults import Attempt, checked
from caesura.expr.nodes import Apply, Expr
from caesura.expr.types import common_type, describe, kind, plain

Datum = Any  # a pa.Array, or a pa.Scalar where the operand is constant
Kernel = Callable[..., Datum]
Types = Sequence[pa.DataType]


@dataclass(frozen=True)
class TypedNode:
    """A typed node: what its operands are converted to, what comes out, and how."""

    type: pa.DataType
    operands: tuple[pa.DataType, ...]
    kernel: Kernel
    attempt: Attempt | None = None
    """The kernel that answers null where this one refuses; None where it refuses nothing."""
    shared: Shared | None = None
    """The kernel in two parts, of which the first is done once per page for all that ask."""


@dataclass(frozen=True)
class Shared:
    """A kernel of one column whose first part several expressions over a page may share."""

    key: Hashable
    """Equal for first parts that do the same."""
    first: Callable[[Any], Any]
    second: Callable[[Any], Datum]


def sharing(type: pa.DataType, operands: tuple[pa.DataType, ...], parts: Shared) -> TypedNode:
    """A plan whose first part is done once per page."""
    return TypedNode(type, operands, lambda a: parts.second(parts.first(a)), shared=parts)


def checking(type: pa.DataType, operands: tuple[pa.DataType, ...], attempt: Attempt) -> TypedNode:
    """A plan that refuses the values for which an attempt has no answer."""
    return TypedNode(type, operands, checked(attempt), attempt)


Rule = Callable[[Apply, Types], TypedNode]


def wrong(node: Expr, wanted: str, types: Types, *, remedy: str) -> ExprError:
    """What an ill-typed node is refused with: the sub-expression, what it got, what it wants."""
    from caesura.expr.rewrite import children

    parts = [f"{arg} ({describe(type)})" for arg, type in zip(children(node), types, strict=True)]
    got = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return ExprError(f"in '{node}': wanted {wanted}, got {got}.", remedy=remedy)


def want(node: Expr, types: Types, kinds: tuple[str, ...], wanted: str, *, remedy: str) -> None:
    """Refuses the node unless every argument is of one of the kinds, or an untyped null."""
    if not all(kind(t) in (*kinds, "null") for t in types):
        raise wrong(node, wanted, types, remedy=remedy)


def shared_type(
    node: Expr,
    types: Types,
    *,
    by: Callable[[pa.DataType, pa.DataType], pa.DataType | None] = common_type,
    remedy: str = "Cast one side, as in .cast('string').",
) -> pa.DataType:
    """The one type all arguments are converted to."""
    found = reduce(lambda a, b: None if a is None else by(a, b), types[1:], types[0])
    if found is None:
        raise wrong(node, "values of one type", types, remedy=remedy)
    return plain(found) if is_dictionary(found) else found
