"""Lengths of time written as people write them, counted in microseconds.

>>> micros("1h 30m") == micros(dt.timedelta(minutes=90)) == 5_400_000_000
True
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from functools import cache

from caesura.errors import ExprError

Duration = str | dt.timedelta

MICROS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|m|h|d|w)(?![a-z])\s*")


def micros(duration: Duration) -> int:
    """A duration in microseconds.

    >>> micros("250ms"), micros("-2s")
    (250000, -2000000)
    """
    if isinstance(duration, dt.timedelta):
        return duration // dt.timedelta(microseconds=1)
    return _read(duration) if isinstance(duration, str) else _read.__wrapped__(duration)


@cache
def _read(duration: str) -> int:
    written = str(duration).strip().lower()
    body = written.removeprefix("-").lstrip()
    spans = _PART.findall(body)
    total = sum((Fraction(count) * MICROS[unit] for count, unit in spans), Fraction(0))
    if not isinstance(duration, str) or not spans or _PART.sub("", body) or total.denominator != 1:
        raise ExprError(
            f"{duration!r} is no length of time.",
            remedy=f"Write a number and a unit ({', '.join(MICROS)}), as in '1h 30m', or a timedelta.",
        )
    return int(-total if written.startswith("-") else total)
