"""Error bounds and what operations do to them (Theorem 9): carried where that is true, else refused.

An approximate value m has the exact value's sign, and |m| <= |exact| <= (1 + epsilon) |m|. Sums of values
that are not negative keep the greatest epsilon, as do least, greatest, coalesce and choices by exact
conditions; products with exact values keep it, and products of approximate ones compound.

>>> from caesura.expr import col
>>> from caesura.qre.language.types import INT
>>> rough = Approx(0.01, True)
>>> str(bound_of(col("a") + col("b"), {"a": rough, "b": Approx(0.1, True)}))
'double within a factor 1 + 0.1, >= 0'
>>> str(bound_of(col("a") / lit(-2), {"a": rough})), bound_of(col("n") + 1, {"a": rough, "n": INT})
('double within a factor 1 + 0.01', None)
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Alias, Apply, Case, Cast, Column, Constant, Expr, Field, children, lit
from caesura.qre.language.types import Approx, MapOf, Opaque, Record, RelOf, Scalar, ValueType

Types = Mapping[str, ValueType]
_UNSCALED = ("least", "greatest", "coalesce", "case")
_DECIDING = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not")
_SIGNED = ("add", "multiply", "divide", *_UNSCALED)


def compound(*epsilons: float) -> float:
    """The bound of a bound: (1 + a) (1 + b) - 1, in the digits that users wrote."""
    product = Decimal(1)
    for epsilon in epsilons:
        product *= 1 + Decimal(repr(epsilon))
    return float(product - 1)


def approximate(t: ValueType) -> bool:
    """Whether there is an approximate value inside."""
    match t:
        case Approx():
            return True
        case Record(fields=fields):
            return any(approximate(inner) for _, inner in fields)
        case RelOf(element=inner) | MapOf(value=inner):
            return approximate(inner)
        case Opaque(epsilon=epsilon):
            return epsilon > 0
    return False


def bound_of(expr: Expr, types: Types) -> Approx | None:
    """The error bound that a result inherits, None of an exact one; refuses what would void it."""
    match expr:
        case Column() | Field():
            known = _named(expr, types)
            return known if isinstance(known, Approx) else None
        case Alias(arg=arg):
            return bound_of(arg, types)
        case Cast(arg=arg) if pa.types.is_floating(expr.type):
            return bound_of(arg, types)
        case Apply(name="is_null" | "is_not_null"):
            return None  # nulls are exact
    parts = children(expr)
    if isinstance(expr, Case):
        parts = (*(value for _, value in expr.branches), expr.default)
        if any(not exact(condition, types) for condition, _ in expr.branches):
            raise _void(expr, "a choice by an approximate value may choose the wrong branch")
    bounds = [bound_of(p, types) for p in parts]
    return _carried(expr, parts, bounds, types) if any(bounds) else None


def exact(expr: Expr, types: Types) -> bool:
    """Whether an expression reads no approximate value, but for its being null."""
    match expr:
        case Column() | Field():
            known = _named(expr, types)
            return known is None or not approximate(known)
        case Apply(name="is_null" | "is_not_null"):
            return True
    return all(exact(c, types) for c in children(expr))


def _carried(expr: Expr, parts: tuple[Expr, ...], bounds: list[Approx | None], types: Types) -> Approx:
    name = expr.name if isinstance(expr, Apply) else "case" if isinstance(expr, Case) else str(expr)
    some = [b.epsilon for b in bounds if b is not None]
    signed = all(nonnegative(p, types) for p in parts)
    if name in _UNSCALED or (name == "add" and signed):
        return Approx(max(some), signed)
    if name == "multiply":
        return Approx(compound(*some), signed)
    if name == "divide" and bounds[1] is None:
        return Approx(max(some), signed)
    if name in ("negate", "abs"):
        return Approx(max(some), name == "abs")
    if name in _DECIDING:
        raise _void(expr, "what is decided by an approximate value may be wrong")
    reason = f"'{name}' can enlarge it without limit"
    raise _void(expr, "adding values of either sign can cancel" if name == "add" else reason)


def nonnegative(expr: Expr, types: Types) -> bool:
    """Whether an expression is known to be never negative."""
    match expr:
        case Constant(value=value):
            return value is None or (not isinstance(value, str) and bool(value >= 0))
        case Column() | Field():
            known = _named(expr, types)
            if isinstance(known, Scalar):
                return known.nonnegative or bool(pa.types.is_null(known.type))
            return isinstance(known, Approx) and known.nonnegative
        case Alias(arg=arg) | Cast(arg=arg):
            return nonnegative(arg, types)
        case Case(branches=branches, default=default):
            return all(nonnegative(v, types) for v in (*(v for _, v in branches), default))
        case Apply(name="abs" | "sqrt" | "exp"):
            return True
        case Apply(name=name, args=args) if name in _SIGNED:
            return all(nonnegative(a, types) for a in args)
    return False


def _named(expr: Expr, types: Types) -> ValueType | None:
    """The type of a part, or of a field of one."""
    if isinstance(expr, Column):
        return types.get(expr.name)
    around = _named(expr.arg, types) if isinstance(expr, Field) else None
    return around.get(expr.name) if isinstance(expr, Field) and isinstance(around, Record) else None


def refuse_approximate(expr: Expr, types: Types) -> None:
    """Refuses a predicate or a key that reads an approximate value."""
    if not exact(expr, types):
        raise _void(expr, "what is decided by an approximate value may be wrong")


def _void(expr: object, reason: str) -> PlanError:
    return PlanError(
        f"'{expr}' would void the error bound of an approximate value: {reason}.",
        remedy="Combine non-negative approximate values with +, least, greatest and averages only, "
        "or compute the value exactly (without epsilon=).",
    )


def void_in(function: object) -> PlanError:
    """What to say of a Python function that is given approximate values."""
    return _void(function, "nothing is known of what a Python function makes of it")


__all__ = [
    "approximate",
    "bound_of",
    "compound",
    "exact",
    "lit",
    "nonnegative",
    "refuse_approximate",
    "void_in",
]
