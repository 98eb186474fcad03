"""Functions on dates and timestamps; zoned timestamps are read on their own zone's clock.

>>> from caesura.expr.nodes import col
>>> plan = RULES["plus_time"](col("d").plus_time("36h"), [pa.date32()])
>>> plan.type, str(plan.kernel(pa.array([0]).cast(plan.operands[0]))[0])
(TimestampType(timestamp[us]), '1970-01-02 12:00:00')
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError, closest
from caesura.expr.faults import Attempt
from caesura.expr.nodes import Apply
from caesura.expr.rules import Kernel, Rule, TypedNode, Types, checking, want, wrong
from caesura.expr.types import kind
from caesura.expr.whole import CHECKED

_STAMP = pa.timestamp("us")
_DAY = 86_400_000_000
_PER_MICRO = {"s": 1_000_000, "ms": 1_000, "us": 1}
_CLOCK = ("hour", "minute", "second")
_PARTS: dict[str, Kernel] = {
    "year": lambda a: pc.year(a),
    "month": lambda a: pc.month(a),
    "day": lambda a: pc.day(a),
    "hour": lambda a: pc.hour(a),
    "minute": lambda a: pc.minute(a),
    "second": lambda a: pc.second(a),
    "day_of_week": lambda a: pc.day_of_week(a, count_from_zero=False, week_start=7),
}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def _want_time(node: Apply, types: Types) -> None:
    want(
        node,
        types,
        ("date", "timestamp"),
        "a date or timestamp",
        remedy="Read it from text with .cast('timestamp'), from a count with .timestamp_micros(); "
        "start() and end() of a stream counted in ticks move with + and -.",
    )


def _stamp(type: pa.DataType) -> pa.DataType:
    return type if kind(type) == "timestamp" else _STAMP


def _part(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    read = _PARTS[node.name]
    operand = _stamp(types[0]) if node.name in _CLOCK or kind(types[0]) != "date" else pa.date32()
    return TypedNode(pa.int32(), (operand,), lambda a: read(a).cast(pa.int32()))


def _date_trunc(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    (unit,) = node.options
    if unit not in UNITS:
        raise ExprError(f"in '{node}': no unit '{unit}'.", remedy=closest(str(unit), UNITS))
    type = _stamp(types[0])
    return TypedNode(type, (type,), lambda a: pc.floor_temporal(a, unit=unit))


def _unix_micros(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    operand = pa.timestamp("us", tz=_stamp(types[0]).tz)
    return TypedNode(pa.int64(), (operand,), lambda a: a.view(pa.int64()))


def _timestamp_micros(node: Apply, types: Types) -> TypedNode:
    want(node, types, ("integer",), "a whole number", remedy="Cast it: .cast('bigint').")
    return TypedNode(_STAMP, (pa.int64(),), lambda a: a.view(_STAMP))


def _plus_time(node: Apply, types: Types) -> TypedNode:
    _want_time(node, types)
    (length,) = node.options
    if kind(types[0]) == "date" and length % _DAY == 0:
        days = pa.scalar(length // _DAY, pa.int32())
        return checking(pa.date32(), (pa.date32(),), _moved(pa.date32(), days))
    type = _stamp(types[0])
    ticks, rest = (length * 1000, 0) if type.unit == "ns" else divmod(length, _PER_MICRO[type.unit])
    if rest:
        finer = ".cast('timestamp') gives microseconds."
        raise wrong(node, f"a timestamp finer than {type.unit}", types, remedy=f"Cast it first: {finer}")
    return checking(type, (type,), _moved(type, pa.scalar(ticks, pa.int64())))


def _moved(type: pa.DataType, by: pa.Scalar) -> Attempt:
    # On the ticks themselves: one kernel for every unit and zone.
    return Attempt(lambda a: CHECKED["add"](a.view(by.type), by).view(type))


RULES: dict[str, Rule] = {
    **dict.fromkeys(_PARTS, _part),
    "date_trunc": _date_trunc,
    "unix_micros": _unix_micros,
    "timestamp_micros": _timestamp_micros,
    "plus_time": _plus_time,
}
