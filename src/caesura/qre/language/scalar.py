"""Expressions on single values: the plain-Python twin of what kernels compute.

An expression is turned once into a closure over a mapping from names to values. What is written
here follows the columns' rules (nulls travel, x / 0 is null, NaN is above every number), but that sums of
whole numbers are exact: what does not fit into 64 bits has no value where anything else is made of it, or
where it leaves. Any other function is answered by the columnar evaluator on one row.

>>> from caesura.expr import col
>>> from caesura.qre.language.types import INT, Record
>>> evaluator(col("acc") + col("x") * 2, {"acc": INT, "x": INT})({"acc": 1, "x": 4})
9
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import (
    Alias,
    Apply,
    Case,
    Cast,
    Column,
    Constant,
    Expr,
    Field,
    Member,
    RowError,
    attributes,
    children,
    evaluate,
    type_of,
    with_children,
)
from caesura.qre.language.types import MapOf, RelOf, ValueType, of_arrow, to_arrow, widened
from caesura.qre.language.whole_numbers import Void, exact, fits, real, whole

Env: TypeAlias = Mapping[str, Any]
Closure: TypeAlias = Callable[[Env], Any]


def wide(expr: Expr) -> Expr:
    """The expression with 64-bit constants."""

    if isinstance(expr, Constant):
        return Constant(expr.value, widened(expr.type))
    parts = children(expr)
    return with_children(expr, [wide(p) for p in parts]) if parts else expr


def schema_of(types: Mapping[str, ValueType]) -> pa.Schema:
    """The values that an expression may name, as columns."""
    fields = []
    for name, t in types.items():
        arrow = to_arrow(t)
        if arrow is not None:
            fields.append((name, arrow))
    return pa.schema(fields)


def typed(expr: Expr, types: Mapping[str, ValueType]) -> ValueType:
    """The type of an expression over named values; says what is wrong with one that has none."""
    for name in attributes(expr):
        if isinstance(types.get(name), (MapOf, RelOf)):
            raise PlanError(
                f"'{expr}' reads '{name}', a {types[name]}; an expression reads scalars and records.",
                remedy=f"Use relation operations: rel('{name}').map(...), .filter(...), .sum(...), .count().",
            )
    return of_arrow(type_of(wide(expr), schema_of(types)))


def evaluator(expr: Expr, types: Mapping[str, ValueType]) -> Closure:
    """A function from named values to the expression's value."""
    return _made(wide(expr), schema_of(types))


def _made(expr: Expr, schema: pa.Schema) -> Closure:
    match expr:
        case Column(name=name):
            return lambda env: env[name]
        case Constant(value=value):
            return lambda env: value
        case Alias(arg=arg):
            return _made(arg, schema)
        case Field(arg=arg, name=name):
            inner = _made(arg, schema)
            return lambda env: _field(inner(env), name)
        case Case():
            return _case(expr, schema)
        case Member():
            return _member(expr, schema)
        case Cast(arg=arg) if expr.type == pa.float64() and _is_number(type_of(arg, schema)):
            inner = _made(arg, schema)
            return lambda env: _real(inner(env))
        case Apply(name=name, args=args) if name in _STRICT and _plain(expr, schema):
            return _strict(name, [_made(a, schema) for a in args], type_of(expr, schema))
        case Apply(name=name, args=args) if name in _LAZY and _plain(expr, schema):
            return _lazy(name, [_made(a, schema) for a in args], type_of(expr, schema))
    return _columnar(expr, schema)


def _plain(expr: Apply, schema: pa.Schema) -> bool:
    kinds = [type_of(a, schema) for a in expr.args]
    easy = all(_is_number(k) or pa.types.is_boolean(k) or pa.types.is_null(k) for k in kinds)
    if expr.name in ("is_null", "is_not_null"):
        return True
    same = len(set(kinds)) == 1 and (pa.types.is_string(kinds[0]) or pa.types.is_timestamp(kinds[0]))
    return easy or (same and expr.name in _COMPARED)


def _is_number(t: pa.DataType) -> bool:
    return bool(pa.types.is_integer(t) or pa.types.is_floating(t))


def _field(record: Any, name: str) -> Any:
    return record if record is None or isinstance(record, Void) else record[name]


def _real(value: Any) -> Any:
    return value if value is None or isinstance(value, Void) else real(value)


def rank(value: Any) -> tuple[bool, Any]:
    """Orders numbers with NaN on top and equal to itself."""
    return (True, 0.0) if value != value else (False, value)


def _quotient(a: Any, b: Any) -> Any:
    return None if b == 0 else real(a) / real(b)


def _rest(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return math.nan if math.isinf(a) or a != a or b != b else math.fmod(a, b)
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


def _exp(a: Any) -> Any:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _tried(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def run(a: Any, b: Any) -> Any:
        got = operation(a, b)
        return got if fits(got) else None

    return run


def _sqrt(a: Any) -> Any:
    return math.sqrt(a) if a >= 0 else math.nan


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: rank(a) == rank(b),
    "not_equal": lambda a, b: rank(a) != rank(b),
    "less": lambda a, b: rank(a) < rank(b),
    "less_equal": lambda a, b: rank(a) <= rank(b),
    "greater": lambda a, b: rank(a) > rank(b),
    "greater_equal": lambda a, b: rank(a) >= rank(b),
}
_STRICT: dict[str, Callable[..., Any]] = {
    **_COMPARED,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _quotient,
    "remainder": _rest,
    "negate": lambda a: -a,
    "abs": abs,
    "sqrt": _sqrt,
    "exp": _exp,
    "not": lambda a: not a,
}
_STRICT |= {f"try_{name}": _tried(_STRICT[name]) for name in ("add", "subtract", "multiply")}
_SUMS = ("add", "subtract", "negate")
_DIVIDE = ("divide", "remainder")
_LAZY = {
    *("and", "or", "is_null", "is_not_null", "coalesce", "if_null", "least", "greatest", "between"),
}


def _strict(name: str, args: list[Closure], t: pa.DataType) -> Closure:
    """A function that gives null for a null argument, and no value for one that does not fit."""
    function, real_ = _STRICT[name], pa.types.is_floating(t)
    sums, divides = name in _SUMS, name in _DIVIDE

    def run(env: Env) -> Any:
        values = [a(env) for a in args]
        if any(v is None for v in values) or (divides and values[1] == 0):
            return None
        if not all(fits(v) for v in values):
            if any(isinstance(v, Void) for v in values) or not (sums or real_):
                return whole(values)
            if real_:
                values = [real(v) for v in values]
        got = function(*values)
        if real_:
            return float(got) if isinstance(got, int) else got
        return exact(got) if sums and isinstance(got, int) else whole(got)

    return run


def _lazy(name: str, args: list[Closure], t: pa.DataType) -> Closure:
    real_ = pa.types.is_floating(t)

    def run(env: Env) -> Any:
        got = _ANSWERS[name]([a(env) for a in args])
        return real(got) if real_ and isinstance(got, int) and not isinstance(got, bool) else got

    return run


def _and(values: list[Any]) -> Any:
    return False if any(v is False for v in values) else _undecided(values, True)


def _or(values: list[Any]) -> Any:
    return True if any(v is True for v in values) else _undecided(values, False)


def _undecided(values: list[Any], otherwise: bool) -> Any:
    return None if any(v is None for v in values) else otherwise if fits(values) else whole(values)


def _compared(name: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    return _COMPARED[name](a, b) if fits([a, b]) else whole([a, b])


def _between(values: list[Any]) -> Any:
    x, low, high = values
    return _and([_compared("less_equal", low, x), _compared("less_equal", x, high)])


def _first(values: list[Any]) -> Any:
    return next((x for x in values if x is not None), None)


def _extreme(pick: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def run(values: list[Any]) -> Any:
        some = [x for x in values if x is not None]
        return pick(some, key=rank, default=None) if fits(some) else whole(some)

    return run


_ANSWERS: dict[str, Callable[[list[Any]], Any]] = {
    "and": _and,
    "or": _or,
    "is_null": lambda v: v[0] is None,
    "is_not_null": lambda v: v[0] is not None,
    "coalesce": _first,
    "if_null": _first,
    "least": _extreme(min),
    "greatest": _extreme(max),
    "between": _between,
}


def _case(expr: Case, schema: pa.Schema) -> Closure:
    branches = [(_made(c, schema), _made(v, schema)) for c, v in expr.branches]
    default = _made(expr.default, schema)
    real_ = pa.types.is_floating(type_of(expr, schema))

    def run(env: Env) -> Any:
        got = _taken(env)
        return real(got) if real_ and isinstance(got, int) else got

    def _taken(env: Env) -> Any:
        for condition, value in branches:
            test = condition(env)
            if test is True:
                return value(env)
            if isinstance(test, Void):
                return test
        return default(env)

    return run


def _member(expr: Member, schema: pa.Schema) -> Closure:
    arg = _made(expr.arg, schema)
    values = [c.value for c in expr.values]
    named = [rank(v) for v in values if v is not None]
    missing = None if None in values else False

    def run(env: Env) -> Any:
        got = arg(env)
        if got is None:
            return None if values else False
        if not fits(got):
            return whole(got)
        return True if rank(got) in named else missing

    return run


def _columnar(expr: Expr, schema: pa.Schema) -> Closure:
    """By the columnar evaluator on one row, whose columns are what the expression is made of."""
    parts = list(children(expr))
    given = {str(i): part for i, part in enumerate(parts) if not isinstance(part, Constant)}
    closures = {name: _made(part, schema) for name, part in given.items()}
    types = pa.schema([(name, type_of(part, schema)) for name, part in given.items()])
    top = with_children(expr, [Column(str(i)) if str(i) in given else p for i, p in enumerate(parts)])

    def run(env: Env) -> Any:
        row = {name: part(env) for name, part in closures.items()}
        if not fits(row):
            return whole(row)
        try:
            return evaluate(top, pa.RecordBatch.from_pylist([row], types))[0].as_py()
        except RowError as error:
            return Void(error.reasons[0])

    return run
