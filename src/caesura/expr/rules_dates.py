"""Functions on dates and timestamps beyond their parts: patterns, months, days between.

>>> from caesura.expr.nodes import col
>>> plan = RULES["date_format"](col("d").date_format("dd.MM.yyyy"), [pa.date32()])
>>> plan.kernel(pa.array([0]).cast(plan.operands[0])).to_pylist()
['01.01.1970']
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.expr import datetime_patterns as patterns
from caesura.expr.arrays import column, numbers, try_convert
from caesura.expr.faults import Attempt
from caesura.expr.nodes import Apply
from caesura.expr.rules import Datum, Kernel, Rule, TypedNode, Types, checking, want, wrong
from caesura.expr.types import kind
from caesura.expr.whole import CHECKED

_STAMP, _DATE, _STRING, _INT = pa.timestamp("us"), pa.date32(), pa.string(), pa.int32()
_REMEDY = "Read it from text with .cast('timestamp'), from a count with .timestamp_micros()."


def _want_time(node: Apply, types: Types) -> None:
    want(node, types, ("date", "timestamp"), "a date or timestamp", remedy=_REMEDY)


def _stamp(type: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", tz=type.tz) if kind(type) == "timestamp" else _STAMP


def _date_format(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    wanted = patterns.fields(node.options[0])
    return TypedNode(_STRING, (_stamp(types[0]),), lambda a: patterns.written(a, wanted))


def _to_timestamp(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("string",), "text", remedy="Only texts are read by a pattern; leave it out.")
    wanted = patterns.fields(node.options[0], letters=patterns.READ)
    patterns.check_reading(wanted)
    return checking(_STAMP, (_STRING,), Attempt(lambda a: patterns.read(a, wanted)))


def _unix_timestamp(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    operand = _stamp(types[0])

    def kernel(array: pa.Array) -> pa.Array:
        ticks, nulls = numbers(array.view(pa.int64()))
        return column((ticks - np.fmod(ticks, 1_000_000)) // 1_000_000, nulls, pa.int64())  # towards 1970

    return TypedNode(pa.int64(), (operand,), kernel)


_PARTS: dict[str, Kernel] = {
    "quarter": lambda a: pc.quarter(a),
    "day_of_year": lambda a: pc.day_of_year(a),
    "week_of_year": lambda a: pc.iso_week(a),
    "weekday": lambda a: pc.day_of_week(a),
}


def _part(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    read = _PARTS[node.name]
    operand = _DATE if kind(types[0]) == "date" else _stamp(types[0])
    return TypedNode(_INT, (operand,), lambda a: read(a).cast(_INT))


def _want_days(node: Apply, types: Types) -> None:
    if kind(types[0]) not in ("date", "timestamp", "null") or kind(types[1]) not in ("integer", "null"):
        wanted = "a date or timestamp and a whole number"
        raise wrong(node, wanted, types, remedy="Cast them: .cast('date'), .cast('int').")


def _days(datum: Datum) -> tuple[Any, Any]:
    return numbers(datum.cast(_INT))


def _date_add(node: Apply, types: Types) -> TypedNode:
    _want_days(node, types)
    move = CHECKED["add" if node.name == "date_add" else "subtract"]
    return checking(_DATE, (_DATE, _INT), Attempt(lambda a, n: move(a.cast(_INT), n).cast(_DATE)))


def _date_diff(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    return TypedNode(_INT, (_DATE, _DATE), lambda a, b: pc.subtract(a.cast(_INT), b.cast(_INT)))


def _months(array: Datum) -> tuple[Any, Any]:
    """Months since 1970, and the day of the month from 0."""
    days, _ = _days(array)
    at = days.astype("datetime64[D]")
    months = at.astype("datetime64[M]")
    return months, (at - months.astype("datetime64[D]")).astype(np.int64)


def _last_day(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)

    def kernel(array: pa.Array) -> pa.Array:
        months, _ = _months(array)
        last = (months + 1).astype("datetime64[D]").astype(np.int64) - 1
        return column(last.astype(np.int32), _days(array)[1], _INT).cast(_DATE)

    return TypedNode(_DATE, (_DATE,), kernel)


def _add_months(node: Apply, types: Types) -> TypedNode:
    _want_days(node, types)

    def kernel(array: Datum, count: Datum) -> pa.Array:
        months, day = _months(array)
        by, missing = numbers(count)
        moved = months + by.astype("timedelta64[M]")
        first = moved.astype("datetime64[D]").astype(np.int64)
        length = (moved + 1).astype("datetime64[D]").astype(np.int64) - first
        made = first + np.minimum(day, length - 1)
        return try_convert(column(made, _days(array)[1] | missing, pa.int64()), _INT).cast(_DATE)

    return checking(_DATE, (_DATE, _INT), Attempt(kernel))


def _try_to_timestamp(node: Apply, types: Types) -> TypedNode:
    plan = _to_timestamp(node, types)
    assert plan.attempt is not None
    return TypedNode(plan.type, plan.operands, plan.attempt)


RULES: dict[str, Rule] = {
    "date_format": _date_format,
    "to_timestamp": _to_timestamp,
    "try_to_timestamp": _try_to_timestamp,
    "unix_timestamp": _unix_timestamp,
    **dict.fromkeys(_PARTS, _part),
    "date_add": _date_add,
    "date_sub": _date_add,
    "date_diff": _date_diff,
    "last_day": _last_day,
    "add_months": _add_months,
}
