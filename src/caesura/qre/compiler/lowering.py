"""Operations as terms: each scalar becomes a word, made of other words (see `scalar_terms`).

What has no term (a Python function, text functions on intermediate values, decimals) raises
`NotCompiled`, and the query runs on the twin; `explain` names the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from caesura.expr import Alias, Apply, Case, Cast, Column, Constant, Expr, Field, Member
from caesura.qre.compiler.ir import Kind
from caesura.qre.compiler.scalar_terms import (
    CHECKED,
    EXACT,
    Make,
    NotCompiled,
    ScalarTerm,
    constant,
    member,
    real,
    when,
)
from caesura.qre.language.operations import ExprOp, Operation, RecordOp
from caesura.qre.language.scalar import wide
from caesura.qre.language.types import Approx, Opaque, Record, Scalar, ValueType

Value: TypeAlias = "ScalarTerm | dict[str, Value]"


HANDLE = Opaque()
"""The type, known by identity, of values that are worked out later; threads hold their numbers."""


def kind_of(t: ValueType) -> Kind:
    """How a scalar type lies in a register."""
    if t is HANDLE:
        return "i"
    if isinstance(t, Approx):
        return "f"
    if not isinstance(t, Scalar):
        raise NotCompiled(f"values of type {t}")
    a = t.type
    if pa.types.is_floating(a):
        return "f"
    whole = pa.types.is_integer(a) or pa.types.is_boolean(a) or pa.types.is_null(a)
    if whole or pa.types.is_timestamp(a) or pa.types.is_date(a) or pa.types.is_string(a):
        return "i"
    raise NotCompiled(f"values of type {t}")


def lowered(op: Operation, env: Mapping[str, Value]) -> Value:
    """An operation on lowered values."""
    match op:
        case ExprOp(expr=expr):
            return term_of(wide(expr), env)
        case RecordOp(fields=fields):
            return {name: lowered(inner, env) for name, inner in fields}
    raise NotCompiled(f"the operation '{op}'")


def fitted(value: Value, t: ValueType) -> Value:
    """A value as a type wants it: whole numbers become doubles, a bare null gets a kind."""
    if isinstance(t, Record):
        if isinstance(value, ScalarTerm):
            raise NotCompiled("a record that may be null")
        return {name: fitted(value[name], inner) for name, inner in t.fields}
    if not isinstance(value, ScalarTerm):
        raise NotCompiled(f"a record where {t} is wanted")
    return real(value) if kind_of(t) == "f" else value


def flattened(t: ValueType, prefix: str = "") -> list[tuple[str, Kind, ValueType]]:
    """The scalars inside a type: (path, kind, type)."""
    if isinstance(t, Record):
        return [leaf for name, inner in t.fields for leaf in flattened(inner, f"{prefix}.{name}")]
    return [(prefix, kind_of(t), t)]


def leaves(value: Value) -> list[ScalarTerm]:
    """The scalars inside a value, in the order of `flattened`."""
    if isinstance(value, ScalarTerm):
        return [value]
    return [leaf for inner in value.values() for leaf in leaves(inner)]


def rebuilt(t: ValueType, scalars: list[ScalarTerm]) -> Value:
    """A value of a type from its scalars; takes them off the list."""
    if isinstance(t, Record):
        return {name: rebuilt(inner, scalars) for name, inner in t.fields}
    return scalars.pop(0)


Makers: TypeAlias = Mapping[str, Make]


def term_of(expr: Expr, env: Mapping[str, Value], makers: Makers = EXACT) -> Value:
    """An expression over lowered values."""
    match expr:
        case Column(name=name):
            return env[name]
        case Constant(value=value, type=t):
            return constant(value, t)
        case Alias(arg=arg):
            return term_of(arg, env, makers)
        case Field(arg=arg, name=name):
            inner = term_of(arg, env, makers)
            if isinstance(inner, ScalarTerm):
                raise NotCompiled(f"the field '{expr}'")
            return inner[name]
        case Case():
            return _case(expr, env, makers)
        case Cast(arg=arg) if expr.type == pa.float64():
            return real(_scalar(arg, env, makers))
        case Cast(arg=arg) if expr.type == pa.int64():
            got = _scalar(arg, env, makers)
            if got.term.kind == "i":
                return got
        case Member(arg=arg, values=values):
            known = [constant(c.value, c.type) for c in values if c.value is not None]
            return member(_scalar(arg, env, makers), known, any(c.value is None for c in values))
        case Apply(name=name, args=args) if name in makers:
            return makers[name](*(_scalar(a, env, makers) for a in args))
    raise NotCompiled(f"'{expr}'")


def _scalar(expr: Expr, env: Mapping[str, Value], makers: Makers) -> ScalarTerm:
    got = term_of(expr, env, makers)
    if isinstance(got, ScalarTerm):
        return got
    raise NotCompiled(f"'{expr}', a record")


def _case(expr: Case, env: Mapping[str, Value], makers: Makers) -> ScalarTerm:
    out = _scalar(expr.default, env, makers)
    for condition, value in reversed(expr.branches):
        out = when(_scalar(condition, env, makers), _scalar(value, env, makers), out)
    return out


__all__ = [
    "CHECKED",
    "EXACT",
    "HANDLE",
    "NotCompiled",
    "ScalarTerm",
    "Value",
    "fitted",
    "flattened",
    "kind_of",
    "leaves",
    "lowered",
    "rebuilt",
    "term_of",
]
