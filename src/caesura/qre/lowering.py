"""Operations as terms: each scalar becomes a word and a truth value that says whether it is there.

What has no term (a Python function, text functions on intermediate values, decimals) raises
`NotCompiled`, and the query runs on the twin; `explain` names the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from caesura.expr import Alias, Apply, Case, Cast, Column, Constant, Expr, Field, Member
from caesura.qre import ir
from caesura.qre.ir import FALSE, TRUE, Kind, Term
from caesura.qre.operations import ExprOp, Operation, RecordOp
from caesura.qre.scalar import wide
from caesura.qre.types import Approx, Opaque, Record, Scalar, ValueType


class NotCompiled(Exception):  # noqa: N818 - a verdict, not an error
    """Kernels cannot run this; the twin can."""


@dataclass(frozen=True)
class Word:
    """A scalar: its term, and when it is not null."""

    term: Term
    there: Term = TRUE
    text: bool = False
    """Whether the word is a text's code: equal exactly for equal texts, in no order."""
    handle: bool = False
    """Whether the word is the number of a value that is worked out later."""


Value: TypeAlias = "Word | dict[str, Value]"


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
        if isinstance(value, Word):
            raise NotCompiled("a record that may be null")
        return {name: fitted(value[name], inner) for name, inner in t.fields}
    if not isinstance(value, Word):
        raise NotCompiled(f"a record where {t} is wanted")
    return Word(ir.real(value.term), value.there) if kind_of(t) == "f" else value


def flattened(t: ValueType, prefix: str = "") -> list[tuple[str, Kind, ValueType]]:
    """The scalars inside a type: (path, kind, type)."""
    if isinstance(t, Record):
        return [leaf for name, inner in t.fields for leaf in flattened(inner, f"{prefix}.{name}")]
    return [(prefix, kind_of(t), t)]


def leaves(value: Value) -> list[Word]:
    """The scalars inside a value, in the order of `flattened`."""
    if isinstance(value, Word):
        return [value]
    return [leaf for inner in value.values() for leaf in leaves(inner)]


def rebuilt(t: ValueType, words: list[Word]) -> Value:
    """A value of a type from its scalars; takes them off the list."""
    if isinstance(t, Record):
        return {name: rebuilt(inner, words) for name, inner in t.fields}
    return words.pop(0)


def constant(value: Any, t: pa.DataType) -> Word:
    """A constant as a word."""
    if value is None:
        return Word(ir.const(0.0) if pa.types.is_floating(t) else ir.const(0), FALSE)
    if isinstance(value, (bool, int, float)):
        return Word(ir.const(float(value) if pa.types.is_floating(t) else value))
    raise NotCompiled(f"the constant {value!r}")


def term_of(expr: Expr, env: Mapping[str, Value]) -> Value:
    """An expression over lowered values."""
    match expr:
        case Column(name=name):
            return env[name]
        case Constant(value=value, type=t):
            return constant(value, t)
        case Alias(arg=arg):
            return term_of(arg, env)
        case Field(arg=arg, name=name):
            inner = term_of(arg, env)
            if isinstance(inner, Word):
                raise NotCompiled(f"the field '{expr}'")
            return inner[name]
        case Case():
            return _case(expr, env)
        case Cast(arg=arg) if expr.type == pa.float64():
            got = _word(arg, env)
            return Word(ir.real(got.term), got.there)
        case Cast(arg=arg) if expr.type == pa.int64():
            got = _word(arg, env)
            if got.term.kind == "i":
                return got
        case Member(arg=arg, values=values):
            return _member(arg, values, env)
        case Apply(name=name, args=args) if name in _WORDS:
            made: Word = _WORDS[name](*(_word(a, env) for a in args))
            return made
    raise NotCompiled(f"'{expr}'")


def _word(expr: Expr, env: Mapping[str, Value]) -> Word:
    got = term_of(expr, env)
    if isinstance(got, Word):
        return got
    raise NotCompiled(f"'{expr}', a record")


def _case(expr: Case, env: Mapping[str, Value]) -> Word:
    out = _word(expr.default, env)
    for condition, value in reversed(expr.branches):
        test, then = _word(condition, env), _word(value, env)
        holds = ir.and_(test.there, test.term)
        text = then.text or out.text
        out = Word(ir.select(holds, then.term, out.term), ir.select(holds, then.there, out.there), text)
    return out


def _member(arg: Expr, values: tuple[Constant, ...], env: Mapping[str, Value]) -> Word:
    x = _word(arg, env)
    found: Term = FALSE
    for c in values:
        if c.value is not None:
            found = ir.or_(found, ir.eq(x.term, constant(c.value, c.type).term))
    sure = found if any(c.value is None for c in values) else TRUE
    return Word(found, ir.and_(x.there, sure))


def _strict(make: Any, coded: bool = False) -> Any:
    def run(*words: Word) -> Word:
        if not coded and any(w.text for w in words):
            raise NotCompiled("texts by their order")
        there = TRUE
        for w in words:
            there = ir.and_(there, w.there)
        return Word(make(*(w.term for w in words)), there)

    return run


def _divided(a: Word, b: Word, make: Any) -> Word:
    zero = ir.const(0) if b.term.kind == "i" else ir.const(0.0)
    there = ir.and_(ir.and_(a.there, b.there), ir.not_(ir.eq(b.term, zero)))
    return Word(make(a.term, b.term), there)


def _and(a: Word, b: Word) -> Word:
    no = ir.or_(ir.and_(a.there, ir.not_(a.term)), ir.and_(b.there, ir.not_(b.term)))
    return Word(ir.and_(a.term, b.term), ir.or_(no, ir.and_(a.there, b.there)))


def _or(a: Word, b: Word) -> Word:
    yes = ir.or_(ir.and_(a.there, a.term), ir.and_(b.there, b.term))
    return Word(yes, ir.or_(yes, ir.and_(a.there, b.there)))


def _coalesce(*words: Word) -> Word:
    out = words[-1]
    for w in reversed(words[:-1]):
        text = w.text or out.text
        out = Word(ir.select(w.there, w.term, out.term), ir.or_(w.there, out.there), text)
    return out


def _extreme(takes: Any) -> Any:
    def run(*words: Word) -> Word:
        if any(w.text for w in words):
            raise NotCompiled("texts by their order")
        out = words[0]
        for w in words[1:]:
            better = ir.and_(w.there, ir.or_(ir.not_(out.there), takes(w.term, out.term)))
            out = Word(ir.select(better, w.term, out.term), ir.or_(out.there, w.there))
        return out

    return run


def _flag(test: Any) -> Any:
    return lambda w: Word(test(w))


_WORDS: dict[str, Any] = {
    "add": _strict(ir.add),
    "subtract": _strict(ir.sub),
    "multiply": _strict(ir.mul),
    "divide": lambda a, b: _divided(a, b, ir.div),
    "remainder": lambda a, b: _divided(a, b, ir.rem),
    "negate": _strict(lambda a: ir.unary("neg", a)),
    "abs": _strict(lambda a: ir.unary("abs", a)),
    "sqrt": _strict(lambda a: ir.unary("sqrt", a)),
    "exp": _strict(lambda a: ir.unary("exp", a)),
    "equal": _strict(ir.eq, coded=True),
    "not_equal": _strict(lambda a, b: ir.not_(ir.eq(a, b)), coded=True),
    "less": _strict(ir.lt),
    "less_equal": _strict(ir.le),
    "greater": _strict(lambda a, b: ir.lt(b, a)),
    "greater_equal": _strict(lambda a, b: ir.le(b, a)),
    "between": lambda x, lo, hi: _and(_strict(ir.le)(lo, x), _strict(ir.le)(x, hi)),
    "and": _and,
    "or": _or,
    "not": _strict(ir.not_),
    "is_null": _flag(lambda w: ir.not_(w.there)),
    "is_not_null": _flag(lambda w: w.there),
    "coalesce": _coalesce,
    "if_null": _coalesce,
    "least": _extreme(ir.lt),
    "greatest": _extreme(lambda a, b: ir.lt(b, a)),
}
