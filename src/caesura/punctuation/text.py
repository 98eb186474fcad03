"""How a set of values reads, in the style of the thesis.

>>> from caesura.punctuation.values import between, ge, lt, one_of
>>> print(lt(3).union(one_of([5, 7])).union(ge(9)))
< 3 or {5, 7} or >= 9
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caesura.punctuation.values import Interval, Values

MAX_SHOWN = 16  # intervals that are spelled out; a set of 100,000 points must not flood a log
LONGEST = 80  # letters of a text that messages repeat
NOTHING_AT_ALL = "nothing"


def excerpt(text: str) -> str:
    """The beginning of a text, for messages."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def constant(value: Any) -> str:
    """One constant as people write it."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else repr(value)


def describe(values: Values) -> str:
    """The whole set as one line."""
    if values.is_any:
        return "*"
    if values.low and not values.cuts:
        return "not null"
    if values.low and len(values.cuts) == 2 and values.kind != "bool":
        outside = values.complement().intervals[0]
        parts = [f"!= {constant(outside.lo)}"] if outside.is_point else _parts(values)
    else:
        parts = _parts(values)
    if values.null:
        parts.append("null")
    return " or ".join(parts) or NOTHING_AT_ALL


def constraint(name: str, values: Values) -> str:
    """The set as a condition on a named attribute.

    >>> from caesura.punctuation.values import NULL, lt, one_of, value
    >>> [constraint("id", v) for v in (value(4), lt(4), one_of([1, 3]), NULL)]
    ['id = 4', 'id < 4', 'id in {1, 3}', 'id is null']
    """
    name = name if re.fullmatch(r"\w+", name) else repr(name)
    if values.is_point:
        return f"{name} is null" if not values.cuts else f"{name} = {describe(values)}"
    body = describe(values)
    if body == "not null":
        return f"{name} is not null"
    return f"{name} {body}" if body[0] in "<>!" else f"{name} in {body}"


def _parts(values: Values) -> list[str]:
    intervals = values.intervals
    parts: list[str] = []
    points: list[str] = []
    for interval in intervals[:MAX_SHOWN]:
        if interval.is_point:
            points.append(constant(interval.lo))
            continue
        _flush(points, parts)
        parts.append(_stretch(interval, values.kind))
    _flush(points, parts)
    if len(intervals) > MAX_SHOWN:
        parts.append(f"{len(intervals) - MAX_SHOWN} more")
    return parts


def _flush(points: list[str], parts: list[str]) -> None:
    if points:
        parts.append(points[0] if len(points) == 1 else f"{{{', '.join(points)}}}")
        points.clear()


def _stretch(interval: Interval, kind: str) -> str:
    lo, lo_closed, hi, hi_closed = interval
    if lo is None:
        if kind == "int":
            return f"< {hi + 1}"
        return f"{'<=' if hi_closed else '<'} {constant(hi)}"
    if hi is None:
        return f"{'>=' if lo_closed else '>'} {constant(lo)}"
    return f"{'[' if lo_closed else '('}{constant(lo)}..{constant(hi)}{']' if hi_closed else ')'}"
