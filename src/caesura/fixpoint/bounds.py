"""Inequalities that follow from what a trip around a loop has tested.

>>> from caesura.expr import col
>>> trip = Trip({"n": col("rec:n") + 1}, (col("rec:n") < 10,))
>>> upper_bounded(trip, "n")
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from caesura.expr import Apply, Constant, Expr, same
from caesura.expr.rewrite import strip
from caesura.fixpoint.trace import Trip, from_outside, is_rec, linear

MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}


@dataclass(frozen=True)
class Difference:
    """How far a column lies past what it was before: at least, at most."""

    name: str
    least: int | None
    greatest: int | None
    strict_low: bool = False
    strict_high: bool = False


def comparisons(facts: Sequence[Expr]) -> Iterator[tuple[str, Expr, Expr]]:
    """The tests that compare two things, each both ways round."""
    for fact in facts:
        match strip(fact):
            case Apply(name="between", args=(a, low, high)):
                yield from (("greater_equal", a, low), ("less_equal", a, high))
            case Apply(name=name, args=(a, b)) if name in MIRRORED:
                yield name, a, b
                yield MIRRORED[name], b, a


def upper_bounded(trip: Trip, name: str, *, flipped: bool = False) -> bool:
    """Whether a test keeps the loop's own column, or what comes of it, below a constant (or above)."""
    wanted = ("greater", "greater_equal", "equal") if flipped else ("less", "less_equal", "equal")
    made, _ = linear(trip.columns[name])
    for test, a, b in comparisons(trip.facts):
        (x, _), (y, _) = linear(a), linear(b)
        if test not in wanted or x is None or not (y is None or _ends_somewhere(y)):
            continue
        if is_rec(x) == name or (made is not None and same(x, made)):
            return True
    return False


def _ends_somewhere(limit: Expr) -> bool:
    """Whether a limit is a constant that not every value is below, or above."""
    if not isinstance(limit, Constant) or isinstance(limit.value, bool) or limit.value is None:
        return False
    return not isinstance(limit.value, float) or isfinite(limit.value)


def differences(trip: Trip, name: str, *, exact: bool = True) -> Iterator[Difference]:
    """What tests say of a column from outside and the loop's own column of this name.

    Where sums are not ``exact`` only tests of the very column count.
    """
    for made, shift in _equals(trip, name):
        for found, moved in _from(made, shift, trip, name):
            if exact or not (shift or moved):
                yield found


def _equals(trip: Trip, name: str) -> Iterator[tuple[Expr, int]]:
    """The column as values from outside, by itself or by a test of equality."""
    made, shift = linear(trip.columns[name])
    if made is None:
        return
    if from_outside(made):
        yield made, shift
        return
    for test, a, b in comparisons(trip.facts):
        (x, i), (y, j) = linear(a), linear(b)
        if test == "equal" and x is not None and y is not None and same(x, made) and from_outside(y):
            yield y, shift + j - i


def _from(made: Expr, shift: int, trip: Trip, name: str) -> Iterator[tuple[Difference, bool]]:
    """What tests compare the column with; and whether they move it first."""
    for test, a, b in comparisons(trip.facts):
        (x, i), (y, j) = linear(a), linear(b)
        if x is None or y is None or not same(x, made) or is_rec(y) != name:
            continue
        by = shift + j - i  # made + shift lies this far from the loop's own column, or further
        if test == "equal":
            yield Difference(name, by, by), bool(i or j)
        elif test in ("greater", "greater_equal"):
            yield Difference(name, by, None, strict_low=test == "greater"), bool(i or j)
        else:
            yield Difference(name, None, by, strict_high=test == "less"), bool(i or j)


def not_negative(expr: Expr, facts: Sequence[Expr]) -> bool:
    """Whether an expression is seen to be 0 or more."""
    match strip(expr):
        case Apply(name="abs"):
            return True
        case Apply(name="add" | "multiply", args=args):
            return all(not_negative(a, facts) for a in args)
        case Apply(name="negate", args=(a,)):
            return not_positive(a, facts)
        case Apply(name="greatest", args=args):
            return any(not_negative(a, facts) for a in args)
    return at_least(expr, facts, 0)


def not_positive(expr: Expr, facts: Sequence[Expr]) -> bool:
    """Whether an expression is seen to be 0 or less."""
    match strip(expr):
        case Apply(name="negate", args=(a,)):
            return not_negative(a, facts)
        case Apply(name="add", args=args):
            return all(not_positive(a, facts) for a in args)
        case Apply(name="least", args=args):
            return any(not_positive(a, facts) for a in args)
    return at_most(expr, facts, 0)


def positive(expr: Expr, facts: Sequence[Expr]) -> bool:
    """Whether an expression is seen to be more than 0."""
    match strip(expr):
        case Apply(name="negate", args=(a,)):
            return negative(a, facts)
        case Apply(name="add", args=args):
            return any(positive(a, facts) for a in args) and all(not_negative(a, facts) for a in args)
        case Apply(name="greatest", args=args):
            return any(positive(a, facts) for a in args)
    return at_least(expr, facts, 0, strictly=True)


def negative(expr: Expr, facts: Sequence[Expr]) -> bool:
    """Whether an expression is seen to be less than 0."""
    match strip(expr):
        case Apply(name="negate", args=(a,)):
            return positive(a, facts)
        case Apply(name="add", args=args):
            return any(negative(a, facts) for a in args) and all(not_positive(a, facts) for a in args)
        case Apply(name="least", args=args):
            return any(negative(a, facts) for a in args)
    return at_most(expr, facts, 0, strictly=True)


def at_least(expr: Expr, facts: Sequence[Expr], bound: int, *, strictly: bool = False) -> bool:
    """Whether an expression is a constant, or tested, not to be below the bound (nor at it)."""
    return _tested(expr, facts, "greater", bound, strictly=strictly)


def at_most(expr: Expr, facts: Sequence[Expr], bound: int, *, strictly: bool = False) -> bool:
    """Whether an expression is a constant, or tested, not to be above the bound (nor at it)."""
    return _tested(expr, facts, "less", bound, strictly=strictly)


def _tested(expr: Expr, facts: Sequence[Expr], side: str, bound: int, *, strictly: bool) -> bool:
    bare, sign = strip(expr), 1 if side == "greater" else -1
    known: list[tuple[str, Expr]] = [("equal", bare)] if isinstance(bare, Constant) else []
    known += [(test, strip(b)) for test, a, b in comparisons(facts) if same(strip(a), bare)]
    for test, limit in known:
        value = limit.value if isinstance(limit, Constant) else None
        if test not in (side, f"{side}_equal", "equal") or isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            beyond = (value - bound) * sign
            if beyond > 0 or (beyond == 0 and (test == side or not strictly)):
                return True
    return False
