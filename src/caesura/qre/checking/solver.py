"""Conditions that ranges, sets and nulls cannot decide: differences of columns, then z3 where there is one.

For z3 numbers are reals or integers, null is a flag beside each column; anything else is not asked.
"""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from caesura.expr import Alias, Apply, Column, Constant, Expr
from caesura.qre.checking.differences import satisfying
from caesura.qre.checking.domains import bounds


class _Unknown(Exception):  # noqa: N818 - a verdict
    """The condition is outside what is translated."""


def satisfying_row(literals: list[Expr], schema: pa.Schema) -> dict[str, Any] | Literal[False] | None:
    """A row for which the literals are true (negated ones not true); False for none; None for unknown."""
    found = satisfying(literals, schema)
    if found is not None:
        return found
    try:
        import z3
    except ImportError:
        return None
    try:
        return _solve(z3, literals, schema)
    except _Unknown:
        return None


def _solve(z3: Any, literals: list[Expr], schema: pa.Schema) -> dict[str, Any] | Literal[False] | None:
    columns: dict[str, Any] = {}
    solver = z3.Solver()
    solver.set("timeout", 500)
    for literal in literals:
        negated = isinstance(literal, Apply) and literal.name == "not"
        true, _ = _condition(z3, literal.args[0] if negated else literal, schema, columns)  # type: ignore[attr-defined]
        solver.add(z3.Not(true) if negated else true)
    for name, (number, null) in columns.items():
        field = schema.field(name)
        if not field.nullable:
            solver.add(z3.Not(null))
        if pa.types.is_integer(field.type):
            low, high = bounds(field.type)
            solver.add(number >= low, number <= high)
    verdict = solver.check()
    if verdict == z3.unsat:
        return False
    if verdict != z3.sat:
        return None
    model = solver.model()
    return {f.name: _read(z3, model, columns.get(f.name), f.type) for f in schema}


def _read(z3: Any, model: Any, column: Any, t: pa.DataType) -> Any:
    if column is None or z3.is_true(model.eval(column[1], model_completion=True)):
        return None
    got = model.eval(column[0], model_completion=True)
    if pa.types.is_integer(t):
        return got.as_long()
    return float(got.as_fraction()) if hasattr(got, "as_fraction") else float(got.approx(20).as_fraction())


def _condition(z3: Any, expr: Expr, schema: pa.Schema, columns: dict[str, Any]) -> tuple[Any, Any]:
    """When the condition is true, and when it is false."""
    match expr:
        case Alias(arg=arg):
            return _condition(z3, arg, schema, columns)
        case Constant(value=bool() as value):
            return z3.BoolVal(value), z3.BoolVal(not value)
        case Apply(name="not", args=(arg,)):
            true, false = _condition(z3, arg, schema, columns)
            return false, true
        case Apply(name="and" | "or" as name, args=args):
            sides = [_condition(z3, a, schema, columns) for a in args]
            trues, falses = [s[0] for s in sides], [s[1] for s in sides]
            if name == "and":
                return z3.And(*trues), z3.Or(*falses)
            return z3.Or(*trues), z3.And(*falses)
        case Apply(name=name, args=(left, right)) if name in _COMPARED:
            a, no_a = _number(z3, left, schema, columns)
            b, no_b = _number(z3, right, schema, columns)
            known = z3.And(z3.Not(no_a), z3.Not(no_b))
            holds = _COMPARED[name](a, b)
            return z3.And(known, holds), z3.And(known, z3.Not(holds))
    raise _Unknown


_COMPARED: dict[str, Any] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


def _number(z3: Any, expr: Expr, schema: pa.Schema, columns: dict[str, Any]) -> tuple[Any, Any]:
    """A number, and when it is null."""
    match expr:
        case Constant(value=int() | float() as value) if not isinstance(value, bool):
            return z3.RealVal(value), z3.BoolVal(False)
        case Column(name=name):
            t = schema.field(name).type
            if not (pa.types.is_integer(t) or pa.types.is_floating(t)):
                raise _Unknown
            if name not in columns:
                made = z3.Int(name) if pa.types.is_integer(t) else z3.Real(name)
                columns[name] = (made, z3.Bool(f"{name} is null"))
            return columns[name]  # type: ignore[no-any-return]
        case Apply(name="add" | "subtract" | "multiply" as name, args=(left, right)):
            a, no_a = _number(z3, left, schema, columns)
            b, no_b = _number(z3, right, schema, columns)
            got = a + b if name == "add" else a - b if name == "subtract" else a * b
            return got, z3.Or(no_a, no_b)
    raise _Unknown
