"""Expressions as Spark SQL text, with only the parentheses and quotes they need.

>>> from caesura.expr.nodes import col, lit
>>> sql((col("a") + 1) * 2.5 > col("odd name"))
'(a + 1) * 2.5E0 > `odd name`'
>>> str((col("a") + 1) * 2.5 == "it's")
"(a + 1) * 2.5 = 'it''s'"
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from caesura.expr.lambdas import Each, Element, ListFold
from caesura.expr.nodes import Alias, Apply, Boundary, Call, Case, Cast, Column, Constant, Expr, Field, Member
from caesura.expr.types import describe, kind

Style = Literal["sql", "plain"]
_OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _UNARY, _ATOM = range(1, 9)

_INFIX: dict[str, tuple[str, int]] = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    "equal": ("=", _TEST),
    "not_equal": ("<>", _TEST),
    "less": ("<", _TEST),
    "less_equal": ("<=", _TEST),
    "greater": (">", _TEST),
    "greater_equal": (">=", _TEST),
    "equal_null_safe": ("<=>", _TEST),
    "add": ("+", _SUM),
    "subtract": ("-", _SUM),
    "multiply": ("*", _PRODUCT),
    "divide": ("/", _PRODUCT),
    "remainder": ("%", _PRODUCT),
}
_NAMES = {
    "create_map": "map",
    "day_of_week": "dayofweek",
    "shift_left": "shiftleft",
    "contains_each": "contains",
    "try_remainder": "try_mod",
    "day_of_year": "dayofyear",
    "week_of_year": "weekofyear",
}
_BITS = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_KEYWORDS = """
all and any as between both by case cast check collate column constraint create cross current_date
current_timestamp date distinct else end except exists false fetch filter for foreign from full grant
group having in inner intersect interval into is join lateral leading left like limit minus natural not
null offset on only or order outer overlaps primary references right rlike select semi session_user set
some start table then time timestamp to trailing true union unique unknown user using when where window
with
"""
_RESERVED = frozenset(_KEYWORDS.split())
_SPANS = ((86_400_000_000, "DAY"), (3_600_000_000, "HOUR"), (60_000_000, "MINUTE"))


def sql(expr: Expr) -> str:
    """Spark SQL text that means exactly this expression, types of constants included."""
    return _top(expr, "sql")


def text(expr: Expr) -> str:
    """The same for people: constants are written as they are read, whatever their type."""
    return _top(expr, "plain")


def _top(expr: Expr, style: Style) -> str:
    if isinstance(expr, Alias):
        return f"{_write(expr.arg, style)[0]} AS {quoted(expr.name)}"
    return _write(expr, style)[0]


def quoted(name: str) -> str:
    """A name, in backticks when it is odd or reserved.

    >>> quoted("speed"), quoted("odd`name"), quoted("order")
    ('speed', '`odd``name`', '`order`')
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def _write(expr: Expr, style: Style) -> tuple[str, int]:
    """The text and how tightly its outermost operator binds."""
    match expr:
        case Element():
            return quoted(expr.shown), _ATOM
        case Column():
            return quoted(expr.name), _ATOM
        case Constant():
            return _constant(expr, style)
        case Boundary():
            return f"{expr.side}()", _ATOM
        case Apply():
            return _apply(expr, style)
        case Cast():
            word = "TRY_CAST" if expr.attempts else "CAST"
            return f"{word}({_free(expr.arg, style)} AS {_type(expr.type)})", _ATOM
        case Alias():
            return _write(expr.arg, style)
        case Field():
            return f"{_held(expr.arg, _ATOM, style)}.{quoted(expr.name)}", _ATOM
        case Member():
            return _member(expr, style)
        case Each() | ListFold():
            return _lambda(expr, style), _ATOM
        case Case():
            return _case(expr, style), _ATOM
        case Call():
            return f"{quoted(expr.name)}({', '.join(_free(a, style) for a in expr.args)})", _ATOM
    return object.__repr__(expr), _ATOM


def _free(expr: Expr, style: Style) -> str:
    return _write(expr, style)[0]


def _held(expr: Expr, at_least: int, style: Style) -> str:
    written, binding = _write(expr, style)
    return written if binding >= at_least else f"({written})"


def _apply(expr: Apply, style: Style) -> tuple[str, int]:
    if expr.name in _INFIX:
        return _infix(expr, style)
    if expr.name in ("item", "struct", "array_join", "sort_array", "array_sort"):
        return _nested(expr, style), _ATOM
    first = expr.args[0]
    operand = _held(first, _SUM, style)
    match expr.name, expr.options:
        case "not", _:
            return f"NOT {_held(first, _NOT, style)}", _NOT
        case "negate", _:
            return f"-{_held(first, _ATOM, style)}", _UNARY
        case "is_null", _:
            return f"{operand} IS NULL", _TEST
        case "is_not_null", _:
            return f"{operand} IS NOT NULL", _TEST
        case "between", _:
            low, high = (_held(a, _SUM, style) for a in expr.args[1:])
            return f"{operand} BETWEEN {low} AND {high}", _TEST
        case ("like" | "ilike" | "rlike") as name, (pattern,):
            return f"{operand} {name.upper()} {_string(pattern)}", _TEST
        case name, _ if name in _BITS:
            other = _held(expr.args[1], _ATOM, style)
            return f"({_held(first, _ATOM, style)} {_BITS[name]} {other})", _ATOM
        case "date_trunc", (unit,):
            return f"date_trunc({_string(str(unit).upper())}, {_free(first, style)})", _ATOM
        case "concat_ws", (separator,):
            return (
                f"concat_ws({', '.join([_string(separator), *(_free(a, style) for a in expr.args)])})",
                _ATOM,
            )
        case "locate", (wanted, pos):
            behind = f", {pos}" if pos != 1 else ""
            return f"locate({_string(wanted)}, {_free(first, style)}{behind})", _ATOM
        case ("trim" | "ltrim" | "rtrim") as name, (characters,):
            side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[name]
            return f"trim({side} {_string(characters)} FROM {_free(first, style)})", _ATOM
        case "plus_time", (length,):
            return f"{operand} {'-' if length < 0 else '+'} {_interval(abs(length))}", _SUM
    parts = [*(_free(a, style) for a in expr.args), *(_option(o) for o in expr.options)]
    return f"{_NAMES.get(expr.name, expr.name)}({', '.join(parts)})", _ATOM


def _nested(expr: Apply, style: Style) -> str:
    args = [_free(a, style) for a in expr.args]
    match expr.name, expr.options:
        case "item", _:
            return f"{_held(expr.args[0], _ATOM, style)}[{args[1]}]"
        case "struct", names:
            return (
                f"named_struct({', '.join(f'{_string(n)}, {a}' for n, a in zip(names, args, strict=True))})"
            )
        case "sort_array", (True, _):
            return f"sort_array({args[0]}, FALSE)"
        case "array_join", options:
            return f"array_join({', '.join([args[0], *(_string(o) for o in options if o is not None)])})"
    return f"{expr.name}({args[0]})"


def _lambda(expr: Each | ListFold, style: Style) -> str:
    names = [quoted(name.partition("\0")[0]) for name in expr.bound]
    given = names[0] if len(names) == 1 else f"({', '.join(names)})"
    if isinstance(expr, Each):
        return f"{expr.verb}({_free(expr.arg, style)}, {given} -> {_free(expr.body, style)})"
    parts = [_free(expr.arg, style), _free(expr.start, style), f"{given} -> {_free(expr.merge, style)}"]
    if not (isinstance(expr.finish, Element) and expr.finish.name == expr.bound[0]):
        parts.append(f"{names[0]} -> {_free(expr.finish, style)}")
    return f"aggregate({', '.join(parts)})"


def _infix(expr: Apply, style: Style) -> tuple[str, int]:
    symbol, binding = _INFIX[expr.name]
    left, right = expr.args
    looser = binding + 1 if binding == _TEST else binding
    tighter = binding if binding in (_OR, _AND) else binding + 1
    return f"{_held(left, looser, style)} {symbol} {_held(right, tighter, style)}", binding


def _member(expr: Member, style: Style) -> tuple[str, int]:
    if not expr.values:
        return "FALSE", _ATOM  # SQL has no empty list, and nothing is in it
    listed = ", ".join(_free(v, style) for v in expr.values)
    return f"{_held(expr.arg, _SUM, style)} IN ({listed})", _TEST


def _case(expr: Case, style: Style) -> str:
    whens = " ".join(f"WHEN {_free(c, style)} THEN {_free(v, style)}" for c, v in expr.branches)
    default = expr.default
    no_else = isinstance(default, Constant) and default.value is None
    return f"CASE {whens} END" if no_else else f"CASE {whens} ELSE {_free(default, style)} END"


def _option(value: Any) -> str:
    return _string(value) if isinstance(value, str) else str(value)


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _interval(length: int) -> str:
    for size, name in _SPANS:
        if length and length % size == 0:
            return f"INTERVAL '{length // size}' {name}"
    seconds = f"{Decimal(length) / 1_000_000:f}"
    return f"INTERVAL '{seconds}' SECOND"


def _constant(expr: Constant, style: Style) -> tuple[str, int]:
    written, natural = _value(expr)
    if natural == expr.type or style == "plain":
        signed = written.startswith("-")
        return (_unexact(expr, written) if style == "plain" else written), _UNARY if signed else _ATOM
    return f"CAST({written} AS {_type(expr.type)})", _ATOM


def _type(t: pa.DataType) -> str:
    """A type as SQL writes it; the names of a struct's fields stay."""
    return describe(t) if "struct<" in describe(t) else describe(t).upper()


def _unexact(expr: Constant, written: str) -> str:
    return repr(expr.value) if isinstance(expr.value, float) else written


def _value(expr: Constant) -> tuple[str, pa.DataType | None]:
    """The literal and the type SQL gives it; None where only a cast can say the type."""
    value, type = expr.value, expr.type
    if value is None:
        return "NULL", pa.null()
    match kind(type):
        case "list":
            inner = (_constant(Constant(v, type.value_type), "sql")[0] for v in value)
            return f"array({', '.join(inner)})", type if value else None
        case "boolean":
            return str(value).upper(), pa.bool_()
        case "integer":
            return str(value), pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
        case "float":
            return _float(float(value))
        case "decimal":
            return _decimal(value, type)
        case "string":
            return _string(value), pa.string()
        case "binary":
            return f"X'{value.hex().upper()}'", pa.binary()
        case "date":
            return f"DATE '{value}'", pa.date32()
        case "timestamp":
            return f"TIMESTAMP '{_instant(expr)}'", type
    return str(value), type


def _float(value: float) -> tuple[str, pa.DataType | None]:
    if math.isnan(value):
        return "'NaN'", None
    if math.isinf(value):
        return "'Infinity'" if value > 0 else "'-Infinity'", None
    written = repr(value)
    return (written if "e" in written else f"{written}E0"), pa.float64()


def _decimal(value: Decimal, type: pa.DataType) -> tuple[str, pa.DataType | None]:
    written = f"{value:f}"
    if "." not in written:
        return f"'{written}'", None
    digits = value.as_tuple()
    scale = -int(digits.exponent)
    return written, pa.decimal128(max(len(digits.digits), scale), scale)


def _instant(expr: Constant) -> str:
    utc = expr.scalar if expr.type.tz is None else expr.scalar.cast(pa.timestamp(expr.type.unit, tz="UTC"))
    written = str(utc.cast(pa.string()).as_py())
    stamp, zone = (written[:-1], "+00:00") if written.endswith("Z") else (written, "")
    return (re.sub(r"\.?0+$", "", stamp) if "." in stamp else stamp) + zone
