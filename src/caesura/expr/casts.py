"""Conversions between column types, with null for what cannot be converted (Spark's try_cast).

`cast` refuses such values, `try_cast` lets the null through. A timestamp finer than its new unit cannot be
converted: two instants would become one.

>>> cast_kernel(pa.string(), pa.int32())(pa.array([" 12", "+3", "4.5", "9999999999"])).to_pylist()
[12, 3, None, None]
>>> cast_kernel(pa.date32(), pa.int32()) is None
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from caesura.events.nested import any_element, element_type, elements, listed, struct_of
from caesura.expr.arrays import column, keep_where, numbers, try_convert, zero
from caesura.expr.decimals import scaled, whole
from caesura.expr.types import as_decimal, kind, plain

Converter = Callable[[Any], Any]
_INTEGRAL = r"^[+-]?[0-9]+$"
_NUMERAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def cast_kernel(source: pa.DataType, target: pa.DataType) -> Converter | None:
    """The conversion, or None where Spark has none either."""
    if source == target:
        return lambda a: a
    if kind(source) == "null":
        return lambda a: pa.nulls(len(a), target)
    flat, goal = (t if pt.is_decimal(t) else plain(t) for t in (source, target))
    if flat == goal:
        return lambda a: try_convert(a, target)
    inner = _between(flat, goal)
    if inner is None:
        return None
    if (flat, goal) == (source, target):
        return inner
    return lambda a: _finish(inner(a if source == flat else try_convert(a, flat)), target)


def _of_parts(source: pa.DataType, target: pa.DataType) -> Converter | None:
    """The conversion of what is in lists, maps and structs; null for the whole where a part has none."""
    if pt.is_struct(source):
        if source.num_fields != target.num_fields:
            return None
        inner = [cast_kernel(a.type, b.type) for a, b in zip(source, target, strict=True)]
        return None if None in inner else lambda a: _structs(a, inner, target)
    one = cast_kernel(element_type(source), element_type(target))
    return None if one is None else lambda a: _lists(a, one, target)


def _structs(column: pa.Array, inner: list[Any], target: pa.DataType) -> pa.Array:
    given = column.flatten()
    made = [convert(part) for convert, part in zip(inner, given, strict=True)]
    lost = [np.array(b.is_null()) & np.array(a.is_valid()) for a, b in zip(given, made, strict=True)]
    valid = np.array(column.is_valid()) & ~np.logical_or.reduce(lost)
    return struct_of(target, made, valid)


def _lists(column: pa.Array, convert: Converter, target: pa.DataType) -> pa.Array:
    offsets, values = elements(column)
    made = convert(values)
    lost = any_element(offsets, np.array(made.is_null()) & np.array(values.is_valid()))
    return listed(target, offsets, made, np.array(column.is_valid()) & ~lost)


def _finish(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array if array.type == target else try_convert(array, target)


def _between(source: pa.DataType, target: pa.DataType) -> Converter | None:
    match kind(source), kind(target):
        case "boolean", ("integer" | "float" | "string"):
            return lambda a: a.cast(target)
        case "boolean", "decimal":
            return lambda a: rescale(a.cast(pa.int8()).cast(as_decimal(pa.int8())), target)
        case "integer", "integer":
            return lambda a: try_convert(a, target)
        case "integer", "decimal":
            # Arrow refuses an integer column any of whose possible values would not fit.
            return lambda a: rescale(whole(a, as_decimal(source)), target)
        case (("integer" | "float"), "float"):
            return lambda a: a.cast(target, safe=False)
        case "float", "integer":
            return lambda a: _float_to_integer(a, target)
        case "float", "decimal":
            return lambda a: try_convert(a, target)
        case "decimal", "decimal":
            return lambda a: rescale(a, target)
        case "decimal", "integer":
            return lambda a: try_convert(_truncated(a), target)
        case "decimal", "float":
            return lambda a: a.cast(target)
        case (("integer" | "float" | "decimal"), "boolean"):
            return lambda a: pc.not_equal(a, zero(source))
        case ("list", "list") | ("map", "map") | ("struct", "struct"):
            return _of_parts(source, target)
        case "string", _:
            return _from_text(target)
        case _, "string":
            return _to_text(source)
        case _, ("date" | "timestamp"):
            return _to_time(source, target)
        case "timestamp", ("integer" | "float"):
            return _from_timestamp(source, target)
    return None


def _truncated(array: pa.Array) -> pa.Array:
    """Decimals without their fractions; Arrow has no room for the 0 of those that are all fraction."""
    scale = array.type.scale
    return pc.trunc(array.cast(pa.decimal256(76, scale)) if scale == array.type.precision else array)


def rescale(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Decimals rounded half up to fewer fraction digits; null where the whole digits do not fit."""
    scale = array.type.scale
    made = scaled(array, target)
    if made is not None:
        return made
    if scale > target.scale:
        array = array.cast(pa.decimal256(76, scale))
        array = pc.round(array, target.scale, round_mode="half_towards_infinity")
    return try_convert(array, target)


def _float_to_integer(array: pa.Array, target: pa.DataType) -> pa.Array:
    values, nulls = numbers(array)
    bound = 2.0 ** (target.bit_width - 1)
    whole = np.trunc(values)
    fits = (whole >= -bound) & (whole < bound)
    clean = np.where(fits, whole, 0).astype(target.to_pandas_dtype())
    return column(clean, ~fits | nulls, target)


def _from_text(target: pa.DataType) -> Converter | None:
    match kind(target):
        case "binary":
            return lambda a: a.cast(target)
        case "boolean":
            return _text_to_boolean
        case "integer":
            return lambda a: try_convert(_numerals(a, _INTEGRAL), target)
        case "float":
            return lambda a: try_convert(_special_floats(a), target)
        case "decimal":
            return lambda a: rescale(try_convert(_numerals(a, _NUMERAL), pa.decimal256(76, 38)), target)
        case "date":
            return lambda a: try_convert(_trimmed(pc.utf8_slice_codeunits(_trimmed(a), 0, 10)), target)
        case "timestamp":
            return lambda a: _text_to_timestamp(a, target)
    return None


def _trimmed(array: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(array)


def _numerals(array: pa.Array, form: str) -> pa.Array:
    trimmed = _trimmed(array)
    shaped = keep_where(pc.match_substring_regex(trimmed, form), trimmed)
    return pc.utf8_ltrim(shaped, characters="+")


def _special_floats(array: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(_trimmed(array))
    form = r"^[+-]?(inf|infinity|nan|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)[df]?$"
    shaped = keep_where(pc.match_substring_regex(lowered, form), lowered)
    return pc.utf8_ltrim(shaped, characters="+")


def _text_to_boolean(array: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(_trimmed(array))
    true = pc.is_in(lowered, value_set=pa.array(["t", "true", "y", "yes", "1"]))
    false = pc.is_in(lowered, value_set=pa.array(["f", "false", "n", "no", "0"]))
    return keep_where(pc.or_(true, false), true)


def _text_to_timestamp(array: pa.Array, target: pa.DataType) -> pa.Array:
    trimmed = _trimmed(array)
    zoned = pc.match_substring_regex(trimmed, r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")
    timed = pc.match_substring_regex(trimmed, r"[ T][0-9]")
    offset = pc.and_(zoned, timed)
    local = try_convert(keep_where(pc.invert(offset), trimmed), pa.timestamp(target.unit))
    if target.tz is None:
        return local
    instants = try_convert(keep_where(offset, trimmed), pa.timestamp(target.unit, tz="UTC"))
    return pc.coalesce(_to_zone(local, target.tz), instants.cast(target))


def _to_zone(array: pa.Array, zone: str) -> pa.Array:
    # A clock set forward skips an hour and set back repeats one: take the earlier instant, as Spark does.
    return pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="earliest")


def _to_text(source: pa.DataType) -> Converter | None:
    match kind(source):
        case "float":
            return _float_to_text
        case "timestamp":
            return _timestamp_to_text
        case "integer" | "decimal" | "binary" | "date":
            return lambda a: try_convert(a, pa.string())
    return None


def _float_to_text(array: pa.Array) -> pa.Array:
    text = pc.replace_substring_regex(array.cast(pa.string()), r"^(-?[0-9]+)(e|$)", r"\1.0\2")
    text = pc.replace_substring_regex(text, r"e\+?", "E")
    text = pc.replace_substring(text, "nan", "NaN")
    return pc.replace_substring(text, "inf", "Infinity")


def _timestamp_to_text(array: pa.Array) -> pa.Array:
    text = _local(array).cast(pa.string())
    return text if array.type.unit == "s" else pc.replace_substring_regex(text, r"\.?0+$", "")


def _to_time(source: pa.DataType, target: pa.DataType) -> Converter | None:
    match kind(source), kind(target):
        case "date", "timestamp":
            return lambda a: _zoned(try_convert(a, pa.timestamp(target.unit)), target)
        case "timestamp", "date":
            return lambda a: _local(a).cast(target, safe=False)
        case "timestamp", "timestamp" if (source.tz is None) == (target.tz is None):
            return lambda a: _in_units(a, target)
        case "timestamp", "timestamp":
            unit = pa.timestamp(target.unit)
            return lambda a: _zoned(_in_units(_local(a), unit), target)
        case "integer", "timestamp":
            return lambda a: _zoned(
                try_convert(a.cast(pa.int64()).view(pa.timestamp("s")), pa.timestamp(target.unit)),
                target,
                utc=True,
            )
        case (("float" | "decimal"), "timestamp"):
            return lambda a: _seconds_to_timestamp(a, target)
    return None


def _in_units(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Instants in another unit; null where it is too coarse for them, or they lie beyond its range."""
    had, has = _PER_SECOND[array.type.unit], _PER_SECOND[target.unit]
    if has >= had:
        return try_convert(array, target)
    values, nulls = numbers(array.view(pa.int64()))
    whole, rest = np.divmod(values, had // has)
    return column(whole, (rest != 0) | nulls, pa.int64()).view(target)


def _local(array: pa.Array) -> pa.Array:
    return array if array.type.tz is None else pc.local_timestamp(array)


def _zoned(array: pa.Array, target: pa.DataType, *, utc: bool = False) -> pa.Array:
    if target.tz is None:
        return array
    return array.cast(target) if utc else _to_zone(array, target.tz)


def _seconds_to_timestamp(array: pa.Array, target: pa.DataType) -> pa.Array:
    ticks = pc.multiply(array.cast(pa.float64()), float(_PER_SECOND[target.unit]))
    return _float_to_integer(ticks, pa.int64()).view(pa.timestamp(target.unit)).cast(target)


def _from_timestamp(source: pa.DataType, target: pa.DataType) -> Converter:
    per_second = _PER_SECOND[source.unit]
    if kind(target) == "float":
        return lambda a: pc.divide(a.view(pa.int64()).cast(pa.float64(), safe=False), float(per_second)).cast(
            target
        )

    def seconds(array: pa.Array) -> pa.Array:
        values, nulls = numbers(array.view(pa.int64()))
        return try_convert(column(values // per_second, nulls, pa.int64()), target)

    return seconds
