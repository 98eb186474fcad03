"""Durations as users write them: ``"2m"``, ``"1 hour"``, a timedelta, or a number where time is numbers.

A number alone has no unit, so that it is refused where time is a timestamp or the clock. Zero and
``INFINITY`` need none.

>>> ticks("2m", pa.timestamp("us"), "window size")
120000000
>>> ticks(5, pa.int64(), "window size")
5
>>> ticks(5, pa.timestamp("us"), "window size")
Traceback (most recent call last):
...
caesura.errors.PlanError: the window size is 5, a number without a unit, and time here is no plain number.
Write "5s" for seconds (or us, ms, m, h, d, w), or a timedelta; "5us" is what 5 would count.
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
CLOCK = pa.timestamp("us")
"""The type of the clock's readings: a length of its time always has a unit."""


def ticks(duration: Duration, time: pa.DataType, what: str) -> int:
    """A duration in the ticks of a stream's time."""
    if isinstance(duration, bool) or not isinstance(duration, (int, str, timedelta)):
        raise PlanError(
            f"the {what} is {duration!r}, which is no duration.",
            remedy="Write a text like '30s', a timedelta, or whole ticks.",
        )
    if isinstance(duration, int):
        if pa.types.is_timestamp(time) and duration not in (0, INFINITY):
            raise PlanError(
                f"the {what} is {duration}, a number without a unit, and time here is no plain number.",
                remedy=f'Write "{duration}s" for seconds (or us, ms, m, h, d, w), or a timedelta; '
                f'"{duration}us" is what {duration} would count.',
            )
        return _within_time(duration, duration, what)
    if pa.types.is_integer(time):
        raise PlanError(
            f"the {what} is {duration!r}, but this stream's time is plain integers.",
            remedy="Give a whole number of ticks, or read the stream with a timestamp column as its time.",
        )
    try:
        length, unit = micros(duration), MICROS["d"] if pa.types.is_date32(time) else 1
    except ExprError as error:
        raise PlanError(f"the {what}: {error.problem}", remedy=error.remedy) from None
    if length % unit:
        raise PlanError(
            f"the {what} is {duration!r}, but dates have whole days.", remedy="Give days, as in '7d'."
        )
    return _within_time(length // unit, duration, what)


def seconds(duration: Duration, what: str) -> float:
    """A duration of the clock, in seconds.

    >>> seconds("1m 30s", "timeout")
    90.0
    """
    length = ticks(duration, CLOCK, what)
    if length < 0:
        raise PlanError(f"the {what} is {duration!r}, below zero.", remedy="Give zero or more, like '30s'.")
    return length / 1e6


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
