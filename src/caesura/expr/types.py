"""Names, kinds and promotion of column types, as Spark SQL has them.

>>> as_type("decimal(10,2)"), describe(pa.int64())
(Decimal128Type(decimal128(10, 2)), 'bigint')
>>> common_type(pa.int32(), pa.float64())
DataType(double)
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from functools import lru_cache, reduce
from typing import Literal

import pyarrow as pa
import pyarrow.types as pt

from caesura.errors import ExprError, closest
from caesura.events.types import plain_type

Kind = Literal[
    "null",
    "boolean",
    "integer",
    "float",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "struct",
    "list",
    "map",
    "other",
]

NAMED: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
}
_PRINTED = {
    NAMED[n]: n
    for n in (
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "string",
        "binary",
        "date",
    )
}
ELSEWHERE = {
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "float64": "double",
    "float32": "float",
    "str": "string",
    "text": "string",
    "utf8": "string",
    "bool": "boolean",
    "bytes": "binary",
    "date32": "date",
    "datetime": "timestamp",
}
"""What Python, NumPy and Arrow call types that have a Spark name here."""
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_UNITS = ("s", "ms", "us", "ns")
MAX_DIGITS = 38
TICKS = pa.int64()  # the time type of a stream that names no other


def as_type(named: pa.DataType | str) -> pa.DataType:
    """A pyarrow type from itself or from a Spark name.

    >>> as_type("bigint")
    DataType(int64)
    """
    if isinstance(named, pa.DataType):
        return named
    written = re.sub(r"\s+", "", str(named))
    name = written.lower()
    if name in NAMED:
        return NAMED[name]
    if sized := re.fullmatch(r"(?:decimal|numeric|dec)(?:\((\d+)(?:,(\d+))?\))?", name):
        digits, scale = int(sized[1] or 10), int(sized[2] or 0)
        if 1 <= digits <= MAX_DIGITS and scale <= digits:
            return pa.decimal128(digits, scale)
        raise ExprError(
            f"no type '{named}': a decimal holds 1 to {MAX_DIGITS} digits.", remedy="Use decimal(38,s)."
        )
    if nested := re.fullmatch(r"(array|map|struct)<(.*)>", written, re.IGNORECASE):
        return _nested_type(nested[1].lower(), nested[2])
    if name in ELSEWHERE:
        raise ExprError(f"no type '{named}'.", remedy=f"Here it is called '{ELSEWHERE[name]}'.")
    raise ExprError(f"no type '{named}'.", remedy=closest(name, [*NAMED, "decimal(10,2)"]))


def _nested_type(kind: str, inside: str) -> pa.DataType:
    """array<t>, map<k,v> or struct<a:t,...>."""
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if kind == "struct":
        fields = [part.partition(":") for part in parts]
        return pa.struct([(name, as_type(t)) for name, _, t in fields])
    if len(parts) != (1 if kind == "array" else 2):
        raise ExprError(f"no type '{kind}<{inside}>'.", remedy="Write array<int>, or map<string, int>.")
    inner = [as_type(part) for part in parts]
    return pa.list_(inner[0]) if kind == "array" else pa.map_(*inner)


def describe(type: pa.DataType) -> str:
    """The Spark name of a type, or pyarrow's where Spark has none.

    >>> describe(pa.struct([("a", pa.int32())]))
    'struct<a: int>'
    """
    if type in _PRINTED:
        return _PRINTED[type]
    match kind(type):
        case "null":
            return "void"
        case "decimal":
            return f"decimal({type.precision},{type.scale})"
        case "timestamp":
            return "timestamp" if type.tz is None else "timestamp_ltz"
        case "struct":
            return f"struct<{', '.join(f'{f.name}: {describe(f.type)}' for f in type.fields)}>"
        case "list":
            return f"array<{describe(type.value_type)}>"
        case "map":
            return f"map<{describe(type.key_type)}, {describe(type.item_type)}>"
    flat = plain(type)
    return _PRINTED[flat] if flat in _PRINTED and not pt.is_unsigned_integer(type) else str(type)


@lru_cache(1024)
def kind(type: pa.DataType) -> Kind:
    """Which family a type belongs to; encodings such as dictionaries do not matter."""
    type = plain(type)
    checks: tuple[tuple[Kind, bool], ...] = (
        ("null", pt.is_null(type)),
        ("boolean", pt.is_boolean(type)),
        ("integer", pt.is_integer(type)),
        ("float", pt.is_floating(type)),
        ("decimal", pt.is_decimal(type)),
        ("string", pt.is_string(type)),
        ("binary", pt.is_binary(type)),
        ("date", pt.is_date(type)),
        ("timestamp", pt.is_timestamp(type)),
        ("struct", pt.is_struct(type)),
        ("list", pt.is_list(type)),
        ("map", pt.is_map(type)),
    )
    return next((name for name, holds in checks if holds), "other")


@lru_cache(1024)
def plain(type: pa.DataType) -> pa.DataType:
    """The type operations compute with: no dictionaries, views, large offsets or unsigned numbers.

    >>> plain(pa.dictionary(pa.int8(), pa.large_string())), plain(pa.uint16())
    (DataType(string), DataType(int32))
    """
    if pt.is_dictionary(type):
        return plain(type.value_type)
    if pt.is_large_string(type) or pt.is_string_view(type):
        return pa.string()
    if pt.is_large_binary(type) or pt.is_binary_view(type) or pt.is_fixed_size_binary(type):
        return pa.binary()
    if pt.is_decimal(type):
        return pa.decimal128(min(type.precision, MAX_DIGITS), min(type.scale, MAX_DIGITS))
    if pt.is_uint64(type):
        return pa.decimal128(20, 0)
    if pt.is_date64(type):
        return pa.date32()
    if pt.is_nested(type):
        return plain_type(type)
    return pa.float32() if pt.is_float16(type) else _SIGNED.get(type, type)


def is_numeric(type: pa.DataType) -> bool:
    """Whether arithmetic is defined on it; an untyped null fits everywhere."""
    return kind(type) in ("integer", "float", "decimal", "null")


def as_decimal(type: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer or decimal type."""
    if pt.is_decimal(type):
        return type
    flat = plain(type)
    return pa.decimal128(_DIGITS[flat], 0) if pt.is_integer(flat) else flat


def decimal_of(digits: int, scale: int) -> pa.DataType:
    """Spark's DecimalType.adjustPrecisionScale: gives up fraction digits before whole ones.

    >>> decimal_of(50, 20)
    Decimal128Type(decimal128(38, 8))
    """
    if digits <= MAX_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal128(MAX_DIGITS, max(MAX_DIGITS - (digits - scale), min(scale, 6)))


def wider_decimal(a: pa.DataType, b: pa.DataType, *, limit: int = MAX_DIGITS) -> pa.DataType:
    """The decimal with both operands' whole digits and both operands' fraction digits."""
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale
    return pa.decimal128(digits, scale) if digits <= MAX_DIGITS else _wide(digits, scale, limit)


def _wide(digits: int, scale: int, limit: int) -> pa.DataType:
    if limit == MAX_DIGITS:
        return pa.decimal128(limit, min(scale, limit))
    return pa.decimal256(min(digits, limit), scale)


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type both fit in without a cast being written, or None where there is none.

    >>> common_type(pa.string(), pa.int32()) is None
    True
    """
    if a == b:
        return a
    a, b = plain(a), plain(b)
    if a == b or pt.is_null(b):
        return a
    match kind(a), kind(b):
        case "null", _:
            return b
        case "integer", "integer":
            return max(a, b, key=INTEGERS.index)
        case (("float" | "decimal" | "integer"), ("float" | "decimal" | "integer")):
            return _common_number(a, b)
        case "timestamp", "timestamp" if (a.tz is None) == (b.tz is None):
            return pa.timestamp(max(a.unit, b.unit, key=_UNITS.index), tz=a.tz)
        case "date", "timestamp":
            return b
        case "timestamp", "date":
            return a
        case ("list", "list") | ("map", "map") | ("struct", "struct"):
            return _common_nested(a, b)
    return None


def _common_nested(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type that holds both of two lists, maps or structs: by what is in them."""
    if pt.is_struct(a):
        if [f.name for f in a] != [f.name for f in b]:
            return None
        parts = [common_type(x.type, y.type) for x, y in zip(a, b, strict=True)]
        return None if None in parts else pa.struct([(f.name, t) for f, t in zip(a, parts, strict=True)])
    if pt.is_map(a):
        key, item = common_type(a.key_type, b.key_type), common_type(a.item_type, b.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    inner = common_type(a.value_type, b.value_type)
    return None if inner is None else pa.list_(inner)


def _common_number(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    kinds = {kind(a), kind(b)}
    if kinds == {"float", "integer"}:
        return a if pt.is_floating(a) else b
    if "float" in kinds:
        return pa.float64()
    return wider_decimal(as_decimal(a), as_decimal(b))


def comparison_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type to compare in: like `common_type`, but wide enough to lose no digit it need not."""
    kinds = {kind(a), kind(b)}
    if kinds == {"float", "integer"}:
        return pa.float64()
    if "decimal" in kinds and kinds <= {"decimal", "integer"}:
        return wider_decimal(as_decimal(a), as_decimal(b), limit=76)
    shared = common_type(a, b)
    return shared if shared is None else plain(shared)


def type_of_value(value: object) -> pa.DataType:
    """The type Spark gives a Python value.

    >>> type_of_value(3), type_of_value(2**40)
    (DataType(int32), DataType(int64))
    """
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int() if -(2**31) <= value < 2**31:
            return pa.int32()
        case int() if -(2**63) <= value < 2**63:
            return pa.int64()
        case float():
            return pa.float64()
        case str():
            return pa.string()
        case bytes():
            return pa.binary()
        case Decimal() if value.is_finite():
            return pa.scalar(value).type
        case dt.datetime():
            return pa.timestamp("us") if value.tzinfo is None else pa.timestamp("us", tz="UTC")
        case dt.date():
            return pa.date32()
        case list() | tuple():
            inner = reduce(_joint, map(type_of_value, value), pa.null())
            return pa.list_(pa.string() if pt.is_null(inner) else inner)
    raise ExprError(
        f"{value!r} ({type(value).__name__}) cannot be a constant in an expression.",
        remedy="Use None, bool, int (64 bit), float, str, bytes, Decimal, date, datetime, or a list of them.",
    )


def _joint(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    shared = common_type(a, b)
    if shared is None:
        raise ExprError(
            f"a list of {describe(a)} and {describe(b)} has elements of no one type.",
            remedy="Give elements of one type.",
        )
    return shared
