"""When a module says that its rows live: ticks, or on streams of timestamps and dates those themselves.

>>> from datetime import datetime
>>> tick(7, pa.int64()), tick(datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("ms"))
(7, 1000)
"""

from __future__ import annotations

import operator
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.punctuation import INFINITY, MIN_TIME


def tick(value: Any, time: pa.DataType) -> int:
    """A time as a module gives it, in ticks; says in a ValueError what is wrong with one that is none."""
    try:
        found = operator.index(value)
    except TypeError:
        found = _ticks_of(value, time)
    if isinstance(value, bool | np.bool_) or not MIN_TIME <= found <= INFINITY:
        raise ValueError(f"{value!r} is no time that there is")
    return found


def _ticks_of(value: Any, time: pa.DataType) -> int:
    """A date or a timestamp in ticks of the stream's time."""
    if not isinstance(value, date | np.datetime64) or not pa.types.is_temporal(time):
        wanted = f"{time} or its ticks" if pa.types.is_temporal(time) else "a whole number of ticks"
        raise ValueError(f"{value!r} is no time of this stream: wanted {wanted}")
    if isinstance(value, datetime) and pa.types.is_timestamp(time):
        zoned, wants = value.tzinfo is not None, time.tz is not None
        if zoned != wants:
            have, want = ("a time zone", "none") if zoned else ("no time zone", time.tz)
            raise ValueError(f"{value!r} has {have}, the stream's times have {want}")
    width = pa.int32() if pa.types.is_date32(time) else pa.int64()
    try:
        found: int = pa.scalar(value, time).cast(width).as_py()
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"{value!r} is no {time}: {error}") from None
    if found is None:
        raise ValueError(f"{value!r} is no {time}")
    return found
