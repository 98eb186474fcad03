"""Time columns as ticks: integers as they are, timestamps and dates as microseconds.

>>> ticks_, bad = to_ticks(pa.array([1, None, 3], pa.timestamp("ms")), 0)
>>> ticks_.tolist(), bad.tolist()
([1000, 0, 3000], [False, True, False])
>>> from_ticks(np.array([1_000_000]), pa.timestamp("us")).to_pylist()
[datetime.datetime(1970, 1, 1, 0, 0, 1)]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.columns import validity, words
from caesura.kernels.hashing import I64, Mask
from caesura.plan import TICKS
from caesura.punctuation import INFINITY

SCALE = {"s": 1_000_000, "ms": 1_000, "us": 1}
DAY = 86_400_000_000


def check_time(name: str, t: pa.DataType) -> None:
    """Refuses a column that cannot say when."""
    if pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date(t):
        return
    raise PlanError(
        f"the time column '{name}' has the type {t}.",
        remedy="Time must be integers, timestamps or dates; cast the column before it is read.",
    )


def stream_time(t: pa.DataType) -> pa.DataType:
    """The time of a stream whose time column has this type: plain ticks, or microseconds."""
    if pa.types.is_timestamp(t):
        return pa.timestamp("us", t.tz)
    return pa.timestamp("us") if pa.types.is_date(t) else TICKS


def to_ticks(column: pa.Array, missing: int) -> tuple[I64, Mask | None]:
    """A time column as ticks, ``missing`` where it is null or beyond all ticks; and which rows those are."""
    if pa.types.is_null(column.type):
        return np.full(len(column), missing, np.int64), np.ones(len(column), np.bool_)
    raw = words(column)
    valid = validity(column)
    factor = _factor(column.type)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        whole = np.floor_divide(raw, 1000)
        bad = None
    elif raw.dtype == np.uint64:
        bad = raw > np.uint64(INFINITY)
        whole = raw.astype(np.int64)
    else:
        whole = raw.astype(np.int64, copy=False)
        bad = None
    if factor > 1:
        most = INFINITY // factor
        bad = (whole > most) | (whole < -most)
        whole = whole * factor
    if len(valid):
        bad = ~valid if bad is None else bad | ~valid
    if bad is None or not bad.any():
        return whole, None
    return np.where(bad, missing, whole), bad


def _factor(t: pa.DataType) -> int:
    if pa.types.is_timestamp(t):
        return SCALE.get(t.unit, 1)
    if pa.types.is_date32(t):
        return DAY
    return 1_000 if pa.types.is_date64(t) else 1


def from_ticks(ticks: I64, time: pa.DataType, missing: Mask | None = None) -> pa.Array:
    """Ticks as a column of the stream's time, null where ``missing``."""
    column = pa.array(ticks, pa.int64(), mask=missing)
    return column if pa.types.is_integer(time) else column.view(time)
