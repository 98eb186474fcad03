"""What values a column type has between two constants: those that witnesses are made of.

>>> Domain(pa.int8()).between((100, 1), None), Domain(pa.int8()).between((127, 1), None)
([101, 102, 103], [])
>>> Domain(pa.timestamp("s")).between((dt.datetime(2024, 1, 1, 0, 0, 0, 5), 0), None)[0]
datetime.datetime(2024, 1, 1, 0, 0, 1)
>>> Domain(pa.date32()).between((dt.date.max, 0), None), Domain(pa.date32()).between((dt.date.max, 1), None)
([datetime.date(9999, 12, 31)], [])
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa

from caesura.expr.types import kind

Cut = tuple[Any, int] | None
"""A border: (value, 0) lies before the value, (value, 1) behind it."""
_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 1}
_SPREAD = (0, 1, 2, 100)


class Domain:
    """The values of one column type."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t.value_type if pa.types.is_dictionary(t) else t
        self.kind = kind(self.type)

    def between(self, low: Cut, high: Cut) -> list[Any]:
        """Some values behind one border and before another; those nearest to the one come first."""
        if self.kind == "integer":
            return self._whole(low, high)
        if self.kind == "float":
            return _real(low, high)
        if self.kind == "string":
            return _text(low, high)
        at = (low or high or (None, 0))[0]
        if isinstance(at, dt.datetime):
            return self._times(low, high)
        if isinstance(at, dt.date):
            return _stepped(low, high, dt.timedelta(days=1))
        if at is None:
            return self.some()
        return _stepped(low, high, 1) if isinstance(at, (int, float)) or hasattr(at, "as_tuple") else [at]

    def some(self) -> list[Any]:
        """Plain values."""
        if self.kind in _SOME:
            return [v for v in _SOME[self.kind] if self.kind != "integer" or self._holds(v)]
        if pa.types.is_timestamp(self.type):
            return [dt.datetime(2024, 1, 1, tzinfo=None if self.type.tz is None else dt.UTC)]
        if pa.types.is_date(self.type):
            return [dt.date(2024, 1, 1)]
        return [None]

    def _holds(self, v: int) -> bool:
        low, high = bounds(self.type)
        return low <= v <= high

    def _whole(self, low: Cut, high: Cut) -> list[int]:
        if any(cut is not None and not math.isfinite(cut[0]) for cut in (low, high)):
            return []
        if low is not None:
            first = math.ceil(low[0]) if low[1] == 0 else math.floor(low[0]) + 1
            near = [first + n for n in _SPREAD]
        elif high is not None:
            last = math.ceil(high[0]) - 1 if high[1] == 0 else math.floor(high[0])
            near = [last - n for n in _SPREAD]
        else:
            return self.some()
        return [v for v in near if self._holds(v)]

    def _times(self, low: Cut, high: Cut) -> list[dt.datetime]:
        unit = _UNITS.get(getattr(self.type, "unit", "us"), 1)
        return _stepped(_even(low, unit), _even(high, unit), dt.timedelta(microseconds=unit))


def bounds(t: pa.DataType) -> tuple[int, int]:
    """The least and the greatest whole number of a type."""
    if pa.types.is_unsigned_integer(t):
        return 0, (1 << t.bit_width) - 1
    return -(1 << t.bit_width - 1), (1 << t.bit_width - 1) - 1


_SOME: dict[str, list[Any]] = {
    "integer": [0, 1, -1, 7],
    "float": [0.0, 1.0, -1.5],
    "string": ["", "a"],
    "boolean": [False],
}


def _real(low: Cut, high: Cut) -> list[float]:
    """Not-a-number lies behind all numbers."""
    if low is None:
        if high is None:
            return list(_SOME["float"])
        return [float(high[0]), high[0] - 1.0, math.nextafter(high[0], -math.inf)]
    at = float(low[0])
    middle = at + 1.0 if high is None else at / 2 + high[0] / 2
    near = [at, middle, math.nextafter(at, math.inf)]
    return near if high is not None or at < math.inf else [math.nan]


def _text(low: Cut, high: Cut) -> list[str]:
    if low is None:
        return list(_SOME["string"]) if high is None else ["", "a", high[0]]
    return [low[0], low[0] + "a", low[0] + "\x00"]


def _even(cut: Cut, unit: int) -> Cut:
    """The border among whole units that parts them as a border between two of them does."""
    over = 0 if cut is None else cut[0].microsecond % unit
    return cut if cut is None or not over else (cut[0] - dt.timedelta(microseconds=over), 1)


def _stepped(low: Cut, high: Cut, step: Any) -> list[Any]:
    """Values by steps from a border on, as far as Python has them."""
    if low is not None:
        (at, first), sign = low, 1
    elif high is not None:
        at, first, sign = high[0], 1 - high[1], -1
    else:
        return []
    out = []
    for n in range(first, first + 3):
        try:
            out.append(at + sign * n * step)
        except OverflowError:
            break
    return out
