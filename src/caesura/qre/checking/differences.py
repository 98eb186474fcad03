"""Comparisons between columns, decided by ourselves: is there a row for which `a <= b + 3` and so on hold?

Each literal is a choice of conjunctions of bounds on differences, ``x - y <= c`` (or ``<``), and of columns
that are null. A conjunction holds somewhere exactly if its graph of bounds has no negative cycle (Bellman
and Ford); shortest paths then are a row. Whole numbers make strict bounds whole. Where columns of both kinds
meet, or floating numbers are added to, a row that was found is tried, and no row is no proof.

>>> from caesura.expr import col
>>> schema = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
>>> satisfying([col("a") < col("b"), col("b") < col("a") + 2], schema)
{'a': -1, 'b': 0}
>>> satisfying([col("a") < col("b"), col("b") < col("a") + 1], schema)
False
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from caesura.expr import Alias, Apply, Column, Constant, Expr, lit
from caesura.qre.checking.domains import bounds

ZERO = ""
"""The column that is 0: bounds on one column are differences from it."""
MAX_CASES = 4096


class OutsideDifferences(Exception):  # noqa: N818 - a verdict
    """The condition is no bound on a difference."""


class DifferenceBound(NamedTuple):
    """x - y <= by, or < where it is strict."""

    x: str
    y: str
    by: Fraction
    strict: bool


class NullColumn(NamedTuple):
    """A column is null, or it is not."""

    name: str
    null: bool


Case = tuple[DifferenceBound | NullColumn, ...]


def satisfying(literals: list[Expr], schema: pa.Schema) -> dict[str, Any] | Literal[False] | None:
    """A row for which the literals are true (negated ones not true); False for none; None for unknown."""
    try:
        choices = [_cases(literal, schema, True) for literal in literals]
    except OutsideDifferences:
        return None
    total = 1
    for some in choices:
        total *= len(some)
    if total > MAX_CASES:
        return None
    sure = True
    for picked in product(*choices):
        row = _row([atom for case in picked for atom in case], schema)
        if isinstance(row, dict):
            return row
        sure = sure and row is False
    return False if sure else None


def _cases(expr: Expr, schema: pa.Schema, wanted: bool) -> list[Case]:
    """The ways in which a condition is true, or is not: false, or null."""
    match expr:
        case Alias(arg=arg):
            return _cases(arg, schema, wanted)
        case Constant(value=bool() as value):
            return [()] if value is wanted else []
        case Apply(name="not", args=(arg,)):
            return _cases(_negated(arg), schema, wanted)
        case Apply(name="and" | "or" as name, args=(a, b)):
            one, two = _cases(a, schema, wanted), _cases(b, schema, wanted)
            if (name == "and") is wanted:
                return [(*x, *y) for x in one for y in two]
            return [*one, *two]
        case Apply(name=name, args=(_, _)) if name in BOUNDS and wanted:
            return _compared(expr, schema)
        case Apply(name=name, args=(a, b)) if name in BOUNDS:
            columns = sorted({_term(side, schema)[0] for side in (a, b)} - {ZERO})
            nulls: list[Case] = [(NullColumn(n, True),) for n in columns if schema.field(n).nullable]
            return [*_compared(_negated(expr), schema), *nulls]
    raise OutsideDifferences


def _negated(expr: Expr) -> Expr:
    """The condition that is true where this one is false, and null where it is."""
    match expr:
        case Alias(arg=arg):
            return _negated(arg)
        case Constant(value=bool() as value):
            return lit(not value)
        case Apply(name="not", args=(arg,)):
            return arg
        case Apply(name="and" | "or" as name, args=(a, b)):
            return Apply("or" if name == "and" else "and", (_negated(a), _negated(b)))
        case Apply(name=name, args=args) if name in OPPOSITE:
            return Apply(OPPOSITE[name], args)
    raise OutsideDifferences


BOUNDS: dict[str, tuple[tuple[int, bool], ...]] = {
    "less": ((1, True),),
    "less_equal": ((1, False),),
    "greater": ((-1, True),),
    "greater_equal": ((-1, False),),
    "equal": ((1, False), (-1, False)),
    "not_equal": (),
}
"""Which bounds on left - right a comparison is; that of unequal ones is one or the other."""
OPPOSITE = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "equal": "not_equal",
    "not_equal": "equal",
}


def _compared(expr: Expr, schema: pa.Schema) -> list[Case]:
    assert isinstance(expr, Apply)
    if expr.name == "not_equal":
        less, more = (Apply(name, expr.args) for name in ("less", "greater"))
        return [*_compared(less, schema), *_compared(more, schema)]
    (x, a), (y, b) = (_term(arg, schema) for arg in expr.args)
    known = tuple(NullColumn(name, False) for name in (x, y) if name != ZERO)
    made = []
    for sign, strict in BOUNDS[expr.name]:
        made.append(DifferenceBound(*((x, y, b - a) if sign > 0 else (y, x, a - b)), strict))
    return [(*known, *made)]


def _term(expr: Expr, schema: pa.Schema) -> tuple[str, Fraction]:
    """A column and what is added to it; or a constant."""
    match expr:
        case Alias(arg=arg):
            return _term(arg, schema)
        case Constant(value=int() | float() as value) if not isinstance(value, bool):
            try:
                return ZERO, Fraction(value)
            except (ValueError, OverflowError):  # not a number, or none that ends
                raise OutsideDifferences from None
        case Column(name=name):
            t = schema.field(name).type
            if not (pa.types.is_integer(t) or pa.types.is_floating(t)):
                raise OutsideDifferences
            return name, Fraction(0)
        case Apply(name="add" | "subtract" as name, args=(left, right)):
            (x, a), (y, b) = _term(left, schema), _term(right, schema)
            if y == ZERO:
                return x, a + b if name == "add" else a - b
            if x == ZERO and name == "add":
                return y, a + b
    raise OutsideDifferences


def _row(
    atoms: list[DifferenceBound | NullColumn], schema: pa.Schema
) -> dict[str, Any] | Literal[False] | None:
    """A row for which all of some atoms hold; False for none; None where that is not sure."""
    nulls = {a.name: set[bool]() for a in atoms if isinstance(a, NullColumn)}
    for atom in atoms:
        if isinstance(atom, NullColumn):
            nulls[atom.name].add(atom.null)
    if any(len(seen) == 2 for seen in nulls.values()):
        return False
    names = sorted(name for name, seen in nulls.items() if seen == {False})
    whole = {name for name in names if pa.types.is_integer(schema.field(name).type)} | {ZERO}
    edges = [a for a in atoms if isinstance(a, DifferenceBound)]
    moved = any(e.by and not {e.x, e.y} <= whole and ZERO not in (e.x, e.y) for e in edges)
    edges += [b for name in whole - {ZERO} for b in _range(name, schema)]
    at = _solved([ZERO, *names], [_settled(e, whole) for e in edges])
    if at is None:
        return None if moved else False
    return _written(at, names, whole, edges, schema)


def _range(name: str, schema: pa.Schema) -> list[DifferenceBound]:
    low, high = bounds(schema.field(name).type)
    above = DifferenceBound(name, ZERO, Fraction(high), False)
    return [above, DifferenceBound(ZERO, name, Fraction(-low), False)]


def _settled(edge: DifferenceBound, whole: set[str]) -> DifferenceBound:
    """A bound between whole numbers is a whole one, and not strict."""
    if not {edge.x, edge.y} <= whole:
        return edge
    by = ceil(edge.by) - 1 if edge.strict else floor(edge.by)
    return edge._replace(by=Fraction(by), strict=False)


Distance = tuple[Fraction, int]
"""A bound, and how many times a little less than it."""


def _solved(names: list[str], edges: list[DifferenceBound]) -> dict[str, Distance] | None:
    """Values that obey all bounds, by shortest paths; None where there are none."""
    at: dict[str, Distance] = dict.fromkeys(names, (Fraction(0), 0))
    for _ in range(len(names) + 1):
        changed = False
        for x, y, by, strict in edges:
            far = (at[y][0] + by, at[y][1] - strict)
            if far < at[x]:
                at[x], changed = far, True
        if not changed:
            return at
    return None


def _written(
    at: dict[str, Distance],
    names: list[str],
    whole: set[str],
    edges: list[DifferenceBound],
    schema: pa.Schema,
) -> dict[str, Any] | None:
    """The values as those of columns, from 0 where it is; None where rounding has broken a bound."""
    gaps = [a[0] - b[0] + e.by for e in edges for a, b in [(at[e.y], at[e.x])] if a[0] + e.by > b[0]]
    little = min([*gaps, Fraction(1)]) / (2 * len(at) + 2)
    exact = {name: far + less * little for name, (far, less) in at.items()}
    zero = exact[ZERO]
    values = {n: floor(exact[n] - zero) if n in whole else float(exact[n] - zero) for n in [ZERO, *names]}
    for x, y, by, strict in edges:
        apart = Fraction(values[x]) - Fraction(values[y])
        if apart > by or (strict and apart == by):
            return None
    return {f.name: values[f.name] if f.name in names else _plain(f) for f in schema}


def _plain(field: pa.Field) -> Any:
    """A value for a column that nothing is said of."""
    if field.nullable:
        return None
    t = field.type
    return 0 if pa.types.is_integer(t) else 0.0 if pa.types.is_floating(t) else None
