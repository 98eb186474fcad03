"""Time columns as ticks: integers as they are, timestamps and dates as microseconds.

>>> to_ticks(pa.array([1, None, 3], pa.timestamp("ms")), -1).tolist()
[1000, -1, 3000]
>>> from_ticks(np.array([1_000_000]), pa.timestamp("us")).to_pylist()
[datetime.datetime(1970, 1, 1, 0, 0, 1)]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError
from caesura.events.columns import words
from caesura.events.nested import validity
from caesura.kernels.hashing import I64, Mask
from caesura.plan import TICKS
from caesura.punctuation import INFINITY

SCALE = {"s": 1_000_000, "ms": 1_000, "us": 1}
DAY = 86_400_000_000


def check_time(name: str, t: pa.DataType) -> None:
    """Refuses a column that cannot say when."""
    if pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date(t):
        return
    if pa.types.is_null(t):
        raise PlanError(
            f"the time column '{name}' has no value that tells its type.",
            remedy="Give schema= with the column's type.",
        )
    raise PlanError(
        f"the time column '{name}' has the type {t}.",
        remedy="Time must be integers, timestamps or dates. Of a file of text, say the types of the columns: "
        f"schema=pa.schema([('{name}', pa.timestamp('us')), ...]). Of data in memory, cast the column first.",
    )


def stream_time(t: pa.DataType) -> pa.DataType:
    """The time of a stream whose time column has this type: plain ticks, or microseconds."""
    if pa.types.is_timestamp(t):
        return pa.timestamp("us", t.tz)
    return pa.timestamp("us") if pa.types.is_date(t) else TICKS


def to_ticks(column: pa.Array, missing: int) -> I64:
    """A time column as ticks; ``missing`` where it is null or beyond all ticks."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), missing, np.int64)
    if pa.types.is_int64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"):
        plain = column.view(pa.int64())
        ticks: I64 = words(plain.fill_null(missing) if plain.null_count else plain)
        return ticks
    raw, most = words(column), INFINITY // _factor(kind)
    bad: Mask = np.zeros(len(raw), np.bool_)
    if raw.dtype == np.uint64:
        bad = raw > np.uint64(INFINITY)
    whole = raw.astype(np.int64)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        whole = np.floor_divide(whole, 1000)
    bad |= (whole > most) | (whole < -most)
    if column.null_count:
        bad |= ~validity(column)
    return np.where(bad, missing, whole * _factor(kind))


def _factor(t: pa.DataType) -> int:
    if pa.types.is_timestamp(t):
        return SCALE.get(t.unit, 1)
    if pa.types.is_date32(t):
        return DAY
    return 1_000 if pa.types.is_date64(t) else 1


def as_text(ticks: I64, time: pa.DataType) -> pa.Array:
    """Times as people read them."""
    column = from_ticks(ticks, time)
    return column.cast(pa.string()) if pa.types.is_integer(time) else pc.strftime(column, "%Y-%m-%d %H:%M:%S")


def from_ticks(ticks: I64, time: pa.DataType, missing: Mask | None = None) -> pa.Array:
    """Ticks as a column of the stream's time, null where ``missing``."""
    column = pa.array(ticks, pa.int64(), mask=missing)
    return column if pa.types.is_integer(time) else column.view(time)
