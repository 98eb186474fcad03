"""Predicates as punctuation patterns: exactly the rows for which a simple condition is true.

A comparison is not true for null, and neither is its negation, so each predicate has a true set and a
false set, and null is in neither.

>>> print(pattern_of((col("id") == 4) & ~(col("speed") > 20.0)))
id = 4, speed <= 20.0
>>> pattern_of(col("a") > col("b")) is None
True
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

from caesura.errors import PatternError
from caesura.expr.nodes import Alias, Apply, Column, Constant, Expr, Member
from caesura.expr.nodes import col as col
from caesura.expr.planning import type_of
from caesura.expr.rewrite import conjuncts
from caesura.expr.rules_logic import COMPARISONS
from caesura.expr.types import kind
from caesura.punctuation import (
    ANY,
    NOT_NULL,
    NOTHING,
    NULL,
    TIME,
    Pattern,
    Values,
    between,
    ge,
    gt,
    le,
    lt,
    one_of,
    value,
)
from caesura.punctuation.prefixes import like, matching, prefix

_EXACT_FLOATS = 2**53  # beyond it SQL compares a rounded integer with a float, and a pattern does not
_EXACT_DIGITS = 15
"""Decimals of so many digits are different doubles."""
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


@dataclass(frozen=True)
class _Sets:
    """One column's values for which a predicate is true, and for which it is false."""

    column: str
    true: Values
    false: Values


class _NotSimple(Exception):  # noqa: N818 - not an error: the predicate has no pattern
    """The predicate is not a set of one column's values."""


def pattern_of(expr: Expr, schema: pa.Schema | None = None) -> Pattern | None:
    """The exact pattern of the rows for which the condition is true; None when no pattern says it.

    With a schema the pattern's constants are of the columns' types; without one, integers are taken to be
    compared with integers. A column called 'time' has no pattern: in patterns that is the sync time.

    >>> print(pattern_of(col("a").isin([1, 2, None]) & col("b").is_null()))
    a in [1..2], b is null
    """
    found: dict[str, Values] = {}
    try:
        if schema is not None:
            type_of(expr, schema)
        for part in conjuncts(expr):
            if isinstance(part, Constant) and part.value is True:
                continue
            sets = _sets(part, schema)
            found[sets.column] = _both(found.get(sets.column, ANY), sets.true)
        return Pattern.of(found)
    except (_NotSimple, PatternError):
        return None


def _both(a: Values, b: Values) -> Values:
    # Intersecting with everything keeps how the constants were spelled, which an unknown schema may need.
    return b if a.is_any else a.intersect(b)


def _sets(expr: Expr, schema: pa.Schema | None) -> _Sets:
    match expr:
        case Alias():
            return _sets(expr.arg, schema)
        case Column():
            return _Sets(_name(expr), value(True), value(False))
        case Member(arg=Column() as column):
            return _member(column, expr.values, schema)
        case Apply(name="not", args=(inner,)):
            sets = _sets(inner, schema)
            return _Sets(sets.column, sets.false, sets.true)
        case Apply(name="and" | "or" as name, args=(left, right)):
            return _joined(name, _sets(left, schema), _sets(right, schema))
        case Apply(name="is_null", args=(Column() as column,)):
            return _Sets(_name(column), NULL, NOT_NULL)
        case Apply(name="is_not_null", args=(Column() as column,)):
            return _Sets(_name(column), NOT_NULL, NULL)
        case Apply(name="between", args=(Column() as column, Constant() as low, Constant() as high)):
            return _between(column, low, high, schema)
        case Apply(name="startswith" | "like" | "rlike" as name, args=(Column() as column,), options=(text,)):
            return _beginning(name, column, text, schema)
        case Apply(name=name, args=(Column() as column, Constant() as constant)):
            return _compared(name, column, constant, schema)
        case Apply(name=name, args=(Constant() as constant, Column() as column)):
            return _compared(_MIRRORED.get(name, name), column, constant, schema)
    raise _NotSimple


def _name(column: Column) -> str:
    if column.name == TIME:
        raise _NotSimple
    return column.name


def _joined(name: str, a: _Sets, b: _Sets) -> _Sets:
    """Kleene logic on one column: an `and` is true where both are, false where one is."""
    if a.column != b.column:
        raise _NotSimple
    if name == "and":
        return _Sets(a.column, a.true.intersect(b.true), a.false.union(b.false))
    return _Sets(a.column, a.true.union(b.true), a.false.intersect(b.false))


def _compared(name: str, column: Column, constant: Constant, schema: pa.Schema | None) -> _Sets:
    if name not in (*COMPARISONS, "equal_null_safe"):
        raise _NotSimple
    at = _value(constant, column, schema)
    if at is None and name != "equal_null_safe":
        return _Sets(_name(column), NOTHING, NOTHING)
    return _fitted(_Sets(_name(column), *_halves(name, at)), schema)


def _halves(name: str, at: Any) -> tuple[Values, Values]:
    match name:
        case "equal_null_safe":
            return value(at), value(at).complement()
        case "equal":
            return value(at), _but(value(at))
        case "not_equal":
            return _but(value(at)), value(at)
        case "less":
            return lt(at), ge(at)
        case "less_equal":
            return le(at), gt(at)
        case "greater":
            return gt(at), le(at)
    return ge(at), lt(at)


def _beginning(name: str, column: Column, text: str, schema: pa.Schema | None) -> _Sets:
    """Texts that begin alike are a stretch of their order; other regular expressions are no set of values."""
    true = prefix(text) if name == "startswith" else like(text) if name == "like" else matching(text)
    if true is None or (schema is not None and _kind(column, schema) != "string"):
        raise _NotSimple
    return _fitted(_Sets(_name(column), true, _but(true)), schema)


def _between(column: Column, low: Constant, high: Constant, schema: pa.Schema | None) -> _Sets:
    least, most = _value(low, column, schema), _value(high, column, schema)
    if least is None or most is None:
        above = _compared("greater_equal", column, low, schema)
        return _joined("and", above, _compared("less_equal", column, high, schema))
    inside = between(least, most)
    return _fitted(_Sets(_name(column), inside, _but(inside)), schema)


def _fitted(sets: _Sets, schema: pa.Schema | None) -> _Sets:
    """The sets with constants of the column's own type, where the schema is known."""
    if schema is None:
        return sets
    true, false = (Pattern.of({sets.column: v}).check(schema)[sets.column] for v in (sets.true, sets.false))
    return _Sets(sets.column, true, false)


def _but(values: Values) -> Values:
    """Every other value, and not null."""
    other = values.complement()
    return Values(other.low, other.cuts, False, other.kind, other.spelled)


def _member(column: Column, values: tuple[Constant, ...], schema: pa.Schema | None) -> _Sets:
    listed = [_value(v, column, schema) for v in values]
    named = [v for v in listed if v is not None]
    if not values:
        return _Sets(_name(column), NOTHING, ANY)
    true = one_of(named) if named else NOTHING
    false = NOTHING if len(named) < len(listed) else _but(true)
    return _fitted(_Sets(_name(column), true, false), schema)


def _value(constant: Constant, column: Column, schema: pa.Schema | None) -> Any:
    """The constant as a pattern names it, and as the column's own type has it where that is known."""
    at = _plain(constant)
    if at is None:
        return None
    if schema is not None:
        at = _as_compared(at, type_of(column, schema))
    is_float = schema is not None and _kind(column, schema) == "float"
    if isinstance(at, float) and abs(at) >= _EXACT_FLOATS and not is_float:
        raise _NotSimple
    return at


def _as_compared(at: Any, own: pa.DataType) -> Any:
    """A constant of another type than the column's, as one of its type that parts its values the same way.

    >>> _as_compared(Decimal("1.5"), pa.float64()), _as_compared(1.1, pa.decimal128(9, 2))
    (1.5, Decimal('1.1'))
    """
    match kind(own):
        case "float" if isinstance(at, Decimal) or (type(at) is int and abs(at) > _EXACT_FLOATS):
            return float(at)  # SQL compares doubles, too
        case "decimal" if isinstance(at, float) and pa.types.is_decimal(own):
            if not isfinite(at) or own.precision > _EXACT_DIGITS:
                raise _NotSimple
            return Decimal(repr(at))  # so few digits are told apart as doubles, each by its shortest text
        case "date" if isinstance(at, datetime) and at.tzinfo is None and at.time() == time():
            return at.date()
    return at


def _kind(column: Column, schema: pa.Schema) -> str:
    return kind(type_of(column, schema))


def _plain(constant: Constant) -> Any:
    if constant.value is None or kind(constant.type) != "timestamp":
        return constant.value
    scalar = constant.scalar
    if constant.type.unit == "ns" and scalar.value % 1000:
        raise _NotSimple
    return scalar.cast(pa.timestamp("us", tz=constant.type.tz)).as_py()
