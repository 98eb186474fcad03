"""Times that Python's calendar does not reach, such as the end of what never ends; Arrow holds them.

>>> import pyarrow as pa
>>> values(pa.array([0, 2**63 - 1], pa.timestamp("us")))
[datetime.datetime(1970, 1, 1, 0, 0), inf]
"""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa

from caesura.punctuation import INFINITY


class FarTime(int):
    """A count of a column's units since 1970; before or behind every date that Python knows."""

    def __lt__(self, other: Any) -> bool:
        return self < 0 if isinstance(other, date) else int(self) < other

    def __gt__(self, other: Any) -> bool:
        return self > 0 if isinstance(other, date) else int(self) > other

    def __repr__(self) -> str:
        return "inf" if self >= INFINITY else f"{int(self)} since 1970"

    __str__ = __repr__


def values(column: pa.Array) -> list[Any]:
    """The values of a column as Python has them."""
    try:
        kept: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        if not pa.types.is_temporal(column.type):
            raise
        return [_value(one) for one in column]
    return kept


def _value(one: pa.Scalar[Any]) -> Any:
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return FarTime(one.value)
