"""Durations as users write them: ``"2m"``, ``"500ms"``, a timedelta, or plain ticks.

>>> ticks("2m", pa.timestamp("us"), "window size")
120000000
>>> ticks(5, pa.int64(), "window size")
5
>>> ticks("2m", pa.int64(), "window size")
Traceback (most recent call last):
...
caesura.errors.PlanError: the window size is '2m', but this stream's time is plain integers.
Give a whole number of ticks, or read the stream with a timestamp column as its time.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from caesura.errors import ExprError, PlanError
from caesura.expr.durations import MICROS, micros
from caesura.punctuation.time import INFINITY

Duration = int | str | timedelta


def ticks(duration: Duration, time: pa.DataType, what: str) -> int:
    """A duration in the ticks of a stream's time."""
    if isinstance(duration, bool) or not isinstance(duration, (int, str, timedelta)):
        raise PlanError(
            f"the {what} is {duration!r}, which is no duration.",
            remedy="Write a text like '30s', a timedelta, or whole ticks.",
        )
    if isinstance(duration, int):
        return _within_time(duration, duration, what)
    if pa.types.is_integer(time):
        raise PlanError(
            f"the {what} is {duration!r}, but this stream's time is plain integers.",
            remedy="Give a whole number of ticks, or read the stream with a timestamp column as its time.",
        )
    try:
        return _within_time(micros(duration), duration, what)
    except ExprError as error:
        raise PlanError(f"the {what}: {error.problem}", remedy=error.remedy) from None


def _within_time(count: int, written: Duration, what: str) -> int:
    """Ticks, if they are no more than all time there is."""
    if abs(count) > INFINITY:
        raise PlanError(
            f"the {what} is {written!r}, which is longer than all time that can be told.",
            remedy="Give a shorter one; cz.INFINITY stands for no end.",
        )
    return count


def shown(ticks_: int, time: pa.DataType) -> str:
    """Ticks as a user would write them.

    >>> shown(90_000_000, pa.timestamp("us")), shown(7, pa.int64())
    ('1m30s', '7')
    """
    if pa.types.is_integer(time) or ticks_ == 0:
        return str(ticks_)
    out, rest = "-" if ticks_ < 0 else "", abs(ticks_)
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, MICROS[unit])
        out += f"{count}{unit}" if count else ""
    return out
